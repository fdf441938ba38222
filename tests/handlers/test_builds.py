"""What the handlers make of a plan that has something to build; the services are in memory (`build_model`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from artifacts.failure import PATIENCE_SECONDS
from build_model import Cloud, Fault, Poll
from build_model.cloud import STORE
from build_model.steps import ONE, PROCESSING, TWO, deploy, job, poll

if TYPE_CHECKING:
    from golden_messages import Messages


BOTH = pytest.mark.parametrize("plan", [TWO, PROCESSING], ids=["codebuild", "processing"])


@BOTH
def test_one_job_builds_what_is_locked_and_the_next_poll_commits_it(cloud: Cloud, plan: int) -> None:
    stack = deploy(cloud, plan)
    assert poll(stack) == Poll()
    assert poll(stack) == Poll()

    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(stack) == Poll(done=True)
    cloud.assert_delivered(cloud.plans[plan])
    assert len(cloud.states()) == 1


def test_a_second_deployment_of_the_same_plan_reads_only(cloud: Cloud) -> None:
    stack = deploy(cloud, TWO)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})
    poll(stack)
    cloud.calls.clear()

    assert poll(deploy(cloud, TWO)).done

    assert cloud.calls == {("s3", "GetObject"), ("s3", "HeadObject")}


def test_the_build_plan_names_what_was_locked(cloud: Cloud) -> None:
    poll(deploy(cloud, ONE))
    poll(deploy(cloud, TWO))

    first, second = (json.loads(text) for text in plans_written(cloud))

    assert [e["repository"] for e in first["ensembles"]] == ["text"]
    assert [e["repository"] for e in second["ensembles"]] == ["image"]  # text is being built already
    assert (first["schema"], first["deadline_seconds"]) == (1, 115 * 60)
    assert first["platform"] == cloud.plans[ONE].document["builder"]["platform"]
    assert first["ensembles"][0] == cloud.plans[ONE].builds[0]["build"]["ensemble"]
    assert first["build"] in cloud.live_jobs().values()


def plans_written(cloud: Cloud) -> list[bytes]:
    return [texts[-1] for (bucket, key), texts in cloud.s3.history.items() if key.endswith("/in/plan.json")]


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"])
@BOTH
def test_any_end_without_archives_fails_the_deployment_at_once(
    messages: Messages, cloud: Cloud, plan: int, status: str
) -> None:
    stack = deploy(cloud, plan)
    poll(stack)
    cloud.end(job(cloud), status, {"text": "missing", "image": "missing"})

    failure = poll(stack).failure

    assert failure is not None
    messages.record("ArtifactError", failure)


def test_a_job_with_a_status_is_waited_for_until_its_output_is_there(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.codebuild.decide(job(cloud), "FAILED")
    assert poll(stack) == Poll()

    cloud.end(job(cloud), "FAILED", {})

    assert poll(stack).done


@BOTH
def test_a_fault_of_the_service_is_tried_once_more(cloud: Cloud, plan: int) -> None:
    stack = deploy(cloud, plan)
    for _ in range(2):
        assert poll(stack) == Poll()
        cloud.end(job(cloud), "FAULT", {"text": "missing", "image": "missing"})

    assert poll(stack).failure is not None
    assert cloud.live_jobs() == {}


@BOTH
def test_a_job_that_vanished_is_started_once_more(messages: Messages, cloud: Cloud, plan: int) -> None:
    stack = deploy(cloud, plan)
    for _ in range(2):
        poll(stack)
        cloud.vanish(job(cloud))
        assert poll(stack) == Poll()  # the service may not know it yet
        cloud.tick(300)

    failure = poll(stack).failure

    assert failure is not None
    messages.record("ArtifactError", failure)


@pytest.mark.parametrize("status", ["FAILED", "FAULT", "STOPPED", "TIMED_OUT"])
@BOTH
def test_finished_ensembles_are_committed_whatever_the_status(cloud: Cloud, plan: int, status: str) -> None:
    stack = deploy(cloud, plan)
    poll(stack)

    cloud.end(job(cloud), status, {})

    assert poll(stack) == Poll(done=True)


@pytest.mark.parametrize(
    ("plan", "link"),
    [
        (TWO, "https://console/the-project:1"),
        (
            PROCESSING,
            "https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#logsV2:log-groups/log-group/"
            "$252Faws$252Fsagemaker$252FProcessingJobs$3FlogStreamNameFilter$3Dcdk-triton-0000000000000001",
        ),
    ],
    ids=["codebuild", "processing"],
)
def test_one_that_failed_says_why_and_the_others_are_committed(
    messages: Messages, cloud: Cloud, plan: int, link: str
) -> None:
    stack = deploy(cloud, plan)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"text": "failed"})

    failure = poll(stack).failure
    assert failure is not None
    assert failure.endswith(f"trtexec failed [log: a line | the last] ({link})")
    messages.record("ArtifactError", failure)

    image = next(commit for commit in cloud.plans[plan].builds if commit["repository"] == "image")
    assert cloud.read(image["manifest"]) is not None


def test_a_deployment_after_a_failure_builds_only_what_failed(cloud: Cloud) -> None:
    stack = deploy(cloud, TWO)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"text": "failed"})
    poll(stack)

    again = deploy(cloud, TWO)
    assert poll(again) == Poll()

    assert set(cloud.program.members(cloud.live_jobs()[job(cloud)]).values()) == {"text"}
    cloud.end(job(cloud), "SUCCEEDED", {})
    assert poll(again).done


def test_a_job_that_ended_before_any_work_says_why(messages: Messages, cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    build = cloud.live_jobs()[job(cloud)]
    reason = {"schema": 1, "reason": "the GPU is a Tesla T4, not an NVIDIA A10G", "log": []}
    cloud.s3.put(STORE, f"staging/{build}/out/failure.json", json.dumps(reason).encode())
    cloud.end(job(cloud), "FAILED", {"text": "missing"})

    failure = poll(stack).failure

    assert failure is not None
    assert "the GPU is a Tesla T4, not an NVIDIA A10G [log: " in failure
    assert failure.endswith("(https://console/the-project:1)")
    messages.record("ArtifactError", failure)


def test_what_a_builder_says_at_length_is_cut_and_logged(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_GROUP_NAME", "Store-Logs-123")
    stack = deploy(cloud, ONE)
    poll(stack)
    build = cloud.live_jobs()[job(cloud)]
    said = {"schema": 1, "reason": "why " * 5000, "log": ["a long line " * 1000] * 20}
    cloud.s3.put(STORE, f"staging/{build}/out/failure.json", json.dumps(said).encode())
    cloud.end(job(cloud), "FAILED", {"text": "missing"})

    failure = poll(stack).failure

    assert failure is not None
    assert len(failure) <= 1000
    assert failure.endswith("(https://console/the-project:1) [full text in the log group Store-Logs-123]")
    assert str(said["reason"]) in caplog.text


@pytest.mark.parametrize("outcome", ["corrupt", "cut"])
def test_an_archive_that_is_not_what_its_report_says_is_not_committed(
    messages: Messages, cloud: Cloud, outcome: str
) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {"text": outcome})

    failure = poll(stack).failure

    assert failure is not None
    assert "build.json" in failure
    messages.record("ArtifactError", failure)
    assert cloud.s3.get(STORE, cloud.plans[ONE].builds[0]["archive"]) is None
    assert poll(deploy(cloud, ONE)) == Poll()  # builds it again
    assert len(cloud.live_jobs()) == 1


def test_a_deployment_that_timed_out_and_is_repeated_finds_its_build(messages: Messages, cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.tick(PATIENCE_SECONDS)
    failure = poll(stack).failure
    assert failure is not None
    assert "https://console/the-project:1" in failure
    messages.record("ArtifactError", failure)

    again = deploy(cloud, ONE)
    assert poll(again) == Poll()
    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(again).done
    assert len(cloud.states()) == 1


def test_a_build_that_failed_unseen_is_repeated_and_its_reason_kept(messages: Messages, cloud: Cloud) -> None:
    poll(deploy(cloud, ONE))
    cloud.end(job(cloud), "FAILED", {"text": "failed"})
    cloud.tick(600)

    again = deploy(cloud, ONE)
    assert poll(again) == Poll()
    cloud.tick(PATIENCE_SECONDS)

    failure = poll(again).failure
    assert failure is not None
    assert "trtexec failed" in failure
    messages.record("ArtifactError", failure)


def test_stacks_that_share_a_key_share_its_build(cloud: Cloud) -> None:
    first, second = deploy(cloud, ONE), deploy(cloud, PROCESSING)
    poll(first)
    poll(second)
    assert {tuple(cloud.program.members(build).values()) for build in cloud.live_jobs().values()} == {
        ("text",),
        ("image",),
    }

    for live in list(cloud.live_jobs()):
        cloud.end(live, "SUCCEEDED", {})

    assert poll(first).done
    assert poll(second).done


@pytest.mark.parametrize("kind", ["crash after", "limbo", "lost", "asked twice", "slow"])
@pytest.mark.usefixtures("cloud")
def test_a_fault_at_any_call_is_mended_by_later_polls(kind: str) -> None:
    for number in range(0, 80, 2):
        world = Cloud()
        stack, fault = deploy(world, TWO), Fault(kind, number)
        poll(stack, fault)
        while not any(state["job"] for state in world.states()):
            assert poll(stack) == Poll()  # a killed one holds the lease for some minutes
        world.end(job(world), "SUCCEEDED", {})
        assert poll(stack).done
        world.assert_delivered(world.plans[TWO])
        if fault.seen <= number:
            break
    assert number > 15


def test_a_commit_goes_on_where_the_last_poll_stopped(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(stack, Fault("slow", 11)) == Poll()  # two of its parts are copied
    cloud.calls.clear()
    assert poll(stack).done

    assert ("s3", "ListParts") in cloud.calls
    assert ("s3", "CreateMultipartUpload") not in cloud.calls


def test_the_archive_of_another_committer_is_adopted_with_its_report(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})
    (commit,) = cloud.plans[ONE].builds
    for number in range(100):
        if cloud.s3.get(STORE, commit["archive"]) is not None:
            break
        poll(stack, Fault("crash after", number))
    assert cloud.s3.get(STORE, commit["archive"]) is not None
    assert cloud.read(commit["manifest"]) is None

    assert poll(stack).done

    cloud.assert_delivered(cloud.plans[ONE])
    manifest = cloud.read(commit["manifest"])
    assert manifest is not None
    assert manifest["build"]["build"] == cloud.states()[0]["build"]
