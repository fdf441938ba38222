"""What users note about a model, in the manifests of archives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.handlers.conftest import Ensemble, Event, World

pytestmark = pytest.mark.slow

FIRST, SECOND = {"commit": "1f3a", "approver": "ada"}, {"commit": "99c0"}


def _noted(world: World, ensemble: Ensemble, metadata: dict[str, str], **other: object) -> Event:
    properties = world.publish(ensemble)["ResourceProperties"]
    found = world.s3.get_object(Bucket=properties["PlanBucket"], Key=properties["PlanKey"])["Body"].read()
    plan = json.loads(found)
    commits = [{**each, "metadata": metadata, **other} for each in plan["commits"]]
    return world.publish_plan({**plan, "commits": commits})


def _manifest(world: World, ensemble: Ensemble) -> dict[str, Any]:
    (text,) = world.versions(ensemble.manifest)  # one version: nobody writes it again
    document: dict[str, Any] = json.loads(text)
    return document


def test_the_manifest_has_the_metadata(world: World) -> None:
    text = world.ensemble("text")

    assert world.poll(_noted(world, text, FIRST))

    assert _manifest(world, text)["metadata"] == FIRST


def test_the_same_archive_with_other_metadata_keeps_the_manifest_of_the_first(world: World) -> None:
    text = world.ensemble("text")
    world.poll(_noted(world, text, FIRST))

    with world.counted() as calls:
        assert world.poll(_noted(world, text, SECOND))

    assert _manifest(world, text)["metadata"] == FIRST
    assert not {"CopyObject", "UploadPartCopy", "CreateMultipartUpload"} & set(calls)
    world.assert_committed(text)


def test_a_manifest_without_metadata_has_no_empty_entry(world: World) -> None:
    text = world.ensemble("text")

    world.poll(world.publish(text))

    assert "metadata" not in _manifest(world, text)


def test_a_promoted_archive_keeps_the_metadata_of_the_store_that_tested_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = world.ensemble("text")
    world.s3.create_bucket(Bucket="tested")
    with monkeypatch.context() as environment:
        environment.setenv("STORE_BUCKET", "tested")
        assert world.poll(_noted(world, text, FIRST))
    monkeypatch.setenv("PROMOTES_FROM", "tested")

    assert world.poll(_noted(world, text, SECOND, asset=None))

    manifest = _manifest(world, text)
    assert manifest["promoted_from"] == "tested"
    assert (manifest["metadata"], manifest["promoted_metadata"]) == (SECOND, FIRST)


def test_an_archive_that_is_promoted_twice_keeps_the_metadata_of_the_first_store(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = world.ensemble("text")
    for store in ("built", "tested"):
        world.s3.create_bucket(Bucket=store)
    with monkeypatch.context() as environment:
        environment.setenv("STORE_BUCKET", "built")
        assert world.poll(_noted(world, text, FIRST))
        environment.setenv("STORE_BUCKET", "tested")
        environment.setenv("PROMOTES_FROM", "built")
        assert world.poll(_noted(world, text, SECOND, asset=None))
    monkeypatch.setenv("PROMOTES_FROM", "tested")

    assert world.poll(_noted(world, text, SECOND, asset=None))

    assert _manifest(world, text)["promoted_metadata"] == FIRST


def test_the_manifest_of_uncompressed_files_has_the_metadata_too(world: World) -> None:
    text = world.ensemble("text")
    prefix = text.archive.removesuffix("model.tar.gz") + "files/"
    files = [{"path": "config.pbtxt", "asset": text.asset, "size": len(text.content())}]

    assert world.poll(_noted(world, text, FIRST, asset=None, archive=prefix, files=files))

    assert _manifest(world, text)["metadata"] == FIRST
