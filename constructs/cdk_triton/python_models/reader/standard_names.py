"""The names of Python's standard library that the Pythons of the images have or lack: `data/python_names.json`."""

from __future__ import annotations

import builtins
import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["names_everywhere", "pythons_with"]

# Names that every module has, or a class body, or that `site` adds, and those of `gettext.install`.
_GIVEN = frozenset(
    {
        *("__name__", "__file__", "__doc__", "__package__", "__loader__", "__spec__", "__path__", "__cached__"),
        *("__builtins__", "__annotations__", "__dict__", "__class__", "__module__", "__qualname__"),
        *("exit", "quit", "copyright", "credits", "license", "help", "_", "ngettext"),
    }
)


def pythons_with(module: str, name: str) -> Collection[str] | None:
    """The Pythons of the images whose module has a name, such as `3.12`.

    Args:
        module: a module of the standard library, `concurrent.futures`.
        name: a function, class, value or module in it.

    Returns:
        The Pythons; None if all of them have the name, or if nothing is known of it.
    """
    return _names().get(module, {}).get(name)


@cache
def names_everywhere() -> frozenset[str]:
    """The names that a module has without defining or importing them, in some of the Pythons."""
    return frozenset({*vars(builtins), *_names()["builtins"], *_GIVEN})


@cache
def _names() -> Mapping[str, Mapping[str, list[str]]]:
    path = files(__package__).joinpath("data", "python_names.json")
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: Mapping[str, Mapping[str, list[str]]] = table["names"]
    return names
