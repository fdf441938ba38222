"""The one module that uses jsii's internals, with a public way around each of them.

jsii is what lets Python use the CDK, which runs in Node. Three of its internals are used here:

* `__jsii_ref__`, the reference by which jsii finds an object in Node.
* The methods of `jsii.kernel` below their decorator. If a method returns a struct, the decorator calls Node for each
member by a call of its own ("This will be slow" in jsii's source). It does the same for the members of the structs in
it.
* `_delegates`, the typed objects behind jsii's proxy of an interface.

A jsii that lacks the first two makes `has_internals` false. Then constructs are told apart by their paths, and structs
come from CDK's own methods: more calls of Node, the same templates. A proxy without `_delegates` stands for itself.

`cdk_triton._arguments` works where the CDK is not installed, so only functions import jsii here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

__all__ = ["Struct", "has_internals", "identity", "invoke_for_struct", "parts_of"]

_ROOTS: Final[dict[int, object]] = {}
"""The roots of the construct trees that `identity` saw without jsii's references, so that no other gets their ids."""


@cache
def has_internals() -> bool:
    """Whether the installed jsii has the references and the methods that the fast ways use."""
    import jsii

    kernel = type(getattr(jsii, "kernel", None))
    decorated = (getattr(kernel, name, None) for name in ("get", "invoke"))
    methods = [getattr(method, "__wrapped__", None) for method in decorated]
    return all(method is not None and "__jsii_ref__" in method.__code__.co_names for method in methods)


def identity(construct: object) -> str | None:
    """A text that identifies a construct; None for an object that jsii does not have yet.

    A Python object does not identify a construct: Python gets a new object each time for a construct that Node made,
    and a user's class may define two constructs as equal. jsii keeps constructs as long as the program runs, so that
    no reference is used twice. A path is used again if a construct takes the place of one that was removed.
    """
    if has_internals():
        reference = getattr(construct, "__jsii_ref__", None)
        return None if reference is None else str(reference.ref)
    node = getattr(construct, "node", None)
    if node is None:
        return None
    root = node.root
    _ROOTS.setdefault(id(root), root)
    return f"{id(root)} {node.path}"


class Struct:
    """A struct that a method of the CDK returned; its members have their names in Python."""

    def __init__(self, struct: object) -> None:
        self._struct = struct

    def text(self, member: str) -> str:
        """A member that is a text."""
        return str(self._get(member))

    def struct(self, member: str) -> Struct | None:
        """A member that is a struct, or None if it is not set."""
        found = self._get(member)
        return None if found is None else type(self)(found)

    def _get(self, member: str) -> Any:
        return getattr(self._struct, member)


class _StructInNode(Struct):
    """A struct that is still in Node, from where each member is fetched when it is needed."""

    def __init__(self, reference: object) -> None:
        self.__jsii_ref__ = reference

    def _get(self, member: str) -> Any:
        return _call_kernel("get", self, _in_typescript(member))


def invoke_for_struct(target: object, method: str, *arguments: object, **members: object) -> Struct:
    """Call a method that returns a struct.

    Node gets a struct among the arguments as a mapping, which takes half of the time of CDK's class. Node checks that
    the required members are there and their types, but ignores a name that is not one of them.

    Args:
        target: the object with the method.
        method: its name in Python.
        arguments: its positional arguments.
        members: its keyword arguments, which are the members of a struct in TypeScript.
    """
    if not has_internals():
        return Struct(getattr(target, method)(*arguments, **members))
    structs = [{_in_typescript(name): value for name, value in members.items()}] if members else []
    return _StructInNode(_call_kernel("invoke", target, _in_typescript(method), [*arguments, *structs]))


def parts_of(value: object) -> tuple[object, ...]:
    """The typed objects behind jsii's proxy of an interface, such as an imported construct; or the value itself."""
    delegates = getattr(value, "__dict__", {}).get("_delegates")
    return tuple(delegates) if isinstance(delegates, list) and delegates else (value,)


def _call_kernel(method: str, *arguments: object) -> Any:
    import jsii

    return getattr(type(jsii.kernel), method).__wrapped__(jsii.kernel, *arguments)


@cache
def _in_typescript(name: str) -> str:
    """A name in TypeScript: `object_key` is `objectKey` there."""
    return re.sub("_(.)", lambda letter: letter[1].upper(), name)
