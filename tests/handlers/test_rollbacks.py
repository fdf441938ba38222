"""The actions of a publisher's machine that go back: rollbacks, what is unpublished, and what is forgotten."""

from __future__ import annotations

import pytest

from artifacts.failure import ArtifactError
from artifacts.publication import Place
from cdk_triton.protocol import layout
from golden_messages import Messages
from protocol.index import Index
from publisher_machine import CALLER, EXECUTION, FLEET, PLATFORM, STORE, Machine, packed, packed_keys

VERSIONS = [packed({"text/1/model.py": f"# {number}".encode()}) for number in range(3)]


def target(name: str, archive: bytes) -> str:
    return f"{name}-{packed_keys(archive).source[:10]}.tar.gz"


def test_rollbacks_and_what_is_unpublished() -> None:
    machine = Machine()
    for name, version in (("a", 0), ("b", 1), ("c", 2)):
        machine.publish(name, one=VERSIONS[version])
        assert machine.run(name) is None
    for name, more, expected in (
        ("d", {"action": "roll_back"}, VERSIONS[1]),
        ("e", {"action": "roll_back", "to": target("one", VERSIONS[0])}, VERSIONS[0]),
        ("f", {"action": "unpublish"}, None),
        ("g", {"action": "roll_back"}, VERSIONS[0]),
    ):
        machine.upload(name, [{"ensemble": "one", **more}])
        assert machine.run(name) is None
        assert machine.live("one") == expected


def test_a_forgotten_ensemble_can_be_published_and_not_rolled_back(messages: Messages) -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0])
    machine.upload("second", [{"ensemble": "one", "action": "forget"}])
    assert [machine.run(name) for name in ("first", "second")] == [None, None]
    entry = machine.entry("one")
    assert entry is not None
    assert (entry["current"], entry["versions"]) == (None, [])

    machine.upload("third", [{"ensemble": "one", "action": "roll_back"}])
    failure = machine.run("third")
    assert failure is not None
    messages.record("ArtifactError", failure)
    machine.publish("fourth", one=VERSIONS[0])
    assert machine.run("fourth") is None
    assert machine.live("one") == VERSIONS[0]


def test_an_unpublished_ensemble_that_was_not_forgotten_is_reported() -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0])
    machine.upload("second", [{"ensemble": "one", "action": "unpublish"}])
    assert [machine.run(name) for name in ("first", "second")] == [None, None]
    machine.upload("third", [{"ensemble": "one", "action": "forget"}])
    place = Place(FLEET, machine.platform, f"{EXECUTION}third")
    machine.attempt(place, lambda publisher: publisher.prepare(f"{CALLER}/third"))

    with pytest.raises(ArtifactError, match="'one': the execution ended before it changed this ensemble"):
        machine.attempt(place, lambda publisher: publisher.count())


def test_a_version_that_is_gone_is_named_with_those_that_are_there(messages: Messages) -> None:
    machine = Machine()
    for name, version in (("a", 0), ("b", 1), ("c", 2)):
        machine.publish(name, one=VERSIONS[version])
        machine.run(name)
    machine.s3.expire(STORE, f"fleets/{FLEET}/{PLATFORM}/{target('one', VERSIONS[1])}")
    machine.upload("d", [{"ensemble": "one", "action": "roll_back"}])

    failure = machine.run("d")

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert target("one", VERSIONS[0]) in failure
    assert machine.live("one") == VERSIONS[2]


def test_a_rollback_does_not_bring_back_a_name_that_the_stack_has_taken() -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0])
    assert machine.run("first") is None
    machine.upload("second", [{"ensemble": "one", "action": "unpublish"}])
    assert machine.run("second") is None
    machine.s3.put(STORE, layout.index_key(FLEET, machine.platform), Index(FLEET, {"one": "one-0.tar.gz"}).text())
    machine.upload("third", [{"ensemble": "one", "action": "roll_back"}])

    failure = machine.run("third")

    assert failure is not None
    assert "'one': the stack has an ensemble of the same name" in failure
    entry = machine.entry("one")
    assert entry is not None
    assert entry["current"] is None
