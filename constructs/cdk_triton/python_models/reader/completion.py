"""How `auto_complete_config` of a Python model changes the configuration, by its source, which is never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdk_triton.python_models.reader.imports import may_leave
from cdk_triton.python_models.reader.names import certain_statements

__all__ = ["Completion", "completions_of"]

# Methods that change a dict or a list: what a variable holds is open then, or what the configuration does.
_CHANGING = frozenset({"clear", "insert", "pop", "popitem", "remove", "setdefault", "update", "__setitem__"})


@dataclass(frozen=True)
class Completion:
    """A call of a method of the configuration, which happens whenever the server completes it.

    Attributes:
        line: where.
        method: the method's name, `add_input`.
        given: the argument of the call; None if it has none.
    """

    line: int
    method: str
    given: Any = None


def completions_of(method: ast.FunctionDef, imported: Mapping[str, str]) -> tuple[Completion, ...]:
    """The calls whose values are written out, up to the first statement that may end the method.

    The result is empty for a method that may change the configuration in another way, or the values that it hands over.

    Args:
        method: the statement of `auto_complete_config`.
        imported: what the module's names are imported as.
    """
    arguments = method.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    if len(parameters) != 1 or _may_change_values(method):
        return ()
    reader = _Reader(parameters[0].arg, method)
    return () if reader.is_handed_on(method) else tuple(reader.calls(certain_statements(method.body, dict(imported))))


def _may_change_values(method: ast.FunctionDef) -> bool:
    for node in ast.walk(method):
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.AugAssign() | ast.Nonlocal() | ast.Global():
                return True
            case ast.Attribute(attr=name) if name in _CHANGING:
                return True
    return False


class _Reader:
    def __init__(self, config: str, method: ast.FunctionDef) -> None:
        self._config = config
        self._values: dict[str, Any] = {}
        self._known = _set_once(method) - _in_other_hands(method, config)

    def is_handed_on(self, method: ast.FunctionDef) -> bool:
        """Whether something else than its methods may change the configuration."""
        used = sum(isinstance(node, ast.Name) and node.id == self._config for node in ast.walk(method))
        for node in ast.walk(method):
            match node:
                case ast.Attribute(value=ast.Name(id=name)) | ast.Return(value=ast.Name(id=name)):
                    used -= name == self._config
        return used > 0

    def calls(self, statements: Iterator[ast.stmt]) -> Iterator[Completion]:
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._known:
                    self._values[name] = self._of(value)
                case ast.Expr(value=ast.Call() as call):
                    yield from self._asked(call)
                case ast.For(target=ast.Name(id=name), iter=given, body=body, orelse=[]) if name in self._known:
                    values = self._of(given)
                    for value in values if isinstance(values, list | tuple) else ():
                        self._values[name] = value
                        yield from self._plain(body)
                    self._values.pop(name, None)
            if may_leave(statement) or any(isinstance(node, ast.Raise) for node in ast.walk(statement)):
                return

    def _plain(self, body: Sequence[ast.stmt]) -> Iterator[Completion]:
        """The calls in the body of a loop, up to its first other statement."""
        for statement in body:
            match statement:
                case ast.Expr(value=ast.Call() as call):
                    yield from self._asked(call)
                case _:
                    return

    def _asked(self, call: ast.Call) -> Iterator[Completion]:
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if name == self._config:
                given = [*call.args, *(keyword.value for keyword in call.keywords)]
                if len(given) == 1 and (value := self._of(given[0])) is not ...:
                    yield Completion(call.lineno, method, value)
                elif not given:
                    yield Completion(call.lineno, method)

    def _of(self, node: ast.expr) -> Any:
        """The value of a literal expression; `...` for any other."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._values.get(name, ...)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return -number
            case ast.List(elts=parts):
                values = [self._of(part) for part in parts]
                return ... if ... in values else values
            case ast.Tuple(elts=parts):
                values = [self._of(part) for part in parts]
                return ... if ... in values else tuple(values)
            case ast.Dict(keys=keys, values=parts):
                names = [... if key is None else self._of(key) for key in keys]
                values = [self._of(part) for part in parts]
                known = ... not in values and all(isinstance(name, str) for name in names)
                return dict(zip(names, values, strict=True)) if known else ...
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                given = {keyword.arg: self._of(keyword.value) for keyword in keywords}
                return ... if None in given or ... in given.values() else given
        return ...


def _set_once(method: ast.FunctionDef) -> set[str]:
    names = [node.id for node in ast.walk(method) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {name for name in names if names.count(name) == 1}


def _in_other_hands(method: ast.FunctionDef, config: str) -> set[str]:
    """The variables whose values other code may change: a call gets them, or one of their methods is called."""
    found: set[str] = set()
    for node in ast.walk(method):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name == config:
                pass
            case ast.Call(func=function, args=given, keywords=keywords):
                parts = [function, *given, *(keyword.value for keyword in keywords)]
                found.update(inner.id for part in parts for inner in ast.walk(part) if isinstance(inner, ast.Name))
    return found
