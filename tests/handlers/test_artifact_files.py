"""Data that is served uncompressed: each file is copied once, the manifest comes last, what is there is verified."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from artifacts.failure import ArtifactError
from protocol.plan import Commit, File, StackPlan

if TYPE_CHECKING:
    from tests.handlers.conftest import World

    from golden_messages import Messages

KEY = hashlib.sha256(b"uncompressed").hexdigest()
PREFIX = f"artifacts/text/{KEY}/files/"
MANIFEST = f"artifacts/text/{KEY}/manifest.json"
FILES = {"network/config.pbtxt": b"configuration", "network/1/model.bin": b"weights" * 10, "ensemble/1/.keep": b""}


def publish(world: World, files: dict[str, bytes] | None = None) -> dict[str, Any]:
    """Publish files and plan as the CDK CLI does, and return CloudFormation's event."""
    described = []
    for path, content in (FILES if files is None else files).items():
        asset = f"triton-file-{hashlib.sha256(content).hexdigest()}.bin" if content else None
        if asset is not None:
            world.s3.put_object(Bucket="the-assets", Key=asset, Body=content)
        described.append(File(path, asset, len(content)))
    commit = Commit("text", KEY, "25.09-a10g", None, PREFIX, MANIFEST, files=tuple(described))
    return dict(world.publish_plan(StackPlan((commit,))))


@pytest.mark.slow
def test_every_file_is_copied_to_its_path_and_then_committed(world: World) -> None:
    assert world.poll(publish(world))

    for path, content in FILES.items():
        assert world.versions(PREFIX + path) == [content]
    (manifest,) = world.versions(MANIFEST)
    document = json.loads(manifest)
    assert (document["repository"], document["artifact_key"]) == ("text", KEY)
    assert [(file["key"], file["size"]) for file in document["files"]] == [
        (PREFIX + path, len(content)) for path, content in FILES.items()
    ]
    assert world.stored_keys() == {MANIFEST, *(PREFIX + path for path in FILES)}


@pytest.mark.slow
def test_a_second_deployment_writes_nothing(world: World) -> None:
    event = publish(world)
    world.poll(event)

    with world.counted() as calls:
        assert world.poll(event)

    assert set(calls) == {"GetObject", "HeadObject"}


@pytest.mark.slow
def test_an_interrupted_deployment_goes_on_where_it_was(world: World) -> None:
    event = publish(world)

    def die() -> None:
        raise world.killed

    with world.disturbed("after-call", 7, die), pytest.raises(world.killed):
        world.poll(event)
    assert MANIFEST not in world.stored_keys()

    assert world.poll(event)

    assert all(len(world.versions(PREFIX + path)) == 1 for path in FILES)
    assert len(world.versions(MANIFEST)) == 1


@pytest.mark.slow
def test_a_missing_asset_is_an_error_before_anything_is_committed(messages: Messages, world: World) -> None:
    event = publish(world)
    asset = f"triton-file-{hashlib.sha256(FILES['network/1/model.bin']).hexdigest()}.bin"
    world.s3.delete_object(Bucket="the-assets", Key=asset)

    with messages.raises(ArtifactError) as failed:
        world.poll(event)

    assert f"s3://the-assets/{asset}" in str(failed.value)
    assert MANIFEST not in world.stored_keys()


@pytest.mark.slow
def test_a_file_of_somebody_else_is_not_taken_for_ours(messages: Messages, world: World) -> None:
    world.s3.put_object(Bucket="the-store", Key=f"{PREFIX}network/config.pbtxt", Body=b"configuration")

    with messages.raises(ArtifactError):
        world.poll(publish(world))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES)
def test_a_file_that_was_replaced_or_deleted_after_its_commit_is_an_error(
    messages: Messages, world: World, path: str
) -> None:
    event = publish(world)
    world.poll(event)

    world.s3.put_object(Bucket="the-store", Key=PREFIX + path, Body=b"another")
    with messages.raises(ArtifactError):
        world.poll(event)

    world.s3.delete_object(Bucket="the-store", Key=PREFIX + path)
    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
def test_a_manifest_of_an_archive_is_none_of_files(messages: Messages, world: World) -> None:
    world.s3.put_object(Bucket="the-store", Key=MANIFEST, Body=json.dumps({"archive": {}}))

    with messages.raises(ArtifactError):
        world.poll(publish(world))


@pytest.mark.slow
def test_a_manifest_of_other_files_is_an_error(messages: Messages, world: World) -> None:
    world.poll(publish(world))

    with messages.raises(ArtifactError):
        world.poll(publish(world, {"network/config.pbtxt": b"configuration"}))


@pytest.mark.slow
def test_a_slow_copy_goes_on_in_the_next_poll(world: World) -> None:
    assert not world.poll(publish(world), world.context([59_000]))
    assert world.poll(publish(world))


@pytest.mark.slow
def test_two_deployments_at_once_write_each_object_once(world: World) -> None:
    event = publish(world)

    def another() -> None:
        assert world.poll(event)

    with world.disturbed("before-call", 12, another):
        assert world.poll(event)

    assert all(len(world.versions(key)) == 1 for key in world.stored_keys())
