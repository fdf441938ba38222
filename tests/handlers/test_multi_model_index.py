"""What a multi-model endpoint's index may name, and what it keeps when two deployments write it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from artifacts.failure import ArtifactError
from build_model import Cloud, Fault
from build_model.cloud import STORE
from build_model.steps import TWO, deploy, job, poll

if TYPE_CHECKING:
    from tests.handlers.conftest import World

    from golden_messages import Messages


@pytest.mark.slow
@pytest.mark.usefixtures("cloud")
def test_whenever_a_poll_dies_the_index_names_only_what_is_served() -> None:
    for number in itertools.count():
        world = Cloud()
        stack, fault = deploy(world, TWO), Fault("crash before", number)
        poll(stack)
        world.end(job(world), "SUCCEEDED", {})
        poll(stack, fault)
        fleet = world.plans[TWO].document["fleet"]
        if world.read(fleet["index"]) is not None:
            for copy in fleet["copies"]:
                assert world.s3.get(STORE, copy["target"]) is not None, f"call {number}"
        if fault.seen <= number:
            break
    assert number > 15


@pytest.mark.slow
@pytest.mark.parametrize("calls_before", [0, 1])
def test_the_generation_that_another_deployment_wrote_meanwhile_is_kept(world: World, calls_before: int) -> None:
    first, theirs, ours = (world.ensemble("text", version) for version in "123")
    assert world.poll(world.publish(first, fleet=True))
    event, other = world.publish(ours, fleet=True), world.publish(theirs, fleet=True)
    with world.counted() as calls:
        world.poll(world.publish(world.ensemble("text", "4"), fleet=True))
    writes = len(calls) - 1
    assert calls[writes] == "PutObject"  # the index

    def deploy_theirs() -> None:
        assert world.poll(other)

    with world.disturbed("before-call", writes - calls_before, deploy_theirs):
        assert world.poll(event)

    assert (world.index()["current"], world.index()["previous"]) == ({"text": ours.target}, {"text": theirs.target})


@pytest.mark.slow
def test_a_copy_that_is_not_the_committed_archive_is_not_served(messages: Messages, world: World) -> None:
    text = world.ensemble("text")
    target = world.prefix + text.target
    event = world.publish(text, fleet=True)
    world.s3.put_object(Bucket="the-store", Key=target, Body=b"cut off", Metadata={"artifact-key": text.key})

    with messages.raises(ArtifactError) as refused:
        world.poll(event)

    assert target in str(refused.value)
    assert f"{world.prefix}index.json" not in world.stored_keys()
