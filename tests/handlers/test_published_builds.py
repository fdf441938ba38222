"""The function that builds for a publisher: it goes on only with sources that are those of their keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from artifacts.builders.builder import NO_CAPACITY
from artifacts.failure import for_publisher
from artifacts.published_builds import MAX_BUILD_BYTES
from artifacts.publishing import MAX_BATCH, MAX_NAMES, batches
from cdk_triton.protocol import layout
from golden_messages import Messages
from protocol.catalogue import Change, Entry, Version
from protocol.publication import Item
from publisher_builds import ASSETS, BUILDS, INPUT, BuildingMachine, built_keys
from publisher_executions import Execution
from publisher_machine import FLEET, PLATFORM, REQUESTS, STORE, Machine, packed, packed_keys

SOURCES = [packed({"text/config.pbtxt": b"name: 'text'", "text/model.onnx": f"{n}".encode()}) for n in range(2)]
KEY = built_keys(SOURCES[0]).artifact
BUILD, UPLOAD = f"{REQUESTS}first/{KEY}.json", f"{REQUESTS}archives/{KEY}.tar.gz"

pytestmark = pytest.mark.slow


def spoil(key: str, body: bytes | None) -> Callable[[BuildingMachine], None]:
    def work(machine: BuildingMachine) -> None:
        if body is None:
            machine.s3.expire(STORE, key)
        else:
            machine.s3.put(STORE, key, body)

    return work


def with_build(**changes: Any) -> Callable[[BuildingMachine], None]:
    def work(machine: BuildingMachine) -> None:
        document = machine.build_of("one", SOURCES[0])
        ensemble = document["ensemble"] | changes.get("ensemble", {})
        machine.s3.put(STORE, BUILD, json.dumps(document | changes | {"ensemble": ensemble}).encode())

    return work


SPOILT: dict[str, Callable[[BuildingMachine], None]] = {
    "no build": spoil(BUILD, None),
    "no JSON": spoil(BUILD, b"?"),
    "no sources": spoil(UPLOAD, None),
    "other sources": spoil(UPLOAD, SOURCES[1]),
    "damaged sources": spoil(UPLOAD, b"?"),
    "a recipe that is not declared": with_build(recipes=[2]),
    "no recipe": with_build(recipes=[]),
    "another key": with_build(ensemble={"artifact_key": "0" * 64}),
    "no ensemble that can be built": with_build(ensemble={"steps": [{"recipe": "tensorrt_plan"}]}),
    "a build that is too large": spoil(BUILD, b" " * (MAX_BUILD_BYTES + 1)),
}


def run(machine: BuildingMachine, publication: str, *bad: str, name: str = "") -> str | None:
    """Run an execution, whose builds end as soon as they can, those of `bad` with a failure; why it failed."""
    execution = Execution(machine, publication, name or publication)
    for _ in range(60):
        if not execution.has_ended:
            execution.step(0, None)
            machine.end_builds(*bad)
    assert execution.has_ended
    return execution.failure


def test_a_build_that_fails_gives_its_ensemble_the_reason(messages: Messages) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0], two=SOURCES[1])
    failure = run(machine, "first", "one")
    assert failure is not None
    messages.record("ArtifactError", failure)
    assert machine.live("one") is None
    assert machine.live("two") is not None


@pytest.mark.parametrize("max_builds", [1, 2], ids=["one build", "two builds"])
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_sources_that_are_not_those_of_the_request_are_not_built(
    messages: Messages, spoil: Callable[[BuildingMachine], None], max_builds: int
) -> None:
    machine = BuildingMachine(max_builds)
    machine.publish_sources("first", one=SOURCES[0], two=SOURCES[1])
    spoil(machine)

    failure = run(machine, "first")

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert KEY not in machine.program.built
    assert machine.live("one") is None
    assert machine.live("two") is not None  # it is built alone


def test_repositories_with_the_same_key_share_one_parsed_build(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, read = BuildingMachine(), list[str]()
    machine.publish_sources("first", None, **{f"tenant-{number}": SOURCES[0] for number in range(5)})
    answer = machine.s3.get_object

    def get_object(p: Any) -> dict[str, Any]:
        read.append(p["Key"])
        return answer(p)

    monkeypatch.setattr(machine.s3, "get_object", get_object)
    execution = Execution(machine, "first", "first")
    while not machine.codebuild.live():
        execution.step(0, None)
    assert read.count(BUILD) == 1

    while not execution.has_ended:
        machine.end_builds()
        execution.step(0, None)

    assert execution.failure is None
    for number in range(5):
        manifest = json.loads(machine.s3.get(STORE, f"artifacts/tenant-{number}/{KEY}/manifest.json") or b"")
        assert manifest["repository"] == f"tenant-{number}"


def without_input(machine: BuildingMachine) -> None:
    machine.s3.expire("others", "text.onnx")


def with_another_input(machine: BuildingMachine) -> None:
    machine.s3.put("others", "text.onnx", b"another")


@pytest.mark.parametrize("spoil", [without_input, with_another_input], ids=["missing", "another"])
@pytest.mark.parametrize("others", [0, 2])
def test_an_archive_whose_input_is_not_there_fails_alone(
    messages: Messages, spoil: Callable[[BuildingMachine], None], others: int
) -> None:
    machine = BuildingMachine(max_builds=1)
    names = {f"other-{number}": SOURCES[number] for number in range(others)}
    machine.publish_sources("first", {"one": 1}, one=SOURCES[0], **names)
    spoil(machine)

    failure = run(machine, "first")

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert machine.live("one") is None
    assert all(machine.live(name) is not None for name in names)
    assert len(machine.codebuild.requests()) == (1 if others else 0)
    assert not machine.codebuild.live()

    machine.s3.put("others", "text.onnx", INPUT)
    machine.tick(60)
    assert run(machine, "first", name="again") is None
    assert machine.live("one") is not None


def without_quota(machine: BuildingMachine) -> None:
    machine.codebuild.room = 0


def without_program(machine: BuildingMachine) -> None:
    machine.s3.expire(ASSETS, "triton-program.pyz")


def with_an_object_of_another(machine: BuildingMachine) -> None:
    machine.s3.put(STORE, f"artifacts/one/{KEY}/model.tar.gz", b"?")


@pytest.mark.parametrize(
    "spoil", [without_quota, without_program, without_input, with_an_object_of_another], ids=lambda each: each.__name__
)
def test_a_reason_says_what_a_caller_does_who_cannot_deploy(
    messages: Messages, spoil: Callable[[BuildingMachine], None]
) -> None:
    machine = BuildingMachine(max_builds=1)
    machine.publish_sources("first", {"two": 1}, one=SOURCES[0], two=SOURCES[1])
    spoil(machine)

    failure = run(machine, "first")

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert "publish again" in failure
    assert "deploy again" not in failure


def test_the_advice_of_builders_is_for_deployments_and_not_for_callers_of_a_publisher() -> None:
    assert "cdk-triton artifacts build" in NO_CAPACITY
    assert for_publisher(NO_CAPACITY).endswith("publish again later")


def test_an_archive_on_a_builder_that_the_store_has_lost_fails_alone(messages: Messages) -> None:
    machine = BuildingMachine(max_builds=1)
    machine.publish_sources("first", one=SOURCES[0])
    first = Execution(machine, "first", "first")
    for _ in range(2):
        first.step(0, None)
    first.abort()
    ((state, bodies),) = ((key, each) for (_, key), each in machine.s3.history.items() if key.endswith("/state.json"))
    machine.s3.put(STORE, state, bodies[-1].replace(b'"codebuild"', b'"processing"'))

    machine.publish_sources("second", one=SOURCES[0], two=SOURCES[1])
    failure = run(machine, "second")

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert machine.live("two") is not None


def test_repositories_with_the_same_key_have_each_its_own_reason() -> None:
    machine = BuildingMachine(max_builds=1)
    machine.publish_sources("first", one=SOURCES[0], two=SOURCES[0])
    assert run(machine, "first", "one", "two") is not None
    for name in ("one", "two"):
        found = machine.s3.get(STORE, f"staging/publishing/fleet/25.09-a10g/failures/machine/first/{name}.json")
        reason = json.loads(found or b"")["reason"]
        assert reason.startswith(f"{name!r} for 25.09-a10g could not be built")


def test_a_machine_builds_what_another_one_of_the_fleet_could_not() -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    assert run(machine, "first", "one") is not None
    machine.tick(9000)
    machine.executions = machine.executions.replace(":machine:", ":other:")
    assert run(machine, "first") is None
    assert machine.live("one") is not None


def read_slowly(machine: BuildingMachine, monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[str]:
    """Let the reading of uploaded sources take so long; the keys of those that are read."""
    answer, read = machine.s3.get_object, list[str]()

    def get_object(p: Mapping[str, Any]) -> dict[str, Any]:
        if p["Key"].startswith("staging/publish/") and p["Key"].endswith(".tar.gz"):
            read.append(p["Key"])
            machine.tick(seconds)
        return answer(p)

    monkeypatch.setattr(machine.s3, "get_object", get_object)
    return read


def test_sources_that_take_longer_to_read_than_a_turn_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0], two=SOURCES[1])
    read = read_slowly(machine, monkeypatch, 25)
    assert run(machine, "first") is None
    assert machine.live("one") is not None
    assert len(read) == len(set(read)) == 2


def test_sources_that_take_longer_to_read_than_a_function_may_run_fail(
    messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    read_slowly(machine, monkeypatch, 250)
    failure = run(machine, "first")
    assert failure is not None
    messages.record("ArtifactError", failure)


def test_a_description_that_was_changed_builds_nothing(messages: Messages) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    machine.s3.put(ASSETS, "triton-description.json", b"{}")
    failure = run(machine, "first")
    assert failure is not None
    messages.record("ArtifactError", failure)
    assert not machine.codebuild.requests()


@pytest.mark.parametrize("description", [b'{"schema": 0}', b'{"schema": 2}', b"{}"], ids=["older", "newer", "damaged"])
def test_a_description_that_this_version_did_not_write_builds_nothing(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, description: bytes
) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    machine.s3.put(ASSETS, BUILDS["description"], description)
    monkeypatch.setitem(BUILDS, "sha256", hashlib.sha256(description).hexdigest())
    failure = run(machine, "first")
    assert failure is not None
    messages.record("ArtifactError", failure)


def test_what_is_built_has_its_sources_compared_and_is_committed_for_every_stack() -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    assert run(machine, "first") is None
    (body,) = machine.program.built[KEY]
    assert machine.live("one") == body
    assert machine.s3.get(STORE, f"artifacts/one/{KEY}/model.tar.gz") == body
    manifest = json.loads(machine.s3.get(STORE, f"artifacts/one/{KEY}/manifest.json") or b"")
    assert manifest["build"]["artifact_key"] == KEY
    assert not machine.program.incomplete


def test_the_sources_of_what_was_built_are_kept_with_it_before_it_is_committed() -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    assert run(machine, "first") is None
    kept, manifest = layout.kept_sources_key("one", KEY), layout.manifest_key("one", KEY)
    assert machine.s3.get(STORE, kept) == SOURCES[0]
    written = [key for _, key in machine.s3.history]
    assert written.index(kept) < written.index(manifest)
    entry = machine.entry("one")
    assert entry is not None
    assert entry["versions"][0]["built"] is True


def test_the_sources_of_an_archive_that_a_deployment_has_built_are_kept_too() -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    assert run(machine, "first") is None
    for key in (layout.kept_sources_key("one", KEY), f"fleets/{FLEET}/{PLATFORM}/", "catalogue/"):
        machine.s3.expire(STORE, key)
    machine.publish_sources("second", one=SOURCES[0])
    assert run(machine, "second") is None
    assert machine.s3.get(STORE, layout.kept_sources_key("one", KEY)) == SOURCES[0]
    assert len(machine.codebuild.requests()) == 1


BEFORE = "24.09-a10g"


def listed(machine: BuildingMachine, archive: bytes) -> None:
    """Let the catalogue of another platform list the ensemble `one` of these sources."""
    version = Version(
        layout.target_model("one", built_keys(archive).source),
        "f" * 64,
        built_keys(archive).source,
        "one",
        Change("2026-11-25T13:00:00+00:00", "somebody", "execution"),
        built=True,
    )
    machine.s3.put(STORE, layout.catalogue_key(FLEET, BEFORE, "one"), Entry(FLEET, "one", (version,)).text())


def test_what_another_platform_was_built_from_is_built_again(messages: Messages) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    request = json.loads(machine.s3.get(STORE, "staging/publish/fleet/AROAEXAMPLE:alice/first/request.json") or b"")
    machine.upload("copy", [item | {"from_platform": BEFORE} for item in request["items"]])
    build = machine.s3.get(STORE, BUILD) or b""
    machine.s3.put(STORE, f"staging/publish/fleet/AROAEXAMPLE:alice/copy/{KEY}.json", build)

    failure = run(machine, "copy")
    assert failure is not None
    messages.record("ArtifactError", failure)  # the catalogue does not list it

    listed(machine, SOURCES[0])
    failure = run(machine, "copy", name="listed")
    assert failure is not None
    messages.record("ArtifactError", failure)  # its sources are gone

    machine.s3.put(STORE, layout.kept_sources_key("one", "f" * 64), SOURCES[0])
    execution = Execution(machine, "copy", "again")
    for _ in range(60):
        if not execution.has_ended:
            execution.step(0, None)
            machine.end_builds()
    assert execution.failure is None
    assert machine.live("one") == machine.program.built[KEY][0]
    assert machine.s3.get(STORE, layout.kept_sources_key("one", KEY)) == SOURCES[0]


@pytest.mark.parametrize("path", ["../program.pyz", f"sources/{'0' * 64}.tar.gz", None])
def test_a_caller_does_not_choose_the_path_of_sources(path: str | None) -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    with_build(ensemble={"sources": path})(machine)
    assert run(machine, "first") is None
    plans = [bodies[-1] for (_, key), bodies in machine.s3.history.items() if key.endswith("/in/plan.json")]
    (ensemble,) = json.loads(plans[0])["ensembles"]
    assert ensemble["sources"] == f"sources/{KEY}.tar.gz"
    inputs = {key.partition("/in/")[2] for _, key in machine.s3.history if "/in/" in key}
    assert inputs == {"plan.json", "program.pyz", f"sources/{KEY}.tar.gz"}


def test_a_publisher_without_recipes_builds_nothing(messages: Messages) -> None:
    machine, keys = Machine(), packed_keys(SOURCES[0])
    item = {"ensemble": "one", "action": "publish", "repository": "one", "built": True}
    machine.upload("first", [item | {"source_key": keys.source, "artifact_key": keys.artifact}])
    failure = machine.run("first")
    assert failure is not None
    messages.record("ArtifactError", failure)


def test_archives_are_divided_among_the_builds_that_run_at_once() -> None:
    items = [
        Item(f"ensemble-{number}", "publish", "repository", artifact_key=str(number % 25), built=True)
        for number in range(30)
    ]
    assert [len(batch) for batch in batches(items[:3], 4)] == [1, 1, 1]
    assert [len(batch) for batch in batches(items, 4)] == [7, 7, 7, 4]
    assert [len(batch) for batch in batches(items, 1)] == [MAX_BATCH, MAX_BATCH, 5]
    assert batches([], 4) == []
    same = [Item("one", "publish", f"repository-{number}", artifact_key="0", built=True) for number in range(50)]
    assert [len(batch) for batch in batches(same, 4)] == [MAX_NAMES, MAX_NAMES, 10]
