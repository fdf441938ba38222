"""The uploads of a publication: each is read once, and one that is overwritten, deleted or slow does no harm."""

from __future__ import annotations

import gzip
import itertools
import json
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest

from artifacts import copying
from artifacts.publication import Place
from artifacts.publishing import Publisher
from artifacts.turn import RESERVE_MILLIS, Turn
from build_model.faults import Fault, Killed
from golden_messages import Messages
from protocol.publication import Item
from publisher_executions import Meanwhile
from publisher_machine import CALLER, EXECUTION, FLEET, PLATFORM, REQUESTS, STORE, Machine, packed, packed_keys

VERSIONS = [packed({"text/config.pbtxt": b"name: 'text'", "text/1/model.py": f"# {n}".encode()}) for n in range(3)]


def prepared_item(machine: Machine, name: str) -> tuple[Place, Item]:
    """The place and the only item of a prepared execution."""
    place = Place(FLEET, PLATFORM, EXECUTION + name)
    prepared = machine.attempt(place, lambda publisher: publisher.prepare(f"{CALLER}/{name}"))
    (document,) = json.loads(machine.s3.get(STORE, prepared["items"]) or b"")
    return place, Item.parse(document)


def overwritten(machine: Machine, monkeypatch: pytest.MonkeyPatch, archive: bytes) -> None:
    """Let another caller overwrite the upload as soon as a function has read it."""
    answer, key = (
        machine.s3.get_object,
        f"{REQUESTS}archives/{packed_keys(VERSIONS[0]).artifact}.tar.gz",
    )

    def get_object(p: Any) -> dict[str, Any]:
        found = answer(p)
        if p["Key"] == key:
            machine.s3.put(STORE, key, archive)
        return found

    monkeypatch.setattr(machine.s3, "get_object", get_object)


def test_an_upload_that_is_overwritten_after_it_was_read_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[1])
    overwritten(machine, monkeypatch, VERSIONS[2])
    failure = machine.run("first")
    assert failure is not None
    assert "but the request has" in failure
    assert machine.live("one") is None
    assert machine.live("two") == VERSIONS[1]


def test_an_upload_that_is_overwritten_with_the_same_content_is_served_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two archives with the same content, which have the same keys, may have other bytes."""
    monkeypatch.setattr(copying, "PART_BYTES", 40)
    again = gzip.compress(gzip.decompress(VERSIONS[0]), 1)
    assert again != VERSIONS[0]
    assert packed_keys(again) == packed_keys(VERSIONS[0])
    for number in itertools.count():
        machine = Machine()
        machine.publish("first", one=VERSIONS[0])
        place, item = prepared_item(machine, "first")

        def change(publisher: Publisher, item: Item = item) -> dict[str, Any]:
            return publisher.change(f"{CALLER}/first", item)

        machine.fault = fault = Fault("crash after", number)
        with suppress(Killed):
            machine.attempt(place, change)
        machine.fault = None
        machine.s3.put(STORE, f"{REQUESTS}archives/{packed_keys(again).artifact}.tar.gz", again)
        machine.attempt(place, change)
        assert machine.live("one") in (VERSIONS[0], again), f"call {number}"
        if fault.seen <= number:
            break
    assert number > 5


def test_an_archive_is_read_once_if_another_execution_changes_its_ensemble_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    other = Machine(machine.s3)
    for publication, archive in (("first", VERSIONS[0]), ("second", VERSIONS[1])):
        machine.publish(publication, one=archive)
    (place, item), (there, theirs) = prepared_item(machine, "first"), prepared_item(machine, "second")
    read = Mock(side_effect=machine.s3.get_object)
    monkeypatch.setattr(machine.s3, "get_object", read)

    def change_it() -> None:
        other.attempt(there, lambda publisher: publisher.change(f"{CALLER}/second", theirs))

    machine.fault = Meanwhile(6, change_it)  # before the catalogue is written
    machine.attempt(place, lambda publisher: publisher.change(f"{CALLER}/first", item))
    assert machine.live("one") == VERSIONS[0]
    assert len(machine.documents("one")) == 2
    uploaded = f"{REQUESTS}archives/{packed_keys(VERSIONS[0]).artifact}.tar.gz"
    assert [call.args[0]["Key"] for call in read.mock_calls].count(uploaded) == 1


def test_an_ensemble_that_is_live_needs_no_upload_if_its_function_runs_again() -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0])
    place, item = prepared_item(machine, "first")
    for _ in range(2):
        machine.attempt(place, lambda publisher: publisher.change(f"{CALLER}/first", item))
        machine.s3.expire(STORE, f"{REQUESTS}archives/{packed_keys(VERSIONS[0]).artifact}.tar.gz")
    assert machine.live("one") == VERSIONS[0]
    assert machine.attempt(place, lambda publisher: publisher.count()) == {"changed": 1}


def test_an_archive_that_takes_longer_to_read_than_a_function_may_run_fails_alone(
    messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0])
    assert machine.run("first") is None
    machine.publish("second", one=VERSIONS[0], two=VERSIONS[1])
    late = Turn(lambda: 2 * RESERVE_MILLIS - 1, is_last=True)
    monkeypatch.setattr("publisher_machine.Turn", lambda *_, **__: late)

    failure = machine.run("second")

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert machine.live("one") == VERSIONS[0]
    assert machine.entry("two") is None
