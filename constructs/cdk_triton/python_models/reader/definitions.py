"""Class statements that Python rejects: `class Model(object, Base)`, `class Flag(bool)`. The source is never executed.

Whether Python rejects one follows from its bases and its `__slots__`. So the reader makes a class with the same bases,
made in the same way, and reads Python's message.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cdk_triton.python_models.reader.names import bound_names

__all__ = ["RejectedClass", "rejected_class"]

# A class with one of these decides itself what becomes of the classes below it.
_DECIDES = frozenset({"__init_subclass__", "__class_getitem__", "__mro_entries__"})
_BUILTIN: dict[str, object] = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
_UNKNOWN = object()


@dataclass(frozen=True)
class RejectedClass:
    """A class statement that always raises an error.

    Attributes:
        line: where it begins.
        name: the name of the class.
        said: the error, as Python words it.
    """

    line: int
    name: str
    said: str


def rejected_class(statements: Iterable[ast.stmt]) -> RejectedClass | None:
    """The first class statement that Python rejects.

    Args:
        statements: the statements of a module that always run, in their order.
    """
    known = dict(_BUILTIN)
    for statement in statements:
        value = _UNKNOWN
        match statement:
            case ast.Raise():
                return None
            case ast.ClassDef():
                try:
                    value = _made(statement, known)
                except (TypeError, ValueError) as error:
                    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
                    return RejectedClass(statement.lineno, statement.name, said)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                value = rejected_class  # any function will do
        names = bound_names(statement)
        if "*" in names:
            known.clear()
        for name in names:
            known.pop(name, None)
        match statement:
            case (
                ast.ClassDef(name=name, decorator_list=[])
                | ast.FunctionDef(name=name, decorator_list=[])
                | ast.AsyncFunctionDef(name=name, decorator_list=[])
            ):
                known[name] = value
    return None


def _made(given: ast.ClassDef, known: dict[str, object]) -> object:
    """A class with the same bases.

    Raises:
        TypeError, ValueError: Python rejects the class.
    """
    bases = tuple(_value(base, known) for base in given.bases)
    keywords = {str(each.arg): None for each in given.keywords}
    if _UNKNOWN in bases or keywords.keys() & {"metaclass", "None"}:
        return _UNKNOWN
    names = frozenset[str]().union(*map(bound_names, given.body))
    made = types.new_class(given.name, bases, keywords, lambda namespace: namespace.update(_slots(given)))
    return _UNKNOWN if names & _DECIDES else made


def _value(base: ast.expr, known: dict[str, object]) -> object:
    match base:
        case ast.Name(id=name):
            return known.get(name, _UNKNOWN)
        case ast.Constant(value=value):
            return value
    return _UNKNOWN


def _slots(given: ast.ClassDef) -> dict[str, Any]:
    """`__slots__` and the names in it that the class binds, if both are literal."""
    named: dict[str, Any] = {}
    for statement in given.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                named[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                named[name] = value
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                named[name] = None
            case _ if bound_names(statement):
                return {}
    try:
        slots = ast.literal_eval(named["__slots__"])
        listed = [slots] if isinstance(slots, str) else [*slots]
    except (KeyError, ValueError, TypeError):
        return {}
    beside = [name for name in named if name in listed and not name.startswith("__")]
    return {**dict.fromkeys(beside), "__slots__": slots}
