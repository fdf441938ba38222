"""The parameters, methods and properties of the server's classes, and uses of those that they do not have.

Sources: python_backend's src/pb_stub.cc and src/resources/triton_python_backend_utils.py.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from cdk_triton.python_models.reader.backend_utils import PARAMETERS_SINCE
from cdk_triton.python_models.reader.calls import certain_type, own_nodes
from cdk_triton.python_models.reader.names import Reference, bound_names

__all__ = ["INCOMPATIBLE", "OF_RESPONSE", "OF_TENSOR", "Misuse", "unsupported_signatures"]

INCOMPATIBLE: Final = "TypeError: __init__(): incompatible constructor arguments"

_GIVE_AN_ARRAY: Final = "pass a name and a numpy array, such as Tensor(name, tensor.as_numpy())"
_USE_NAMES: Final = "use the names that python_backend's README lists"

_PARAMETERS: dict[str, frozenset[str]] = {
    "InferenceResponse": frozenset({"output_tensors", "error", "parameters"}),
    "InferenceRequest": frozenset(
        {
            *("inputs", "requested_output_names", "model_name", "model_version", "request_id", "correlation_id"),
            *("flags", "timeout", "preferred_memory", "trace", "parameters"),
        }
    ),
    "Tensor": frozenset(),
}
_REQUIRED = ("inputs", "requested_output_names", "model_name")
_OF_CONFIG = frozenset(
    {
        *("as_dict", "add_input", "add_output", "set_max_batch_size", "set_dynamic_batching"),
        *("set_model_transaction_policy", "_model_config"),
    }
)
OF_RESPONSE = frozenset({"has_error", "error", "output_tensors", "parameters"})
OF_TENSOR = ("name", "as_numpy", "triton_dtype", "is_cpu", "to_dlpack", "from_dlpack", "shape")
_OF_LOGGER = (
    *("log", "log_info", "log_warn", "log_error", "log_verbose", "LogLevel", "INFO", "WARNING", "ERROR", "VERBOSE"),
)
_OF_TENSORS = {
    "add_input": ("name", "data_type", "dims", "optional"),
    "add_output": ("name", "data_type", "dims"),
}


@dataclass(frozen=True, order=True)
class Misuse:
    """A use that fails.

    Attributes:
        use: where, and what the source writes there.
        said: Python's message.
        fix: what to write instead.
        where: the kind of function in which it fails, such as " in a coroutine"; "" for all of them.
        since: the release from which it works; "" if there is none.
    """

    use: Reference
    said: str
    fix: str
    where: str = ""
    since: str = ""


def unsupported_signatures(
    nodes: Iterable[ast.AST], utils: Collection[str], expected: Collection[ast.AST]
) -> Iterator[Misuse]:
    """The uses of what the classes do not have.

    Args:
        nodes: the nodes of a module.
        utils: the names of the server's module.
        expected: the nodes whose errors a test expects.
    """
    for node in nodes:
        match node:
            case ast.Attribute():
                yield from _unknown_attribute(node, utils)
            case ast.Call() if node not in expected:
                yield from _unknown_parameters(node, utils)
                yield from _later_parameters(node, utils)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _tensors_of_tensors(node, utils)
            case ast.ClassDef(name="TritonPythonModel", body=body):
                for each in body:
                    yield from _misused_by_method(each, utils)


def _misused_by_method(method: ast.stmt, utils: Collection[str]) -> Iterator[Misuse]:
    match method:
        case ast.FunctionDef(name="auto_complete_config", args=ast.arguments(args=[ast.arg(arg=config)])):
            yield from _unknown_in_config(method, config)
        case ast.FunctionDef(name="execute", decorator_list=[]):
            yield from _taken_from_all(method, utils)


def _unknown_parameters(call: ast.Call, utils: Collection[str]) -> Iterator[Misuse]:
    match call.func:
        case ast.Attribute(value=ast.Name(id=owner)) if owner in utils:
            pass
        case _:
            return
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=name)) if name in _PARAMETERS:
            for keyword in call.keywords:
                if keyword.arg is not None and keyword.arg not in _PARAMETERS[name]:
                    fix = _GIVE_AN_ARRAY if name == "Tensor" else _USE_NAMES
                    yield Misuse(Reference(call.lineno, f"{name}({keyword.arg}=)"), INCOMPATIBLE, fix)
    yield from _missing_parameters(call)
    match call:
        case ast.Call(func=ast.Attribute(attr="Tensor"), args=arguments, keywords=[]):
            if (wrong := _wrong_arguments(arguments, utils)) is not None:
                yield Misuse(Reference(call.lineno, f"Tensor({wrong})"), INCOMPATIBLE, _GIVE_AN_ARRAY)


def _later_parameters(call: ast.Call, utils: Collection[str]) -> Iterator[Misuse]:
    """The parameters that came with a release of python_backend after its first ones."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=owner), attr="InferenceRequest" | "InferenceResponse" as name) if (
            owner in utils
        ):
            said = INCOMPATIBLE
        case ast.Attribute(attr="exec" | "async_exec" as name) if utils:
            said = f"TypeError: {name}(): incompatible function arguments"
        case _:
            return
    for keyword in call.keywords:
        if (since := PARAMETERS_SINCE.get((name, str(keyword.arg)))) is not None:
            fix = f"serve with release {since} or newer"
            yield Misuse(Reference(call.lineno, f"{name}({keyword.arg}=)"), said, fix, since=since)


def _missing_parameters(call: ast.Call) -> Iterator[Misuse]:
    """The first parameter that a request for another model requires and lacks, if nothing else is wrong."""
    match call:
        case ast.Call(func=ast.Attribute(attr="InferenceRequest"), args=[], keywords=keywords):
            given = {keyword.arg for keyword in keywords}
            missing = [name for name in _REQUIRED if name not in given]
            if missing and given <= _PARAMETERS["InferenceRequest"]:
                fix = "pass inputs, requested_output_names and model_name"
                yield Misuse(Reference(call.lineno, f"InferenceRequest without {missing[0]}="), INCOMPATIBLE, fix)


def _wrong_arguments(arguments: list[ast.expr], utils: Collection[str]) -> str | None:
    """The arguments of a `Tensor` that are certainly not a name and an array; None if they may be."""
    match arguments:
        case _ if any(isinstance(each, ast.Starred) for each in arguments):
            return None
        case [name, ast.Constant(value=str())] if not isinstance(name, ast.Constant):
            return "<values>, <name>"
        case [_, values]:
            return f"<name>, <{kind}>" if (kind := _kind_of_values(values, utils)) else None
    return ", ".join(["<name>", "<values>", *["..."] * (len(arguments) - 2)][: len(arguments)])


def _kind_of_values(values: ast.expr, utils: Collection[str]) -> str | None:
    """The type of an expression that is certainly not an array of numpy; None if it may be one."""
    match values:
        case ast.Call(func=ast.Attribute(attr="tolist")):
            return "list"
        case ast.Call(func=ast.Name(id="list" | "tuple" | "dict" | "str" | "int" | "float" | "len" as name)):
            return "int" if name == "len" else name
        case _ if _is_tensor(values, utils):
            return "tensor"
    return certain_type(values)


def _is_tensor(node: ast.expr, utils: Collection[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="Tensor" | "get_input_tensor_by_name")):
            return owner in utils
    return False


def _tensors_of_tensors(function: ast.FunctionDef | ast.AsyncFunctionDef, utils: Collection[str]) -> Iterator[Misuse]:
    """Tensors whose values are a variable that has only tensors in a function."""
    nodes = list(own_nodes(*function.body))
    given = {
        node.targets[0]: node.targets[0].id
        for node in nodes
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_tensor(node.value, utils)
        if isinstance(node.targets[0], ast.Name)
    }
    stored = (node for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    tensors = set(given.values()) - {node.id for node in stored if node not in given}
    for node in nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="Tensor"), args=[_, ast.Name(id=name)], keywords=[]
            ) if owner in utils and name in tensors:
                yield Misuse(Reference(node.lineno, "Tensor(<name>, <tensor>)"), INCOMPATIBLE, _GIVE_AN_ARRAY)


def _unknown_attribute(node: ast.Attribute, utils: Collection[str]) -> Iterator[Misuse]:
    match node.value:
        case ast.Attribute(value=ast.Name(id=owner), attr="Logger") if owner in utils and node.attr not in _OF_LOGGER:
            said = f"AttributeError: type object 'c_python_backend_utils.Logger' has no attribute '{node.attr}'"
            yield Misuse(Reference(node.lineno, f"Logger.{node.attr}"), said, _USE_NAMES)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="get_input_tensor_by_name")) if owner in utils:
            if node.attr not in OF_TENSOR and not node.attr.startswith("__"):
                said = f"AttributeError: 'c_python_backend_utils.Tensor' object has no attribute '{node.attr}'"
                yield Misuse(Reference(node.lineno, f"get_input_tensor_by_name(...).{node.attr}"), said, _USE_NAMES)


def _taken_from_all(method: ast.FunctionDef, utils: Collection[str]) -> Iterator[Misuse]:
    """Tensors that are read from the list of requests instead of from one request."""
    if len(method.args.args) != 2 or any(method.args.args[1].arg in bound_names(each) for each in method.body):
        return
    for node in ast.walk(method):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="get_input_tensor_by_name"),
                args=[ast.Name(id=name), *_],
            ) if owner in utils:
                if name == method.args.args[1].arg:
                    said = "AttributeError: 'list' object has no attribute 'inputs'"
                    fix = "pass one request, as in `for request in requests`"
                    yield Misuse(Reference(node.lineno, f"get_input_tensor_by_name({name})"), said, fix)


def _unknown_in_config(method: ast.FunctionDef, config: str) -> Iterator[Misuse]:
    for node in ast.walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == config:
                if attribute not in _OF_CONFIG:
                    said = f"AttributeError: 'ModelConfig' object has no attribute '{attribute}'"
                    yield Misuse(Reference(node.lineno, f"{config}.{attribute}"), said, _USE_NAMES)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute), args=[ast.Dict(keys=keys)]):
                known = _OF_TENSORS.get(attribute, ()) if name == config else ()
                for key in keys:
                    if known and isinstance(key, ast.Constant) and key.value not in known:
                        names = f"{', '.join(map(repr, known[:-1]))} and {known[-1]!r}"
                        said = f"ValueError: contains property other than {names}"
                        yield Misuse(Reference(key.lineno, f"{attribute}({{{key.value!r}: ...}})"), said, _USE_NAMES)
