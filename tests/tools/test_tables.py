"""Every data table has the same header, is in its canonical form, and has a generator or is written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tools.generate import ROOT, GenerateError, _tables, generators
from tools.generate._tables import BY_HAND, canonical, checked_files, content_sha256, header_faults, table_paths

if TYPE_CHECKING:
    from golden_messages import Messages


SHA = "0" * 64
HEADER: dict[str, Any] = {
    "about": "A table that nobody needs, with a text that is long enough.",
    "retrieved": "2026-11-20",
    "sources": ["the imagination of the author"],
    "generator": BY_HAND,
}


@pytest.mark.parametrize("path", table_paths())
def test_a_table_has_a_complete_header_and_the_canonical_form(path: str) -> None:
    text = (ROOT / path).read_bytes()
    assert list(header_faults(json.loads(text))) == []
    assert text == canonical(json.loads(text))


def test_every_table_is_returned_by_the_generator_that_its_header_names() -> None:
    generated = {name: each.files() for name, each in generators().items() if each.source or name == "tables"}
    for path in table_paths():
        generator = json.loads((ROOT / path).read_bytes())["generator"]
        assert path in generated["tables" if generator == BY_HAND else Path(generator).stem]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"about": "A table."}, id="about"),
        pytest.param({"retrieved": "2999-01-01"}, id="a date to come"),
        pytest.param({"retrieved": "2026-02-30"}, id="a day that no month has"),
        pytest.param({"retrieved": "20261120"}, id="another form of a date"),
        pytest.param({"sources": []}, id="no sources"),
        pytest.param({"sources": ["short"]}, id="a short source"),
        pytest.param({"generator": "tools/none.py"}, id="no hashes"),
        pytest.param(
            {"generator": "tools/none.py", "input_sha256": SHA, "content_sha256": SHA}, id="no such generator"
        ),
        pytest.param(
            {"generator": "tools/generate/tables.py", "input_sha256": "", "content_sha256": SHA}, id="no hash"
        ),
    ],
)
def test_a_fault_of_a_header_has_a_sentence(messages: Messages, change: dict[str, Any]) -> None:
    assert list(header_faults({**HEADER, "data": []})) == []
    (found,) = header_faults({**HEADER, **change, "data": []})
    messages.record("header_faults", found)


def test_a_header_in_another_order_is_a_fault() -> None:
    assert list(header_faults(dict(reversed(HEADER.items()))))
    assert list(header_faults({"data": [], **HEADER}))


def test_a_generated_table_that_was_changed_by_hand_is_found(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tables, "ROOT", tmp_path)
    (tmp_path / "made_up.py").touch()
    data = {"flags": {"--fp16": ["8.4.1"]}}
    hashes = {"input_sha256": SHA, "content_sha256": content_sha256(data)}
    table = {**HEADER, "generator": "made_up.py", **hashes, **data}
    (tmp_path / "table.json").write_bytes(canonical(table))
    assert checked_files("table.json") == {"table.json": canonical(table)}

    (tmp_path / "table.json").write_bytes(canonical({**table, "flags": {"--fp16": ["8.4.2"]}}))
    with messages.raises(GenerateError):
        checked_files("table.json")

    (tmp_path / "table.json").write_text("{")
    with messages.raises(GenerateError):
        checked_files("table.json")
