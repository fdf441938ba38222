"""The names in a Python source, and which of them its statements bind, as far as the source shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "Reference",
    "bound_by",
    "bound_names",
    "certain_statements",
    "imported_names",
    "is_dynamic",
    "stored_attributes",
]

# Names that may give a module a name, or an object an attribute, which is written nowhere as such.
_DYNAMIC = frozenset({"globals", "locals", "vars", "exec", "eval", "builtins", "__builtins__"})
_ATTRIBUTES = frozenset({"__dict__", "__setattr__", "__delattr__"})


@dataclass(frozen=True, order=True)
class Reference:
    """A name in the source.

    Attributes:
        line: where, counted from 1.
        name: the name.
    """

    line: int
    name: str


def imported_names(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Name → what the import binds it to: `abc.ABC` for `from abc import ABC`."""
    names: dict[str, str] = {}
    for statement in body:
        if isinstance(statement, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names |= {alias.asname or alias.name: f"{statement.module}.{alias.name}" for alias in statement.names}
    return names


@lru_cache(maxsize=256)  # a statement is equal to itself alone, and is asked about again and again
def bound_names(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement may bind or delete in its scope; `*` for all names of another module."""
    names: set[str] = set()
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        names.update(bound_by(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            # Inside is a scope of its own, but for what it declares to be global.
            names.update(name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names)
        else:
            pending += ast.iter_child_nodes(node)
    return frozenset(names)


def bound_by(node: ast.AST) -> Iterable[str]:
    """The names that a node itself binds or deletes, without those of the nodes in it."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return (name,)
        case ast.ExceptHandler(name=str(name)):
            return (name,)
        case ast.Import(names=aliases):
            return (alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case ast.ImportFrom(names=aliases):
            return (alias.asname or alias.name for alias in aliases)
    return ()


def is_dynamic(nodes: Iterable[ast.AST]) -> bool:
    """Whether the code may bind names or set attributes that the source does not show."""
    for node in nodes:
        match node:
            case ast.Name(id=name) if name in _DYNAMIC:
                return True
            case ast.Attribute(attr=name) if name in _ATTRIBUTES:
                return True
            case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
                return True
            case ast.alias(name="modules" | "setattr" | "delattr" | "builtins"):
                return True
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[_, ast.Constant(value=str()), *_]):
                pass
            case ast.Call(func=ast.Name(id="setattr" | "delattr")):
                return True
    return False


def stored_attributes(nodes: Iterable[ast.AST]) -> set[str]:
    """The attributes that are set or deleted anywhere, whatever the object."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[_, ast.Constant(value=str(name)), *_]):
                found.add(name)
    return found


def _branch(test: ast.expr, imported: dict[str, str]) -> bool | None:
    """Which branch of a condition runs when the server imports the module; None if it is not known."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _branch(operand, imported)
            return None if inner is None else not inner
        case ast.Constant(value=value):
            return bool(value)
        case ast.Name(id=name) if imported.get(name) == "typing.TYPE_CHECKING":
            return False
        case ast.Attribute(value=ast.Name(id=name), attr="TYPE_CHECKING") if imported.get(name) == "typing":
            return False
        case ast.Compare(
            left=ast.Name(id="__name__"),
            ops=[ast.Eq() | ast.NotEq() as operator],
            comparators=[ast.Constant(value=name)],
        ) if name == "__main__":
            return isinstance(operator, ast.NotEq)  # the module's name is `1.model`
    return None


def certain_statements(body: Iterable[ast.stmt], imported: dict[str, str]) -> Iterator[ast.stmt]:
    """The statements of a body, in which a condition with a known result is replaced by the statements that run."""
    for statement in body:
        decided = _branch(statement.test, imported) if isinstance(statement, ast.If) else None
        if isinstance(statement, ast.If) and decided is not None:
            yield from certain_statements(statement.body if decided else statement.orelse, imported)
        else:
            yield statement
