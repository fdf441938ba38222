"""No module of the library imports itself in a circle: neither at the top of a file nor inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

FACADE = ("cdk_triton.triton.repository", "cdk_triton.checks")
"""The one declared exception: `ModelRepository.check` and `.report` call the checks, which are about repositories."""


def modules(package: Path) -> dict[str, Path]:
    """Every module below the package, by its full name."""
    names = {path: ".".join(path.relative_to(package.parent).with_suffix("").parts) for path in package.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """The imports that run; those under `if TYPE_CHECKING:` do not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            yield node
        yield from imports(node)


def lazy_names(path: Path) -> dict[str, str]:
    """Name → module, for a package that imports its names when they are first used."""
    text = path.read_text(encoding="utf-8")
    if "lazy_names(__name__)" not in text:
        return {}
    blocks = [node for node in ast.parse(text).body if isinstance(node, ast.If)]
    (block,) = (node for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING")
    nodes = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in nodes for alias in node.names}


def defined_in(module: str, name: str, known: dict[str, Path]) -> str:
    """The module that `from module import name` leads to."""
    if f"{module}.{name}" in known:
        return f"{module}.{name}"
    lazy = lazy_names(known[module]) if module in known else {}
    return defined_in(lazy[name], name, known) if name in lazy else module


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the library that a module imports."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in imports(ast.parse(path.read_text(encoding="utf-8"))):
        above = package[: len(package) - node.level + 1] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        found |= {defined_in(module, alias.name, known) for alias in node.names}
    return {each for each in found if each in known and each != name}


def test_no_module_is_imported_by_what_it_imports(package: Path) -> None:
    known = modules(package)
    graph = {name: imported(name, path, known) for name, path in known.items()}
    upwards = {each for each in graph[FACADE[0]] if each.startswith(f"{FACADE[1]}.")}
    assert upwards, "the facade is gone: remove the exception"
    graph[FACADE[0]] -= upwards
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))
