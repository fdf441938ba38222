"""The first error of `initialize` that follows from what the server hands to it. The source is never executed.

The server hands six texts to `initialize`; one of them is the configuration in JSON. Many models take something out of
it that is not there, or look for a file in the wrong directory. The reader follows the statements that run whatever
happens, with the values that come from the server, the configuration and the repository.

It ends where other code gets hold of something that it could change unseen: the model itself, the configuration, or a
function that uses a variable of the method. So a value is known as long as it is certain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from cdk_triton.python_models.reader.imports import may_leave
from cdk_triton.python_models.reader.initialize_method import Failure, Initialize, Outcome, Served
from cdk_triton.python_models.reader.known_functions import (
    BUILTINS,
    LOADERS,
    OPENERS,
    PLAIN,
    READS,
    is_loader,
    keeps_files,
    missing_file,
)
from cdk_triton.python_models.reader.names import certain_statements, imported_names
from cdk_triton.python_models.reader.opened_files import OpenedFile
from cdk_triton.python_models.reader.values import OPEN, OTHER, Message, Place, Text, joined, may_hold, unknown

__all__ = ["outcome_of"]

_UNFOLLOWED = object()  # what a reader of calls returns where another one may know the value
_UTILS = "triton_python_backend_utils"
_SAME_PATH = ("str", "os.fspath", "os.path.abspath", "os.path.realpath", "pathlib.Path", "pathlib.PurePath")
_KEEPING = ("get", "keys", "items", "values", "copy")  # methods of a dict that leave it as it is
_MAKING = frozenset(  # methods of a path that make files
    {
        *("write_text", "write_bytes", "touch", "mkdir", "symlink_to", "hardlink_to", "link_to"),
        *("rename", "replace", "copy", "copy_into", "move", "move_into"),
    }
)
_LOADS = ("json.loads", "orjson.loads", "ujson.loads")
_NUMBERS = {
    "int": "a string, a bytes-like object or a real number",
    "float": "a string or a real number",
}


class _Raised(Exception):  # noqa: N818  # caught where it becomes a Failure
    def __init__(self, node: ast.expr, said: str) -> None:
        self.failure = Failure(node.lineno, said)


class _Unclear(Exception):  # noqa: N818  # the end of what can be followed
    pass


def outcome_of(initialize: Initialize, served: Served) -> Outcome:
    """The errors of the method."""
    parameters = [*initialize.method.args.posonlyargs, *initialize.method.args.args]
    if len(parameters) != 2 or {"__setattr__", "__getattribute__"} & initialize.members:
        return Outcome()  # another number of parameters is reported by CT144
    reader = _Reader(parameters[0].arg, initialize, served)
    reader.values[parameters[1].arg] = Message(
        {
            "model_config": Text(is_config=True),
            "model_instance_kind": Text(),
            "model_instance_name": Text(),
            "model_instance_device_id": Text(),
            "model_repository": Place(str(served.directory)),
            "model_version": served.source.relative_to(served.directory).parts[0],
            "model_name": served.name,
        }
    )
    try:
        reader.run(initialize.method.body)
    except _Raised as raised:
        return Outcome(raised.failure, tuple(reader.absent))
    except _Unclear:
        pass
    return Outcome(None, tuple(reader.absent))


class _Reader:
    """The values of a method's variables, and those of the attributes that it sets: `self.config`."""

    def __init__(self, own: str, initialize: Initialize, served: Served) -> None:
        self.values: dict[str, Any] = {}
        self.absent: list[OpenedFile] = []
        self._own = own
        self._imported = dict(initialize.imported)
        self._defined = initialize.defined
        self._members = initialize.members
        self._locals = {own, *filter(None, map(self._target, ast.walk(initialize.method)))}
        self._served = served
        self._may_make_files = False

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Follow statements.

        Raises:
            _Raised: a statement raises an error.
            _Unclear: it is open what a statement changes, or whether those after it run.
        """
        for statement in certain_statements(body, self._imported):
            match statement:
                case ast.Assign(targets=targets, value=value):
                    self._bind(targets, self._of(value))
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._bind([target], self._of(value))
                case ast.AugAssign(target=target, value=value):
                    self._bind([target], unknown([self._of(value), self._loaded(target)]))
                case ast.Expr(value=value):
                    self._of(value)
                case ast.Import() | ast.ImportFrom():
                    self._imported.update(imported_names([statement]))
                case ast.With(items=items, body=inner) if all(map(_is_open, items)):
                    for item in items:
                        self._of(item.context_expr)
                        self._bind([item.optional_vars] if item.optional_vars else [], OTHER)
                    self.run(inner)
                case _:
                    self._compound(statement)

    def _compound(self, statement: ast.stmt) -> None:
        """Evaluate the first expression of a statement, and make sure that the rest changes nothing known."""
        first: ast.expr | None = None
        match statement:
            case ast.If(test=given) | ast.While(test=given) | ast.For(iter=given) | ast.Assert(test=given):
                first = given
            case ast.Return(value=ast.expr() as given) | ast.Match(subject=given):
                first = given
        if first is not None:
            self._of(first)
        if may_leave(statement) or any(isinstance(each, ast.Raise | ast.Global) for each in ast.walk(statement)):
            raise _Unclear
        is_scope = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        self._leave_alone([statement] if is_scope else [e for e in ast.iter_child_nodes(statement) if e is not first])
        if isinstance(statement, ast.While | ast.For) and first is not None:
            self._leave_alone([first])  # what it yields has a name in the loop
        for each in ast.walk(statement):
            if name := self._target(each):
                self.values[name] = OTHER

    def _target(self, node: ast.AST) -> str:
        """The variable or attribute of the model that a node sets; "" if it sets none."""
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                return name
            case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Store() | ast.Del()) if owner == self._own:
                return f"{owner}.{name}"
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                return name
        return ""

    def _leave_alone(self, nodes: Iterable[ast.AST]) -> None:
        """Make sure that code which is not followed cannot change known values.

        Raises:
            _Unclear: it may.
        """
        pending = [*nodes]
        while pending:
            node = pending.pop()
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == self._own:
                    is_set = not isinstance(node.ctx, ast.Load)
                    known = OTHER if is_set else self.values.get(f"{name}.{attribute}", OPEN)
                    if attribute in self._members or may_hold(known):
                        raise _Unclear
                    continue
                case ast.Name(id=name) if name in (self._own, "super") or may_hold(self.values.get(name)):
                    raise _Unclear
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                    if names & self._locals:
                        raise _Unclear
                case ast.Call():
                    self._may_make_files = True
            pending += ast.iter_child_nodes(node)

    def _bind(self, targets: Iterable[ast.expr], value: object) -> None:
        for target in targets:
            match target:
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._own:
                    if name in self._members:
                        raise _Unclear  # a property
                    self.values[f"{owner}.{name}"] = value
                case ast.Name(id=name):
                    self.values[name] = value
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    self._bind(parts, unknown([value]))
                case ast.Starred(value=inner):
                    self._bind([inner], unknown([value]))
                case _:
                    self._put(target, value)

    def _put(self, target: ast.expr, value: object) -> None:
        """Put a value into an object: `self.sizes[0] = value`."""
        parts = [each for each in ast.iter_child_nodes(target) if isinstance(each, ast.expr)]
        if may_hold(value) or may_hold(unknown([self._of(each) for each in parts])):
            raise _Unclear

    def _loaded(self, target: ast.expr) -> Any:
        """The value of the target of `+=`."""
        match target:
            case ast.Name(id=name):
                return self.values.get(name, OTHER)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._own:
                return self.values.get(f"{owner}.{name}", OPEN)
        return OTHER

    def _of(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            _Raised: it raises an error.
            _Unclear: it may change known values.
        """
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                known = {"__file__": Place(str(self._served.source)), self._own: OPEN, "super": OPEN}
                return self.values.get(name, known.get(name, OTHER))
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(node, inner, name)
            case ast.Subscript(value=inner, slice=key):
                return self._item(node, self._of(inner), self._of(key))
            case ast.BinOp(left=left, op=ast.Div() | ast.Add() as operator, right=right):
                return joined(self._of(left), self._of(right), is_path=isinstance(operator, ast.Div))
            case ast.JoinedStr(values=parts):
                return self._formatted(parts)
            case ast.Call():
                return self._called(node)
            case ast.NamedExpr(target=target, value=inner):
                self._bind([target], value := self._of(inner))
                return value
        return self._of_parts(node)

    def _of_parts(self, node: ast.expr) -> Any:
        """The value of an expression of which only the parts are evaluated."""
        match node:
            case ast.Compare(left=left, comparators=[right, *others]):
                unknown([self._of(left), self._of(right)])
                self._leave_alone(others)
                return OTHER
            case ast.BoolOp(values=[first, *others]):
                value = self._of(first)
                self._leave_alone(others)
                return unknown([value])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._of(test)
                self._leave_alone([body, orelse])
                return OTHER
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node)
            case ast.Lambda() | ast.Await() | ast.Yield() | ast.YieldFrom():
                self._leave_alone([node])
                return OTHER
        return unknown([self._of(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)])

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Any:
        first = node.generators[0].iter
        value = self._of(first)
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        if any(self._dotted(each.func) not in BUILTINS - self._defined for each in calls):
            self._leave_alone([node])
        return OPEN if may_hold(value) else OTHER

    def _attribute(self, node: ast.expr, inner: ast.expr, name: str) -> Any:
        if isinstance(inner, ast.Name) and inner.id == self._own:
            return self.values.get(f"{inner.id}.{name}", OPEN)
        value = self._of(inner)
        if value is None:
            raise _Raised(node, f"AttributeError: 'NoneType' object has no attribute '{name}'")
        if isinstance(value, Message) and not hasattr(dict, name):
            raise _Raised(node, f"AttributeError: 'dict' object has no attribute '{name}'")
        return value.parent if isinstance(value, Place) and name == "parent" else unknown([value])

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
            case ((Text() | str() | Place()), str()):
                raise _Raised(node, "TypeError: string indices must be integers, not 'str'")
            case None, _:
                raise _Raised(node, "TypeError: 'NoneType' object is not subscriptable")
        return unknown([value])

    def _formatted(self, parts: Sequence[ast.expr]) -> Any:
        text: Any = ""
        for part in parts:
            match part:
                case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                    text = joined(text, self._of(value), is_path=False)
                case _:
                    text = joined(text, self._of(part), is_path=False)
        return OTHER if text is OPEN else text

    def _called(self, node: ast.Call) -> Any:
        name = self._dotted(node.func)
        owner, method = OTHER, ""
        if isinstance(node.func, ast.Attribute) and not name:
            owner, method = self._of(node.func.value), node.func.attr
            if owner is None:
                raise _Raised(node, f"AttributeError: 'NoneType' object has no attribute '{method}'")
        elif not name:
            owner = self._of(node.func)
        given = [self._of(each) for each in node.args]
        named = [self._of(each.value) for each in node.keywords]
        if not node.keywords or self._knows_keywords(name, owner):
            for known in (self._of_message, self._of_configuration, self._of_path):
                value = known(node, name, owner, method, given)
                if value is not _UNFOLLOWED:
                    return value
        return self._foreign(name, owner, method, [*given, *named])

    def _knows_keywords(self, name: str, owner: Any) -> bool:
        """Whether the readers of calls know what the keywords of a call change."""
        return isinstance(owner, Place) or name in OPENERS or is_loader(name) or name.startswith(f"{_UTILS}.")

    def _foreign(self, name: str, owner: Any, method: str, given: Sequence[Any]) -> Any:
        """The value of a function that is not followed.

        Raises:
            _Unclear: it may change known values.
        """
        holds = any(map(may_hold, given))
        if may_hold(owner) or (holds and not keeps_files(name)):
            raise _Unclear
        self._may_make_files |= not keeps_files(name) and not isinstance(owner, Text | str)
        return OPEN if holds and name not in PLAIN else OTHER

    def _of_message(self, node: ast.Call, name: str, owner: Any, method: str, given: Sequence[Any]) -> Any:
        """The value of a method that reads an object in JSON."""
        if not isinstance(owner, Message) or method not in _KEEPING:
            return _UNFOLLOWED
        match method, given:
            case "get", [str(key), *default]:
                return owner.known.get(key, OTHER if key in owner.others else next(iter(default), None))
        return OPEN

    def _of_configuration(self, node: ast.Call, name: str, owner: Any, method: str, given: Sequence[Any]) -> Any:
        """The value of a function that reads the configuration, or converts a number of it."""
        match name.removeprefix(f"{_UTILS}."), given:
            case _, [Text(is_config=True)] if name in _LOADS:
                return self._served.config
            case _, [Message()] if name in _LOADS:
                raise _Raised(node, "TypeError: the JSON object must be str, bytes or bytearray, not dict")
            case "json.load", [Text()]:
                raise _Raised(node, "AttributeError: 'str' object has no attribute 'read'")
            case "triton_string_to_numpy", [str(data_type)] if not data_type.startswith("TYPE_"):
                raise _Raised(node, f"KeyError: {data_type!r}")
            case (("get_input_config_by_name" | "get_output_config_by_name"), [Text(), _]):
                raise _Raised(node, "TypeError: string indices must be integers, not 'str'")
            case ("get_input_config_by_name" | "get_output_config_by_name") as asked, [Message(known), str(tensor)]:
                tensors = known.get(asked.split("_")[1])
                found = (each for each in tensors or () if each.known["name"] == tensor)
                return OPEN if tensors is None else next(found, None)
            case ("int" | "float") as kind, [(Message() | list() | None) as value]:
                type_name = {Message: "dict", list: "list"}.get(type(value), "NoneType")
                raise _Raised(node, f"TypeError: {kind}() argument must be {_NUMBERS[kind]}, not '{type_name}'")
        return _UNFOLLOWED

    def _of_path(self, node: ast.Call, name: str, owner: Any, method: str, given: Sequence[Any]) -> Any:
        """The value of a function that makes a path, or opens one."""
        if isinstance(owner, Place):
            if method in READS:
                self._open(node, owner, self._modes(node, given) if method == "open" else (), "open")
            self._may_make_files |= method in _MAKING
            return owner if method in ("resolve", "absolute") else OTHER
        match name, given:
            case "os.path.join", [Place(), *_]:
                return reduce(lambda before, part: joined(before, part, is_path=True), given)
            case "os.path.dirname", [Place() as path]:
                return path.parent
            case _, [Place() as path, *others] if name in OPENERS:
                self._open(node, path, self._modes(node, others), name)
                return OTHER
            case _, [Place() as path] if name in _SAME_PATH:
                return path
            case _, [Place() as path, *_] if is_loader(name):
                self._open(node, path, (), name)
                return OTHER
        return _UNFOLLOWED

    def _modes(self, node: ast.Call, given: Sequence[Any]) -> list[Any]:
        """The mode in which a call opens a file, by position or by keyword; none if it is the usual one."""
        return [*given[:1], *(self._of(each.value) for each in node.keywords if each.arg in ("mode", None))]

    def _open(self, node: ast.expr, path: Place, mode: Sequence[object], function: str) -> None:
        place = PurePosixPath(normpath(path.text))
        said, fails = missing_file(function, str(place)), function in LOADERS | OPENERS
        if not all(isinstance(each, str) and not set("wax") & set(each) for each in mode):
            self._may_make_files = True
        elif fails and not self._may_make_files and self._served.misses(place):
            raise _Raised(node, said)
        elif not self._may_make_files and self._served.lacks(place):
            self.absent.append(OpenedFile(node.lineno, str(place), said))

    def _dotted(self, node: ast.expr) -> str:
        """The whole name of an imported function, such as `json.loads`; "" for a value."""
        match node:
            case ast.Name(id=name) if name not in self.values and name not in (self._own, "super"):
                is_own = name in self._defined and name not in self._imported
                return f"{name} of the module" if is_own else self._imported.get(name, name)
            case ast.Attribute(value=inner, attr=name) if before := self._dotted(inner):
                return f"{before}.{name}"
        return ""


def _is_open(item: ast.withitem) -> bool:
    return isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func) == "open"
