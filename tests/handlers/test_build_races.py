"""What several polls and deployments make of one build; the services are in memory (`build_model`)."""

from __future__ import annotations

import hashlib
import itertools
import json
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from artifacts.locks import ABANDONED_SECONDS
from build_model import Cloud, Fault, Poll, Published, Stack
from build_model.cloud import INVOCATION_SECONDS, STORE
from build_model.plans import ASSETS
from build_model.steps import ONE, PROCESSING, TWO, deploy, job, poll
from memory_aws import refusal


def asking(stack: Stack) -> Any:
    assert stack.operation is not None
    return partial(stack.cloud.poll, stack.operation.event)


def built_now(cloud: Cloud) -> list[str]:
    """The key of every ensemble that some running job builds."""
    return [key for build in cloud.live_jobs().values() for key in cloud.program.members(build)]


@pytest.mark.parametrize("shift", range(4))
def test_what_failed_is_built_again_by_one_of_two_deployments(cloud: Cloud, shift: int) -> None:
    first = deploy(cloud, TWO)
    poll(first)
    cloud.end(job(cloud), "FAILED", {"text": "failed", "image": "failed"})
    assert poll(first).failure is not None
    stacks = [deploy(cloud, TWO), deploy(cloud, PROCESSING)]

    order = itertools.chain([0] * shift, itertools.cycle([0, 1]))
    cloud.together([asking(stack) for stack in stacks], order)
    for stack in stacks:
        poll(stack)

    keys = built_now(cloud)
    assert len(keys) == len(set(keys)) == 2


@pytest.mark.parametrize("shift", range(4))
def test_one_deployment_goes_on_with_a_build_whose_poll_died_even_if_it_is_polled_twice(
    cloud: Cloud, shift: int
) -> None:
    stack = deploy(cloud, TWO)
    poll(stack, Fault("crash before", 0, jobs=True))
    cloud.tick(ABANDONED_SECONDS)

    cloud.together([asking(stack)] * 2, itertools.chain([0] * shift, itertools.cycle([0, 1])))

    tokens = [after["lease"]["token"] for before, after in cloud.changes() if after["lease"] and not before["lease"]]
    assert len(tokens) <= 1
    states = [before["state"] for before, _ in cloud.changes()]
    assert states == sorted(states, key=["preparing", "starting", "running", "ended"].index)  # never back
    assert len(cloud.live_jobs()) == 1


def test_nobody_else_works_on_a_build_while_the_poll_that_has_it_may_live(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack, Fault("crash before", 0, jobs=True))
    cloud.calls.clear()

    for _ in range(INVOCATION_SECONDS // 30):
        assert poll(stack) == Poll()

    assert ("codebuild", "StartBuild") not in cloud.calls
    assert ("codebuild", "ListBuildsForProject") not in cloud.calls
    assert ("s3", "PutObject") not in cloud.calls


@pytest.mark.slow
@pytest.mark.usefixtures("cloud")
def test_an_answer_that_boto3_asked_for_twice_delays_nothing() -> None:
    for number in itertools.count():
        world = Cloud()
        fault = Fault("asked twice", number)
        poll(deploy(world, TWO), fault)
        assert len(world.live_jobs()) == 1, f"call {number}"
        if fault.seen <= number:
            break
    assert number > 15


@pytest.mark.parametrize("document", ["lock", "state"])
def test_what_a_newer_store_wrote_is_left_to_it(cloud: Cloud, document: str) -> None:
    poll(deploy(cloud, ONE))
    key = cloud.plans[ONE].builds[0]["artifact_key"]
    lock = f"staging/locks/{key}.json"
    name = lock if document == "lock" else f"staging/{cloud.states()[0]['build']}/state.json"
    found = cloud.read(name)
    assert found is not None
    newer = json.dumps(found | {"schema": 2}).encode()
    cloud.s3.put(STORE, name, newer)

    failure = poll(deploy(cloud, PROCESSING)).failure

    assert failure is not None
    assert f"s3://{STORE}/{name}" in failure
    assert cloud.s3.get(STORE, name) == newer


def published(cloud: Cloud, document: Any) -> Published:
    """A plan that was changed by hand."""
    text = json.dumps(document).encode()
    cloud.s3.put(ASSETS, "plan.json", text)
    properties = {**cloud.plans[TWO].properties, "PlanKey": "plan.json"}
    return Published({**properties, "PlanSha256": hashlib.sha256(text).hexdigest()}, document)


def test_two_deployments_that_name_the_same_ensembles_in_another_order_do_not_block_each_other(cloud: Cloud) -> None:
    document = json.loads(json.dumps(cloud.plans[TWO].document))
    document["commits"].reverse()
    stacks = [deploy(cloud, TWO), Stack(cloud)]
    stacks[1].deploy(published(cloud, document))

    cloud.together([asking(stack) for stack in stacks], itertools.cycle([0, 1]))
    for stack in stacks * 2:
        poll(stack)

    keys = built_now(cloud)
    assert len(keys) == len(set(keys)) == 2


class TestAnswersThatWereLost:
    @pytest.mark.parametrize(
        "answer",
        [refusal("InternalError", status=500), ReadTimeoutError(endpoint_url="codebuild")],
        ids=["500", "none"],
    )
    def test_a_job_that_may_exist_is_looked_for(self, cloud: Cloud, answer: Exception) -> None:
        stack = deploy(cloud, ONE)
        cloud.codebuild.after_start = [answer]
        assert poll(stack) == Poll()
        cloud.tick(400)  # the service has forgotten the token

        assert poll(stack) == Poll()

        assert len(cloud.jobs()) == 1

    def test_a_rejection_that_follows_does_not_end_the_build(self, cloud: Cloud) -> None:
        stack = deploy(cloud, ONE)
        cloud.codebuild.after_start = [ReadTimeoutError(endpoint_url="codebuild")]
        assert poll(stack) == Poll()
        cloud.codebuild.refusals = [refusal("AccountLimitExceededException", "Cannot have more than 1 builds")]

        assert poll(stack) == Poll()  # the job is not listed yet, and takes the one place that there is
        cloud.tick(60)
        assert poll(stack) == Poll()

        assert len(cloud.jobs()) == 1
        cloud.end(job(cloud), "SUCCEEDED", {})
        assert poll(stack).done


def test_a_deployment_that_is_repeated_later_goes_on_with_its_own_build(cloud: Cloud) -> None:
    poll(deploy(cloud, ONE), Fault("crash before", 0, jobs=True))
    cloud.tick(2 * ABANDONED_SECONDS)

    assert poll(deploy(cloud, ONE)) == Poll()

    assert len(cloud.states()) == len(cloud.live_jobs()) == 1
