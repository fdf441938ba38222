"""The table of known faults fits the handlers as they are; `python -m tools.mutants` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.mutants import mutants, mutated


@pytest.mark.parametrize("row", mutants(), ids=lambda row: str(row["id"]))
def test_a_known_fault_can_still_be_put_in(row: dict[str, str]) -> None:
    compile(mutated(row), row["file"], "exec")
    assert ("by" in row) != ("equivalent" in row)
    for test in row.get("by", "").split():
        assert (Path(__file__).parent / test).is_file()


def test_each_fault_has_a_name_of_its_own() -> None:
    names = [row["id"] for row in mutants()]
    assert len(names) == len(set(names))
