"""Every defect that others have, or that only AWS shows, is shown not to be here, or it is said why that cannot be."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("known_defects.toml")
DEFECTS: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["defect"]


@functools.cache
def ids_of(path: str) -> frozenset[str]:
    """The ids of a file's tests, without parameters."""

    def found(body: list[ast.stmt], within: str) -> Iterator[str]:
        for statement in body:
            match statement:
                case ast.ClassDef(name=name) if name.startswith("Test"):
                    yield from found(statement.body, f"{within}::{name}")
                case ast.FunctionDef(name=name) if name.startswith("test_"):
                    yield f"{within}::{name}"

    return frozenset(found(ast.parse((ROOT / path).read_text(encoding="utf-8")).body, path))


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect["name"])
def test_a_defect_has_tests_that_exist_or_the_reason_why_there_are_none(defect: dict[str, Any]) -> None:
    tests = defect.get("tests", [])

    assert set(defect) <= {"name", "seen", "source", "tests", "open"}
    assert defect["seen"]
    assert defect.get("source", "https://").startswith("https://")
    assert tests or defect["open"]
    assert [test for test in tests if test not in ids_of(test.partition("::")[0])] == []


def test_each_is_told_once() -> None:
    names = [defect["name"] for defect in DEFECTS]
    assert len(names) == len(set(names))
