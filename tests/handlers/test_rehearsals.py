"""What the handlers make of a plan with rehearsals; the services are in memory (`build_model`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from build_model import Cloud, Poll, Stack
from build_model.cloud import STORE
from build_model.plans import Published, put_plan
from build_model.steps import ONE, OTHER_REQUESTS, REHEARSED, deploy, job, poll

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.fixture
def rehearsed(cloud: Cloud) -> Stack:
    """A stack whose rehearsals have passed."""
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})
    stack.settle(poll(stack))
    assert stack.plan is cloud.plans[REHEARSED]
    return stack


def test_the_job_that_builds_an_archive_rehearses_it_and_those_that_are_committed(cloud: Cloud) -> None:
    stack = deploy(cloud, REHEARSED)
    poll(stack)

    (text, plain), (built,) = (plan_of(cloud)[name] for name in ("rehearsals", "ensembles"))
    assert (text["artifact_key"], text["archive"]) == (built["artifact_key"], None)
    assert plain["archive"] == f"archives/plain/{plain['artifact_key']}.tar.gz"
    assert poll(stack) == Poll()
    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(stack) == Poll(done=True)
    cloud.assert_delivered(cloud.plans[REHEARSED])
    assert cloud.program.incomplete == []


def test_a_job_that_ends_while_a_poll_looks_at_it(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the poll sees the archive being built, and its rehearsal already there."""
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    running, describe = job(cloud), cloud.codebuild.batch_get_builds

    def end_afterwards(request: Any) -> Any:
        found = describe(request)
        monkeypatch.undo()
        cloud.end(running, "SUCCEEDED", {})
        return found

    monkeypatch.setattr(cloud.codebuild, "batch_get_builds", end_afterwards)

    assert poll(stack) == Poll()
    assert poll(stack) == Poll(done=True)
    cloud.assert_delivered(cloud.plans[REHEARSED])


def test_a_pass_says_what_was_rehearsed_and_how_it_went(cloud: Cloud, rehearsed: Stack) -> None:
    planned = cloud.plans[REHEARSED].rehearsals[0]

    found = cloud.pass_of(planned)

    assert found is not None
    assert {name: found[name] for name in ("repository", "artifact_key", "key", "image", "promoted_from")} == {
        **{name: planned[name] for name in ("repository", "artifact_key", "key", "image")},
        "promoted_from": None,
    }
    assert found["result"]["load_seconds"] == 2.5


def test_what_has_passed_is_not_rehearsed_again(cloud: Cloud, rehearsed: Stack) -> None:
    cloud.calls.clear()

    assert poll(deploy(cloud, REHEARSED)).done

    assert cloud.calls == {("s3", "GetObject"), ("s3", "HeadObject")}


def test_other_requests_are_rehearsed_and_nothing_of_it_is_built_again(cloud: Cloud, rehearsed: Stack) -> None:
    stack = deploy(cloud, OTHER_REQUESTS)
    poll(stack)

    plan = plan_of(cloud)
    assert [each["repository"] for each in plan["ensembles"]] == ["image"]
    assert [(each["repository"], each["archive"] is None) for each in plan["rehearsals"]] == [
        ("text", False),
        ("image", True),
    ]
    cloud.end(job(cloud), "SUCCEEDED", {})
    assert poll(stack).done
    assert len(cloud.program.rehearsed) == 4


def test_a_wrong_answer_fails_the_deployment_and_the_archive_stays(cloud: Cloud, messages: Messages) -> None:
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"rehearsal of text": "failed"})

    messages.record("a rehearsal", str(poll(stack).failure))

    text, plain = cloud.plans[REHEARSED].rehearsals
    assert cloud.pass_of(text) is None
    cloud.assert_rehearsed(plain)
    poll(deploy(cloud, REHEARSED))
    plan = plan_of(cloud)
    assert plan["ensembles"] == []
    assert [each["key"] for each in plan["rehearsals"]] == [text["key"]]


def test_a_rehearsal_that_the_job_did_not_start_is_tried_again_once(cloud: Cloud) -> None:
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"rehearsal of text": "unstarted"})

    assert poll(stack) == Poll()

    assert [each["repository"] for each in plan_of(cloud)["rehearsals"]] == ["text"]
    cloud.end(job(cloud), "FAILED", {"rehearsal of text": "unstarted"})
    assert poll(stack).failure is not None
    assert cloud.live_jobs() == {}


@pytest.mark.parametrize("outcome", ["missing", "cut", "corrupt"])
def test_a_pass_that_the_job_did_not_write_does_not_count(cloud: Cloud, messages: Messages, outcome: str) -> None:
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {"rehearsal of text": outcome})

    messages.record("a rehearsal", str(poll(stack).failure))

    assert cloud.pass_of(cloud.plans[REHEARSED].rehearsals[0]) is None


def test_two_wrong_answers_are_both_told(cloud: Cloud, messages: Messages) -> None:
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"rehearsal of text": "failed", "rehearsal of plain": "failed"})

    messages.record("a rehearsal", str(poll(stack).failure))


def test_an_archive_that_was_not_built_is_the_reason_not_its_rehearsal(cloud: Cloud) -> None:
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"text": "failed"})

    assert str(poll(stack).failure).startswith("'text' for 25.09-a10g could not be built: trtexec failed")


def test_a_rehearsal_that_runs_is_what_a_late_request_waits_for(cloud: Cloud, messages: Messages) -> None:
    poll(deploy(cloud, ONE))
    cloud.end(job(cloud), "SUCCEEDED", {})
    poll(deploy(cloud, ONE))
    stack = deploy(cloud, REHEARSED)
    poll(stack)
    cloud.tick(51 * 60)

    messages.record("a rehearsal", str(poll(stack).failure))


def test_who_attaches_to_a_build_rehearses_its_own_requests_afterwards(cloud: Cloud) -> None:
    first, second = deploy(cloud, REHEARSED), deploy(cloud, OTHER_REQUESTS)
    poll(first)
    poll(second)
    of_first, of_second = sorted(cloud.live_jobs(), key=lambda each: len(plan_of(cloud, each)["rehearsals"]))[::-1]
    assert [each["repository"] for each in plan_of(cloud, of_second)["rehearsals"]] == ["image"]
    cloud.end(of_first, "SUCCEEDED", {})
    cloud.end(of_second, "SUCCEEDED", {})

    assert poll(second) == Poll()

    (rehearsal,) = plan_of(cloud)["rehearsals"]
    assert (rehearsal["repository"], plan_of(cloud)["ensembles"]) == ("text", [])
    cloud.end(job(cloud), "SUCCEEDED", {})
    assert poll(second).done
    assert poll(first).done


def test_equal_rehearsals_of_two_deployments_are_one_job(cloud: Cloud) -> None:
    first, second = deploy(cloud, REHEARSED), deploy(cloud, REHEARSED)
    poll(first)
    poll(second)
    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(second).done
    assert poll(first).done
    assert len(cloud.program.rehearsed) == 2


def test_an_archive_is_rehearsed_under_each_of_its_names(cloud: Cloud) -> None:
    plan = twins(cloud, committed=False)
    stack = Stack(cloud)
    stack.deploy(plan)
    poll(stack)

    assert len(plan_of(cloud)["ensembles"]) == 1
    assert [each["archive"] for each in plan_of(cloud)["rehearsals"]] == [None, None]
    cloud.end(job(cloud), "SUCCEEDED", {})
    assert poll(stack).done
    cloud.assert_delivered(plan)


def test_a_committed_archive_is_rehearsed_itself_while_another_of_the_same_key_is_built(cloud: Cloud) -> None:
    plan = twins(cloud, committed=True)
    stack = Stack(cloud)
    stack.deploy(plan)
    poll(stack)

    (built,) = plan_of(cloud)["ensembles"]
    archives = {each["repository"]: each["archive"] for each in plan_of(cloud)["rehearsals"]}
    assert built["repository"] == "twin"
    assert archives == {"text": f"archives/text/{built['artifact_key']}.tar.gz", "twin": None}
    cloud.end(job(cloud), "SUCCEEDED", {})
    assert poll(stack).done
    cloud.assert_delivered(plan)


def test_the_rehearsal_of_a_committed_archive_does_not_wait_for_another_of_the_same_key(cloud: Cloud) -> None:
    plan = twins(cloud, committed=True)
    twin, other = plan.document["commits"][1], Stack(cloud)
    other.deploy(put_plan(cloud.s3, {**plan.document, "commits": [twin], "rehearsals": []}))
    poll(other)
    stack = Stack(cloud)
    stack.deploy(plan)
    poll(stack)

    rehearsed = [each["repository"] for name in cloud.live_jobs() for each in plan_of(cloud, name)["rehearsals"]]
    assert rehearsed == ["text"]


def test_a_lock_names_the_archive_that_is_rehearsed(cloud: Cloud) -> None:
    poll(deploy(cloud, REHEARSED))

    for each in cloud.plans[REHEARSED].rehearsals:
        lock = cloud.read(f"staging/locks/{each['key']}.json")
        assert lock is not None
        assert lock["artifact_key"] == each["artifact_key"]


def test_a_rollback_neither_starts_a_rehearsal_nor_waits_for_one(cloud: Cloud) -> None:
    poll(deploy(cloud, ONE))
    cloud.end(job(cloud), "SUCCEEDED", {})
    poll(deploy(cloud, ONE))
    stack = Stack(cloud)

    stack.deploy(cloud.plans[REHEARSED], rollback=True)

    assert poll(stack).done
    assert cloud.live_jobs() == {}
    assert cloud.pass_of(cloud.plans[REHEARSED].rehearsals[0]) is None


def test_a_pass_of_another_archive_does_not_count(cloud: Cloud, rehearsed: Stack) -> None:
    (planned, _) = cloud.plans[REHEARSED].rehearsals
    place = f"artifacts/{planned['repository']}/{planned['artifact_key']}/rehearsals/{planned['key']}.json"
    before = json.loads(cloud.s3.get(STORE, place) or b"")
    before["archive"]["etag"] = '"of another archive"'
    cloud.s3.put(STORE, place, json.dumps(before).encode())
    cloud.tick(8 * 86_400)  # the output of the job has expired
    stack = deploy(cloud, REHEARSED)

    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(stack).done
    found = cloud.pass_of(planned)
    assert found is not None
    assert found["archive"]["etag"] != '"of another archive"'


def twins(cloud: Cloud, *, committed: bool) -> Published:
    """A plan with two repositories of the same content, both rehearsed; the archive of the first may be committed."""
    if committed:
        stack = deploy(cloud, ONE)
        poll(stack)
        cloud.end(job(cloud), "SUCCEEDED", {})
        assert poll(stack).done
        cloud.tick(8 * 86_400)  # the locks and the output of the job have expired
    document = cloud.plans[ONE].document
    (text,) = document["commits"]
    (rehearsal, _) = cloud.plans[REHEARSED].rehearsals
    twin = json.loads(json.dumps(text).replace("artifacts/text/", "artifacts/twin/"))
    twin["repository"] = twin["build"]["ensemble"]["repository"] = "twin"
    golden = {"key": f"triton-{rehearsal['key']}.zip", "path": f"rehearsals/{'7' * 64}.zip"}
    other = {**rehearsal, "repository": "twin", "key": "7" * 64, "inputs": [{**rehearsal["inputs"][0], **golden}]}
    return put_plan(cloud.s3, {**document, "commits": [text, twin], "rehearsals": [rehearsal, other]})


def plan_of(cloud: Cloud, of: str | None = None) -> dict[str, Any]:
    """The build program's plan of a job."""
    return cloud.program.plan(cloud.live_jobs()[of or job(cloud)])
