"""Only `cdk_triton._jsii` uses what jsii does not document; everybody else uses its two decorators."""

from __future__ import annotations

import ast
from typing import Any

DOCUMENTED = {"implements", "member"}
INTERNALS = ("__jsii", "_delegates")


def uses(tree: ast.AST) -> list[str]:
    """The uses of jsii's internals, each with its line."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="jsii"), attr=name) if name not in DOCUMENTED:
                found.append(f"line {node.lineno}: jsii.{name}")
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if name.startswith(INTERNALS):
                found.append(f"line {node.lineno}: {name}")
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "jsii":
                found.append(f"line {node.lineno}: from {module}")
            case ast.Import(names=names) if any(each.name.startswith("jsii.") for each in names):
                found.append(f"line {node.lineno}: import {names[0].name}")
    return found


def test_only_one_module_uses_jsiis_internals(library_source: Any, package: Any) -> None:
    if library_source.path == package / "_jsii.py":
        assert uses(library_source.tree)
    else:
        assert not uses(library_source.tree)
