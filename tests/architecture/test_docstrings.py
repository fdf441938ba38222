"""The sections of docstrings, as the API reference reads them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTION = re.compile(r"^(?:Args|Attributes|Raises):\n((?: {4}.*\n|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"[*\w.]+(?:, [*\w.]+)*:(?: |$)")


@pytest.mark.parametrize("folder", ["constructs", "lambda", "tools", "benchmarks"])
def test_each_line_of_a_section_is_an_entry_or_indented(folder: str) -> None:
    """The reference omits a line that continues an entry without an indentation."""
    lost = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for docstring in docstrings(path)
        for section in SECTION.findall(docstring + "\n")
        for line in re.findall(r"^ {4}(\S.*)$", section, re.MULTILINE)
        if not ENTRY.match(line)
    ]
    assert not lost, "indent these lines by four more:\n" + "\n".join(lost)


def docstrings(path: Path) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, kinds))
    return [text for node in nodes if (text := ast.get_docstring(node))]
