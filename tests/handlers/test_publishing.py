"""The functions of a publisher's machine: a bad ensemble fails alone, whatever goes wrong nothing live is lost."""

from __future__ import annotations

import itertools
import json
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.failure import ArtifactError
from artifacts.publication import Place
from build_model.faults import Fault
from cdk_triton.protocol import layout
from golden_messages import Messages
from protocol.index import Index
from protocol.publication import Item
from publisher_machine import CALLER, EXECUTION, FLEET, PLATFORM, REQUESTS, STORE, Machine, packed, packed_keys

VERSIONS = [packed({"text/config.pbtxt": b"name: 'text'", "text/1/model.py": f"# {n}".encode()}) for n in range(4)]
NAMES = ("one", "two", "three")


def target(name: str, archive: bytes) -> str:
    return f"{name}-{packed_keys(archive).source[:10]}.tar.gz"


def test_what_is_published_is_served_and_in_the_catalogue() -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[0], three=VERSIONS[1])
    assert machine.run("first") is None

    assert [machine.live(name) for name in NAMES] == [VERSIONS[0], VERSIONS[0], VERSIONS[1]]
    entry = machine.entry("three")
    assert entry is not None
    assert entry["current"] == target("three", VERSIONS[1])
    assert entry["versions"][0]["artifact_key"] == packed_keys(VERSIONS[1]).artifact
    assert entry["versions"][0]["live"]["publisher"] == CALLER
    assert entry["versions"][0]["live"]["execution"].endswith(":first")
    index = json.loads(machine.s3.get(STORE, f"fleets/{FLEET}/{PLATFORM}/index.json") or b"")
    assert index["has_catalogue"]


@pytest.mark.slow
def test_an_ensemble_takes_at_most_eight_requests_and_none_that_is_live_writes_anything() -> None:
    ensembles = {f"tenant-{n}": VERSIONS[n % 4] for n in range(40)}
    machine, few = Machine(), Machine()
    machine.publish("first", **ensembles)
    few.publish("first", one=VERSIONS[0])
    assert machine.run("first") is None
    assert few.run("first") is None
    assert (machine.calls.total() - few.calls.total()) / 39 <= 8

    machine.publish("again", **ensembles)
    before = len([key for key in machine.s3.history if not key[1].startswith("staging/")])
    machine.calls.clear()
    assert machine.run("again") is None
    assert machine.calls["PutObject"] == 1  # the items
    assert machine.calls["CompleteMultipartUpload"] == 0
    assert len([key for key in machine.s3.history if not key[1].startswith("staging/")]) == before


def test_a_version_that_is_served_already_needs_no_upload() -> None:
    machine = Machine()
    for name, version in (("a", 0), ("b", 1)):
        machine.publish(name, one=VERSIONS[version])
        assert machine.run(name) is None
    machine.publish("c", one=VERSIONS[0])
    machine.s3.expire(STORE, f"{REQUESTS}archives/{packed_keys(VERSIONS[0]).artifact}.tar.gz")
    assert machine.run("c") is None
    assert machine.live("one") == VERSIONS[0]


def spoil_upload(machine: Machine, archive: bytes | None) -> None:
    key = f"{REQUESTS}archives/{packed_keys(VERSIONS[1]).artifact}.tar.gz"
    if archive is None:
        machine.s3.expire(STORE, key)
    else:
        machine.s3.put(STORE, key, archive)


def spoil_name(machine: Machine) -> None:
    machine.s3.put(STORE, f"fleets/{FLEET}/{PLATFORM}/index.json", Index(FLEET, {"two": "two-0.tar.gz"}).text())


def spoil_target(machine: Machine) -> None:
    key = f"fleets/{FLEET}/{PLATFORM}/{target('two', VERSIONS[1])}"
    machine.s3.put(STORE, key, b"of somebody else", {"artifact-key": "0" * 64})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda machine: spoil_upload(machine, None),
        lambda machine: spoil_upload(machine, VERSIONS[2]),
        lambda machine: spoil_upload(machine, VERSIONS[1][:-9]),
        lambda machine: spoil_upload(machine, b"not an archive"),
        spoil_name,
        spoil_target,
    ],
    ids=["no archive", "another archive", "cut off", "not an archive", "a name of the stack", "another's target"],
)
def test_a_bad_ensemble_fails_alone_with_its_reason(messages: Messages, spoil: Any) -> None:
    machine = Machine()
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[1], three=VERSIONS[2])
    spoil(machine)

    failure = machine.run("first")

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert [machine.live("one"), machine.live("three")] == [VERSIONS[0], VERSIONS[2]]
    assert machine.entry("two") is None
    assert machine.s3.get(STORE, "staging/publishing/fleet/25.09-a10g/failures/machine/first/two.json") is not None


def test_the_publisher_of_the_next_platform_rejects_the_names_of_the_stack() -> None:
    present = Machine(platform="24.09-a10g")
    index = Index(FLEET, {"two": "two-0.tar.gz"})
    present.s3.put(STORE, layout.index_key(FLEET, present.platform), index.text())
    machine = Machine(present.s3, present=present.platform)
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[1])

    failure = machine.run("first")

    assert failure is not None
    assert "'two': the stack has an ensemble of the same name" in failure
    assert machine.live("one") == VERSIONS[0]
    assert machine.entry("two") is None


def test_a_machine_ignores_what_another_one_of_the_fleet_wrote() -> None:
    """The publisher of the next platform and the later one of the endpoint have executions of the same names."""
    machine = Machine()
    machine.publish("first", one=VERSIONS[0])
    spoil = f"{REQUESTS}archives/{packed_keys(VERSIONS[0]).artifact}.tar.gz"
    machine.s3.expire(STORE, spoil)
    assert machine.run("first") is not None
    other = Machine(machine.s3, executions=EXECUTION.replace(":machine:", ":other:"))
    other.publish("first", one=VERSIONS[0])
    assert other.run("first") is None
    assert other.live("one") == VERSIONS[0]


BEFORE = "24.09-a10g"


def copied(archive: bytes) -> tuple[Machine, str]:
    """A request that publishes what another platform serves as `one`, and the object key there."""
    machine, keys = Machine(), packed_keys(archive)
    item = {"ensemble": "one", "action": "publish", "repository": "one", "from_platform": BEFORE}
    machine.upload("first", [item | {"source_key": keys.source, "artifact_key": keys.artifact}])
    return machine, layout.fleet_prefix(FLEET, BEFORE) + target("one", archive)


def test_what_another_platform_serves_is_published_without_an_upload() -> None:
    machine, key = copied(VERSIONS[0])
    machine.s3.put(STORE, key, VERSIONS[0], {"artifact-key": "of the other platform"})
    assert machine.run("first") is None
    assert machine.live("one") == VERSIONS[0]
    (written,) = [each for _, each in machine.s3.history if each.startswith(f"fleets/{FLEET}/{PLATFORM}/one")]
    head = machine.s3.head_object({"Bucket": STORE, "Key": written})
    assert head["Metadata"] == {"artifact-key": packed_keys(VERSIONS[0]).artifact}


@pytest.mark.parametrize("there", [None, VERSIONS[1]], ids=["nothing", "another archive"])
def test_what_another_platform_serves_is_not_taken_on_trust(messages: Messages, there: bytes | None) -> None:
    machine, key = copied(VERSIONS[0])
    if there is not None:
        machine.s3.put(STORE, key, there)
    failure = machine.run("first")
    assert failure is not None
    messages.record("ArtifactError", failure)
    assert machine.live("one") is None


def test_what_was_deleted_while_it_was_published_is_reported(messages: Messages) -> None:
    """`gc` may judge an archive before the catalogue names it, and delete it afterwards."""
    machine = Machine()
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[1])
    gone = f"fleets/{FLEET}/{PLATFORM}/{target('one', VERSIONS[0])}"
    machine.meanwhile = iter([lambda: None, lambda: machine.s3.expire(STORE, gone)])
    failure = machine.run("first")
    assert failure is not None
    messages.record("ArtifactError", failure)
    machine.meanwhile = iter(())
    assert machine.run("first", "again") is None
    assert machine.live("one") == VERSIONS[0]


def test_however_long_the_reasons_are_the_message_has_the_place_of_all_of_them() -> None:
    machine = Machine()
    machine.upload("first", [{"ensemble": f"{number}" * 200, "action": "unpublish"} for number in range(9)])
    failure = machine.run("first")
    assert failure is not None
    assert failure.endswith("...")  # it is cut
    assert f"s3://{STORE}/staging/publishing/{FLEET}/{PLATFORM}/failures/machine/first/" in failure


AS_BEFORE = [
    {"action": "publish", "target": 0},
    {"action": "roll_back", "to": 0},
    {"action": "roll_back"},
    {"action": "unpublish"},
]


def asked(machine: Machine, publication: str, what: dict[str, Any]) -> None:
    """Write a request for the ensemble `one`."""
    if what["action"] == "publish":
        machine.publish(publication, one=VERSIONS[what["target"]])
    else:
        to = {"to": target("one", VERSIONS[what["to"]])} if "to" in what else {}
        machine.upload(publication, [{"ensemble": "one", "action": what["action"], **to}])


def test_an_entry_that_cannot_be_read_fails_its_ensemble_alone() -> None:
    machine = Machine()
    machine.s3.put(STORE, layout.catalogue_key(FLEET, PLATFORM, "two"), b"{")
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[0])
    reason = machine.run("first")
    assert reason is not None
    assert "two.json" in reason
    assert machine.live("one") == VERSIONS[0]


def test_an_entry_that_is_damaged_before_the_count_fails_its_ensemble_alone() -> None:
    machine, place = Machine(), Place(FLEET, PLATFORM, f"{EXECUTION}first")
    machine.publish("first", one=VERSIONS[0], two=VERSIONS[0])
    assert machine.run("first") is None
    machine.s3.put(STORE, layout.catalogue_key(FLEET, PLATFORM, "two"), b"{")
    with pytest.raises(ArtifactError, match="1 of 2"):
        machine.attempt(place, lambda publisher: publisher.count())


@pytest.mark.parametrize("what", AS_BEFORE, ids=str)
def test_an_ensemble_that_was_not_reached_is_not_counted_as_changed(messages: Messages, what: dict[str, Any]) -> None:
    """The catalogue lists the version that the request asks for, and another one is live."""
    machine, place = Machine(), Place(FLEET, PLATFORM, f"{EXECUTION}third")
    for name, version in (("first", 0), ("second", 1)):
        machine.publish(name, one=VERSIONS[version])
        assert machine.run(name) is None
    asked(machine, "third", what)
    machine.attempt(place, lambda publisher: publisher.prepare(f"{CALLER}/third"))

    with messages.raises(ArtifactError):
        machine.attempt(place, lambda publisher: publisher.count())

    assert machine.run("third") is None


@pytest.mark.parametrize("what", AS_BEFORE, ids=str)
def test_an_ensemble_that_another_execution_changes_later_counts_as_changed(what: dict[str, Any]) -> None:
    machine = Machine()
    for name, version in (("first", 0), ("second", 1)):
        machine.publish(name, one=VERSIONS[version])
        assert machine.run(name) is None
    asked(machine, "third", what)
    machine.publish("fourth", one=VERSIONS[2])
    place = Place(FLEET, PLATFORM, f"{EXECUTION}third")
    prepared = machine.attempt(place, lambda publisher: publisher.prepare(f"{CALLER}/third"))
    (document,) = json.loads(machine.s3.get(STORE, prepared["items"]) or b"")
    machine.attempt(place, lambda publisher: publisher.change(prepared["publish"], Item.parse(document)))
    assert Machine(machine.s3).run("fourth") is None

    assert machine.attempt(place, lambda publisher: publisher.count()) == {"changed": 1}

    assert machine.live("one") == VERSIONS[2]


KINDS = ("crash before", "crash after", "limbo", "unsent", "lost", "late", "asked twice", "throttled", "broken")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_call_leaves_each_ensemble_as_it_was_or_as_was_asked_for(kind: str) -> None:
    for number in itertools.count():
        machine = Machine()
        machine.publish("first", one=VERSIONS[0], two=VERSIONS[0])
        assert machine.run("first") is None
        machine.publish("second", one=VERSIONS[1], two=VERSIONS[2], three=VERSIONS[3])
        machine.fault = fault = Fault(kind, number)
        machine.watch = lambda machine=machine: assert_nothing_lost(machine)  # type: ignore[misc]
        assert machine.run("second") is None, f"call {number}"
        assert [machine.live(name) for name in NAMES] == [VERSIONS[1], VERSIONS[2], VERSIONS[3]]
        written = machine.s3.history[STORE, f"catalogue/{FLEET}/{PLATFORM}/three.json"]
        assert len(written) == 1, f"call {number}"
        if fault.seen <= number:
            break
    assert number > 20


def assert_nothing_lost(machine: Machine) -> None:
    assert machine.live("one") in (VERSIONS[0], VERSIONS[1])
    assert machine.live("two") in (VERSIONS[0], VERSIONS[2])
    assert machine.live("three") in (None, VERSIONS[3])


requests = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.one_of(
            st.integers(0, 3),
            st.sampled_from(["roll_back", "unpublish", "forget"]),
        ),
        st.sampled_from(KINDS),
        st.integers(0, 40),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@given(requests)
def test_publishers_that_come_in_between_each_other_lose_nothing(todo: list[tuple[str, Any, str, int, bool]]) -> None:
    machine = Machine()
    machine.publish("begin", **dict.fromkeys(NAMES, VERSIONS[0]))
    assert machine.run("begin") is None
    machine.watch = lambda: deque(map(machine.live, NAMES), maxlen=0).clear()
    for number, (name, what, kind, at, is_between) in enumerate(todo):
        if isinstance(what, int):
            machine.publish(f"n-{number}", **{name: VERSIONS[what]})
        else:
            machine.upload(f"n-{number}", [{"ensemble": name, "action": what}])
        if is_between:  # another publisher of the same ensembles, in the middle of it
            other = Machine(machine.s3)
            other.publish(f"other-{number}", **dict.fromkeys(NAMES, VERSIONS[3]))
            machine.meanwhile = iter([lambda o=other, n=number: o.run(f"other-{n}")])  # type: ignore[misc]
        machine.fault = Fault(kind, at)
        failure = machine.run(f"n-{number}")
        machine.fault = None
        if isinstance(what, int):
            assert failure is None
            assert machine.live(name) == VERSIONS[what]
        if what in ("unpublish", "forget") and failure is None:
            assert machine.live(name) is None
    for (bucket, key), bodies in machine.s3.history.items():
        if bucket == STORE and key.startswith("fleets/") and key.endswith(".tar.gz"):
            assert len(bodies) == 1, f"{key} is written once"
