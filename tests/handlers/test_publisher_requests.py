"""Requests of a publisher: what cannot be read changes nothing, and no request leads elsewhere."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from typing import Any

import pytest

from artifacts import publishing
from artifacts.failure import ArtifactError
from artifacts.publication import Place, parse_request
from cdk_triton.protocol import layout
from golden_messages import Messages
from protocol import publication
from protocol.publication import Item
from publisher_machine import CALLER, EXECUTION, FLEET, PLATFORM, STORE, Machine, packed

VERSIONS = [packed({"text/config.pbtxt": b"name: 'text'", "text/1/model.py": f"# {n}".encode()}) for n in range(2)]

GOOD = {"ensemble": "one", "action": "unpublish"}
COPIED = {**GOOD, "action": "publish", "repository": "r", "source_key": "0" * 64, "artifact_key": "1" * 64}


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"schema": 2, "items": [GOOD]},
        {"schema": 1, "items": []},
        {"schema": 1, "items": 5},
        {"schema": 1, "items": [{**GOOD, "built": True}]},
        {"schema": 1, "items": [{**GOOD, "action": "roll_back", "to": "t" * 300}]},
        {"schema": 1, "items": [GOOD, GOOD]},
        {"schema": 1, "items": [{**GOOD, "is_there": True}]},
        {"schema": 1, "items": [{"ensemble": "one"}]},
        {"schema": 1, "items": [{**GOOD, "action": "destroy"}]},
        {"schema": 1, "items": [{**GOOD, "ensemble": "../one"}]},
        {"schema": 1, "items": [{**GOOD, "action": "publish", "repository": "r"}]},
        {"schema": 1, "items": [{**GOOD, "action": "roll_back", "to": "a/b.tar.gz"}]},
        {"schema": 1, "items": [{**COPIED, "from_platform": "../another-fleet/25.09-a10g"}]},
        {"schema": 1, "items": [{**COPIED, "from_platform": "x" * 300}]},
        {"schema": 1, "items": [{**COPIED, "from_platform": []}]},
        {"schema": 1, "items": [{**COPIED, "to": "x" * 300}]},
        {"schema": 1, "items": [{**GOOD, "to": "one-0.tar.gz"}]},
        {"schema": 1, "items": [{**GOOD, "source_key": 5}, {**GOOD, "ensemble": "two"}]},
        {"schema": 1, "items": [{**GOOD, "repository": "x" * 300_000}]},
        {"schema": 1, "items": [{**GOOD, "action": "roll_back", "artifact_key": "1" * 64}]},
        {"schema": 1, "items": [{**GOOD, "action": "forget", "from_platform": "25.09-a10g"}]},
    ],
    ids=lambda document: zlib.crc32(json.dumps(document).encode()),
)
def test_a_request_that_cannot_be_read_changes_nothing(messages: Messages, document: Any) -> None:
    machine = Machine()
    machine.s3.put(STORE, "staging/publish/fleet/AROAEXAMPLE:alice/bad/request.json", json.dumps(document).encode())
    with messages.raises(ArtifactError):
        parse_request(json.dumps(document).encode())
    assert machine.run("bad") is not None
    assert {key for _, key in machine.s3.history} == {"staging/publish/fleet/AROAEXAMPLE:alice/bad/request.json"}


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"schema":' * 60 + b"1" + b"}" * 60], ids=["never ends", "ends"])
def test_a_request_that_is_nested_deeply_is_not_read(messages: Messages, text: bytes) -> None:
    with messages.raises(ArtifactError):
        parse_request(text)


@pytest.mark.parametrize("item", [b"[]", b"{}", b"0"], ids=["lists", "objects", "numbers"])
def test_a_request_of_small_values_is_not_parsed(messages: Messages, item: bytes) -> None:
    """They would take 20 times their text in memory."""
    text = b'{"schema": 1, "items": [' + b",".join([item] * 1_000_000) + b"]}"
    tracemalloc.start()
    try:
        with messages.raises(ArtifactError):
            parse_request(text)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_request_with_as_many_items_as_allowed_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    full = {**COPIED, "to": None, "built": False, "from_platform": "25.09-a10g"}
    number = 1000
    monkeypatch.setattr(publication, "MAX_VALUES", publication.MAX_VALUES * number // publication.MAX_ITEMS)
    items = [full | {"ensemble": f"e-{each}"} for each in range(number)]
    assert len(parse_request(json.dumps({"schema": 1, "items": items}).encode())) == number


def test_the_size_of_a_request_is_bounded(messages: Messages, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[0])
    for name, module in (("MAX_ITEMS", publication), ("MAX_REQUEST_BYTES", publishing)):
        monkeypatch.setattr(module, name, 1)
        failure = machine.run("first", name)
        assert failure is not None
        messages.record("ArtifactError", failure)
    assert machine.entry("one") is None


@pytest.mark.parametrize("name", ["alice/../artifacts", "../alice/first", "first", "/first", "alice//first", "alice/"])
def test_a_publication_cannot_lead_elsewhere(messages: Messages, name: str) -> None:
    place = Place(FLEET, PLATFORM, f"{EXECUTION}first")
    with messages.raises(ArtifactError):
        Machine().attempt(place, lambda publisher: publisher.prepare(name))


def test_a_request_that_is_not_there_is_named(messages: Messages) -> None:
    missing = Machine().run("nobody")
    assert missing is not None
    messages.record("ArtifactError", missing)


def test_publishers_of_one_store_share_no_object() -> None:
    """Each `TritonMultiModel` has two machines for a platform: the publisher of the next one, and later its own."""
    arns = [EXECUTION.replace(":machine:", f":{machine}:") + "first" for machine in ("Publisher", "NextPublisher")]
    places = [Place(fleet, platform, arn) for fleet in ("a", "b") for platform in ("x", "y") for arn in arns]
    own = [{each.items, each.builds, each.build_failure("1" * 64, "one"), each.failure("one")} for each in places]
    assert len(set.union(*own)) == 8 * 4
    asked = [
        {each.request(name), each.upload(name, "1" * 64), each.build(name, "1" * 64)}
        for each in places
        for name in (f"{CALLER}/p", f"{CALLER}-2/p")
    ]
    assert len(set.union(*asked)) == 2 * 2 * 3  # a TritonMultiModel has one prefix for each caller, for every platform


def test_a_machine_ignores_what_the_one_of_another_fleet_writes() -> None:
    machine, archive = Machine(), VERSIONS[0]
    machine.publish("first", one=archive)
    machine.attempt(
        Place("other", PLATFORM, f"{EXECUTION}first"), lambda other: other.record(Item("one", "unpublish"), {})
    )
    machine.s3.put(STORE, "staging/publish/other/first/request.json", b"?")
    assert machine.run("first") is None
    assert machine.live("one") == archive


@pytest.mark.parametrize("execution", ["first", "failures", "executions"])
def test_items_and_failures_of_builds_lie_outside_of_what_callers_read(execution: str) -> None:
    place = Place(FLEET, PLATFORM, EXECUTION + execution)
    failures = layout.publishing_failures_prefix(FLEET, PLATFORM)
    assert place.failures == layout.publishing_failures_prefix(FLEET, PLATFORM, EXECUTION + execution)
    written = (place.items, place.builds, place.build_failure("1" * 64, "one"))
    assert not [key for key in written if key.startswith(failures)]
