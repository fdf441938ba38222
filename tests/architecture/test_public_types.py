"""The API pages describe every type that a public function, method or property returns."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cdk_triton


@pytest.mark.parametrize("name", cdk_triton.__all__)
def test_what_is_returned_is_described(root: Path, name: str) -> None:
    pages = [root / "docs" / "errors.md", *(root / "docs" / "api").glob("*.md")]
    described = {each for page in pages for each in re.findall(r"^::: [\w.]+\.(\w+)$", page.read_text(), re.MULTILINE)}
    for label, function in functions(name):
        for kind in returned(function):
            assert kind.__name__ in described, f"{label} returns {kind.__name__}"


def test_types_behind_type_checking_imports_are_seen() -> None:
    labels = {label: {kind.__name__ for kind in returned(function)} for label, function in functions("TritonEndpoint")}
    assert labels["TritonEndpoint.monitor"] == {"EndpointMonitoring"}
    assert labels["TritonEndpoint.variants"] == {"TritonVariant"}


def functions(name: str) -> Iterator[tuple[str, Any]]:
    """A public function itself, or what a public class of the library defines and inherits from it."""
    value = getattr(cdk_triton, name)
    if not inspect.isclass(value):
        yield name, inspect.unwrap(value)
        return
    for kind in value.__mro__:
        for member, found in vars(kind).items() if kind.__module__.startswith("cdk_triton.") else ():
            function = getattr(found, "fget", None) or getattr(found, "__func__", found)
            if not member.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{member}", inspect.unwrap(function)


def returned(function: Any) -> Iterator[type]:
    """The library's classes in what a function returns."""
    annotation = ast.parse(str(function.__annotations__["return"]), mode="eval")
    for node in ast.walk(annotation):
        value = names(function.__module__).get(node.id) if isinstance(node, ast.Name) else None
        if inspect.isclass(value) and value.__module__.startswith("cdk_triton."):
            yield value


@cache
def names(module_name: str) -> Mapping[str, Any]:
    """What a module defines and imports, also what it imports for type checkers only."""
    module = importlib.import_module(module_name)
    found = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("cdk_triton"):
            source = importlib.import_module(str(node.module))
            found |= {each.name: getattr(source, each.name, None) for each in node.names}
    return found
