"""Each document is read as it was written, and one of another version is rejected with the word which is newer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.protocol.catalogue import Change, Entry, Version, current_of
from cdk_triton.protocol.documents import Document, DocumentError, OtherVersionError
from cdk_triton.protocol.index import Index
from cdk_triton.protocol.keys import KeyInputs
from cdk_triton.protocol.outcome import Failure, failure_of_execution, has_reasons_of_others
from cdk_triton.protocol.plan import (
    BuildInput,
    BuildMachine,
    Commit,
    EnsembleBuild,
    File,
    PlannedRehearsal,
    ServedArchives,
    ServedCopy,
    StackPlan,
)
from cdk_triton.protocol.publication import Item, parse_request, request_text
from cdk_triton.protocol.publisher import BuildingPublisher, DeclaredBuilds
from cdk_triton.protocol.rehearsal import RehearsalPass, RehearsedArchive

if TYPE_CHECKING:
    from golden_messages import Messages

KEY = "0" * 64
BUILD = EnsembleBuild((BuildInput(None, "a", "sources/a"), BuildInput("b", "k", "inputs/k", "1", KEY)), {"steps": []})
MACHINE = BuildMachine(
    "processing", 120, {"gpu": "NVIDIA A10G"}, BuildInput(None, "p", "program.pyz"), "ml.g5.xlarge", 9
)
PLAN = StackPlan(
    commits=(
        Commit("text", KEY, "25.09-a10g", "asset", "archive", "manifest", metadata={"commit": "1234"}),
        Commit("image", KEY, "25.09-a10g", None, "archive", "manifest", BUILD),
        Commit("audio", KEY, "25.09-a10g", None, "files/", "manifest", files=(File("a", "b", 1), File("c", None, 0))),
    ),
    fleet=ServedArchives("fleet", "index.json", (ServedCopy("text", KEY, "archive", "fleets/fleet/text-0.tar.gz"),)),
    builder=MACHINE,
    rehearsals=(
        PlannedRehearsal(
            "text",
            KEY,
            KEY,
            "sagemaker-tritonserver:25.09-py3",
            (BuildInput(None, "g", "rehearsals/0.zip"),),
            KEY,
            {"mode": "single"},
        ),
    ),
)
PASS = RehearsalPass(
    "text",
    KEY,
    KEY,
    "sagemaker-tritonserver:25.09-py3",
    RehearsedArchive(9, '"e"', KEY),
    KEY,
    {"mode": "multi"},
    {"requests": []},
)
CHANGE = Change("2026-11-25T13:00:00+00:00", "AROAEXAMPLE:alice", "arn:aws:states:…")
ENTRY = Entry("fleet", "text", (Version("text-0.tar.gz", KEY, KEY, "text", CHANGE, built=True),), None, ("arn",))
INDEX = Index("fleet", {"text": "text-1.tar.gz"}, {"text": "text-0.tar.gz"}, has_catalogue=True)
ITEMS = [Item("text", "publish", "text", KEY, KEY, built=True), Item("image", "roll_back", to="image-0.tar.gz")]
BUILDS = DeclaredBuilds("25.09-a10g", 1, MACHINE, 2, ({"recipe": "TensorRTPlan"},))

Parse = Callable[[bytes], object]


def test_what_is_written_is_read_again() -> None:
    assert StackPlan.parse(PLAN.text()) == PLAN
    assert RehearsalPass.parse(PASS.text()) == PASS
    assert Entry.parse(ENTRY.text()) == ENTRY
    assert current_of(ENTRY.text()) == ENTRY.current == "text-0.tar.gz"
    assert Index.parse(INDEX.text()) == INDEX
    assert parse_request(request_text(ITEMS)) == ITEMS
    assert DeclaredBuilds.parse(BUILDS.text()) == BUILDS
    assert Failure.parse(Failure("text", "publish", "why").text()) == Failure("text", "publish", "why")


def test_equal_plans_have_equal_texts() -> None:
    assert StackPlan.parse(PLAN.text()).text() == PLAN.text()


@pytest.mark.parametrize(("step", "is_newer"), [(-1, False), (1, True)])
@pytest.mark.parametrize("kind", [StackPlan, Entry, Index, BuildingPublisher], ids=lambda kind: kind.__name__)
def test_a_document_of_another_version_is_recognised(kind: type[Document], step: int, is_newer: bool) -> None:
    with pytest.raises(OtherVersionError) as rejected:
        kind.parse(json.dumps({"schema": kind.SCHEMA + step, "of the other version": []}).encode())
    assert rejected.value.is_newer == is_newer


@pytest.mark.parametrize("parse", [StackPlan.parse, Entry.parse, Index.parse, BuildingPublisher.parse, Failure.parse])
@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"schema": "1"}', b'{"schema": 1}', b'{"schema": true}'])
def test_anything_else_is_not_a_document(parse: Parse, text: bytes) -> None:
    with pytest.raises(DocumentError):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "document", "changed"),
    [
        (StackPlan.parse, PLAN, {"commits": {}}),
        (StackPlan.parse, PLAN, {"commits": ""}),
        (Entry.parse, ENTRY, {"versions": {}}),
        (Index.parse, INDEX, {"current": {"a": 1}}),
        (current_of, ENTRY, {"current": 5}),
    ],
)
def test_a_value_of_another_type_is_not_read(parse: Parse, document: Document, changed: dict[str, object]) -> None:
    with pytest.raises(DocumentError):
        parse(json.dumps({**json.loads(document.text()), **changed}).encode())


@pytest.mark.parametrize("value", [1.5, "1", None, True])
def test_a_value_of_another_type_is_named(messages: Messages, value: object) -> None:
    with messages.raises(DocumentError):
        StackPlan.parse(json.dumps({"schema": value}))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path to every value of a document."""
    inner: Iterable[tuple[str | int, object]]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for name, within in inner for each in _paths(within, (*path, name)))]


@st.composite
def damaged_entries(draw: st.DrawFn) -> bytes:
    """An entry in which a value is another one or is missing, or bytes are others or are missing."""
    document = json.loads(ENTRY.text())
    path = draw(st.sampled_from(_paths(document)))
    if path:
        within = document
        for name in path[:-1]:
            within = within[name]
        if draw(st.booleans()):
            del within[path[-1]]
        else:
            within[path[-1]] = draw(
                VALUES | st.sampled_from(["2026-11-25", "2026-11-25T13:00", "0001-01-01T00:00+14:00"])
            )
    else:
        document = draw(VALUES)
    text = json.dumps(document).encode()
    first, last = sorted(draw(st.tuples(*2 * [st.integers(0, len(text))])))
    return draw(st.sampled_from([text, text[:first] + draw(st.binary(max_size=3)) + text[last:]]))


@given(damaged_entries() | st.binary(), st.sampled_from(["text", "image"]))
def test_an_entry_of_the_catalogue_is_read_as_a_whole_or_not_at_all(text: bytes, ensemble: str) -> None:
    entry: Entry | None = None
    fault = ""
    try:
        entry = Entry.of(text, "fleet", ensemble)
    except DocumentError as error:
        fault = str(error)
    assert re.search("Error|Exception|NoneType|subscript", fault) is None, "these are words of Python"
    if entry is not None:
        assert (entry.fleet, entry.ensemble, entry.was_published) == ("fleet", ensemble, True)
        assert {each.live.time.tzinfo for each in entry.versions} | {entry.changed.time.tzinfo} == {UTC}
        assert current_of(entry.text()) == entry.current


@pytest.mark.parametrize("parse", [StackPlan.parse, current_of])
def test_a_text_that_python_cannot_parse_is_not_a_document(parse: Parse) -> None:
    with pytest.raises(DocumentError):
        parse(b"[" * 100_000)


def test_the_order_of_recipes_does_not_matter() -> None:
    inputs, recipes = KeyInputs({"schema": 1}, {"image": "image:25.09"}), [{"recipe": "b"}, {"recipe": "a"}]
    assert inputs.with_recipes(recipes, 1) == inputs.with_recipes(reversed(recipes), 1)
    assert inputs.with_recipes([], 1) == inputs


def test_the_message_of_an_execution_has_the_reasons_of_several_ensembles() -> None:
    reasons = {f"e{number}": "the archive is damaged" for number in range(9)}
    assert has_reasons_of_others(failure_of_execution(reasons, 12, "s3://bucket/failures/"))
    assert not has_reasons_of_others("the request is missing")
