"""The models, files and parameters that a Python source names by literals. It is parsed, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cdk_triton.python_models.reader.backend_utils import MODULE
from cdk_triton.python_models.reader.calls import certain_type, own_nodes
from cdk_triton.python_models.reader.downloads import downloads
from cdk_triton.python_models.reader.misuses import INCOMPATIBLE, Misuse, Reference, misuses
from cdk_triton.python_models.reader.model_calls import ModelCall, model_calls
from cdk_triton.python_models.reader.names import bound_names
from cdk_triton.python_models.reader.opened_files import OpenedFiles, opened_files
from cdk_triton.python_models.reader.requests import attributes_of_requests

__all__ = ["OF_TENSOR", "Reference", "References", "references_of"]

# The parameters of the server's classes, and what a configuration offers to `auto_complete_config` (python_backend:
# src/pb_stub.cc and src/resources/triton_python_backend_utils.py).
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
OF_TENSOR = ("name", "as_numpy", "triton_dtype", "is_cpu", "to_dlpack", "from_dlpack", "shape")
_OF_LOGGER = (
    *("log", "log_info", "log_warn", "log_error", "log_verbose", "LogLevel", "INFO", "WARNING", "ERROR", "VERBOSE"),
)
_OF_TENSORS = {
    "add_input": ("name", "data_type", "dims", "optional"),
    "add_output": ("name", "data_type", "dims"),
}


_LONGEST_PATH = 4_096


@dataclass(frozen=True)
class References:
    """The models and files that a source names, also in code that may not run.

    Attributes:
        calls: the requests that it sends to other models (BLS).
        opened: the files that it opens for reading by a literal path, or that a library reads for it.
        numbers: the tensors that it takes from a request and reads as numbers of numpy.
        misused: the parameters, methods and properties that the server's classes do not have, and other uses of these
            classes that fail.
        of_requests: the attributes that `execute` certainly reads of its requests.
        loads: the models that it loads itself; None if it may load any model.
        changes_directory: whether it may change the working directory.
        imports: the parts of the names that its imports have.
        directories: the parts of the texts that can be paths.
        downloads: the line and the text of each call that certainly downloads a file while the model loads.
    """

    calls: tuple[ModelCall, ...] = ()
    opened: OpenedFiles = field(default_factory=OpenedFiles)
    numbers: tuple[Reference, ...] = ()
    misused: tuple[Misuse, ...] = ()
    of_requests: tuple[Reference, ...] = ()
    loads: frozenset[str] | None = frozenset()
    changes_directory: bool = False
    imports: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    downloads: frozenset[tuple[int, str]] = frozenset()

    def may_load(self, model: str) -> bool:
        """Whether the source may load a model itself."""
        return self.loads is None or model in self.loads


def references_of(nodes: Iterable[ast.AST], names: frozenset[str], imported: Mapping[str, str]) -> References:
    """Read the references of a module.

    Args:
        nodes: the nodes of the module.
        names: the names that the module defines.
        imported: what its names are imported as.
    """
    nodes = list(nodes)
    utils = frozenset(_names_of_utils(nodes))
    expected = {inner for node in nodes if isinstance(node, ast.With) and _expects(node) for inner in ast.walk(node)}
    misused: set[tuple[Reference, str]] = set()
    of_requests: set[Reference] = set()
    numbers: set[Reference] = set()
    attributes: set[str] = set()
    imports: set[str] = set()
    directories: set[str] = set()
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if len(text) <= _LONGEST_PATH:
                directories.update(text.split("/"))
            case ast.alias(name=name):
                attributes.add(name)
                imports.update(name.split("."))
            case ast.ImportFrom(module=str(name)):
                imports.update(name.split("."))
            case ast.Attribute(attr=name):
                attributes.add(name)
                misused.update(_unknown_attribute(node, utils))
                numbers.update(_read_as_numbers(node, utils))
            case ast.Call():
                misused.update(_unknown_parameters(node, utils) if node not in expected else ())
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                misused.update(_tensors_of_tensors(node, utils))
            case ast.ClassDef(name="TritonPythonModel", body=body):
                for each in body:
                    misused.update(_misused_by_method(each, utils))
                    of_requests.update(_read_of_requests(each))
    return References(
        model_calls(nodes),
        opened_files(nodes, names, imported),
        numbers=tuple(sorted(numbers)),
        misused=tuple(sorted({*(Misuse(*each) for each in misused), *misuses(nodes, utils, expected)})),
        of_requests=tuple(sorted(of_requests)),
        loads=_loaded(nodes, utils),
        changes_directory=bool({"chdir", "fchdir"} & attributes),
        imports=frozenset(imports),
        directories=frozenset(directories),
        downloads=downloads(nodes, imported),
    )


def _expects(node: ast.With) -> bool:
    """Whether a test expects an error of what is below: `with self.assertRaises(TypeError):`."""
    return any("Raises" in ast.unparse(item.context_expr) for item in node.items)


def _loaded(nodes: Sequence[ast.AST], utils: frozenset[str]) -> frozenset[str] | None:
    """The models that calls of the server's `load_model` name by literals; None if other uses may name others.

    Methods of this name of other objects, such as those of keras and xgboost, are no uses.
    """
    is_hidden = _is_handed_over(nodes, utils)
    names, others = set(), 0
    for node in nodes:
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(attr="load_model", value=owner),
                    args=[ast.Constant(value=str(name)), *_],
                )
                | ast.Call(
                    func=ast.Attribute(attr="load_model", value=owner),
                    args=[],
                    keywords=[ast.keyword(arg="model_name", value=ast.Constant(value=str(name))), *_],
                )
            ) if is_hidden or _may_be_utils(owner, utils):
                names.add(name)
                others -= 1
            case ast.Attribute(attr="load_model", value=owner) if is_hidden or _may_be_utils(owner, utils):
                others += 1
            case ast.ImportFrom(module=module, names=aliases) if module == MODULE:
                others += any(alias.name == "load_model" for alias in aliases)
    return None if others else frozenset(names)


def _is_handed_over(nodes: Iterable[ast.AST], utils: frozenset[str]) -> bool:
    """Whether a value may be the server's module without the name of the module: `self.server = pb_utils`."""
    owners, used = set(), set()
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name() as owner):
                owners.add(owner)
            case ast.Name(id=name, ctx=ast.Load()) if name in utils:
                used.add(node)
            case ast.Constant(value=value) if value == MODULE:
                return True
    return not used <= owners


def _may_be_utils(owner: ast.expr, utils: frozenset[str]) -> bool:
    """Whether an expression may name the server's module, imported here or by another module: `common.pb_utils`."""
    match owner:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in utils or name == "pb" or "utils" in name
    return False


def _names_of_utils(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names under which the module imports `triton_python_backend_utils`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.asname or alias.name for alias in node.names if alias.name == MODULE)


def _misused_by_method(method: ast.stmt, utils: frozenset[str]) -> Iterator[tuple[Reference, str]]:
    match method:
        case ast.FunctionDef(name="auto_complete_config", args=ast.arguments(args=[ast.arg(arg=config)])):
            yield from _unknown_in_config(method, config)
        case ast.FunctionDef(name="execute", decorator_list=[]):
            yield from _taken_from_all(method, utils)


def _read_of_requests(method: ast.stmt) -> Iterator[Reference]:
    match method:
        case ast.FunctionDef(name="execute") | ast.AsyncFunctionDef(name="execute") if not method.decorator_list:
            yield from (Reference(node.lineno, node.attr) for node in attributes_of_requests(method))


def _unknown_parameters(call: ast.Call, utils: frozenset[str]) -> Iterator[tuple[Reference, str]]:
    said = INCOMPATIBLE
    match call.func:
        case ast.Attribute(value=ast.Name(id=owner)) if owner in utils:
            pass
        case _:
            return
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=name)) if name in _PARAMETERS:
            for keyword in call.keywords:
                if keyword.arg is not None and keyword.arg not in _PARAMETERS[name]:
                    yield Reference(call.lineno, f"{name}({keyword.arg}=)"), said
    yield from _missing_parameters(call)
    match call:
        case ast.Call(func=ast.Attribute(attr="Tensor"), args=arguments, keywords=[]):
            if (wrong := _wrong_arguments(arguments, utils)) is not None:
                yield Reference(call.lineno, f"Tensor({wrong})"), said


def _missing_parameters(call: ast.Call) -> Iterator[tuple[Reference, str]]:
    """The first parameter that a request for another model requires and lacks, if nothing else is wrong."""
    match call:
        case ast.Call(func=ast.Attribute(attr="InferenceRequest"), args=[], keywords=keywords):
            given = {keyword.arg for keyword in keywords}
            missing = [name for name in _REQUIRED if name not in given]
            if missing and given <= _PARAMETERS["InferenceRequest"]:
                yield Reference(call.lineno, f"InferenceRequest without {missing[0]}="), INCOMPATIBLE


def _wrong_arguments(arguments: list[ast.expr], utils: frozenset[str]) -> str | None:
    """The arguments of a `Tensor` that are certainly not a name and an array; None if they may be."""
    match arguments:
        case _ if any(isinstance(each, ast.Starred) for each in arguments):
            return None
        case [name, ast.Constant(value=str())] if not isinstance(name, ast.Constant):
            return "<values>, <name>"
        case [_, values]:
            return f"<name>, <{kind}>" if (kind := _kind_of_values(values, utils)) else None
    return ", ".join(["<name>", "<values>", *["..."] * (len(arguments) - 2)][: len(arguments)])


def _kind_of_values(values: ast.expr, utils: frozenset[str]) -> str | None:
    """The type of an expression that is certainly not an array of numpy; None if it may be one."""
    match values:
        case ast.Call(func=ast.Attribute(attr="tolist")):
            return "list"
        case ast.Call(func=ast.Name(id="list" | "tuple" | "dict" | "str" | "int" | "float" | "len" as name)):
            return "int" if name == "len" else name
        case _ if _is_tensor(values, utils):
            return "tensor"
    return certain_type(values)


def _is_tensor(node: ast.expr, utils: frozenset[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="Tensor" | "get_input_tensor_by_name")):
            return owner in utils
    return False


def _tensors_of_tensors(
    function: ast.FunctionDef | ast.AsyncFunctionDef, utils: frozenset[str]
) -> Iterator[tuple[Reference, str]]:
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
                yield Reference(node.lineno, "Tensor(<name>, <tensor>)"), INCOMPATIBLE


def _read_as_numbers(node: ast.Attribute, utils: frozenset[str]) -> Iterator[Reference]:
    match node:
        case ast.Attribute(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="get_input_tensor_by_name"),
                args=[_, ast.Constant(value=str(name))],
            ),
            attr="as_numpy",
        ) if owner in utils:
            yield Reference(node.lineno, name)


def _unknown_attribute(node: ast.Attribute, utils: frozenset[str]) -> Iterator[tuple[Reference, str]]:
    match node.value:
        case ast.Attribute(value=ast.Name(id=owner), attr="Logger") if owner in utils and node.attr not in _OF_LOGGER:
            said = f"AttributeError: type object 'c_python_backend_utils.Logger' has no attribute '{node.attr}'"
            yield Reference(node.lineno, f"Logger.{node.attr}"), said
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="get_input_tensor_by_name")) if owner in utils:
            if node.attr not in OF_TENSOR and not node.attr.startswith("__"):
                said = f"AttributeError: 'c_python_backend_utils.Tensor' object has no attribute '{node.attr}'"
                yield Reference(node.lineno, f"get_input_tensor_by_name(...).{node.attr}"), said


def _taken_from_all(method: ast.FunctionDef, utils: frozenset[str]) -> Iterator[tuple[Reference, str]]:
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
                    yield Reference(node.lineno, f"get_input_tensor_by_name({name})"), said


def _unknown_in_config(method: ast.FunctionDef, config: str) -> Iterator[tuple[Reference, str]]:
    for node in ast.walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == config:
                if attribute not in _OF_CONFIG:
                    said = f"AttributeError: 'ModelConfig' object has no attribute '{attribute}'"
                    yield Reference(node.lineno, f"{config}.{attribute}"), said
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute), args=[ast.Dict(keys=keys)]):
                known = _OF_TENSORS.get(attribute, ()) if name == config else ()
                for key in keys:
                    if known and isinstance(key, ast.Constant) and key.value not in known:
                        said = f"ValueError: contains property other than {', '.join(map(repr, known[:-1]))}"
                        yield Reference(key.lineno, f"{attribute}({{{key.value!r}: ...}})"), f"{said} and {known[-1]!r}"
