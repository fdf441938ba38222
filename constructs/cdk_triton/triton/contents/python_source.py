"""What a Python model's source defines. It is parsed, never executed."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from cdk_triton.triton.contents.python_tensors import TensorNames, tensor_names
from cdk_triton.triton.contents.unreadable import Unreadable

__all__ = ["Method", "ModelClass", "PythonSource", "SyntaxFault", "python_source"]

_NAME = "TritonPythonModel"
_CALLED = frozenset({"execute", "initialize", "auto_complete_config"})

# What can give a module a name, or an object a method, that is written nowhere as such.
_MAKERS = frozenset({"globals", "locals", "vars", "exec", "eval", "setattr", "modules", "__dict__", "__getattr__"})

# Syntax that is newer than the oldest Python that runs these checks, as it looks to a parser that does not know it:
# nested quotes in f-strings (3.12), `type X = …` and `def f[T]` (3.12).
_NEWER = ("f-string", "type ", "[")


@dataclass(frozen=True)
class SyntaxFault:
    """Where a Python does not understand a file.

    Attributes:
        line: counted from 1.
        reason: what the parser says.
        in_every_version: False where only the asked version does not know the syntax.
    """

    line: int
    reason: str
    in_every_version: bool


@dataclass(frozen=True)
class Method:
    """A function in a class.

    Attributes:
        name: its name.
        line: where it begins.
        least: how many arguments a call has at least, without `self`.
        most: how many at most; None where it takes any number.
        needs_keywords: whether some of its arguments can only be given by name.
    """

    name: str
    line: int
    least: int
    most: int | None
    needs_keywords: bool

    def takes(self, count: int) -> bool:
        """Whether it can be called with so many arguments."""
        return not self.needs_keywords and self.least <= count and (self.most is None or count <= self.most)


@dataclass(frozen=True)
class ModelClass:
    """The class `TritonPythonModel`.

    Attributes:
        line: where it begins.
        methods: name → function, of those that are defined in the class itself without decorators of unknown effect.
        is_complete: whether these are all it can have: nothing is inherited, set or decorated.
    """

    line: int
    methods: Mapping[str, Method] = field(default_factory=dict)
    is_complete: bool = True


@dataclass(frozen=True)
class PythonSource:
    """What a module defines.

    Attributes:
        model: the class `TritonPythonModel`; None where the module does not define it, or defines it in another way.
        may_have_model: False where the module cannot have the class.
        imports: the top-level modules that it imports whatever happens, in their order.
        tensors: the tensors that it names.
    """

    model: ModelClass | None
    may_have_model: bool
    imports: tuple[str, ...] = ()
    tensors: TensorNames = field(default_factory=TensorNames)


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
    try:
        return _look(_parse(content, version))
    except SyntaxError as fault:
        if sys.version_info < version and _may_be_newer(fault):
            return Unreadable("uses syntax that this Python does not know")
        try:
            _parse(content, None)
        except (SyntaxError, ValueError):
            return SyntaxFault(fault.lineno or 1, fault.msg, in_every_version=True)
        return SyntaxFault(fault.lineno or 1, fault.msg, in_every_version=False)
    except ValueError:  # what Python 3.11 says of a zero byte
        return SyntaxFault(1, "source code cannot contain null bytes", in_every_version=True)
    except (RecursionError, MemoryError):
        return Unreadable("is nested too deeply")


def _parse(content: bytes, version: tuple[int, int] | None) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `"\d"` is a matter of style
        return ast.parse(content, feature_version=version)


def _may_be_newer(fault: SyntaxError) -> bool:
    text = (fault.text or "").strip()
    return (
        fault.msg.startswith(_NEWER[0])
        or text.startswith(_NEWER[1])
        or ("f'" in text or 'f"' in text)
        or (text.startswith(("def ", "async def ", "class ")) and _NEWER[2] in text.partition("(")[0])
    )


def _look(module: ast.Module) -> PythonSource:
    own: ast.ClassDef | None = None
    imports = tuple(dict.fromkeys(name for statement in module.body for name in _imported(statement)))
    for statement in _flat(module.body):
        if isinstance(statement, ast.ClassDef) and statement.name == _NAME:
            own = statement
        elif _is_simple(statement) and any(map(_binds, ast.walk(statement))):
            own = None
    if own is None:
        return PythonSource(None, any(map(_may_make, ast.walk(module))), imports, tensor_names(module))
    assigned = {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute) and _is_stored(node)}
    return PythonSource(_class(own, assigned), True, imports, tensor_names(module))


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, with those in its conditions, loops and handlers."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _flat(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from _flat(handler.body)
        for case in getattr(statement, "cases", []):
            yield from _flat(case.body)


def _imported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        yield statement.module.partition(".")[0]


def _is_simple(statement: ast.stmt) -> bool:
    """Whether no other statement of the module is a part of it."""
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) or not hasattr(statement, "body")


def _is_stored(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _names(node: ast.AST) -> set[str]:
    """The names that a part of the source uses, defines or writes as text."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.Constant(value=str(name)):
            return {name}
        case ast.alias(name=name, asname=alias):
            return {alias or name}
    return set()


def _binds(node: ast.AST) -> bool:
    """Whether a part of a statement may give the module another class than the one that is defined."""
    match node:
        case ast.Name() | ast.Subscript(slice=ast.Constant()):
            written = node if isinstance(node, ast.Name) else node.slice
            return _is_stored(node) and _NAME in _names(written)
        case ast.alias():
            return bool(_names(node) & {_NAME, "*"})
    return isinstance(node, ast.FunctionDef) and node.name == _NAME


def _may_make(node: ast.AST) -> bool:
    """Whether a module that defines no such class may have it all the same, because of this part of it."""
    return bool(_names(node) & (_MAKERS | {_NAME})) or _binds(node)


def _class(given: ast.ClassDef, assigned: set[str]) -> ModelClass:
    """Read the class; `assigned` are the attributes that something is assigned to anywhere in the module."""
    plain = all(isinstance(base, ast.Name) and base.id == "object" for base in given.bases)
    complete = plain and not given.keywords and not given.decorator_list and not assigned & _CALLED
    complete = complete and not any(_names(node) & {"setattr", "__dict__"} for node in ast.walk(given))
    methods: dict[str, Method] = {}
    for statement in _flat(given.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            method = _method(statement)
            complete = complete and method is not None and statement.name != "__getattr__"
            methods.pop(statement.name, None)
            if method is not None:
                methods[statement.name] = method
        elif _names_of(statement) & {*_CALLED, "*"}:
            complete = False
    return ModelClass(given.lineno, {name: methods[name] for name in methods if name not in assigned}, complete)


def _names_of(statement: ast.stmt) -> set[str]:
    """The names that a statement in a class gives it; `*` where that cannot be told."""
    if isinstance(statement, ast.Assign):
        return {target.id if isinstance(target, ast.Name) else "*" for target in statement.targets}
    if isinstance(statement, ast.AnnAssign):
        return {statement.target.id if isinstance(statement.target, ast.Name) else "*"}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    return set()


def _method(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Method | None:
    """How a function can be called on an instance; None where a decorator hides it."""
    names = [each.id if isinstance(each, ast.Name) else "" for each in function.decorator_list]
    if any(name not in ("staticmethod", "classmethod") for name in names):
        return None
    arguments = function.args
    own = 0 if "staticmethod" in names else 1
    # Without decorator, `auto_complete_config` is called on the class, so that nothing is put in front.
    if function.name == "auto_complete_config" and not names:
        own = 0
    count = len(arguments.posonlyargs) + len(arguments.args)
    return Method(
        function.name,
        function.lineno,
        least=max(count - len(arguments.defaults) - own, 0),
        most=None if arguments.vararg else count - own,
        needs_keywords=any(default is None for default in arguments.kw_defaults),
    )
