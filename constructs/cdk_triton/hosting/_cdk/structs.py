"""Structs that CDK takes and returns, for calls that are made a thousand times.

Where a method returns a struct, jsii asks for each of its members by a call of its own ("This will be slow", its source
says), and for those of the structs in it. It does so in a decorator, which is left out here. A struct that a method
takes may be a mapping, by the names in TypeScript, which takes half of the time: Node checks what must be there and of
which type it is, but says nothing of a name that it does not know.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import jsii

__all__ = ["StructReference", "returned_struct"]


class StructReference:
    """A struct that is still in Node."""

    def __init__(self, reference: object) -> None:
        self.__jsii_ref__ = reference

    def text(self, member: str) -> str:
        """A member that is a text, by its name in TypeScript."""
        return str(jsii.get(self, member))

    def struct(self, member: str) -> StructReference | None:
        """A member that is a struct, or None where it has none."""
        reference = unwrap(type(jsii.kernel).get)(jsii.kernel, self, member)
        return None if reference is None else StructReference(reference)


def returned_struct(target: Any, method: str, *arguments: object) -> StructReference:
    """What a method returns, by its name in TypeScript; structs among its arguments are mappings."""
    return StructReference(unwrap(type(jsii.kernel).invoke)(jsii.kernel, target, method, list(arguments)))
