"""The methods that the class `TritonPythonModel` of a Python source offers. The source is parsed, never executed.

The reader reads the class's body, its base classes in the same file, and some of the standard library. A class that
anything else may change is reported as incomplete.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cdk_triton.python_models.reader.attributes import hands_itself_over, unset_attributes
from cdk_triton.python_models.reader.calls import Method, certain_type, method_of
from cdk_triton.python_models.reader.names import Reference, bound_names, is_dynamic, stored_attributes

__all__ = ["CALLED", "ModelClass", "Value", "model_class"]

CALLED = ("__new__", "__init__", "auto_complete_config", "initialize", "execute")
"""The methods that the server calls, in its order."""

_OF_OBJECT = ("initialize", "execute")  # the server looks the others up in the class

# Bases that leave a class's methods as they are, and those that make a class which cannot be called without arguments.
_PLAIN = frozenset({"object", "str", "int", "abc.ABC", "typing.Generic"})
_ENUMS = frozenset(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"))
_KNOWN_DECORATORS = frozenset({"dataclasses.dataclass", "typing.final"})
_INTERFERE = frozenset({"__getattribute__", "__init_subclass__", "__class_getitem__", "__new__", "__prepare__"})

# What a method is where the source does not show it.
_OPEN = None


@dataclass(frozen=True)
class Value:
    """A value in a class in place of a method.

    Attributes:
        line: where it is set.
        kind: its type, `NoneType`.
    """

    line: int
    kind: str


Members = dict[str, Method | Value | None]


@dataclass(frozen=True)
class ModelClass:
    """The class `TritonPythonModel`.

    Attributes:
        line: where it begins.
        methods: name → function, of those that it certainly has.
        values: name → value, of the methods in whose place it certainly has a value that cannot be called.
        is_complete: whether it can have no others, because nothing else is inherited, set or decorated.
        failure: the error of every call of the class, in Python's words; "" if it may be called.
        unread: its methods that nothing can call, because the module does not use their names or pass the object on.
        unset: the attributes of its own object that it reads, and that nothing in the module sets.
    """

    line: int
    methods: Mapping[str, Method] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    is_complete: bool = True
    failure: str = ""
    unset: tuple[Reference, ...] = ()
    unread: tuple[Reference, ...] = ()


def model_class(
    own: ast.ClassDef, module: ast.Module, nodes: Sequence[ast.AST], imported: Mapping[str, str], name: str
) -> ModelClass:
    """Read a class.

    Args:
        own: the class.
        module: the module that it is in.
        nodes: the nodes of the module.
        imported: what the module's names are imported as.
        name: the name that the server looks up.
    """
    reader = _Reader(module, imported)
    lineage = None if is_dynamic(nodes) or _is_given_away(nodes, own.name, name) else reader.lineage(own)
    if lineage is None:
        return ModelClass(own.lineno, is_complete=False)
    members: Members = {}
    for each in reversed(lineage):
        members |= reader.members(each)
    members |= dict.fromkeys(stored_attributes(nodes), _OPEN)
    if "__new__" in members:  # what it returns may be of any class
        members |= dict.fromkeys(("__init__", "initialize", "execute"), _OPEN)
    failure = reader.failure(own, lineage, members)
    is_shared = hands_itself_over(lineage, nodes)
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    catches = any(isinstance(node, ast.Name) and node.id == "AttributeError" for node in nodes)
    if isinstance(members.get("__getattr__"), Method):
        found = _found_by_getattr(lineage)
        members |= {each: found if each in _OF_OBJECT else _OPEN for each in CALLED if each not in members}
    return ModelClass(
        own.lineno,
        {each: member for each, member in members.items() if isinstance(member, Method)},
        {each: member for each, member in members.items() if isinstance(member, Value)},
        is_complete=not any(each in members and members[each] is _OPEN for each in CALLED),
        failure=failure,
        unread=tuple(
            Reference(member.line, each)
            for each, member in members.items()
            if isinstance(member, Method) and each not in read and not is_shared
        ),
        unset=() if is_shared or catches or not reader.is_plain(lineage) else unset_attributes(lineage, members, nodes),
    )


def _found_by_getattr(lineage: Sequence[ast.ClassDef]) -> Value | None:
    """The value of every attribute that an object lacks, if `__getattr__` only returns a value of a certain type."""
    for method in (each for given in lineage for each in given.body):
        match method:
            case ast.FunctionDef(name="__getattr__", body=[ast.Return(value=ast.expr() as value)], decorator_list=[]):
                kind = certain_type(value)
                return Value(method.lineno, kind) if kind is not None and kind != "function" else _OPEN
            case ast.FunctionDef(name="__getattr__"):
                return _OPEN
    return _OPEN


def _is_given_away(nodes: Sequence[ast.AST], *names: str) -> bool:
    """Whether other code may change the class: a call gets it, or it gets another name."""
    for node in nodes:
        match node:
            case ast.Call(args=arguments, keywords=keywords):
                values = [*arguments, *(keyword.value for keyword in keywords)]
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names:
                continue  # the alias that the server asks for
            case ast.Assign(value=value) | ast.NamedExpr(value=value) | ast.Return(value=ast.expr() as value):
                values = [value]
            case _:
                continue
        for value in values:
            if isinstance(value, ast.Name) and value.id in names and not _only_asks(node):
                return True
    return False


def _only_asks(node: ast.AST) -> bool:
    match node:
        case ast.Call(
            func=ast.Name(id="isinstance" | "issubclass" | "super" | "getattr" | "hasattr" | "print" | "type")
        ):
            return True
    return False


class _Reader:
    def __init__(self, module: ast.Module, imported: Mapping[str, str]) -> None:
        self._imported = imported
        once: dict[str, list[ast.stmt]] = {}
        for statement in module.body:
            for name in bound_names(statement):
                once.setdefault(name, []).append(statement)
        self._definitions = {name: found[0] for name, found in once.items() if len(found) == 1}

    def lineage(self, given: ast.ClassDef) -> list[ast.ClassDef] | None:
        """A class and its bases in the module, in the order in which Python looks; None where others take part."""
        made: dict[type, ast.ClassDef] = {}
        try:
            top = self._made(given, made, is_own=True)
        except TypeError:  # no order is consistent
            return None
        return None if top is None else [made[each] for each in top.__mro__ if each in made]

    def _made(self, given: ast.ClassDef, made: dict[type, ast.ClassDef], *, is_own: bool = False) -> type | None:
        """An empty class with the same bases, so that Python computes their order."""
        if any(self._dotted(each) not in _KNOWN_DECORATORS for each in given.decorator_list):
            return None
        if any((each.arg, self._dotted(each.value)) != ("metaclass", "abc.ABCMeta") for each in given.keywords):
            return None
        if set(self.members(given)) & _INTERFERE - ({"__new__"} if is_own else set()):
            return None
        bases: list[type] = []
        for name in map(self._dotted, given.bases):
            if name in _PLAIN or name in _ENUMS or name in ("typing.NamedTuple", "typing.Protocol"):
                continue
            definition = self._definitions.get(name or "")
            if not isinstance(definition, ast.ClassDef) or definition.lineno >= given.lineno:
                return None
            base = next((each for each, node in made.items() if node is definition), None) or self._made(
                definition, made
            )
            if base is None:
                return None
            bases.append(base)
        own = type(given.name, tuple(bases), {})
        made[own] = given
        return own

    def is_plain(self, lineage: Sequence[ast.ClassDef]) -> bool:
        """Whether the classes inherit nothing from outside of the module but from `object` and `ABC`."""
        others = {self._dotted(base) for each in lineage for base in each.bases} - {each.name for each in lineage}
        return others <= {"object", "abc.ABC"}

    def members(self, given: ast.ClassDef) -> Members:
        """The names that the body of a class sets; a name that is set in some cases only is open."""
        members: Members = {}
        for statement in given.body:
            bound = bound_names(statement)
            match statement:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    members[name] = self._decorated(statement)
                case ast.Assign(targets=targets, value=value) if all(isinstance(each, ast.Name) for each in targets):
                    members |= {name: self._value(name, value, members) for name in bound}
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    members[name] = self._value(name, value, members)
                case ast.AnnAssign(target=ast.Name()):
                    pass  # a declaration
                case ast.Delete():
                    for name in bound:
                        members.pop(name, None)
                case _:
                    members |= dict.fromkeys(bound, _OPEN)
        is_tuple = any(self._dotted(each) == "typing.NamedTuple" for each in given.bases)
        constructor = "__new__" if is_tuple else "__init__"
        required = list(self._fields(given)) if is_tuple or self._is_dataclass(given) else []
        if required and constructor not in members:
            count = len(required)
            members[constructor] = Method(constructor, required[0].lineno, count, None, needs_keywords=False)
        elif self._is_dataclass(given) and given.bases and constructor not in members:
            members[constructor] = _OPEN  # it has the fields of the bases, which may have got a default here
        return members

    def failure(self, own: ast.ClassDef, lineage: Sequence[ast.ClassDef], members: Members) -> str:
        """The error that a call of the class raises in any case."""
        bases = {self._dotted(base) for base in own.bases}
        everywhere = {self._dotted(base) for each in lineage for base in each.bases}
        metaclasses = {self._dotted(keyword.value) for each in lineage for keyword in each.keywords}
        if "typing.Protocol" in bases and "__init__" not in members:
            return "Protocols cannot be instantiated"
        if everywhere & _ENUMS:
            return "missing 1 required positional argument: 'value'"
        missing = [name for name, member in members.items() if isinstance(member, Method) and member.is_abstract]
        if missing and (everywhere & {"abc.ABC", "typing.Protocol"} or metaclasses):
            return f"Can't instantiate abstract class {own.name}"
        return ""

    def _dotted(self, node: ast.expr) -> str | None:
        """The name of a decorator or base, with the module that it is imported from."""
        match node:
            case ast.Name(id=name):
                return self._imported.get(name, name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return f"{self._imported.get(name, name)}.{attribute}"
            case ast.Subscript(value=value):
                return self._dotted(value)
            case ast.Call(func=function) if self._dotted(function) == "dataclasses.dataclass":
                safe = all(each.arg in ("eq", "order", "repr", "unsafe_hash", "kw_only") for each in node.keywords)
                return "dataclasses.dataclass" if safe else None
        return None

    def _decorated(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Method | None:
        """A function of a class; not known if a decorator replaces it."""
        names = [self._dotted(each) for each in function.decorator_list]
        if any(name not in ("staticmethod", "classmethod", "abc.abstractmethod") for name in names):
            is_abstract = "abc.abstractmethod" in names
            return Method(function.name, function.lineno, 0, None, False, is_abstract=True) if is_abstract else _OPEN
        own = 0 if "staticmethod" in names else 1
        # Without decorator, `auto_complete_config` is called on the class, so that nothing is put in front.
        if function.name == "auto_complete_config" and "classmethod" not in names:
            own = 0
        return method_of(function, function.name, own, is_abstract="abc.abstractmethod" in names)

    def _value(self, name: str, value: ast.expr, members: Members) -> Method | Value | None:
        own = 0 if name == "auto_complete_config" else 1
        match value:
            case ast.Call(func=ast.Name(id="staticmethod" | "classmethod" as decorator), args=[inner], keywords=[]):
                own, value = 1 if decorator == "classmethod" else 0, inner
        if isinstance(value, ast.Lambda):
            return method_of(value, name, own)
        if isinstance(value, ast.Name) and value.id not in members:
            function = self._definitions.get(value.id)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not function.decorator_list:
                return method_of(function, name, own)
        kind = certain_type(value)
        return _OPEN if kind is None else Value(value.lineno, kind)

    def _is_dataclass(self, given: ast.ClassDef) -> bool:
        return any(self._dotted(each) == "dataclasses.dataclass" for each in given.decorator_list)

    def _fields(self, given: ast.ClassDef) -> Iterator[ast.AnnAssign]:
        """The fields of a dataclass or named tuple without a default."""
        for statement in given.body:
            if isinstance(statement, ast.AnnAssign) and not self._is_given(statement.value):
                written = ast.unparse(statement.annotation)
                if "ClassVar" not in written and "KW_ONLY" not in written:
                    yield statement

    def _is_given(self, value: ast.expr | None) -> bool:
        """Whether a field has a default, or is not a parameter of the constructor."""
        match value:
            case ast.Call(func=function, keywords=keywords) if self._dotted(function) == "dataclasses.field":
                return any(each.arg in ("default", "default_factory", "init", None) for each in keywords)
        return value is not None
