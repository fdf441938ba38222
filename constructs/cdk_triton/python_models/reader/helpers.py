"""What a call of a function of the same module returns, with the arguments of the call. Nothing is executed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence

from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.variables import Variables

__all__ = ["Helpers"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Helpers:
    """The functions of a module that return one expression.

    Args:
        nodes: the nodes of the module.
        outside: names → their values outside of the functions.
    """

    def __init__(self, nodes: Sequence[ast.AST], outside: Mapping[str, ast.expr]) -> None:
        functions = [node for node in nodes if isinstance(node, _Function)]
        names = [function.name for function in functions]
        self._returned = {
            function.name: (function, Variables(function, outside), value)
            for function in functions
            if names.count(function.name) == 1 and (value := _returned(function)) is not None
        }

    def returned(self, call: ast.Call) -> ast.expr | None:
        """The expression that a call returns, with the arguments in the place of the parameters; None if not known."""
        match call.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self._returned:
                function, variables, value = self._returned[name]
                given = _given(function, call)
                if given is not None:
                    found: ast.expr = _Substitution(name, variables, given).visit(copy.deepcopy(value))
                    return found
        return None


def _returned(function: _Function) -> ast.expr | None:
    """What a function returns, if this is always the same expression."""
    nodes = list(own_nodes(*function.body))
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    is_generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
    return None if is_generator or function.decorator_list or len(returned) != 1 else returned[0]


def _given(function: _Function, call: ast.Call) -> dict[str, ast.expr] | None:
    """Parameter → argument; None if they are not known."""
    own = function.args
    names = [each.arg for each in (*own.posonlyargs, *own.args)]
    if isinstance(call.func, ast.Attribute) and names[:1] == ["self"]:
        names = names[1:]
    is_open = own.vararg or own.kwarg or any(isinstance(each, ast.Starred) for each in call.args)
    if is_open or len(call.args) > len(names):
        return None
    given = dict(zip(names, call.args, strict=False))
    given.update((each.arg, each.value) for each in call.keywords if each.arg is not None)
    return given


class _Substitution(ast.NodeTransformer):
    """Puts values into the places of the variables of a function."""

    def __init__(self, function: str, variables: Variables, given: Mapping[str, ast.expr]) -> None:
        self._function = function
        self._variables = variables
        self._values = dict(given)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._values:
            found = self._variables.unchanged(node)
            if found is node and node.id not in self._variables.bound:
                return node
            self._values[node.id] = ast.copy_location(ast.Name(f"{self._function}.{node.id}", node.ctx), node)
            if found is not node:
                self._values[node.id] = self.visit(copy.deepcopy(found))
        return self._values[node.id]
