"""`cdk-triton invoke` of an endpoint whose instances are being changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tests.cli.echo import BUCKET, SUMS

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome
    from tests.cli.echo import World

    from golden_messages import Messages

pytestmark = pytest.mark.slow  # the local AWS takes seconds to start

Run = Callable[..., "Outcome"]


@pytest.fixture
def held(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Deployments of the local AWS wait until this is set; the endpoint `changing` goes with the test."""
    done = threading.Event()
    deploy = type(world.echo).deploy
    monkeypatch.setattr(type(world.echo), "deploy", lambda self, *given: done.wait(60) and deploy(self, *given))
    yield done
    done.set()
    waiter = world.sagemaker.get_waiter("endpoint_in_service")
    waiter.wait(EndpointName="changing", WaiterConfig={"Delay": 0.01, "MaxAttempts": 1000})
    world.sagemaker.delete_endpoint(EndpointName="changing")


def update(world: World, held: threading.Event, configuration: str) -> None:
    """Create the endpoint `changing`, and begin an update that `held` keeps from ending."""
    held.set()
    world.sagemaker.create_endpoint(EndpointName="changing", EndpointConfigName=configuration)
    waiter = world.sagemaker.get_waiter("endpoint_in_service")
    waiter.wait(EndpointName="changing", WaiterConfig={"Delay": 0.01, "MaxAttempts": 1000})
    held.clear()
    world.sagemaker.update_endpoint(EndpointName="changing", EndpointConfigName=configuration)


def test_an_endpoint_that_is_being_created_answers_nothing(
    messages: Messages, run: Run, world: World, held: threading.Event
) -> None:
    world.sagemaker.create_endpoint(EndpointName="changing", EndpointConfigName="image")

    found = run("invoke", "changing", "--random")

    assert (found.status, found.out, world.echo.asked) == (1, "", [])
    messages.record("cdk-triton invoke", found.said)


def test_an_endpoint_that_is_being_updated_answers_and_is_named(run: Run, world: World, held: threading.Event) -> None:
    update(world, held, "image")

    found = run("invoke", "changing", "--random")

    assert (found.status, len(world.echo.asked)) == (0, 1), found.err
    assert found.err.splitlines()[0] == ("the endpoint 'changing' is Updating: its old or its new instances answer")


def test_the_sequence_of_one_model_is_not_that_of_old_and_new_instances(
    run: Run, world: World, held: threading.Event
) -> None:
    held.set()
    world.archive("sums.tar.gz", {"sums": SUMS})
    world.endpoint("sums", ModelDataUrl=f"s3://{BUCKET}/sums.tar.gz")
    update(world, held, "sums")

    found = run("invoke", "changing", "--input", "X:FP32=[1]", "--sequence", "user-7")

    assert (found.status, len(world.echo.asked)) == (0, 1), found.err
