"""Packages whose names are imported when they are first used (PEP 562).

Modules that an app does not use cost it nothing then: the CDK's modules and the recipes take longer to import than to
use.

A package writes its names as imports under `if TYPE_CHECKING:`, where type checkers and editors find them. The same
imports, read from the package's source, lead to the modules when the program runs. So an installation needs the sources
and not only their byte code.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

__all__ = ["lazy_names"]


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package; all its public names are in `__all__`."""

    @cache
    def module_of() -> Mapping[str, str]:
        return dict(_imported_for_type_checking(Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")))

    def get(name: str) -> object:
        if name.startswith("__") or name not in module_of():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = module_of()[name]
        return import_module(f"{package}.{name}") if module == package else getattr(import_module(module), name)

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, names


def _imported_for_type_checking(source: str) -> list[tuple[str, str]]:
    """Name and module of each import in the block `if TYPE_CHECKING:`."""
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    body = next(node.body for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in body if isinstance(node, ast.ImportFrom) and node.module is not None]
    return [(alias.name, str(node.module)) for node in imports for alias in node.names]
