"""The models and files that a Python source names by literals. It is parsed, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["Reference", "References", "references_of"]

_PATH = "pathlib.Path"
_READS = frozenset({"open", "read_text", "read_bytes"})
_WRITES = frozenset("wax")


@dataclass(frozen=True, order=True)
class Reference:
    """A name in the source.

    Attributes:
        line: where, counted from 1.
        name: the name.
    """

    line: int
    name: str


@dataclass(frozen=True)
class References:
    """The models and files that a source names, under whatever condition.

    Attributes:
        models: the models that it sends requests to (BLS).
        files: the files that it opens for reading by a relative path.
        loads_models: whether it may load models itself.
        changes_directory: whether it may change the working directory.
    """

    models: tuple[Reference, ...] = ()
    files: tuple[Reference, ...] = ()
    loads_models: bool = False
    changes_directory: bool = False


def references_of(nodes: Iterable[ast.AST], names: frozenset[str], imported: Mapping[str, str]) -> References:
    """Read the references of a module.

    Args:
        nodes: the nodes of the module.
        names: the names that the module defines.
        imported: what its names are imported as.
    """
    models: set[Reference] = set()
    files: set[Reference] = set()
    attributes: set[str] = set()
    for node in nodes:
        match node:
            case ast.Attribute(attr=name) | ast.alias(name=name):
                attributes.add(name)
            case ast.Call():
                models.update(_called(node))
                files.update(_opened(node, names, imported))
    return References(
        tuple(sorted(models)), tuple(sorted(files)), "load_model" in attributes, bool({"chdir", "fchdir"} & attributes)
    )


def _called(call: ast.Call) -> Iterator[Reference]:
    match call.func:
        case ast.Attribute(attr="InferenceRequest") | ast.Name(id="InferenceRequest"):
            for keyword in call.keywords:
                match keyword:
                    case ast.keyword(arg="model_name", value=ast.Constant(value=str(name))):
                        yield Reference(call.lineno, name)


def _opened(call: ast.Call, names: frozenset[str], imported: Mapping[str, str]) -> Iterator[Reference]:
    given = call.args
    match call.func:
        case ast.Name(id="open") if "open" not in names and given:
            path, given = given[0], given[1:]
        case ast.Attribute(value=ast.Call(func=function, args=[path]), attr=method) if method in _READS:
            if _dotted(function, imported) != _PATH:
                return
            given = given if method == "open" else []
        case _:
            return
    modes = [*given[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    if not all(isinstance(mode, ast.Constant) and not _WRITES & set(str(mode.value)) for mode in modes):
        return
    match path:
        case ast.Constant(value=str(name)) if name and not name.startswith(("/", "~")):
            yield Reference(call.lineno, name)


def _dotted(node: ast.expr, imported: Mapping[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return imported.get(name, name)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return f"{imported.get(name, name)}.{attribute}"
    return ""
