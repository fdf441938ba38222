"""Packages whose names are imported when they are first used (PEP 562).

What an app does not use then costs it nothing: the CDK's modules and the recipes take longer to import than to use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, module_of: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package.

    Args:
        package: its name; all its public names stand in `__all__`.
        module_of: the module below it that defines a name, for each that is imported when it is first used.
    """

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    def names() -> list[str]:
        return sorted(import_module(package).__all__)

    return get, names
