"""Data that is served uncompressed: `list` and `gc` take its files and manifest for one artifact."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.cli.artifacts.assembly import Asset, Planned
from cdk_triton.protocol.plan import Commit, File, StackPlan

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.artifacts.conftest import World

FILES = {"network/config.pbtxt": b"configuration", "network/1/model.bin": b"weights", "ensemble/1/.keep": b""}


def commit(world: World, name: str) -> str:
    """A committed artifact of files; returns the prefix of its objects."""
    key = world.commit("text", name)  # of an archive, which becomes one of files
    prefix = f"artifacts/text/{key}/"
    world.s3.delete_object(Bucket=world.bucket, Key=f"{prefix}model.tar.gz")
    for path, content in FILES.items():
        world.put(f"{prefix}files/{path}", content, {"artifact-key": key})
    manifest = {"schema": 1, "repository": "text", "artifact_key": key, "platform": "25.09-a10g", "files": []}
    world.put(f"{prefix}manifest.json", json.dumps(manifest).encode())
    return prefix


def use(world: World, prefix: str) -> None:
    """A model that downloads the files."""
    source = {"S3Uri": f"s3://{world.bucket}/{prefix}files/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    world.model("the-model", ModelDataSource={"S3DataSource": source})


def answer(run: Any, world: World, *arguments: str) -> dict[str, Any]:
    outcome = run("artifacts", *arguments, "--store", world.stack, "--format", "json")
    assert outcome.status == 0, outcome.said
    found: dict[str, Any] = json.loads(outcome.out)
    return found


@pytest.mark.slow
def test_gc_takes_files_and_manifest_together_and_nothing_of_what_is_used(run: Any, world: World) -> None:
    used, unused = commit(world, "used"), commit(world, "unused")
    use(world, used)
    before = world.stored()

    (garbage,) = answer(run, world, "gc", "--yes")["garbage"]

    gone = {f"{unused}manifest.json", *(f"{unused}files/{path}" for path in FILES)}
    assert set(garbage["objects"]) == gone
    assert before - world.stored() == gone


@pytest.mark.slow
def test_gc_takes_files_that_were_never_committed(run: Any, world: World) -> None:
    prefix = commit(world, "unfinished")
    world.s3.delete_object(Bucket=world.bucket, Key=f"{prefix}manifest.json")

    answer(run, world, "gc", "--yes")

    assert not {key for key in world.stored() if key.startswith(prefix)}


def test_list_says_how_large_the_files_are_and_who_uses_them(run: Any, world: World) -> None:
    use(world, commit(world, "used"))

    (row,) = answer(run, world, "list")["artifacts"]

    assert row["size"] == sum(map(len, FILES.values()))
    assert row["in_use_by"] == ["model the-model"]


@pytest.mark.parametrize(("committed", "needed"), [((), {"a", "b"}), (("key",), set())])
def test_building_beforehand_publishes_the_files_that_are_not_committed(
    tmp_path: Path, committed: tuple[str, ...], needed: set[str]
) -> None:
    files = File("1", "a", 1), File("2", "b", 1), File("3", None, 0)
    plan = StackPlan((Commit("text", "key", "25.09-a10g", None, "files/", "manifest", files=files),))
    asset = Asset(tmp_path, "bucket", "key", None, None)

    assert Planned("Artifacts", asset, plan, b"", {}).needs(committed) == needed
