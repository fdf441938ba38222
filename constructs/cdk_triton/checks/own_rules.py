"""Rules of other distributions: a company's own.

A distribution adds rules with an entry point in the group `cdk_triton.rules`, whose value is the module that declares
them:

    [project.entry-points."cdk_triton.rules"]
    acme = "acme_triton.rules"

An entry point runs code, so only installed distributions can have one. Neither a distribution nor a module in the
current directory counts: Python puts that directory on its path for `python -m` and `python -c`, and it may be the
repository under check. A directory that PYTHONPATH names counts, because somebody chose it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cdk_triton.errors import RuleError

__all__ = ["ENTRY_POINTS", "import_own_rules", "own_rule_files"]

ENTRY_POINTS: Final = "cdk_triton.rules"
"""The group of the entry points that name modules with rules."""


def import_own_rules() -> None:
    """Import the modules that the entry points of installed distributions name.

    Raises:
        RuleError: a module cannot be imported, or declares a rule wrongly.
    """
    with _installed_only():
        for entry in _entry_points():
            try:
                entry.load()
            except Exception as error:  # whatever the module of somebody else raises
                raise RuleError(
                    f"the rules of the entry point {entry.name} = {entry.value!r} in {ENTRY_POINTS} cannot be loaded: "
                    f"{type(error).__name__}: {error}; fix or uninstall the distribution of the entry point"
                ) from error


def own_rule_files() -> Iterator[Path]:
    """The files on which the findings of such rules depend: those of the top packages that the entry points name."""
    with _installed_only():
        packages = {found[0] for entry in _entry_points() if (found := re.match(r"\w+", entry.value))}
        specs = [spec for package in sorted(packages) if (spec := find_spec(package)) is not None]
    for spec in specs:
        for directory in spec.submodule_search_locations or ():
            yield from (path for path in sorted(Path(directory).rglob("*")) if path.is_file())
        if spec.submodule_search_locations is None and spec.origin is not None:
            yield Path(spec.origin)


def _entry_points() -> list[EntryPoint]:
    found = {entry for each in distributions() for entry in each.entry_points if entry.group == ENTRY_POINTS}
    return sorted(found, key=lambda entry: (entry.name, entry.value))


@contextmanager
def _installed_only() -> Iterator[None]:
    """Take the current directory off the path on which Python finds modules and distributions."""
    here, path = Path.cwd(), sys.path[:]
    sys.path[:] = [each for each in path if Path(each).resolve() != here]
    try:
        yield
    finally:
        sys.path[:] = path
