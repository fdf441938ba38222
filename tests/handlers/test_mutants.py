"""The table of known faults fits the handlers as they are; `python -m tools.mutants` runs it."""

from __future__ import annotations

from pathlib import Path

from tools.mutants import mutants, mutated


def test_each_known_fault_can_still_be_put_in() -> None:
    for row in mutants():
        compile(mutated(row), row["file"], "exec")
        assert ("by" in row) != ("equivalent" in row)
        for test in row.get("by", "").split():
            assert (Path(__file__).parent / test).is_file()
