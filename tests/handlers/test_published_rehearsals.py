"""Ensembles that a publisher rehearses before callers get them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from artifacts import published_builds
from golden_messages import Messages
from protocol import layout
from protocol.publisher import BuildingPublisher
from protocol.rehearsal import RehearsalPass
from publisher_builds import BUILDS, DECLARED, BuildingMachine, built_keys, rehearsal_key, rehearsal_of
from publisher_executions import Execution
from publisher_machine import FLEET, KEYS, REQUESTS, STORE, Machine, packed, packed_keys

ARCHIVES = [packed({"text/config.pbtxt": b"name: 'text'", "text/model.onnx": f"{n}".encode()}) for n in range(2)]
GOLDEN, OTHER = b"golden requests", b"other golden requests"
GOLDEN_SHA256 = hashlib.sha256(GOLDEN).hexdigest()
KEY = packed_keys(ARCHIVES[0]).artifact


def run(machine: BuildingMachine, publication: str, *bad: str, name: str = "") -> str | None:
    """Run an execution, whose jobs end as soon as they can, those members `bad` with a failure; why it failed."""
    execution = Execution(machine, publication, name or publication)
    for _ in range(60):
        if not execution.has_ended:
            execution.step(0, None)
            machine.end_builds(*bad)
    assert execution.has_ended
    return execution.failure


@pytest.fixture
def machine() -> BuildingMachine:
    """A machine with a request to publish two complete archives, of which one has golden requests."""
    machine = BuildingMachine()
    machine.publish("first", one=ARCHIVES[0], two=ARCHIVES[1])
    machine.add_rehearsals("first", GOLDEN, "one")
    return machine


@pytest.mark.slow
def test_an_archive_with_golden_requests_is_rehearsed_before_callers_get_it(machine: BuildingMachine) -> None:
    execution = Execution(machine, "first", "first")
    while not machine.codebuild.live():
        assert machine.live("one") is None
        execution.step(0, None)
    (build,) = machine.codebuild.live().values()
    plan = machine.program.plan(build)
    assert (plan["ensembles"], [each["repository"] for each in plan["rehearsals"]]) == ([], ["one"])
    while not execution.has_ended:
        execution.step(0, None)
        machine.end_builds()

    assert execution.failure is None
    assert (machine.live("one"), machine.live("two")) == (ARCHIVES[0], ARCHIVES[1])
    assert len(machine.program.rehearsed) == 1
    assert machine.program.incomplete == []


@pytest.mark.slow
def test_a_tenant_that_fails_is_reported_and_the_others_go_on(machine: BuildingMachine, messages: Messages) -> None:
    machine.add_rehearsals("first", GOLDEN, "two")

    messages.record("ArtifactError", str(run(machine, "first", "rehearsal of one")))

    assert (machine.live("one"), machine.live("two")) == (None, ARCHIVES[1])


@pytest.mark.slow
def test_a_failure_is_not_kept_and_a_pass_is(machine: BuildingMachine) -> None:
    assert run(machine, "first", "rehearsal of one") is not None
    machine.tick(60)
    assert run(machine, "first", name="again") is None
    machine.publish("same", other=ARCHIVES[0])
    document = json.loads(machine.s3.get(STORE, f"{REQUESTS}same/request.json") or b"")
    document["items"][0]["repository"] = "one"
    machine.s3.put(STORE, f"{REQUESTS}same/request.json", json.dumps(document).encode())
    machine.add_rehearsals("same", GOLDEN, "other")

    assert run(machine, "same") is None

    assert len(machine.program.rehearsed) == 1
    machine.publish("changed", third=ARCHIVES[0])
    machine.add_rehearsals("changed", OTHER, "third")
    assert run(machine, "changed") is None
    assert len(machine.program.rehearsed) == 2


@pytest.mark.slow
@pytest.mark.parametrize("rehearsed", ["one", "other"])
def test_golden_requests_of_one_of_two_ensembles_with_the_same_archive_are_asked(rehearsed: str) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=ARCHIVES[0], other=ARCHIVES[0])
    document = json.loads(machine.s3.get(STORE, f"{REQUESTS}first/request.json") or b"")
    for item in document["items"]:
        item["repository"] = "one"
    machine.s3.put(STORE, f"{REQUESTS}first/request.json", json.dumps(document).encode())
    machine.add_rehearsals("first", GOLDEN, rehearsed)

    assert run(machine, "first", "rehearsal of one") is not None

    assert machine.live(rehearsed) is None


@pytest.mark.slow
def test_ensembles_with_the_same_archive_are_rehearsed_with_their_own_golden_requests() -> None:
    machine = BuildingMachine()
    machine.publish("first", one=ARCHIVES[0], other=ARCHIVES[0])
    document = json.loads(machine.s3.get(STORE, f"{REQUESTS}first/request.json") or b"")
    for item in document["items"]:
        item["repository"] = "one"
    machine.s3.put(STORE, f"{REQUESTS}first/request.json", json.dumps(document).encode())
    machine.add_rehearsals("first", GOLDEN, "one")
    machine.add_rehearsals("first", OTHER, "other")
    execution = Execution(machine, "first", "first")
    while not machine.codebuild.live():
        execution.step(0, None)
    for build in machine.codebuild.live().values():
        for each in machine.program.plan(build)["rehearsals"]:
            golden = machine.s3.get(STORE, f"staging/{build}/in/{each['golden']}")
            machine.program.outcomes[each["key"]] = "failed" if golden == OTHER else "good"
    while not execution.has_ended:
        execution.step(0, None)
        machine.end_builds()

    assert "'other': the rehearsal of 'one' for 25.09-a10g failed" in str(execution.failure)
    assert (machine.live("one"), machine.live("other")) == (ARCHIVES[0], None)


@pytest.mark.slow
def test_other_golden_requests_of_a_live_ensemble_are_rehearsed_and_nothing_is_copied(machine: BuildingMachine) -> None:
    assert run(machine, "first") is None
    before = {key for _, key in machine.s3.history if key.startswith(("artifacts/", "fleets/"))}
    machine.s3.put(
        STORE, f"{REQUESTS}second/request.json", machine.s3.get(STORE, f"{REQUESTS}first/request.json") or b""
    )
    machine.add_rehearsals("second", OTHER, "one")

    assert run(machine, "second") is None

    uploaded = rehearsal_of("one", hashlib.sha256(OTHER).hexdigest())
    key = rehearsal_key(uploaded, KEY)
    written = {key for _, key in machine.s3.history if key.startswith(("artifacts/", "fleets/"))} - before
    assert written == {layout.pass_key("one", KEY, key), layout.kept_golden_key("one", KEY, key)}
    entry = machine.entry("one")
    assert entry is not None
    assert [each["rehearsal"] for each in entry["versions"]] == [key]


@pytest.mark.slow
def test_the_golden_requests_are_kept_with_what_was_rehearsed(machine: BuildingMachine) -> None:
    assert run(machine, "first") is None

    uploaded = rehearsal_of("one", GOLDEN_SHA256)
    key = rehearsal_key(uploaded, KEY)
    assert machine.s3.get(STORE, layout.kept_golden_key("one", KEY, key)) == GOLDEN
    found = RehearsalPass.parse(machine.s3.get(STORE, layout.pass_key("one", KEY, key)) or b"")
    assert found.document == uploaded.document


@pytest.mark.slow
@pytest.mark.parametrize("bad", [(), ("rehearsal of one",)], ids=["passes", "fails"])
def test_what_is_copied_from_another_platform_is_rehearsed(bad: tuple[str, ...]) -> None:
    machine = BuildingMachine()
    machine.publish("copy", one=ARCHIVES[0])
    request = f"{REQUESTS}copy/request.json"
    document = json.loads(machine.s3.get(STORE, request) or b"")
    (item,) = document["items"]
    item["from_platform"] = "24.09-a10g"
    machine.s3.put(STORE, request, json.dumps(document).encode())
    machine.s3.expire(STORE, f"{REQUESTS}archives/")
    target = layout.target_model("one", item["source_key"])
    machine.s3.put(STORE, f"{layout.fleet_prefix(FLEET, '24.09-a10g')}{target}", ARCHIVES[0])
    machine.add_rehearsals("copy", GOLDEN, "one")

    failure = run(machine, "copy", *bad)

    assert (failure is None, machine.live("one")) == ((False, None) if bad else (True, ARCHIVES[0]))
    assert len(machine.program.rehearsed) == (0 if bad else 1)


@pytest.mark.slow
def test_other_golden_requests_of_a_live_ensemble_are_asked(machine: BuildingMachine) -> None:
    assert run(machine, "first") is None
    machine.s3.expire(STORE, f"{REQUESTS}archives/{KEY}.tar.gz")
    machine.s3.put(
        STORE, f"{REQUESTS}second/request.json", machine.s3.get(STORE, f"{REQUESTS}first/request.json") or b""
    )
    machine.add_rehearsals("second", OTHER, "one", "two")

    failure = run(machine, "second", "rehearsal of one")

    assert failure is not None
    assert "the rehearsal of 'one' for 25.09-a10g failed" in failure
    assert (machine.live("one"), machine.live("two")) == (ARCHIVES[0], ARCHIVES[1])
    assert len(machine.program.rehearsed) == 2


@pytest.mark.slow
def test_an_archive_that_vanishes_is_not_replaced_by_one_without_a_pass(machine: BuildingMachine) -> None:
    assert run(machine, "first") is None
    machine.upload("gone", [{"ensemble": "one", "action": "unpublish"}])
    assert run(machine, "gone") is None
    machine.s3.put(
        STORE, f"{REQUESTS}second/request.json", machine.s3.get(STORE, f"{REQUESTS}first/request.json") or b""
    )
    machine.add_rehearsals("second", OTHER, "one")
    served = next(name for _, name in list(machine.s3.history) if name.startswith("fleets/") and "/one-" in name)
    execution = Execution(machine, "second", "second")
    execution.step(0, None)
    machine.s3.expire(STORE, served)
    while not execution.has_ended:
        execution.step(0, None)
        machine.end_builds("rehearsal of one")

    assert execution.failure is not None
    assert machine.s3.get(STORE, served) is None


@pytest.mark.slow
def test_repositories_with_the_same_key_are_rehearsed_with_their_own_archives() -> None:
    machine = BuildingMachine()
    machine.publish("first", one=ARCHIVES[0], other=ARCHIVES[0])
    machine.add_rehearsals("first", GOLDEN, "one", "other")
    execution = Execution(machine, "first", "first")
    while not machine.codebuild.live():
        execution.step(0, None)

    (build,) = machine.codebuild.live().values()

    archives = {each["repository"]: each["archive"] for each in machine.program.plan(build)["rehearsals"]}
    assert archives == {name: f"archives/{name}/{KEY}.tar.gz" for name in ("one", "other")}


@pytest.mark.slow
def test_the_job_that_builds_an_archive_rehearses_it(machine: BuildingMachine) -> None:
    machine.publish_sources("built", one=ARCHIVES[0], two=ARCHIVES[1])
    machine.add_rehearsals("built", GOLDEN, "one", "two")

    failure = run(machine, "built", "rehearsal of one", "two")

    assert failure is not None
    assert "'one': the rehearsal of 'one' for 25.09-a10g failed" in failure
    assert "'two': 'two' for 25.09-a10g could not be built" in failure
    assert (machine.live("one"), machine.live("two")) == (None, None)
    assert machine.s3.get(STORE, f"artifacts/one/{built_keys(ARCHIVES[0]).artifact}/manifest.json") is not None


def spoil(key: str, body: bytes | None) -> Callable[[BuildingMachine], None]:
    def work(machine: BuildingMachine) -> None:
        found = next(name for (bucket, name) in list(machine.s3.history) if bucket == STORE and name.endswith(key))
        if body is None:
            machine.s3.expire(STORE, found)
        else:
            machine.s3.put(STORE, found, body)

    return work


def rehearsal(golden: str = GOLDEN_SHA256, **changed: Any) -> Callable[[BuildingMachine], None]:
    """Upload another rehearsal, and request the publication with its key."""

    def work(machine: BuildingMachine) -> None:
        uploaded = rehearsal_of("one", golden)
        uploaded = dataclasses.replace(uploaded, document={**uploaded.document, **changed})
        key = rehearsal_key(uploaded, KEY)
        machine.s3.put(STORE, f"{REQUESTS}first/{key}.rehearsal.json", uploaded.text())
        request = f"{REQUESTS}first/request.json"
        document = json.loads(machine.s3.get(STORE, request) or b"")
        document["items"][0]["rehearsal"] = key
        machine.s3.put(STORE, request, json.dumps(document).encode())

    return work


REHEARSAL = ".rehearsal.json"


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [
        spoil(REHEARSAL, None),
        spoil(REHEARSAL, b"?"),
        spoil(REHEARSAL, rehearsal_of("one", hashlib.sha256(OTHER).hexdigest()).text()),
        rehearsal(requests=[{"body": "../another", "expected": None}]),
        rehearsal(mode="another"),
        rehearsal(load_timeout_seconds=1e9),
        rehearsal(load_timeout_seconds="60"),
        rehearsal("0" * 64),
        lambda machine: machine.s3.put(STORE, f"{REQUESTS}archives/{GOLDEN_SHA256}.zip", bytes(200)),
        spoil(".zip", OTHER),
        spoil(f"archives/{KEY}.tar.gz", ARCHIVES[1]),
    ],
    ids=[
        "no rehearsal",
        "no JSON",
        "another rehearsal",
        "a path outside",
        "another mode",
        "endless",
        "a text as time",
        "no golden requests",
        "large golden requests",
        "other golden requests",
        "another archive",
    ],
)
def test_what_cannot_be_rehearsed_is_not_served(
    messages: Messages,
    machine: BuildingMachine,
    spoil: Callable[[BuildingMachine], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(published_builds, "MAX_GOLDEN_BYTES", 100)
    spoil(machine)

    messages.record("ArtifactError", str(run(machine, "first")))

    assert (machine.live("one"), machine.live("two")) == (None, ARCHIVES[1])
    assert machine.program.rehearsed == []


@pytest.mark.slow
def test_a_publisher_that_does_not_rehearse_says_so(messages: Messages, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, building = Machine(), BuildingMachine()
    for machine in (plain, building):
        machine.publish("first", one=ARCHIVES[0])
        document = json.loads(machine.s3.get(STORE, f"{REQUESTS}first/request.json") or b"")
        document["items"][0]["rehearsal"] = "7" * 64
        machine.s3.put(STORE, f"{REQUESTS}first/request.json", json.dumps(document).encode())
    declared = dataclasses.replace(DECLARED, rehearses=None)
    description = BuildingPublisher(FLEET, KEYS, declared.text().decode()).text()
    building.s3.put("the-assets", BUILDS["description"], description)
    monkeypatch.setitem(BUILDS, "sha256", hashlib.sha256(description).hexdigest())

    messages.record("ArtifactError", str(plain.run("first")))
    messages.record("ArtifactError", str(run(building, "first")))
