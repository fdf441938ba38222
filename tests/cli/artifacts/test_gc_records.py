"""The records that `cdk-triton artifacts gc` leaves in the store."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts import sweep
from cdk_triton.cli.artifacts.store import open_store

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import World

pytestmark = pytest.mark.slow


def test_a_deletion_leaves_a_record_in_the_store(run: Any, world: World) -> None:
    key = world.commit("text", "1")
    gc = ("artifacts", "gc", "--store", world.stack, "--yes", "--older-than", "35")

    answer = json.loads(run(*gc, "--format", "json").out)

    ((name, record),) = world.records().items()
    assert answer["record"] == name
    assert re.fullmatch(r"deletions/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{8}\.json", name)
    assert record["reason"] == {"unused": True, "older_than_days": 35, "keep_last": 0}
    assert record["by"].startswith("arn:aws:")
    (deleted,) = record["deleted"]
    assert deleted["name"] == f"artifacts/text/{key}"
    markers = world.s3.list_object_versions(Bucket=world.bucket)["DeleteMarkers"]
    assert {each["key"]: each["delete_marker"] for each in deleted["objects"]} == {
        each["Key"]: each["VersionId"] for each in markers
    }


def test_the_next_deletion_leaves_the_record_and_writes_another(run: Any, world: World) -> None:
    gc = ("artifacts", "gc", "--store", world.stack, "--yes")
    world.commit("text", "1")
    first = run(*gc).out
    (name,) = world.records()
    world.commit("text", "2")

    assert f"s3://{world.bucket}/{name}" in first
    assert run(*gc).status == 0
    assert len(world.records()) == 2
    assert name in world.records()


def test_a_run_that_deletes_nothing_leaves_no_record(run: Any, world: World) -> None:
    answer = json.loads(run("artifacts", "gc", "--store", world.stack, "--yes", "--format", "json").out)

    assert (answer["record"], world.records()) == (None, {})


def test_without_a_record_nothing_is_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.commit("text", "1")
    before = world.stored()
    store = open_store(world.stack)
    look = partial(sweep.survey, store, timedelta(days=30))

    def denied(*_: object) -> str:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")

    monkeypatch.setattr(sweep, "write_record", denied)
    with pytest.raises(ClientError):
        sweep.delete(store, look().free, look, {"older_than_days": 30, "keep_last": 0})

    assert (world.stored(), world.records()) == (before, {})
