"""`cdk-triton artifacts gc` and `list` of a store with published ensembles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.protocol import layout

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import World

    from golden_messages import Messages


def test_every_version_of_a_published_ensemble_stays_with_its_artifact(run: Any, world: World) -> None:
    key = world.commit("tenant", "first")
    kept = [world.serve("fleet", f"tenant-{number}.tar.gz", key) for number in (1, 2)]
    world.serve("fleet", "tenant-0.tar.gz", world.commit("tenant", "zero"))
    world.published("fleet", "tenant", "tenant-2.tar.gz", "tenant-1.tar.gz")

    found = json.loads(run("artifacts", "gc", "--store", world.stack, "--format", "json", "--yes").out)

    gone = {object_key for each in found["garbage"] for object_key in each["objects"]}
    assert "fleets/fleet/25.09-a10g/tenant-0.tar.gz" in gone
    assert not gone & {*kept, f"artifacts/tenant/{key}/model.tar.gz"}
    assert world.stored() >= {*kept, f"artifacts/tenant/{key}/model.tar.gz"}
    listed = json.loads(run("artifacts", "list", "--store", world.stack, "--format", "json").out)
    states = {each["target_model"]: each["state"] for each in listed["target_models"]}
    assert states == {"tenant-2.tar.gz": "current", "tenant-1.tar.gz": "previous"}
    (current,) = [each for each in listed["target_models"] if each["state"] == "current"]
    assert current["since"] == "2026-11-01T12:00:00+00:00"  # not when it was stored


def test_the_sources_of_what_was_built_go_with_the_archive(run: Any, world: World) -> None:
    keys = {repository: world.commit(repository, repository) for repository in ("kept", "free")}
    sources = {repository: layout.kept_sources_key(repository, key) for repository, key in keys.items()}
    for key in sources.values():
        world.put(key, b"sources")
    world.serve("fleet", "tenant-1.tar.gz", keys["kept"])
    world.published("fleet", "tenant", "tenant-1.tar.gz")

    assert run("artifacts", "gc", "--store", world.stack, "--yes").status == 0

    assert sources["kept"] in world.stored()
    assert not [key for key in world.stored() if key.startswith("artifacts/free/")]


def test_an_unpublished_ensemble_keeps_its_versions_until_they_are_forgotten(run: Any, world: World) -> None:
    copy = world.serve("fleet", "tenant-1.tar.gz", world.commit("tenant", "first"))
    world.published("fleet", "tenant", "tenant-1.tar.gz", unpublished="2026-01-01T00:00:00+00:00")
    assert json.loads(run("artifacts", "gc", "--store", world.stack, "--format", "json").out)["garbage"] == []

    world.published("fleet", "tenant", unpublished="2026-01-01T00:00:00+00:00")
    garbage = json.loads(run("artifacts", "gc", "--store", world.stack, "--format", "json").out)["garbage"]
    assert copy in {object_key for each in garbage for object_key in each["objects"]}


@pytest.mark.parametrize(
    "entry",
    [b'{"schema": 2}', b'{"schema": 1, "current": null, "versions": [{}], "unpublished": null}', b""],
    ids=["a newer schema", "a version without its fields", "nothing"],
)
def test_an_entry_that_cannot_be_read_stops_a_deletion_but_no_listing(
    messages: Messages, run: Any, world: World, entry: bytes
) -> None:
    world.published("fleet", "other", "other-2.tar.gz")
    copies = [world.serve("fleet", name, world.commit("text", name)) for name in ("tenant-1.tar.gz", "other-2.tar.gz")]
    free = world.serve("fleet", "other-1.tar.gz", world.commit("text", "free"))
    world.put("catalogue/fleet/25.09-a10g/tenant.json", entry)
    before = world.stored()

    deletion = run("artifacts", "gc", "--store", world.stack, "--yes")
    listed = json.loads(run("artifacts", "list", "--store", world.stack, "--format", "json").out)
    seen = json.loads(run("artifacts", "gc", "--store", world.stack, "--format", "json").out)

    assert (deletion.status, deletion.out) == (1, "")
    assert world.stored() == before
    messages.record("cdk-triton artifacts", deletion.said.replace(world.bucket, "BUCKET"))
    states = {each["target_model"]: each["state"] for each in listed["target_models"]}
    assert states == {"tenant-1.tar.gz": "unknown", "other-2.tar.gz": "current", "other-1.tar.gz": "dropped"}
    assert [reason for reason in listed["unknown"] if "tenant.json" in reason] == seen["obstacles"]
    garbage = {object_key for each in seen["garbage"] for object_key in each["objects"]}
    assert free in garbage
    assert not garbage & set(copies)


def test_an_index_of_an_unknown_schema_stops_it(messages: Messages, run: Any, world: World) -> None:
    world.put("fleets/fleet/25.09-a10g/index.json", b'{"schema": 3, "current": [], "previous": []}')
    outcome = run("artifacts", "gc", "--store", world.stack, "--yes")
    assert (outcome.status, outcome.out) == (1, "")
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))
