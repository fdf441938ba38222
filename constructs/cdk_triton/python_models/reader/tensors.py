"""The tensors that a Python model's source names. It is parsed, never executed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdk_triton.python_models.reader.arrays import array_type
from cdk_triton.python_models.reader.backend_utils import MODULES, imported_as
from cdk_triton.python_models.reader.calls import certain_type, own_nodes
from cdk_triton.python_models.reader.uses import without_annotations
from cdk_triton.python_models.reader.variables import Variables, attributes_set_once, constants, values_set_once

__all__ = ["NamedTensor", "NoName", "TensorNames", "tensor_names"]

_MAKERS = ("Tensor", "Tensor.from_dlpack")
_NO_NAMES = ("list", "tuple", "set", "dict", "int", "float", "bytes")
_TAKERS = ("get_input_tensor_by_name", "get_output_tensor_by_name")

# What is below these may not run, or may be meant to fail.
_CONDITIONS = (ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.Match, ast.Try, ast.Lambda)


@dataclass(frozen=True, order=True)
class NamedTensor:
    """A tensor that the source names.

    Attributes:
        line: where, counted from 1.
        name: its name.
        kind: Triton's name of its type, such as `FP64`; "" if it is not known.
    """

    line: int
    name: str
    kind: str = ""


@dataclass(frozen=True, order=True)
class NoName:
    """A value that the source passes as the name of a tensor, and that is no text.

    Attributes:
        line: where, counted from 1.
        function: the function that gets it.
        kind: its type, such as `list`.
    """

    line: int
    function: str
    kind: str


@dataclass(frozen=True)
class TensorNames:
    """The tensors that the source names by literals.

    Attributes:
        read: the tensors that it always takes from a request, and uses without a check that they exist.
        required: those of `read` that `execute` itself takes from every request, whatever inputs the request has.
        made: the tensors that it puts into answers; None if they are not known, because a name is computed, or because
            the source also makes tensors for calls of other models.
        unnamed: the calls that find no tensor, because the name that they get is no text.
    """

    read: tuple[NamedTensor, ...] = ()
    made: tuple[NamedTensor, ...] | None = None
    required: tuple[NamedTensor, ...] = ()
    unnamed: tuple[NoName, ...] = ()


def tensor_names(module: ast.Module) -> TensorNames:
    """Read what a module calls on the backend's utilities, by the names that it imports them as."""
    nodes = tuple(without_annotations(module))
    used = _Utilities(imported_as(nodes))
    return replace(_named(module, nodes, used), unnamed=tuple(sorted(_unnamed(used, nodes))))


def _named(module: ast.Module, nodes: Sequence[ast.AST], used: _Utilities) -> TensorNames:
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if any(function.name == "auto_complete_config" for function in functions):
        return TensorNames()  # it may add inputs and outputs
    execute = [function for function in functions if function.name == "execute"]
    required = _required(used, _read(used, nodes, *execute), execute)
    if any(used.attribute(node) == "InferenceRequest" for node in nodes):
        return TensorNames(_read(used, nodes, *execute), required=required)
    return TensorNames(_read(used, nodes, module), _made(used, nodes), required)


def _unnamed(used: _Utilities, nodes: Sequence[ast.AST]) -> Iterator[NoName]:
    """The calls whose name is a value of another type, in the call or in a name that is set only once."""
    values, attributes = values_set_once(nodes), attributes_set_once(nodes)
    for node in nodes:
        match node:
            case (
                ast.Call(func=function, args=[_, name])
                | ast.Call(func=function, args=[_], keywords=[ast.keyword(arg="name", value=name)])
            ) if (called := used.attribute(function)) in _TAKERS:
                match name:
                    case ast.Name(id=variable):
                        name = values.get(variable, name)
                    case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                        name = attributes.get(attribute, name)
                if (kind := certain_type(name)) in _NO_NAMES:
                    yield NoName(node.lineno, called, kind)


@dataclass(frozen=True)
class _Utilities:
    """The names under which the module has the backend's utilities."""

    aliases: frozenset[str]

    def attribute(self, node: ast.AST) -> str | None:
        """`Tensor` of `pb_utils.Tensor`, `Tensor.from_dlpack` of `pb_utils.Tensor.from_dlpack`."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.aliases:
                return attribute
            case ast.Attribute(value=ast.Attribute() as value, attr=attribute):
                return None if (outer := self.attribute(value)) is None else f"{outer}.{attribute}"
        return None


def _read(used: _Utilities, nodes: Sequence[ast.AST], *parts: ast.AST) -> tuple[NamedTensor, ...]:
    """The tensors that the parts read; `nodes` are those of the whole module, which may check the variables."""
    asked = {name for node in nodes for name in _asked(node)}
    entered = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    found = set()
    for node in (node for part in parts for node in _certain(part)):
        match node:
            case ast.Attribute(value=call):
                pass
            case ast.Assign(targets=[ast.Name(id=variable)], value=call) if variable in entered - asked:
                pass
            case ast.AnnAssign(target=ast.Name(id=variable), value=call) if variable in entered - asked:
                pass
            case _:
                continue
        match call:
            case ast.Call(func=function, args=[_, ast.Constant(value=str(name))]):
                if used.attribute(function) == "get_input_tensor_by_name":
                    found.add(NamedTensor(call.lineno, name))
    return tuple(sorted(found))


def _required(used: _Utilities, read: Sequence[NamedTensor], execute: Sequence[ast.AST]) -> tuple[NamedTensor, ...]:
    """The tensors that functions read, if nothing in the functions looks at which inputs a request has."""
    nodes = [node for function in execute for node in ast.walk(function)]
    if any(
        isinstance(node, ast.Continue | ast.With)
        or (isinstance(node, ast.Attribute) and node.attr == "inputs")
        or (isinstance(node, ast.comprehension) and node.ifs)
        for node in nodes
    ):
        return ()
    said = Counter(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    taken = Counter(
        node.args[1].value
        for node in nodes
        if isinstance(node, ast.Call) and used.attribute(node.func) == "get_input_tensor_by_name"
        if len(node.args) == 2 and isinstance(node.args[1], ast.Constant)
    )
    return tuple(tensor for tensor in read if said[tensor.name] == taken[tensor.name])


def _certain(part: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a part that are not below a condition in it."""
    pending = [part]
    while pending:
        node = pending.pop()
        yield node
        pending += (child for child in ast.iter_child_nodes(node) if not isinstance(child, _CONDITIONS))


def _asked(node: ast.AST) -> Iterator[str]:
    """The variables that a part of the source may compare with None, or test."""
    match node:
        case ast.Compare(left=left, comparators=others):
            operands = [left, *others]
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
            operands = [test]
        case ast.UnaryOp(operand=operand):
            operands = [operand]
        case ast.BoolOp(values=values):
            operands = values
        case ast.Match(subject=subject):
            operands = [subject]
        case ast.Call(func=ast.Name(id="isinstance"), args=arguments):
            operands = arguments
        case _:
            return
    yield from (operand.id for operand in operands if isinstance(operand, ast.Name))


def _made(used: _Utilities, nodes: Sequence[ast.AST]) -> tuple[NamedTensor, ...] | None:
    kinds = _kinds(nodes)
    found, calls, uses, names, attributes = set(), 0, 0, 0, 0
    for node in nodes:
        match node:
            case ast.Call(func=function, args=arguments) if used.attribute(function) in _MAKERS:
                match arguments:
                    case [ast.Constant(value=str(name)), *_]:
                        found.add(NamedTensor(node.lineno, name, kinds.get(node, "")))
                    case _:
                        return None
                calls += 1
            case ast.ImportFrom(module=module) if module in MODULES:
                return None
            case ast.Attribute():
                attribute = used.attribute(node)
                attributes += attribute is not None and "." not in attribute
                uses += attribute == "Tensor"
            case ast.Name(id=name):
                names += name in used.aliases
    # Who hands on the class or the module may make tensors elsewhere.
    return tuple(sorted(found)) if calls == uses and names == attributes else None


def _kinds(nodes: Sequence[ast.AST]) -> Mapping[ast.AST, str]:
    """The calls that make a `Tensor` of an array, with the type of the array, as far as literals show it."""
    arrays: dict[ast.AST, ast.expr] = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="Tensor"), args=[_, values]):
                arrays[node] = values
    found = {node: array_type(values, lambda value: value) for node, values in arrays.items()}
    unknown = {node for node, kind in found.items() if kind is None}
    set_once = constants(nodes) if unknown else {}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)] if unknown else []
    for function in functions:
        if here := unknown.intersection(own_nodes(*function.body)):
            variables = Variables(function, set_once)
            found |= {node: array_type(arrays[node], variables.unchanged) for node in here}
    return {node: kind for node, kind in found.items() if kind is not None}
