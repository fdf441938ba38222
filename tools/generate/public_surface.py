"""The names and members that users may rely on: tests/architecture/public_surface.txt, which shows each change of them.

docs/stability.md lists the names, and the API pages have the classes of the objects that they return, too. A line
without indentation is a name, and below a class stand its public members. Members that a construct inherits from the
CDK are not listed.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tools.generate import ROOT, Files, GenerateError, Generator

PATH = "tests/architecture/public_surface.txt"
PAGE = "docs/stability.md"
WHOLE = ("cdk_triton", "cdk_triton.client")
"""The modules whose names are all public."""


def public_names() -> dict[str, list[str]]:
    """Module → the names of it that the page lists.

    Raises:
        GenerateError: a module whose names are all public has others than the page.
    """
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    names: dict[str, list[str]] = {}
    for module, listed in re.findall(r"^\| [^|]* \| `(cdk_triton[.\w]*)` \| (.*) \|$", page, re.MULTILINE):
        names.setdefault(module, []).extend(re.findall(r"`(\w+)`", listed))
    for module in WHOLE:
        if different := set(names[module]) ^ set(import_module(module).__all__):
            raise GenerateError(f"{PAGE} and {module}.__all__ differ: {', '.join(sorted(different))}")
    return {module: sorted(of_module) for module, of_module in names.items()}


def _files() -> Files:
    listed = {(module, name) for module, names in public_names().items() for name in names}
    lines = [
        line
        for module, name in sorted(listed | set(_described()))
        for line in _lines(f"{module}.{name}", getattr(import_module(module), name))
    ]
    return {PATH: "".join(f"{line}\n" for line in lines).encode()}


def _described() -> Iterator[tuple[str, str]]:
    """The classes and functions on the API pages, as module and name."""
    for page in (ROOT / "docs" / "api").glob("*.md"):
        for module, name in re.findall(r"^::: ([\w.]+)\.(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            if not inspect.ismodule(getattr(import_module(module), name)):
                yield module, name


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
