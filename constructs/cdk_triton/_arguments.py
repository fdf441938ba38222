"""The kinds of arguments, and the one sentence for a value of another kind.

The checks look at types alone, because a property of a CDK construct costs a call of Node.js. Python's own error would
come from somewhere inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from inspect import Signature
from pathlib import PurePath
from reprlib import Repr
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, cast

from cdk_triton._jsii import parts_of
from cdk_triton._tokens import is_number_token
from cdk_triton._wording import did_you_mean
from cdk_triton.errors import ConfigurationError

__all__ = [
    "FLAG",
    "TEXT",
    "TEXTS",
    "Kind",
    "by_name",
    "described",
    "has_attribute",
    "listed",
    "one",
    "reject_unknown",
    "require_type",
    "several",
]

_SHOWN: Final = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 100


class Kind(NamedTuple):
    """A kind of argument.

    Attributes:
        fault: gives the fault of a value, as the rest of a sentence that begins with the argument's name; None without
            a fault.
        fix: what to do about it, as the end of that sentence.
    """

    fault: Callable[[object], str | None]
    fix: str


def reject_unknown(function: str, given: Mapping[str, object], signature: Signature) -> None:
    """Reject an argument by name that a function does not have, as Python does, with the similar ones that it has.

    Args:
        function: the function's name in the message.
        given: the arguments by name.
        signature: the function's signature.

    Raises:
        TypeError: an argument is unknown.
    """
    parameters = signature.parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    for name in given:
        if name not in parameters:
            known = [each.name for each in parameters.values() if each.kind is not each.VAR_POSITIONAL]
            # `weight` stands for `initial_weight`, which is not similar enough for a slip of the pen.
            longer = [each for each in known if set(name.split("_")) < set(each.split("_"))]
            meant = did_you_mean(name, known) or did_you_mean(name, longer, cutoff=0.0)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")


def require_type(what: str, value: object, kind: Kind) -> None:
    """Reject a value of another kind.

    Args:
        what: the argument, as a sentence begins: "vpc of TritonModel 'Search'".
        value: the value that the user gave.
        kind: the kind that the argument takes.

    Raises:
        ConfigurationError: the value is of another kind.
    """
    fault = kind.fault(value)
    if fault is not None:
        raise ConfigurationError(f"{what} {fault}: {kind.fix}")


def one(fits: Callable[[object], bool], fix: str) -> Kind:
    """One value; a class is rejected, because it has to be called first."""
    return Kind(lambda value: None if _is_one(value, fits) else f"is {described(value)}", fix)


def several(fits: Callable[[object], bool], fix: str, *, ordered: bool = False) -> Kind:
    """A list of such values; a text is rejected, although it is a sequence in Python.

    A set is not one where the order matters.
    """

    def fault(values: object) -> str | None:
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Collection):
            return f"is {described(values)}"
        if ordered and isinstance(values, Set):
            return f"is {described(values)}"
        return next((f"holds {described(value)}" for value in values if not _is_one(value, fits)), None)

    return Kind(fault, fix)


def listed(what: str, values: object, kind: Kind) -> tuple[Any, ...]:
    """The values of any iterable, such as a generator, checked against a kind that `several` made.

    Raises:
        ConfigurationError: a value is of another kind.
    """
    read = tuple(values) if isinstance(values, Iterator) else values
    require_type(what, read, kind)
    return tuple(cast("Iterable[Any]", read))


def by_name(fits: Callable[[object], bool], fix: str) -> Kind:
    """A mapping from names to such values."""

    def fault(values: object) -> str | None:
        if not isinstance(values, Mapping):
            return f"is {described(values)}"
        for name, value in values.items():
            if not isinstance(name, str):
                return f"has the name {described(name)}"
            if not _is_one(value, fits):
                return f"holds {described(value)}, for {name!r}"
        return None

    return Kind(fault, fix)


def has_attribute(*names: str) -> Callable[[object], bool]:
    """Check for a Protocol by attributes that only its implementations have, without evaluating them."""

    def fits(value: object) -> bool:
        return any(all(_has(part, name) for name in names) for part in parts_of(value))

    return fits


def described(value: object) -> str:
    """A value as messages show it: shortened, and without the values of a mapping, which may be secrets."""
    if value is None:
        return "None"
    if is_number_token(value):
        return "an unresolved token"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = re.sub(r"^_(.+)Proxy$", r"\1", type(parts_of(value)[-1]).__name__)
    if isinstance(value, ModuleType | FunctionType | MethodType):
        return f"the {kind} {value.__name__}"
    type_of = f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}"
    return f"{_SHOWN.repr(value)}, {type_of}" if isinstance(value, str | bytes | int | float | PurePath) else type_of


def _is_one(value: object, fits: Callable[[object], bool]) -> bool:
    return not isinstance(value, type) and fits(value)


def _has(part: object, name: str) -> bool:
    defined = [vars(part) if hasattr(part, "__dict__") else {}, *map(vars, type(part).__mro__)]
    # Whatever answers for names that it does not define may answer for this one.
    return any(name in names or "__getattr__" in names for names in defined)


TEXT: Final = one(lambda value: isinstance(value, str), "write it as text in quotes")

TEXTS: Final = several(lambda value: isinstance(value, str), "use a list of texts, such as ['name']")

FLAG: Final = one(lambda value: isinstance(value, bool), "write True or False")
