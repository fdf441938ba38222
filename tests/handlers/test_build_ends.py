"""How a job may end, and what becomes of the deployment; the services are in memory (`build_model`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from build_model import Cloud, Poll
from build_model.steps import ONE, PROCESSING, deploy, job, poll

if TYPE_CHECKING:
    from golden_messages import Messages

HOUR = 60 * 60
LIMIT = 2 * HOUR + 8 * HOUR + HOUR  # of the job, of CodeBuild's queue, and some time to end it
MISSING = {"text": "missing", "image": "missing"}


@pytest.mark.parametrize("plan", [ONE, PROCESSING], ids=["codebuild", "processing"])
def test_a_job_that_never_ends_is_given_up_long_after_its_time(cloud: Cloud, plan: int) -> None:
    cloud.codebuild.stuck = cloud.processing.stuck = True
    poll(deploy(cloud, plan))

    cloud.tick(LIMIT - 60)
    assert poll(deploy(cloud, plan)) == Poll()
    assert len(cloud.live_jobs()) == 1

    cloud.tick(60)
    assert poll(deploy(cloud, plan)) == Poll()
    assert len(cloud.live_jobs()) == 2


def test_a_build_that_failed_fails_its_request_although_the_clock_of_the_service_is_behind(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.clock.now -= 60
    cloud.end(job(cloud), "FAILED", {"text": "failed"})
    cloud.clock.now += 60

    assert poll(stack).failure is not None
    assert cloud.live_jobs() == {}


def test_a_processing_job_that_is_being_stopped_is_waited_for(cloud: Cloud) -> None:
    stack = deploy(cloud, PROCESSING)
    poll(stack)
    cloud.processing.decide(job(cloud), "Stopping")

    assert poll(stack) == Poll()  # what it has finished is still being uploaded

    cloud.end(job(cloud), "STOPPED", {})
    assert poll(stack).done


@pytest.mark.parametrize(
    "reason",
    ["CapacityError: Unable to provision requested ML compute capacity.", "InternalServerError: We encountered one."],
    ids=["no capacity", "internal"],
)
def test_a_processing_job_that_failed_by_no_fault_of_ours_is_tried_once_more(cloud: Cloud, reason: str) -> None:
    stack = deploy(cloud, PROCESSING)
    for _ in range(2):
        assert poll(stack) == Poll()
        cloud.processing.end(job(cloud), "FAILED", reason)

    failure = poll(stack).failure

    assert failure is not None
    assert reason in failure
    assert cloud.live_jobs() == {}


def test_an_internal_error_before_a_job_in_a_vpc_began_starts_no_second_job(cloud: Cloud, messages: Messages) -> None:
    stack = deploy(cloud, PROCESSING)
    poll(stack)
    cloud.processing.end(job(cloud), "FAULT", began=False)

    failure = poll(stack).failure

    assert failure is not None
    assert "CloudTrail shows the calls that were denied" in failure
    messages.record("the build of a pool", failure)
    assert cloud.live_jobs() == {}


@pytest.mark.parametrize("plan", [ONE, PROCESSING], ids=["codebuild", "processing"])
def test_a_build_that_no_machine_is_free_for_says_how_to_build_before_the_deployment(
    cloud: Cloud, plan: int, messages: Messages
) -> None:
    stack = deploy(cloud, plan)
    for _ in range(2 if plan == PROCESSING else 1):
        assert poll(stack) == Poll()
        if plan == PROCESSING:
            cloud.processing.end(job(cloud), "FAILED", "CapacityError: Unable to provision requested ML capacity.")
        else:
            cloud.codebuild.end(job(cloud), "TIMED_OUT", "Build timed out in the queue", in_queue=True)

    failure = poll(stack).failure

    assert failure is not None
    assert "'text' for 25.09-a10g" in failure
    assert "cdk-triton artifacts build" in failure
    messages.record("the build of a pool", failure)


def test_a_build_that_takes_too_long_on_its_machine_says_nothing_of_capacity(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.codebuild.end(job(cloud), "TIMED_OUT", "Build has timed out")

    assert "artifacts build" not in str(poll(stack).failure)
