"""The first error of `initialize` that follows from what the server hands to it. The source is never executed.

The server hands six texts to `initialize`; one of them is the configuration in JSON. Many models take something out of
it that is not there, or look for a file in the wrong directory. The reader follows the statements that run whatever
happens, with the values that come from the server, the configuration and the repository. Every other value is open, and
nothing follows from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from cdk_triton.triton.contents.python_imports import may_leave
from cdk_triton.triton.contents.python_names import bound_names, certain_statements, imported_names, stored_attributes

__all__ = ["Failure", "Initialize", "Message", "Served", "failure_of"]

_OPEN = object()
_READS = ("open", "read_text", "read_bytes")
_KEEPING = ("get", "keys", "items", "values", "copy")  # methods of a dict that leave it as it is
_SAME_PATH = ("str", "os.fspath", "os.path.abspath", "os.path.realpath", "pathlib.Path", "pathlib.PurePath")
_NUMBERS = {
    "int": "a string, a bytes-like object or a real number",
    "float": "a string or a real number",
}


@dataclass(frozen=True)
class Initialize:
    """The method `initialize` of a model.

    Attributes:
        method: its statement.
        imported: what the module's names are imported as.
    """

    method: ast.FunctionDef
    imported: Mapping[str, str]


@dataclass(frozen=True)
class Message:
    """An object in JSON.

    Attributes:
        known: the values that are known.
        others: the names that may be there with other values.
    """

    known: Mapping[str, Any]
    others: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Served:
    """A model as the server describes it to `initialize`.

    Attributes:
        name: the model's name.
        directory: its directory.
        source: the file with the method.
        config: the configuration.
        misses: whether a file is certainly missing at a path.
    """

    name: str
    directory: PurePosixPath
    source: PurePosixPath
    config: Message
    misses: Callable[[PurePosixPath], bool]


@dataclass(frozen=True)
class Failure:
    """An error that the method raises whatever happens.

    Attributes:
        line: where.
        said: the error, as Python words it.
    """

    line: int
    said: str


class _Raised(Exception):  # noqa: N818  # caught where it becomes a Failure
    def __init__(self, node: ast.expr, said: str) -> None:
        self.failure = Failure(node.lineno, said)


@dataclass(frozen=True)
class _Text:
    """A text that is not known, such as the configuration in JSON."""

    is_config: bool = False


@dataclass(frozen=True)
class _Place:
    """A path in the repository, as a text or as a `Path`."""

    text: str

    @property
    def parent(self) -> _Place:
        return _Place(str(PurePosixPath(self.text).parent))


def failure_of(initialize: Initialize, served: Served) -> Failure | None:
    """The first error of the method, or None where none is certain."""
    parameters = [*initialize.method.args.posonlyargs, *initialize.method.args.args]
    if len(parameters) != 2:
        return None  # reported by CT144
    reader = _Reader(parameters[0].arg, dict(initialize.imported), served)
    reader.values[parameters[1].arg] = Message(
        {
            "model_config": _Text(is_config=True),
            "model_instance_kind": _Text(),
            "model_instance_name": _Text(),
            "model_instance_device_id": _Text(),
            "model_repository": _Place(str(served.directory)),
            "model_version": served.source.relative_to(served.directory).parts[0],
            "model_name": served.name,
        }
    )
    try:
        reader.run(initialize.method.body)
    except _Raised as raised:
        return raised.failure
    return None


class _Reader:
    """The values of a method's variables, and those of the attributes that it sets: `self.config`."""

    def __init__(self, own: str, imported: dict[str, str], served: Served) -> None:
        self.values: dict[str, Any] = {}
        self._own = own
        self._imported = imported
        self._served = served

    def run(self, body: Sequence[ast.stmt]) -> bool:
        """Follow statements up to the end, or to where it is open which of them run.

        Returns:
            Whether the end is reached.

        Raises:
            _Raised: a statement raises an error.
        """
        for statement in certain_statements(body, self._imported):
            match statement:
                case (
                    ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    self._bind(target, self._of(value))
                case ast.Expr(value=value):
                    self._of(value)
                case ast.Import() | ast.ImportFrom():
                    self._imported.update(imported_names([statement]))
                case ast.With(items=[ast.withitem(ast.Call(func=ast.Name(id="open")) as call)], body=inner):
                    self._of(call)
                    self._forget(statement)
                    if not self.run(inner):
                        return False
                case _:
                    self._first(statement)
                    self._forget(statement)
                    if may_leave(statement) or any(isinstance(node, ast.Raise) for node in ast.walk(statement)):
                        return False
        return True

    def _first(self, statement: ast.stmt) -> None:
        """Look at what a statement evaluates first."""
        match statement:
            case ast.If(test=first) | ast.While(test=first) | ast.For(iter=first) | ast.Assert(test=first):
                self._of(first)
            case ast.Return(value=ast.expr() as first) | ast.AugAssign(value=first) | ast.Match(subject=first):
                self._of(first)

    def _forget(self, statement: ast.AST) -> None:
        """Open the variables and attributes that a statement may set."""
        nodes = list(ast.walk(statement))
        changed = {f"{self._own}.{name}" for name in stored_attributes(nodes)}
        if isinstance(statement, ast.stmt):
            changed |= bound_names(statement)
        for node in nodes:
            match node:
                case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                    changed.add(ast.unparse(value).partition("[")[0])
        self.values.update(dict.fromkeys(changed, _OPEN))

    def _bind(self, target: ast.expr, value: object) -> None:
        match target:
            case ast.Name(id=name):
                self.values[name] = value
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._own:
                self.values[f"{owner}.{name}"] = value
            case _:
                self._forget(ast.Assign([target], ast.Constant(None)))

    def _of(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            _Raised: it raises an error.
        """
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                default = _Place(str(self._served.source)) if name == "__file__" else _OPEN
                return self.values.get(name, default)
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(node, inner, name)
            case ast.Subscript(value=inner, slice=key):
                return self._item(node, self._of(inner), self._of(key))
            case ast.BinOp(left=left, op=ast.Div() | ast.Add() as operator, right=right):
                return _joined(self._of(left), self._of(right), is_path=isinstance(operator, ast.Div))
            case ast.JoinedStr(values=parts):
                return self._formatted(parts)
            case ast.Call():
                return self._called(node)
            case ast.NamedExpr(target=target, value=inner):
                self._bind(target, value := self._of(inner))
                return value
        for first in _evaluated(node):
            self._of(first)
        return _OPEN

    def _attribute(self, node: ast.expr, inner: ast.expr, name: str) -> Any:
        if isinstance(inner, ast.Name) and inner.id == self._own:
            return self.values.get(f"{inner.id}.{name}", _OPEN)
        value = self._of(inner)
        if value is None:
            raise _Raised(node, f"AttributeError: 'NoneType' object has no attribute '{name}'")
        if isinstance(value, Message) and not hasattr(dict, name):
            raise _Raised(node, f"AttributeError: 'dict' object has no attribute '{name}'")
        return value.parent if isinstance(value, _Place) and name == "parent" else _OPEN

    def _item(self, node: ast.expr, value: Any, key: Any) -> Any:
        match value, key:
            case Message(known, others), str():
                if key in known:
                    return known[key]
                if key not in others:
                    raise _Raised(node, f"KeyError: {key!r}")
            case list(), int():
                if not -len(value) <= key < len(value):
                    raise _Raised(node, "IndexError: list index out of range")
                return value[key]
            case list(), str():
                raise _Raised(node, "TypeError: list indices must be integers or slices, not str")
            case ((_Text() | str() | _Place()), str()):
                raise _Raised(node, "TypeError: string indices must be integers, not 'str'")
            case None, _:
                raise _Raised(node, "TypeError: 'NoneType' object is not subscriptable")
        return _OPEN

    def _formatted(self, parts: Sequence[ast.expr]) -> Any:
        text: Any = ""
        for part in parts:
            match part:
                case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                    text = _joined(text, self._of(value), is_path=False)
                case _:
                    text = _joined(text, self._of(part), is_path=False)
        return text

    def _called(self, node: ast.Call) -> Any:
        name = self._dotted(node.func)
        owner, method = _OPEN, ""
        if isinstance(node.func, ast.Attribute) and not name:
            owner, method = self._of(node.func.value), node.func.attr
            if owner is None:
                raise _Raised(node, f"AttributeError: 'NoneType' object has no attribute '{method}'")
        given = [self._of(each) for each in node.args]
        for keyword in node.keywords:
            self._of(keyword.value)
        if isinstance(owner, Message) and method == "get" and given and isinstance(given[0], str):
            return owner.known.get(given[0], _OPEN if given[0] in owner.others else next(iter(given[1:]), None))
        if isinstance(owner, _Place):
            if method in _READS:
                self._open(node, owner, given)
            return owner if method in ("resolve", "absolute") else _OPEN
        for known in (self._of_configuration, self._of_path):
            value = known(node, name, given)
            if value is not _OPEN:
                return value
        if not (isinstance(owner, Message) and method in _KEEPING):
            self._forget_given(node)
        return _OPEN

    def _of_configuration(self, node: ast.Call, name: str, given: Sequence[Any]) -> Any:
        """The value of a function that reads the configuration, or a number of it."""
        match name.rpartition(".")[2], given:
            case "loads", [_Text(is_config=True)]:
                return self._served.config
            case "loads", [Message()]:
                raise _Raised(node, "TypeError: the JSON object must be str, bytes or bytearray, not dict")
            case "load", [_Text()] if name == "json.load":
                raise _Raised(node, "AttributeError: 'str' object has no attribute 'read'")
            case "triton_string_to_numpy", [str(data_type)] if not data_type.startswith("TYPE_"):
                raise _Raised(node, f"KeyError: {data_type!r}")
            case (("get_input_config_by_name" | "get_output_config_by_name"), [_Text(), _]):
                raise _Raised(node, "TypeError: string indices must be integers, not 'str'")
            case ("get_input_config_by_name" | "get_output_config_by_name") as asked, [Message(known), str(tensor)]:
                tensors = known.get(asked.split("_")[1])
                named = (each for each in tensors or () if each.known["name"] == tensor)
                return _OPEN if tensors is None else next(named, None)
            case ("int" | "float") as kind, [(Message() | list() | None) as value]:
                found = {Message: "dict", list: "list"}.get(type(value), "NoneType")
                raise _Raised(node, f"TypeError: {kind}() argument must be {_NUMBERS[kind]}, not '{found}'")
        return _OPEN

    def _of_path(self, node: ast.Call, name: str, given: Sequence[Any]) -> Any:
        """The value of a function that makes a path, or opens one."""
        match name, given:
            case "os.path.join", [_Place(), *_]:
                return reduce(lambda before, part: _joined(before, part, is_path=True), given)
            case "os.path.dirname", [_Place() as path]:
                return path.parent
            case "open", [_Place() as path, *mode]:
                self._open(node, path, mode)
            case _, [_Place() as path] if name in _SAME_PATH:
                return path
        return _OPEN

    def _open(self, node: ast.expr, path: _Place, mode: Sequence[object]) -> None:
        place = PurePosixPath(normpath(path.text))
        if all(isinstance(each, str) and not set("wax") & set(each) for each in mode) and self._served.misses(place):
            raise _Raised(node, f"FileNotFoundError: [Errno 2] No such file or directory: '{place}'")

    def _forget_given(self, node: ast.Call) -> None:
        """Open what an unknown function may change: the objects that it gets, and attributes if it is a method."""
        for each in (*node.args, *(keyword.value for keyword in node.keywords), node.func):
            for inner in ast.walk(each):
                if isinstance(inner, ast.Name) and isinstance(self.values.get(inner.id), Message | list):
                    self.values[inner.id] = _OPEN
        if self._own in {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}:
            self.values.update({name: _OPEN for name in self.values if "." in name})

    def _dotted(self, node: ast.expr) -> str:
        """The whole name of a function, as it is imported: `json.loads`; "" for a method of a value."""
        match node:
            case ast.Name(id=name) if name not in self.values:
                return self._imported.get(name, name)
            case ast.Attribute(value=inner, attr=name) if before := self._dotted(inner):
                return f"{before}.{name}"
        return ""


def _joined(left: Any, right: Any, *, is_path: bool) -> Any:
    """Two parts of a path, or of a text."""
    match left, right:
        case _Place(before), (str(after) | _Place(after)):
            if is_path and not after.startswith("/"):
                return _Place(f"{before}/{after}")
            return _OPEN if is_path else _Place(f"{before}{after}")
        case "", (str() | _Place()) if not is_path:
            return right
        case str(), str() if not is_path:
            return left + right
    return _OPEN


def _evaluated(node: ast.expr) -> Sequence[ast.expr]:
    """The parts of an expression that are evaluated whenever it is."""
    match node:
        case ast.BoolOp(values=values):
            return values[:1]
        case ast.IfExp(test=test):
            return [test]
        case ast.Compare(left=left, comparators=comparators):
            return [left, *comparators[:1]]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=inner) | ast.Starred(value=inner):
            return [inner]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return parts
        case ast.Dict(values=parts):
            return parts
        case ast.ListComp(generators=[first, *_]) | ast.SetComp(generators=[first, *_]):
            return [first.iter]
        case ast.DictComp(generators=[first, *_]) | ast.GeneratorExp(generators=[first, *_]):
            return [first.iter]
    return []
