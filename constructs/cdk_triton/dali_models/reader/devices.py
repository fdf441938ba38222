"""Whether a pipeline certainly needs a GPU, and leaves outputs there, as far as literals of its definition show it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from cdk_triton.dali_models.reader.tensors import certain_nodes
from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.known_functions import dotted
from cdk_triton.python_models.reader.names import Reference, bound_names

__all__ = ["operator_on_gpu", "outputs_on_gpu"]

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
            case ast.Call(func=ast.Name(id=name)) if name in helpers and _makes_on_gpu(node, helpers[name], imported):
                found.append(Reference(node.lineno, name))
    return min(found, default=None)


def _makes_on_gpu(call: ast.Call, helper: ast.FunctionDef, imported: Mapping[str, str]) -> bool:
    """Whether the result of a helper certainly comes from an operator on the GPU."""
    arguments, defaults = [*helper.args.posonlyargs, *helper.args.args], helper.args.defaults
    values = dict(zip([each.arg for each in arguments[len(arguments) - len(defaults) :]], defaults, strict=True))
    given = {each.arg for each in arguments[: len(call.args)]} | {each.arg for each in call.keywords}
    given |= set[str | None]().union(*map(bound_names, helper.body))
    is_open = None in given or any(isinstance(each, ast.Starred) for each in call.args)
    kept = {} if is_open else {name: value for name, value in values.items() if name not in given}
    return any(isinstance(node, ast.Call) and _is_on_gpu(node, kept, imported) for node in certain_nodes(helper))


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


def outputs_on_gpu(pipeline: ast.FunctionDef, imported: Mapping[str, str]) -> tuple[int, ...]:
    """The outputs of a pipeline that are certainly in the memory of the GPU, each with its place from 0.

    An operator without `device` runs where its inputs are (NVIDIA/DALI: `_choose_device` in
    dali/python/nvidia/dali/ops/__init__.py).

    Args:
        pipeline: the function that defines the pipeline.
        imported: name → what an import binds it to.
    """
    if sum(isinstance(node, ast.Return) for node in own_nodes(*pipeline.body)) != 1:
        return ()
    held: dict[str, bool] = {}
    for statement in pipeline.body[:-1]:
        for name in bound_names(statement):
            held[name] = False
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                held[name] = _is_held(value, held, imported)
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=ast.Call() as value):
                names = [each.id for each in elements if isinstance(each, ast.Name)]
                held |= dict.fromkeys(names, _is_held(value, held, imported))
    match pipeline.body[-1]:
        case ast.Return(value=ast.Tuple(elts=elements)):
            returned: Sequence[ast.expr] = elements
        case ast.Return(value=ast.expr() as value):
            returned = [value]
        case _:
            returned = []
    if any(isinstance(each, ast.Starred) for each in returned):
        return ()
    return tuple(index for index, value in enumerate(returned) if _is_held(value, held, imported))


def _is_held(value: ast.expr, held: Mapping[str, bool], imported: Mapping[str, str]) -> bool:
    """Whether a value is certainly in the memory of the GPU; `held` has those of the variables."""
    match value:
        case ast.Name(id=name):
            return held.get(name, False)
        case ast.Subscript(value=tensor):
            return _is_held(tensor, held, imported)
        case ast.BinOp(left=left, right=right):
            return _is_held(left, held, imported) or _is_held(right, held, imported)
        case ast.Call(func=ast.Attribute(attr="gpu"), args=[], keywords=[]):
            return True
        case ast.Call() if dotted(value.func, imported).startswith("nvidia.dali.fn."):
            if any(keyword.arg in ("device", None) for keyword in value.keywords):
                return _is_on_gpu(value, {}, imported)
            return any(_is_held(each, held, imported) for each in value.args)
    return False
