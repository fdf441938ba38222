"""The variables of a Python source that it sets only once, and so always stand for the same value."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard, TypeVar

from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.names import bound_by

__all__ = ["Function", "Variables", "attributes_set_once", "constants", "values_set_once"]

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_Expression = TypeVar("_Expression", ast.expr, ast.expr | None)


def constants(nodes: Iterable[ast.AST]) -> Mapping[str, ast.Constant]:
    """The names that a module sets only once, to a literal.

    Args:
        nodes: the nodes of the module.
    """
    return {name: value for name, value in values_set_once(nodes).items() if isinstance(value, ast.Constant)}


def values_set_once(nodes: Iterable[ast.AST]) -> Mapping[str, ast.expr]:
    """The names that a module sets only once, with the expressions that give their values.

    Args:
        nodes: the nodes of the module.
    """
    nodes = list(nodes)
    bound = _bindings(nodes)
    return {name: value for node in nodes for name, value in _assigned(node) if bound[name] == 1}


def attributes_set_once(nodes: Iterable[ast.AST]) -> Mapping[str, ast.expr]:
    """The attributes that `self` gets only once, with the expressions that give their values.

    Args:
        nodes: the nodes of the module. `self` may be of any of its classes, so a field that a class declares counts,
            too.
    """
    nodes = list(nodes)
    set_anywhere = Counter(
        node.attr for node in nodes if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    )
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    fields = [each for one in classes for each in one.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    set_anywhere.update(name for each in fields for node in ast.walk(each) for name in bound_by(node))
    found = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="setattr")):
                return {}
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), value=ast.expr() as value)
            ) if set_anywhere[name] == 1:
                found[name] = value
    return found


class Variables:
    """The variables of a function.

    Args:
        function: the function.
        outside: names → their values outside of the function.

    Attributes:
        nodes: the nodes of the function, without those of functions in it.
        loads: name → how often the function reads it.
        looped: name → what a loop takes its values from, for the variable of one loop only.
        exceptions: the names that stand for nothing but an exception that is handled.
    """

    def __init__(self, function: Function, outside: Mapping[str, ast.expr] | None = None) -> None:
        body = [function.body] if isinstance(function, ast.Lambda) else function.body
        self.nodes = list(own_nodes(*body))
        every = [node for part in (function.args, *body) for node in ast.walk(part)]
        bound = _bindings(every)
        self.loads = Counter(node.id for node in every if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        caught = [node.name for node in every if isinstance(node, ast.ExceptHandler) and node.name is not None]
        self.exceptions = {name for name in caught if bound[name] == caught.count(name)}
        self._reshaped = set(_reshaped(every))
        self._values = {name: value for name, value in (outside or {}).items() if name not in bound}
        self.looped: dict[str, ast.expr] = {}
        for node in self.nodes:
            self._values |= {name: value for name, value in _assigned(node) if bound[name] == 1}
            match node:
                case (
                    ast.For(target=ast.Name(id=name), iter=values)
                    | ast.comprehension(target=ast.Name(id=name), iter=values)
                ) if bound[name] == 1:
                    self.looped[name] = values

    def resolved(self, value: _Expression) -> _Expression:
        """What an expression stands for: the value of a variable, if it is known."""
        return self._values.get(value.id, value) if isinstance(value, ast.Name) else value

    def unchanged(self, value: ast.expr) -> ast.expr:
        """What an expression stands for, as `resolved`, but only if this is certainly still as the function wrote it.

        Another use of a variable may change the elements of its list or dictionary. Elements of an array change
        neither its type nor its shape.
        """
        found = self.resolved(value)
        if isinstance(value, ast.Name) and found is not value:
            is_shared = self.loads[value.id] != 1 and _has_elements(found)
            return value if is_shared or value.id in self._reshaped else found
        return found


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment sets, each with the expression of its value."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if _is_plain(names, values):
            yield from ((each.id, value) for each, value in zip(names, values, strict=False))


def _has_elements(value: ast.expr) -> bool:
    """Whether a value is a list or a dictionary, or consists of some."""
    is_made = isinstance(value, ast.Call | ast.Subscript)  # by a function from a copy of the elements
    return not is_made and any(isinstance(node, ast.List | ast.Dict) for node in ast.walk(value))


def _reshaped(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The variables of arrays that get another shape or type in place."""
    for node in nodes:
        match node:
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="resize"))
                | ast.Attribute(value=ast.Name(id=name), attr="shape" | "dtype", ctx=ast.Store())
            ):
                yield name


def _is_plain(names: Sequence[ast.expr], values: Sequence[ast.expr]) -> TypeGuard[list[ast.Name]]:
    """Whether each of the names gets one of the values."""
    is_even = len(names) == len(values) and not any(isinstance(value, ast.Starred) for value in values)
    return is_even and all(isinstance(name, ast.Name) for name in names)


def _bindings(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often nodes bind a name; more than once for a name of another scope, which other code may set too."""
    found = Counter[str]()
    for node in nodes:
        found.update(bound_by(node))
        match node:
            case ast.arg(arg=name):
                found[name] += 1
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                found.update(names * 2)
    return found
