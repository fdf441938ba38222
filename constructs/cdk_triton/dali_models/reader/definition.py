"""Reads the definition of a DALI pipeline, `dali.py`. It is parsed, never executed.

Triton's DALI backend imports the file with the image's `python3` and serialises what its one function with
`@autoserialize` returns (dali_backend: src/model_provider/model_provider.h, GenerateAutoserializeCmd; NVIDIA/DALI:
dali/python/nvidia/dali/_utils/autoserialize.py).
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from cdk_triton.dali_models.reader.devices import operator_on_gpu, outputs_on_gpu
from cdk_triton.dali_models.reader.tensors import (
    ExternalSource,
    Outputs,
    certain_nodes,
    computed_types,
    external_sources,
    outputs_of,
)
from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.imports import Imported, needed
from cdk_triton.python_models.reader.known_functions import dotted
from cdk_triton.python_models.reader.names import Reference, bound_names, certain_statements, imported_names, is_dynamic
from cdk_triton.python_models.reader.path import search_of
from cdk_triton.python_models.reader.source import SyntaxFault, syntax_tree
from cdk_triton.python_models.reader.standard_names import names_everywhere
from cdk_triton.python_models.reader.variables import Variables
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["Definition", "Failure", "Read", "pipeline_definition"]

_MARK: Final = "autoserialize"
_DEFINE: Final = "pipeline_def"
_DALI: Final = "nvidia.dali"
# What DALI cannot serialise (IsSerializable of its operators).
_OF_PYTHON = frozenset({f"{_DALI}.fn.python_function", f"{_DALI}.fn.dl_tensor_python_function"})
_PROVIDED = frozenset({"nvidia", "numpy"})


@dataclass(frozen=True)
class Failure:
    """An error that the import of the file or the call of its function certainly raises.

    Attributes:
        line: where.
        found: what is wrong, as the rest of a sentence that begins with "line 3".
        said: the error, as Python or DALI words it.
        fix: what to do.
    """

    line: int
    found: str
    said: str
    fix: str


@dataclass(frozen=True)
class Definition:
    """The definition of a pipeline.

    Attributes:
        marked: the functions with `@autoserialize`.
        defined: the functions with `@pipeline_def`.
        is_unmarked: whether no function can have `@autoserialize`.
        is_undefined: whether no function can have `@pipeline_def`.
        failures: the errors that it certainly raises, besides those of names.
        undefined: the names that it certainly uses, and neither defines nor imports.
        imports: the modules that it certainly imports.
        changes_path: whether it may change where Python looks for modules.
        inputs: the inputs of the pipeline; None if they are not known, or if the definition fails.
        unknown: why other code may make inputs, as the rest of a sentence; "" if none does.
        on_gpu: an operator that certainly needs a GPU, or the helper that makes it; None if none is known.
        outputs: the outputs of the pipeline; None if their number is not known, or if the definition fails.
        computed: the types that the operators of the outputs write; None where no `dtype` shows it.
        outputs_on_gpu: the outputs that are certainly in the memory of the GPU, each with its place from 0.
    """

    marked: tuple[Reference, ...] = ()
    defined: tuple[Reference, ...] = ()
    is_unmarked: bool = False
    is_undefined: bool = False
    failures: tuple[Failure, ...] = ()
    undefined: tuple[Reference, ...] = ()
    imports: tuple[Imported, ...] = ()
    changes_path: bool = False
    inputs: tuple[ExternalSource, ...] | None = None
    outputs: Outputs | None = None
    computed: tuple[str | None, ...] = ()
    unknown: str = ""
    on_gpu: Reference | None = None
    outputs_on_gpu: tuple[int, ...] = ()


Read = Definition | SyntaxFault | Unreadable


@cache
def pipeline_definition(version: tuple[int, int]) -> Callable[[Path], Read]:
    """The reader for a version of Python: the same one for each, so that an answer is kept."""

    def read(path: Path) -> Read:
        try:
            content = path.read_bytes()
        except OSError as error:
            return Unreadable(f"cannot be read: {error.strerror}")
        return _read(content, version)

    return read


@lru_cache(maxsize=64)
def _read(content: bytes, version: tuple[int, int]) -> Read:
    module = syntax_tree(content, version)
    if not isinstance(module, ast.Module):
        return module
    try:
        return _Reader(module).definition()
    except RecursionError:  # the compiler takes it
        return Unreadable("is nested too deeply")


class _Reader:
    def __init__(self, module: ast.Module) -> None:
        self._module = module
        self._nodes = list(ast.walk(module))
        self._names = imported_names(module.body)
        self._statements = list(certain_statements(module.body, self._names))
        bound = Counter(name for statement in self._statements for name in bound_names(statement))
        functions = [each for each in self._statements if isinstance(each, ast.FunctionDef)]
        self._functions = [each for each in functions if bound[each.name] == 1]

    def definition(self) -> Definition:
        marked = [each for each in self._functions if self._has(each, _MARK)]
        defined = [each for each in self._functions if self._has(each, _DEFINE)]
        chosen = marked or defined
        pipeline = chosen[0] if len(chosen) == 1 else None
        failures = () if pipeline is None else tuple(self._failures(pipeline))
        imports, undefined = self._needed(pipeline)
        if failures or undefined:
            pipeline = None
        unknown = self._unknown()
        return Definition(
            marked=tuple(Reference(each.lineno, each.name) for each in marked),
            defined=tuple(Reference(each.lineno, each.name) for each in defined),
            is_unmarked=not unknown and not self._names_function(_MARK),
            is_undefined=not unknown and not self._names_function(_DEFINE),
            failures=failures,
            undefined=undefined,
            imports=imports,
            changes_path=search_of(self._nodes) != "usual",
            inputs=None if pipeline is None or unknown else external_sources(pipeline, self._nodes, self._names),
            outputs=None
            if pipeline is None
            else outputs_of(pipeline, self._arguments(pipeline), self._nodes, self._names),
            computed=()
            if pipeline is None or unknown or not self._is_plain(pipeline)
            else computed_types(pipeline, self._nodes, self._names),
            unknown=unknown,
            on_gpu=None
            if pipeline is None or unknown
            else operator_on_gpu(certain_nodes(pipeline), self._functions, self._names),
            outputs_on_gpu=()
            if pipeline is None or unknown or not self._is_plain(pipeline)
            else outputs_on_gpu(pipeline, self._names),
        )

    def _is(self, node: ast.expr, name: str) -> bool:
        """Whether an expression is a function of DALI, called or not."""
        whole = dotted(node.func if isinstance(node, ast.Call) else node, self._names)
        return whole.startswith(f"{_DALI}.") and whole.endswith(f".{name}")

    def _has(self, function: ast.FunctionDef, name: str) -> bool:
        return any(self._is(each, name) for each in function.decorator_list)

    def _names_function(self, name: str) -> bool:
        """Whether the file may use a function of DALI."""
        expressions = (node for node in self._nodes if isinstance(node, ast.Name | ast.Attribute))
        return any(
            self._is(node, name) or name == (node.id if isinstance(node, ast.Name) else node.attr)
            for node in expressions
        )

    def _arguments(self, function: ast.FunctionDef) -> list[ast.keyword]:
        """The arguments of `@pipeline_def`."""
        calls = (each for each in function.decorator_list if isinstance(each, ast.Call) and self._is(each, _DEFINE))
        return [keyword for call in calls for keyword in call.keywords]

    def _unknown(self) -> str:
        """Why code of other modules, or code that the file does not show, may take part; "" if none does."""
        modules = {alias.name for node in self._nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in self._nodes:
            if isinstance(node, ast.ImportFrom):
                modules.add("." if node.level else node.module or "")
                if any(alias.name == "*" for alias in node.names):
                    return f"imports all names of {node.module!r}"
        known = _PROVIDED | sys.stdlib_module_names
        if others := sorted(name for name in modules if name.partition(".")[0] not in known):
            return f"imports {others[0]!r}, which the checks do not read"
        return "may run code that it does not show" if is_dynamic(self._nodes) else ""

    def _needed(self, pipeline: ast.FunctionDef | None) -> tuple[tuple[Imported, ...], tuple[Reference, ...]]:
        """The modules and the undefined names that the import, and a call of the pipeline's function, need."""
        module = self._module
        if pipeline is not None and self._is_plain(pipeline):
            called = ast.FunctionDef("the pipeline", pipeline.args, pipeline.body, [], None, None, **_place(pipeline))
            call = ast.Expr(ast.Call(ast.Name("the pipeline", ast.Load(), **_place(pipeline)), [], []))
            module = ast.Module([*module.body, called, call], [])
        imports, used, _ = needed(module, self._names, "", lazy=False)
        defined = frozenset[str]().union(*map(bound_names, module.body))
        if is_dynamic(self._nodes) or "*" in defined:
            return imports, ()
        known = defined | names_everywhere()
        found = {Reference(each.line, each.name) for each in used if not each.module and each.name not in known}
        return imports, tuple(sorted(found))

    def _is_plain(self, function: ast.FunctionDef) -> bool:
        """Whether nothing but DALI decorates a function."""
        return all(self._is(each, _MARK) or self._is(each, _DEFINE) for each in function.decorator_list)

    def _failures(self, function: ast.FunctionDef) -> Iterator[Failure]:
        decorators = function.decorator_list
        for each in decorators:
            if self._is(each, _MARK) and isinstance(each, ast.Call) and not (each.args or each.keywords):
                said = "TypeError: autoserialize() missing 1 required positional argument: 'dali_pipeline'"
                yield Failure(each.lineno, "calls autoserialize", said, "write @autoserialize without parentheses")
                return
        if self._is(decorators[-1], _MARK):
            yield Failure(
                decorators[-1].lineno,
                f"decorates the function {function.name!r}, which is no pipeline yet, with @autoserialize",
                "TypeError: Only `@pipeline_def` can be decorated with `@triton.autoserialize`.",
                "write @autoserialize above @pipeline_def",
            )
            return
        if self._is_plain(function):
            yield from self._failures_of_call(function)

    def _failures_of_call(self, function: ast.FunctionDef) -> Iterator[Failure]:
        arguments = function.args
        positional = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        given = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        required = positional[: len(positional) - len(arguments.defaults)]
        required += [each.arg for each, default in given if default is None]
        if required:
            yield Failure(
                function.lineno,
                f"defines {function.name!r} with the required argument {required[0]!r}, but the backend calls the "
                "function without arguments",
                f"TypeError: {function.name}() missing {len(required)} required argument"
                f"{'s' if len(required) > 1 else ''}: {', '.join(map(repr, required))}",
                "give every argument a default",
            )
        nodes = list(own_nodes(*function.body))
        returns = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
        if not returns and not any(isinstance(node, ast.Attribute) and node.attr == "set_outputs" for node in nodes):
            yield Failure(
                function.lineno,
                f"defines {function.name!r}, which returns nothing",
                "a pipeline needs at least one output",
                "return the outputs of the pipeline",
            )
        yield from self._nested_outputs(function)
        for statement in function.body:
            for node in own_nodes(statement) if isinstance(statement, ast.Assign | ast.Return | ast.Expr) else ():
                if isinstance(node, ast.Call) and (name := dotted(node.func, self._names)) in _OF_PYTHON:
                    yield Failure(
                        node.lineno,
                        f"uses the operator {name.rpartition('.')[2]}, whose Python function no file can contain",
                        f"RuntimeError: Could not serialize the operator: `{name}`",
                        "use operators of DALI, or run the function in a Python model",
                    )

    def _nested_outputs(self, function: ast.FunctionDef) -> Iterator[Failure]:
        """The first output that is a list, where DALI takes only a tuple of outputs."""
        resolved = Variables(function).resolved
        last = function.body[-1]
        value = resolved(last.value) if isinstance(last, ast.Return) and last.value is not None else None
        for index, output in enumerate(value.elts if isinstance(value, ast.Tuple) else [value]):
            match resolved(output):
                case ast.List(elts=elements) if any(self._is_operator(resolved(each)) for each in elements):
                    yield Failure(
                        last.lineno,
                        f"returns a list of outputs from {function.name!r}",
                        f"TypeError: Illegal pipeline output type. The output {index} contains a nested `DataNode`.",
                        "return a tuple, such as `return images, labels`",
                    )
                    return

    def _is_operator(self, value: ast.expr) -> bool:
        """Whether an expression is a call of an operator."""
        return isinstance(value, ast.Call) and dotted(value.func, self._names).startswith(f"{_DALI}.fn.")


def _place(node: ast.stmt) -> dict[str, int]:
    return {"lineno": node.lineno, "col_offset": node.col_offset}
