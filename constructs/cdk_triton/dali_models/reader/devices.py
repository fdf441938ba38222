"""Whether a pipeline certainly needs a GPU, as far as literals of its definition show it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from cdk_triton.python_models.reader.known_functions import dotted
from cdk_triton.python_models.reader.names import Reference

__all__ = ["operator_on_gpu"]

_ON_GPU = ("mixed", "gpu")


def operator_on_gpu(
    certain: Iterable[ast.AST], functions: Iterable[ast.FunctionDef], imported: Mapping[str, str]
) -> Reference | None:
    """The first operator of a pipeline that runs on the GPU, or a helper that makes one; None if none certainly does.

    Args:
        certain: the nodes that certainly run for an output of the pipeline.
        functions: the functions of the file.
        imported: name → what an import binds it to.
    """
    helpers = {each.name: each for each in functions if not each.decorator_list}
    found = []
    for node in certain:
        match node:
            case ast.Call(func=ast.Attribute(attr="gpu"), args=[], keywords=[]):
                found.append(Reference(node.lineno, "gpu()"))
            case ast.Call() if _is_on_gpu(node, {}, imported):
                found.append(Reference(node.lineno, dotted(node.func, imported).rpartition(".")[2]))
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in helpers:
                if len(node.args) == 1 and _returns_from_gpu(helpers[name], imported):
                    found.append(Reference(node.lineno, name))
    return min(found, default=None)


def _returns_from_gpu(helper: ast.FunctionDef, imported: Mapping[str, str]) -> bool:
    """Whether a call of a helper with one argument returns the result of an operator on the GPU."""
    arguments, defaults = helper.args.args, helper.args.defaults
    given = dict(zip([each.arg for each in arguments[len(arguments) - len(defaults) :]], defaults, strict=True))
    given = {name: value for name, value in given.items() if name != arguments[0].arg} if arguments else {}
    match helper.body:
        case [ast.Return(value=ast.Call() as call)]:
            return _is_on_gpu(call, given, imported)
    return False


def _is_on_gpu(call: ast.Call, defaults: Mapping[str, ast.expr], imported: Mapping[str, str]) -> bool:
    if not dotted(call.func, imported).startswith("nvidia.dali.fn."):
        return False
    for keyword in call.keywords:
        value = keyword.value
        if isinstance(value, ast.Name):
            value = defaults.get(value.id, value)
        if keyword.arg == "device" and isinstance(value, ast.Constant) and value.value in _ON_GPU:
            return True
    return False
