"""The models, files and parameters that a Python source names by literals. It is parsed, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cdk_triton.python_models.reader.backend_utils import MODULES, imported_as
from cdk_triton.python_models.reader.downloads import downloads
from cdk_triton.python_models.reader.misuses import Misuse, misuses
from cdk_triton.python_models.reader.model_calls import OF_PLACE, ModelCall, model_calls
from cdk_triton.python_models.reader.names import Reference
from cdk_triton.python_models.reader.opened_files import OpenedFiles, opened_files
from cdk_triton.python_models.reader.requests import attributes_of_requests
from cdk_triton.python_models.reader.variables import Function, Variables

__all__ = ["References", "references_of"]

_LONGEST_PATH = 4_096


@dataclass(frozen=True)
class References:
    """The models and files that a source names, also in code that may not run.

    Attributes:
        calls: the requests that it sends to other models (BLS).
        opened: the files that it opens for reading by a literal path, or that a library reads for it.
        numbers: the tensors that it takes from a request and reads as numbers of numpy.
        handles_places: whether it may handle tensors in the memory of the GPU.
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
    handles_places: bool = False
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
    utils = imported_as(nodes)
    of_requests: set[Reference] = set()
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
            case ast.ClassDef(name="TritonPythonModel", body=body):
                for each in body:
                    of_requests.update(_read_of_requests(each))
    functions = [node for node in nodes if isinstance(node, Function)] if "as_numpy" in attributes else []
    return References(
        model_calls(nodes),
        opened_files(nodes, names, imported),
        numbers=tuple(sorted({each for function in functions for each in _read_as_numbers(function, utils)})),
        handles_places=bool(OF_PLACE & attributes),
        misused=tuple(sorted(set(misuses(nodes, utils)))),
        of_requests=tuple(sorted(of_requests)),
        loads=_loaded(nodes, utils),
        changes_directory=bool({"chdir", "fchdir"} & attributes),
        imports=frozenset(imports),
        directories=frozenset(directories),
        downloads=downloads(nodes, imported),
    )


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
            case ast.ImportFrom(module=module, names=aliases) if module in MODULES:
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
            case ast.Constant(value=value) if value in MODULES:
                return True
    return not used <= owners


def _may_be_utils(owner: ast.expr, utils: frozenset[str]) -> bool:
    """Whether an expression may name the server's module, imported here or by another module: `common.pb_utils`."""
    match owner:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in utils or name == "pb" or "utils" in name
    return False


def _read_of_requests(method: ast.stmt) -> Iterator[Reference]:
    match method:
        case ast.FunctionDef(name="execute") | ast.AsyncFunctionDef(name="execute") if not method.decorator_list:
            yield from (Reference(node.lineno, node.attr) for node in attributes_of_requests(method))


def _read_as_numbers(function: Function, utils: frozenset[str]) -> Iterator[Reference]:
    variables = Variables(function)
    for node in variables.nodes:
        if not isinstance(node, ast.Attribute) or node.attr != "as_numpy":
            continue
        match variables.resolved(node.value):
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="get_input_tensor_by_name"),
                args=[_, ast.Constant(value=str(name))],
            ) if owner in utils:
                yield Reference(node.lineno, name)
