"""The program as a file: the same bytes from the same sources, for the Pythons of all of Triton's images."""

from __future__ import annotations

import ast
import hashlib
import sys
import zipfile
from pathlib import Path

import build_program as build_program
from cdk_triton.artifacts.program import PROGRAM_VERSION, REHEARSAL_VERSION, write_program

PACKAGE = Path(build_program.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# What runs in a Python that a step prepared, or that DALI has: beside the program, not in it.
DRIVERS = {source.name for source in SOURCES if source.name.endswith("_driver.py")}


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    write_program(tmp_path / "one.pyz")
    write_program(tmp_path / "two.pyz")

    assert (tmp_path / "one.pyz").read_bytes() == (tmp_path / "two.pyz").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.pyz") as archive:
        names = archive.namelist()
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == sorted(names)
    assert {"__main__.py", "build_program/main.py", "build_program/requirements/onnxruntime-3.12.txt"} <= set(names)
    assert not any("__pycache__" in name for name in names)


def test_the_sources_are_python_3_8_and_need_the_standard_library_only() -> None:
    for source in SOURCES:
        nodes = list(ast.walk(ast.parse(source.read_text(encoding="utf-8"), feature_version=(3, 8))))
        relative = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
        depth = len(source.relative_to(PACKAGE).parts)
        assert all(node.level <= depth for node in relative), "the package has no parent in the program's file"
        if source.name in DRIVERS:
            assert relative == [], source
            continue
        modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        modules |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
        assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names, source


def test_somebody_decided_about_the_version_when_the_program_changed(tmp_path: Path) -> None:
    write_program(tmp_path / "program.pyz")
    digest = hashlib.sha256((tmp_path / "program.pyz").read_bytes()).hexdigest()

    decided = (1, 1, "133cb7adb78a7257e8b6a3289e9f28ff4e035c10229531f01d22893d94ecdff3")
    assert (PROGRAM_VERSION, REHEARSAL_VERSION, digest) == decided, (
        "The build program changed. If it gives other artifacts from the same plan, raise PROGRAM_VERSION: that builds "
        "every artifact of every user again. If it does not (a better message, a faster way to the same bytes), leave "
        "it. If a rehearsal finds failures that it missed before, raise REHEARSAL_VERSION: that repeats every "
        "rehearsal. In all cases write the versions and the digest here."
    )
