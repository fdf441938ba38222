"""The definitions in a Python model's source, which is compiled and never executed."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from types import EllipsisType

from cdk_triton.python_models.reader.backend_utils import MODULE
from cdk_triton.python_models.reader.calls import certain_type, own_nodes
from cdk_triton.python_models.reader.completion import Completion, completions_of
from cdk_triton.python_models.reader.definitions import RejectedClass, rejected_class
from cdk_triton.python_models.reader.imports import Imported, ServerCall, needed, statement_imports
from cdk_triton.python_models.reader.initialize_method import Initialize
from cdk_triton.python_models.reader.known_functions import dotted, keeps_files
from cdk_triton.python_models.reader.model_class import ModelClass, model_class
from cdk_triton.python_models.reader.names import (
    bound_names,
    certain_statements,
    imported_names,
    is_dynamic,
    stored_attributes,
)
from cdk_triton.python_models.reader.newer_syntax import NEWEST_KNOWN, without_newer_syntax
from cdk_triton.python_models.reader.path import Search, search_of
from cdk_triton.python_models.reader.references import References, references_of
from cdk_triton.python_models.reader.tensors import TensorNames, tensor_names
from cdk_triton.python_models.reader.uses import Used, mentioned, missed_by_star, without_annotations
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["Imported", "NotJudged", "PythonSource", "SyntaxFault", "python_source", "syntax_tree"]

_NAME = "TritonPythonModel"

# From this Python on, the limits of nesting are others from version to version; before, they are the same.
_OTHER_LIMITS = (3, 12)
# From this Python on, annotations are evaluated when somebody asks for them: PEP 649.
_LAZY_SINCE = (3, 14)


@dataclass(frozen=True)
class SyntaxFault:
    """The place where a version of Python rejects a file.

    Attributes:
        line: counted from 1.
        reason: the compiler's message.
        in_every_version: False if only the requested version does not support the syntax.
        error: the exception that the compiler raises.
    """

    line: int
    reason: str
    in_every_version: bool
    error: str = "SyntaxError"


@dataclass(frozen=True)
class NotJudged(Unreadable):
    """A file that the running Python cannot parse, although the container's Python may accept it."""


@dataclass(frozen=True)
class PythonSource:
    """The definitions of a module.

    Attributes:
        model: the class `TritonPythonModel`; None where the module does not define it, or defines it in another way.
        may_have_model: False where the module cannot have the class.
        instead: the type of a value that certainly has the class's name and cannot be called; "" if there is none.
        imported: what it imports unconditionally, in its order.
        needed: what it certainly imports, at its top or when the server calls the model.
        search: where Python looks for modules after its import.
        names: the names that it may define; None if they are not known.
        attributes: the attributes that it sets on whatever object.
        tensors: the tensors that it names.
        used: the names that it certainly uses and does not define; empty if it may define names indirectly.
        utilities: the attributes of the server's `triton_python_backend_utils` that it reads, also in code that may not
            run.
        rejected: the first class statement that always raises an error, or None.
        references: the models and files that it names.
        initialize: the method of that name, if the model has it for certain.
        completions: the fields that its `auto_complete_config` sets, if the model has it for certain.
        relative: the modules and names that it imports relatively, also in code that may not run.
        asked: the calls of the server that it certainly makes while the server loads the model.
        may_make_files: whether its import may make files.
    """

    model: ModelClass | None
    may_have_model: bool
    instead: str = ""
    imported: tuple[Imported, ...] = ()
    needed: tuple[Imported, ...] = ()
    search: Search = "usual"
    names: frozenset[str] | None = None
    attributes: frozenset[str] = frozenset()
    tensors: TensorNames = field(default_factory=TensorNames)
    used: tuple[Used, ...] = ()
    utilities: tuple[Used, ...] = ()
    rejected: RejectedClass | None = None
    references: References = field(default_factory=References)
    initialize: Initialize | None = None
    completions: tuple[Completion, ...] = ()
    relative: frozenset[str] = frozenset()
    asked: tuple[ServerCall, ...] = ()
    may_make_files: bool = False

    @property
    def changes_path(self) -> bool:
        """Whether it may change where Python looks for modules."""
        return self.search != "usual"

    @property
    def imports(self) -> tuple[str, ...]:
        """The top-level modules that it imports unconditionally, in their order."""
        return tuple(dict.fromkeys(each.module.partition(".")[0] for each in self.imported if not each.level))


@cache
def python_source(version: tuple[int, int]) -> Callable[[Path], PythonSource | SyntaxFault | Unreadable]:
    """The reader for a version of Python: the same one for each, so that an answer is kept."""

    def read(path: Path) -> PythonSource | SyntaxFault | Unreadable:
        try:
            content = path.read_bytes()
        except OSError as error:
            return Unreadable(f"cannot be read: {error.strerror}")
        return _read(content, version)

    return read


@lru_cache(maxsize=64)  # a thousand ensembles have a few Python models, many times over
def _read(content: bytes, version: tuple[int, int]) -> PythonSource | SyntaxFault | Unreadable:
    module = syntax_tree(content, version)
    if not isinstance(module, ast.Module):
        return module
    try:
        return _look(module, version)
    except RecursionError:  # the compiler takes it
        return Unreadable("is nested too deeply")


def syntax_tree(content: bytes, version: tuple[int, int]) -> ast.Module | SyntaxFault | NotJudged:
    """The syntax tree of a source, or why a version of Python has none."""
    try:
        return _compiled(content, version)
    except SyntaxError as fault:
        return _judged(content, version, fault)
    except ValueError:  # what Python 3.11 says of a zero byte
        return SyntaxFault(1, "source code cannot contain null bytes", in_every_version=True)
    except (RecursionError, MemoryError) as fault:
        running = sys.version_info[:2]
        if running == version or max(running, version) < _OTHER_LIMITS:
            reason = str(fault) or "the parser's stack is too small for it"
            return SyntaxFault(1, reason, in_every_version=True, error=type(fault).__name__)
        return NotJudged(f"is nested too deeply for the compiler of {_name(running)} ({type(fault).__name__})")


def _compiled(source: bytes | str, version: tuple[int, int] | None) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `"\d"` is a matter of style
        module = ast.parse(source, feature_version=version)
        # The parser does not look where a `return` is. From the tree, the compiler would take less nesting.
        compile(source, "model.py", "exec", dont_inherit=True)
    return module


def _judged(content: bytes, version: tuple[int, int], fault: SyntaxError) -> SyntaxFault | NotJudged:
    """The verdict on a fault: only the container's Python, or only this one, may have the syntax."""
    running = sys.version_info[:2]
    if running < version:
        newer = NotJudged(
            f"uses syntax in line {fault.lineno or 1} that {_name(running)} does not support, but {_name(version)} "
            "may support"
        )
        if running >= NEWEST_KNOWN:
            return newer
        try:
            _compiled(without_newer_syntax(_decoded(content)), None)
        except SyntaxError as remaining:
            fault = remaining
        except (ValueError, LookupError, RecursionError, MemoryError):
            pass  # LookupError: an encoding that is none of texts, `# coding: rot13`
        else:
            return newer
    try:
        _compiled(content, None)
    except (SyntaxError, ValueError):
        return SyntaxFault(fault.lineno or 1, fault.msg, in_every_version=True)
    return SyntaxFault(fault.lineno or 1, fault.msg, in_every_version=False)


def _decoded(content: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(encoding)


def _name(version: tuple[int, ...]) -> str:
    return f"Python {version[0]}.{version[1]}"


def _look(module: ast.Module, version: tuple[int, int]) -> PythonSource:
    names = imported_names(module.body)
    statements = list(certain_statements(module.body, names))
    nodes = list(ast.walk(module))
    attributes = frozenset(stored_attributes(nodes))
    is_global = any(isinstance(node, ast.Global) and _NAME in node.names for node in nodes)
    bound = ... if is_global or _NAME in attributes else _bound(statements)
    defined = frozenset[str]().union(*map(bound_names, module.body))
    dynamic = is_dynamic(nodes)
    is_open = dynamic or "__getattr__" in defined
    lazy = version >= _LAZY_SINCE or names.get("annotations") == "__future__.annotations"
    imports, used, asked = needed(module, names, _NAME, lazy=lazy)
    missed = missed_by_star(nodes)
    may_run = list(without_annotations(module))
    own = bound if isinstance(bound, ast.ClassDef) and not dynamic else None
    return PythonSource(
        model_class(bound, module, nodes, names, _NAME) if isinstance(bound, ast.ClassDef) else None,
        bound is not None or is_open,
        bound if isinstance(bound, str) else "",
        tuple(each for statement in statements for each in statement_imports(statement)),
        imports,
        search_of(nodes),
        None if is_open or "*" in defined else defined,
        attributes,
        tensor_names(module),
        () if dynamic else tuple(_used(used, defined, missed)),
        () if dynamic else (*mentioned(may_run, MODULE), *_starred(may_run, missed)),
        None if dynamic else rejected_class(statements),
        references_of((node for statement in statements for node in ast.walk(statement)), defined, names),
        None if own is None else _initialize(own, attributes, names, defined, nodes),
        () if own is None else _completions(own, attributes, names),
        frozenset(_relative(nodes)),
        () if dynamic else asked,
        dynamic or any(_may_make_files(statement, names) for statement in statements),
    )


def _used(used: Iterable[Used], defined: frozenset[str], missed: frozenset[str]) -> Iterator[Used]:
    for each in used:
        if each.module or not defined & {each.name, "*"}:
            yield each
        elif each.name in missed:
            yield replace(each, module=MODULE, is_starred=True)


def _starred(nodes: Iterable[ast.AST], missed: frozenset[str]) -> Iterator[Used]:
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in missed:
            yield Used(node.lineno, MODULE, node.id, is_starred=True)


def _may_make_files(statement: ast.stmt, imported: Mapping[str, str]) -> bool:
    calls = (node for node in own_nodes(statement) if isinstance(node, ast.Call))
    return any(not keeps_files(dotted(call.func, imported)) for call in calls)


def _relative(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield (node.module or "").partition(".")[0]
            yield from (alias.name for alias in node.names)


def _initialize(
    own: ast.ClassDef,
    attributes: frozenset[str],
    imported: Mapping[str, str],
    defined: frozenset[str],
    nodes: Iterable[ast.AST],
) -> Initialize | None:
    """The method `initialize` of a class, if nothing replaces it."""
    method = _only_method("initialize", own, attributes)
    if method is None or method.decorator_list:
        return None
    bodies = [each for node in nodes if isinstance(node, ast.ClassDef) for each in node.body]
    plain = [each for each in bodies if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)]
    members = frozenset[str]().union(*(bound_names(each) for each in bodies if each not in plain))
    names = frozenset[str]().union(*map(bound_names, own.body))
    is_first = not own.bases and not names & {"__new__", "__init__", "auto_complete_config"}
    return Initialize(method, imported, defined, members, is_first)


def _completions(own: ast.ClassDef, attributes: frozenset[str], imported: Mapping[str, str]) -> tuple[Completion, ...]:
    method = _only_method("auto_complete_config", own, attributes)
    decorators = [ast.unparse(each) for each in method.decorator_list] if method is not None else []
    return completions_of(method, imported) if method is not None and decorators in ([], ["staticmethod"]) else ()


def _only_method(name: str, own: ast.ClassDef, attributes: frozenset[str]) -> ast.FunctionDef | None:
    """A method of a class, if nothing replaces it."""
    given = [each for each in own.body if name in bound_names(each)]
    if own.decorator_list or own.keywords or name in attributes or len(given) != 1:
        return None
    return given[0] if isinstance(given[0], ast.FunctionDef) else None


def _bound(statements: Iterable[ast.stmt]) -> ast.ClassDef | str | EllipsisType | None:
    """What the class's name is bound to in the end: a class, a type of value, something unknown (`...`), or nothing."""
    bound: ast.ClassDef | str | EllipsisType | None = None
    classes: dict[str, ast.ClassDef] = {}
    for statement in statements:
        names = bound_names(statement)
        for name in names:
            classes.pop(name, None)
        if isinstance(statement, ast.ClassDef):
            classes[statement.name] = statement
        if names & {_NAME, "*"}:
            bound = _binding(statement, bound, classes)
    return bound


def _binding(
    statement: ast.stmt, before: ast.ClassDef | str | EllipsisType | None, classes: Mapping[str, ast.ClassDef]
) -> ast.ClassDef | str | EllipsisType | None:
    """What the class's name is bound to after a statement that may bind it."""
    match statement:
        case ast.ClassDef(name=name) if name == _NAME:
            return statement
        case ast.Delete():
            return None
        case ast.AnnAssign(value=None):
            return before
        case ast.Import():
            return "module"
        case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
            if isinstance(value, ast.Name) and value.id in classes:
                return classes[value.id]
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in classes:
                return value.func.id if _is_uncallable(classes[value.func.id]) else ...
            kind = certain_type(value)
            return kind if kind is not None and kind != "function" else ...
        case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While() | ast.Match() if before is None:
            inner = [each for each in _within(statement) if bound_names(each) & {_NAME, "*"}]
            return inner[0] if len(inner) == 1 and isinstance(inner[0], ast.ClassDef) else ...
    return ...


def _is_uncallable(given: ast.ClassDef) -> bool:
    """Whether an object of a class cannot be called."""
    inherits = given.bases or given.keywords or given.decorator_list
    return not inherits and not any(bound_names(each) & {"__call__", "__new__"} for each in given.body)


def _within(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The simple statements, classes and functions in a condition, a loop or a handler."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt) and not isinstance(
            node, ast.If | ast.Try | ast.With | ast.For | ast.While | ast.Match
        ):
            yield node
        else:
            pending += ast.iter_child_nodes(node)
