"""What the handler of `Custom::TritonArtifacts` leaves in the store when nothing goes wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.handlers.conftest import World


@pytest.mark.slow
def test_a_single_model_is_copied_and_committed(world: World) -> None:
    text = world.ensemble("text")

    assert world.poll(world.publish(text))

    world.assert_committed(text)
    assert world.versions(text.archive) == [text.content()]
    assert world.stored_keys() == {text.archive, text.manifest}


@pytest.mark.slow
def test_the_manifest_says_what_was_committed(world: World) -> None:
    text = world.ensemble("text")

    world.poll(world.publish(text))

    manifest = json.loads(world.versions(text.manifest)[0])
    assert manifest["schema"] == 1
    assert (manifest["repository"], manifest["artifact_key"], manifest["platform"]) == ("text", text.key, "25.09-a10g")


@pytest.mark.slow
def test_a_fleet_serves_flat_names_below_one_prefix(world: World) -> None:
    text, image = world.ensemble("text"), world.ensemble("image")

    assert world.poll(world.publish(text, image, fleet=True))

    world.assert_served(text, image)
    assert world.index() == {
        "schema": 1,
        "fleet": "fleet",
        "current": {"text": text.target, "image": image.target},
        "previous": {},
        "has_catalogue": False,
    }


@pytest.mark.slow
def test_a_second_deployment_of_the_same_plan_writes_nothing(world: World) -> None:
    event = world.publish(world.ensemble("text"), world.ensemble("image"), fleet=True)
    world.poll(event)

    with world.counted() as calls:
        assert world.poll(event)

    assert set(calls) == {"GetObject", "HeadObject"}


@pytest.mark.slow
def test_another_version_of_one_ensemble_copies_only_that(world: World) -> None:
    old, new, image = world.ensemble("text", "1"), world.ensemble("text", "2"), world.ensemble("image")
    world.poll(world.publish(old, image, fleet=True))

    with world.counted("UploadPartCopy") as copies:
        assert world.poll(world.publish(new, image, fleet=True))

    assert len(copies) == 2  # into the store, and from there to the fleet
    world.assert_served(new, image)
    assert world.index()["previous"] == {"text": old.target, "image": image.target}


@pytest.mark.slow
def test_a_rollback_finds_everything_where_it_was(world: World) -> None:
    old, new = world.ensemble("text", "1"), world.ensemble("text", "2")
    before, after = world.publish(old, fleet=True), world.publish(new, fleet=True)
    world.poll(before)
    world.poll(after)

    with world.counted("UploadPartCopy") as copies:
        assert world.poll({**before, "RequestType": "Update"})

    assert copies == []
    world.assert_served(old)
    assert world.index()["previous"] == {"text": new.target}


@pytest.mark.slow
def test_two_fleets_share_one_committed_archive(world: World) -> None:
    text = world.ensemble("text")
    world.poll(world.publish(text, fleet=True))
    world.prefix = "fleets/other/25.09-a10g/"

    assert world.poll(world.publish(text, fleet=True))

    world.assert_served(text)


@pytest.mark.slow
def test_what_is_in_the_store_already_is_not_needed_among_the_assets(world: World) -> None:
    text = world.ensemble("text")
    event = world.publish(text, fleet=True)
    world.poll(event)
    world.s3.delete_object(Bucket="the-assets", Key=text.asset)

    assert world.poll(event)


@pytest.mark.slow
def test_more_ensembles_than_connections_are_done_in_one_poll(world: World) -> None:
    ensembles = [world.ensemble(f"model-{number}") for number in range(20)]

    assert world.poll(world.publish(*ensembles, fleet=True))

    world.assert_served(*ensembles)
