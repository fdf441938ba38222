"""The library's source files as the tests of its structure see them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "constructs" / "cdk_triton"


@dataclass(frozen=True)
class Source:
    """One Python file of the library or of the handlers."""

    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def package(self) -> str:
        """The directory below the package that the file is in; "" for the package's own files and the handlers."""
        parts = self.path.relative_to(ROOT).parts
        return parts[2] if parts[0] == "constructs" and len(parts) > 3 else ""

    @property
    def tree(self) -> ast.Module:
        """The parsed file; a test does not change it."""
        return _tree(self.path)

    def imported(self) -> frozenset[str]:
        """Every module that the file imports absolutely, also inside functions and for type checking only."""
        return _imported(self.path)


# Each file is read by a dozen tests.
@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imported(path: Path) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            # `from cdk_triton.cli import local` imports a module as `import cdk_triton.cli.local` does.
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def _sources(*directories: str) -> list[Source]:
    return [Source(path) for directory in directories for path in sorted((ROOT / directory).rglob("*.py"))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes one of these arguments once for each file."""
    for argument, directories in {
        "source": ("constructs", "lambda"),
        "library_source": ("constructs",),
        "handler_source": ("lambda",),
    }.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, _sources(*directories), ids=str)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def package() -> Path:
    """The directory of the package `cdk_triton`."""
    return PACKAGE
