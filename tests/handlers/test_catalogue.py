"""The catalogue of published ensembles: any sequence of changes, lost writes, lost answers, late repetitions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts import catalogue
from artifacts.catalogue import KEPT, KEPT_EXECUTIONS
from artifacts.failure import ArtifactError, NotYetError
from artifacts.multi_model_index import open_catalogue, write_index
from artifacts.storage import Storage
from build_model.cloud import STORE
from cdk_triton.protocol import layout
from golden_messages import Messages
from memory_aws import S3, Call, Client, Clock, Wire
from protocol.catalogue import Change, Entry, Version
from protocol.index import Index
from protocol.plan import ServedArchives, ServedCopy

FLEET, PLATFORM = "fleet", "25.09-a10g"
PLACE = (FLEET, PLATFORM, "text")
KEY = layout.catalogue_key(*PLACE)
INDEX = layout.index_key(FLEET, PLATFORM)


def version(number: int, execution: int) -> Version:
    change = Change("2026-11-25T13:00:00+00:00", "somebody", f"execution-{execution}")
    return Version(layout.target_model("text", f"{number:010x}"), f"{number:064x}", f"{number:064x}", "text", change)


@dataclass(frozen=True)
class Step:
    """One execution that changes the ensemble; the number says which version, or None for what follows by itself."""

    action: str
    number: int | None = None

    def apply(self, entry: Entry, execution: int) -> Entry:
        made = version(self.number or 0, execution)
        if self.action == "publish":
            return catalogue.publish(entry, made)
        if self.action == "unpublish":
            return catalogue.unpublish(entry, made.live)
        if self.action == "forget":
            return catalogue.forget(entry, made.live)
        return catalogue.roll_back(entry, made.live, None if self.number is None else made.target_model)


steps = st.lists(
    st.one_of(
        st.builds(Step, st.just("publish"), st.integers(0, 14)),
        st.builds(Step, st.just("roll back"), st.none() | st.integers(0, 14)),
        st.builds(Step, st.sampled_from(["unpublish", "forget"])),
    ),
    max_size=30,
)


class Model:
    """What the catalogue should be, written down as plainly as possible: the order in which versions went live."""

    def __init__(self) -> None:
        self.lives: list[int] = []
        self.is_live = False
        self.is_known = False

    @property
    def listed(self) -> list[int]:
        return list(dict.fromkeys(reversed(self.lives)))[:KEPT]

    @property
    def current(self) -> int | None:
        return self.lives[-1] if self.is_live else None

    def apply(self, step: Step) -> bool:
        """Whether the catalogue takes it."""
        if step.action == "publish":
            return self._go_live(step.number)
        if step.action in ("unpublish", "forget"):
            self.is_live = False
            if step.action == "forget":
                self.lives.clear()
            return self.is_known
        others = [number for number in self.listed if number != self.current]
        chosen = next(iter(others), None) if step.number is None else step.number
        if chosen is None or chosen not in [*others, self.current]:
            return False
        return self._go_live(chosen)

    def _go_live(self, number: int | None) -> bool:
        assert number is not None
        if number != self.current:
            self.lives.append(number)
            self.is_live = self.is_known = True
        return True


def storage(s3: S3 | None = None, wire: Wire | None = None) -> Storage:
    return Storage(Client("s3", s3 or S3(Clock()), wire or Wire()), STORE)  # type: ignore[arg-type]  # a double


@pytest.mark.slow
@given(steps)
def test_any_sequence_of_changes_leaves_what_went_live_last(todo: list[Step]) -> None:
    store, model = storage(), Model()
    for execution, step in enumerate(todo):
        try:
            catalogue.update(*PLACE, partial(step.apply, execution=execution), store)
            taken = True
        except ArtifactError:
            taken = False
        assert taken == model.apply(step)

        found = catalogue.read_entry(*PLACE, store)
        targets = [version(number, 0).target_model for number in model.listed]
        assert [each.target_model for each in found.versions] == targets
        assert found.current == (None if model.current is None else version(model.current, 0).target_model)


@pytest.mark.slow
@given(steps, st.data())
def test_a_change_that_comes_again_does_nothing(todo: list[Step], data: st.DataObject) -> None:
    """Step Functions repeats a function whose answer was lost, maybe after another execution has changed the entry."""
    entry, done = Entry(FLEET, "text"), list[tuple[int, Step]]()
    for execution, step in enumerate(todo):
        try:
            changed = step.apply(entry, execution)
        except ArtifactError:
            continue
        if changed != entry:
            done.append((execution, step))
        entry = changed
        if done:
            late, repeated = data.draw(st.sampled_from(done[-KEPT_EXECUTIONS:]))
            assert repeated.apply(entry, late) == entry
    assert entry.executions == tuple(f"execution-{execution}" for execution, _ in reversed(done[-KEPT_EXECUTIONS:]))


@dataclass
class Interference:
    """What another publisher and the network do between the reads and writes of the one that is looked at."""

    s3: S3
    lose_answers: list[bool]
    others: list[Step]
    executions: int = 1000

    def around(self, _service: str, operation: str, call: Call) -> dict[str, object]:
        try:
            answer = call()
        finally:
            if operation == "GetObject" and self.others:
                step, self.executions = self.others.pop(), self.executions + 1
                catalogue.update(*PLACE, lambda entry: step.apply(entry, self.executions), storage(self.s3))
        is_lost = operation == "PutObject" and bool(self.lose_answers) and self.lose_answers.pop()
        return call() if is_lost else answer  # boto3 sends it again, and meets its own document


@pytest.mark.slow
@given(
    st.integers(0, 5),
    st.lists(st.booleans(), max_size=3),
    st.lists(st.builds(Step, st.just("publish"), st.integers(6, 12)), max_size=3, unique_by=lambda step: step.number),
)
def test_no_publisher_loses_the_version_of_another(number: int, lose: list[bool], others: list[Step]) -> None:
    s3, theirs = S3(Clock()), [version(step.number or 0, 0).target_model for step in others]
    wire = Wire(around=Interference(s3, lose, list(others)).around)

    found = catalogue.update(*PLACE, lambda entry: catalogue.publish(entry, version(number, 1)), storage(s3, wire))

    assert found == catalogue.read_entry(*PLACE, storage(s3))
    assert found.versions[0] == version(number, 1)
    assert {each.target_model for each in found.versions} == {version(number, 1).target_model, *theirs}
    written = s3.history[STORE, KEY]
    assert len(written) == len(others) + 1, "each publisher's change is written once"


def test_a_publisher_that_loses_again_and_again_is_told_to_come_back() -> None:
    s3 = S3(Clock())
    wire = Wire(around=Interference(s3, [], [Step("publish", number) for number in range(2, 9)]).around)
    with pytest.raises(NotYetError):
        catalogue.update(*PLACE, lambda entry: catalogue.publish(entry, version(1, 1)), storage(s3, wire))


def test_what_is_live_already_is_not_written_again() -> None:
    s3 = S3(Clock())
    for execution in (1, 2):
        catalogue.update(*PLACE, partial(catalogue.publish, version=version(1, execution)), storage(s3))
    assert len(s3.history[STORE, KEY]) == 1


@pytest.mark.parametrize(
    "document",
    [
        b"[]",
        b"not JSON",
        b'{"schema": 2}',
        b'{"schema": 0}',
        b'{"schema": 1, "versions": [{}], "unpublished": null}',
        Entry(FLEET, "image", (version(1, 1),)).text(),
        Entry(FLEET, "text").text(),
        Entry(FLEET, "text", (version(1, 1),)).text().replace(b"+00:00", b""),
    ],
    ids=[
        "another value",
        "not JSON",
        "a newer schema",
        "an older schema",
        "a version without its fields",
        "another ensemble",
        "no change",
        "a time without an offset",
    ],
)
def test_a_document_of_somebody_else_is_neither_read_nor_replaced(messages: Messages, document: bytes) -> None:
    s3 = S3(Clock())
    s3.put(STORE, KEY, document)
    with messages.raises(ArtifactError):
        catalogue.update(*PLACE, lambda entry: catalogue.publish(entry, version(1, 1)), storage(s3))
    assert s3.get(STORE, KEY) == document


def test_a_version_that_the_catalogue_does_not_have_is_named_with_those_that_it_has(messages: Messages) -> None:
    entry = catalogue.publish(catalogue.publish(Entry(FLEET, "text"), version(1, 1)), version(2, 2))
    with messages.raises(ArtifactError) as refused:
        catalogue.roll_back(entry, version(0, 3).live, "text-00000000aa.tar.gz")
    assert version(1, 1).target_model in str(refused.value)
    with messages.raises(ArtifactError):
        catalogue.roll_back(Entry(FLEET, "text"), version(0, 3).live)
    with messages.raises(ArtifactError):
        catalogue.unpublish(Entry(FLEET, "text"), version(0, 3).live)


# -- the index of a multi-model endpoint that has a catalogue


def fleet(*ensembles: str) -> ServedArchives:
    prefix = layout.fleet_prefix(FLEET, PLATFORM)
    copies = [ServedCopy(name, "k", "a", prefix + layout.target_model(name, "0" * 10)) for name in ensembles]
    return ServedArchives(FLEET, INDEX, tuple(copies))


def test_the_first_published_ensemble_is_recorded_in_the_index_and_deployments_keep_it() -> None:
    s3 = S3(Clock())
    write_index(fleet("a"), storage(s3))
    assert not json.loads(s3.get(STORE, INDEX) or b"")["has_catalogue"]

    assert open_catalogue(FLEET, INDEX, storage(s3)).current == fleet("a").target_models
    write_index(fleet("b"), storage(s3))

    writes = len(s3.history[STORE, INDEX])
    assert open_catalogue(FLEET, INDEX, storage(s3)) == Index(
        FLEET, fleet("b").target_models, fleet("a").target_models, has_catalogue=True
    )
    assert len(s3.history[STORE, INDEX]) == writes


def test_a_fleet_without_ensembles_of_its_own_has_an_index_too() -> None:
    s3 = S3(Clock())
    assert open_catalogue(FLEET, INDEX, storage(s3)) == Index(FLEET, has_catalogue=True)
    assert Index.parse(s3.get(STORE, INDEX) or b"") == Index(FLEET, has_catalogue=True)


def test_a_deployment_that_names_a_published_ensemble_fails_until_that_is_unpublished(messages: Messages) -> None:
    s3 = S3(Clock())
    open_catalogue(FLEET, INDEX, storage(s3))
    catalogue.update(*PLACE, lambda entry: catalogue.publish(entry, version(1, 1)), storage(s3))
    with messages.raises(ArtifactError):
        write_index(fleet("text"), storage(s3))

    gone = replace(version(1, 1).live, execution="execution-2")
    catalogue.update(*PLACE, lambda entry: catalogue.unpublish(entry, gone), storage(s3))
    write_index(fleet("text"), storage(s3))
    assert open_catalogue(FLEET, INDEX, storage(s3)).current == fleet("text").target_models
