"""The page of the architecture shows the imports that are allowed, and every real one."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from tests.architecture.test_structure import MAY_IMPORT

EDGE = re.compile(r"^(\w+) +→ (.*)$", re.MULTILINE)


def shown_imports(root: Path) -> set[tuple[str, str]]:
    """The imports that the page of the architecture lists."""
    page = (root / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    listed = {package: set(others.split(", ")) - {"nothing"} for package, others in EDGE.findall(page)}
    return {(package, other) for package, others in listed.items() for other in others}


def real_imports(package: Path) -> set[tuple[str, str]]:
    """The imports between the packages of the library, also those inside functions."""
    found = set()
    for path in package.rglob("*.py"):
        importer = path.relative_to(package).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cdk_triton."):
                found.add((importer, str(node.module).split(".")[1]))
    packages = {each for each in MAY_IMPORT if each}
    return {(one, other) for one, other in found if one != other and {one, other} <= packages}


def test_the_page_of_the_architecture_lists_the_imports_that_are_allowed(root: Path) -> None:
    allowed = {(package, other) for package, others in MAY_IMPORT.items() if package for other in others}
    assert shown_imports(root) == allowed


@pytest.mark.slow
def test_the_page_of_the_architecture_lists_every_real_import(root: Path, package: Path) -> None:
    facade = {("triton", "checks"), ("triton", "sagemaker")}  # of ModelRepository.check and .report
    assert real_imports(package) - facade <= shown_imports(root)


def test_an_arrow_of_the_picture_is_an_import_of_the_list(root: Path) -> None:
    picture = (root / "docs" / "images" / "layers.svg").read_text(encoding="utf-8")
    arrows = {tuple(edge.split()) for edge in re.findall(r'data-imports="([^"]+)"', picture)}
    assert arrows <= shown_imports(root)
    assert {package for edge in arrows for package in edge} == set(MAY_IMPORT) - {""}


def test_the_page_of_the_architecture_describes_every_package(root: Path) -> None:
    page = (root / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    rows: Any = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert set(MAY_IMPORT) - {""} <= set(rows)
