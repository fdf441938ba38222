"""The names of Python's standard library that the Pythons of the images have or lack: `data/python_names.json`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["pythons_with", "some_builtins"]


def pythons_with(module: str, name: str) -> Collection[str] | None:
    """The Pythons of the images whose module has a name, such as `3.12`.

    Args:
        module: a module of the standard library, `concurrent.futures`.
        name: a function, class, value or module in it.

    Returns:
        The Pythons; None if all of them have the name, or if nothing is known of it.
    """
    return _names().get(module, {}).get(name)


def some_builtins() -> Collection[str]:
    """The built-in names that only some of the Pythons have."""
    return _names()["builtins"].keys()


@cache
def _names() -> Mapping[str, Mapping[str, list[str]]]:
    path = files(__package__).joinpath("data", "python_names.json")
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: Mapping[str, Mapping[str, list[str]]] = table["names"]
    return names
