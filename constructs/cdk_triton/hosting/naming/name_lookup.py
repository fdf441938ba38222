"""Lookup by name, with a helpful error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NoReturn, TypeVar

from cdk_triton._wording import did_you_mean, in_words, quoted
from cdk_triton.errors import ConfigurationError

__all__ = ["NameLookup"]

Thing = TypeVar("Thing")


class NameLookup(dict[str, Thing], Generic[Thing]):
    """A dictionary whose error for an unknown name lists its names; `get` and `in` are unchanged.

    Args:
        lack: the beginning of the error, such as "variant 'AllTraffic' has no alarm".
        things: the items.
    """

    def __init__(self, lack: str, things: Mapping[str, Thing]) -> None:
        super().__init__(things)
        self._lack = lack

    def __missing__(self, name: object) -> NoReturn:
        fix = f"use {in_words(map(repr, self))}" if self else "the list of names is empty"
        raise ConfigurationError(f"{self._lack} {quoted(name)}{did_you_mean(str(name), self)}: {fix}")
