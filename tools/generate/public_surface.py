"""The names and members that users may rely on: tests/architecture/public_surface.txt, which shows each change of them.

A line without indentation is a public name of `cdk_triton`. Below a class stand its public members. Members that a
construct inherits from the CDK are not listed.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from tools.generate import Files, Generator

import cdk_triton

PATH = "tests/architecture/public_surface.txt"


def _files() -> Files:
    values = {name: getattr(cdk_triton, name) for name in cdk_triton.__all__}
    return {PATH: "".join(f"{line}\n" for name, value in values.items() for line in _lines(name, value)).encode()}


def _lines(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield name + (_parameters(value) if callable(value) else "")
        return
    members: dict[str, Any] = {}
    for kind in reversed([each for each in value.__mro__ if each.__module__.startswith("cdk_triton.")]):
        members |= dict.fromkeys((*inspect.get_annotations(kind), *_assigned(kind))) | vars(kind)
    is_made = "__init__" in members and not (inspect.isabstract(value) or getattr(value, "_is_protocol", False))
    yield name + (_parameters(members["__init__"]) if is_made else "")
    for member in sorted(each for each in members if not each.startswith("_")):
        found = inspect.unwrap(getattr(members[member], "__func__", members[member]))
        yield f"    {member}{_parameters(found) if inspect.isfunction(found) else ''}"


def _parameters(function: Any) -> str:
    """The names of the parameters, such as `(scope, id, *, model)`."""
    signature = inspect.signature(function)
    shown = [
        each.replace(annotation=each.empty, default=each.empty)
        for each in signature.parameters.values()
        if each.name not in {"self", "cls"}
    ]
    return str(inspect.Signature(shown))


def _assigned(kind: type) -> Iterator[str]:
    """The attributes that the methods of a class assign to `self`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


GENERATOR = Generator(_files)
