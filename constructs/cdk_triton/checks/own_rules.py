"""Rules of other distributions: a company's own.

A distribution adds rules with an entry point in the group `cdk_triton.rules`, whose value is the module that declares
them:

    [project.entry-points."cdk_triton.rules"]
    acme = "acme_triton.rules"

An entry point runs code, so only installed distributions can have one. A distribution in the current directory does not
count: Python puts that directory on its path for `python -m`, and it may be the repository under check.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Final

__all__ = ["ENTRY_POINTS", "own_rule_files", "rule_entry_points"]

ENTRY_POINTS: Final = "cdk_triton.rules"
"""The group of the entry points that name modules with rules."""


def rule_entry_points() -> Iterator[EntryPoint]:
    """The entry points of installed distributions that name modules with rules, by name."""
    here = Path.cwd()
    installed = distributions(path=[path for path in sys.path if path and Path(path).resolve() != here])
    found = {entry for each in installed for entry in each.entry_points if entry.group == ENTRY_POINTS}
    yield from sorted(found, key=lambda entry: (entry.name, entry.value))


def own_rule_files() -> Iterator[Path]:
    """The files that decide what such rules find: all files of the top packages that the entry points name."""
    for package in sorted({entry.module.partition(".")[0] for entry in rule_entry_points()}):
        spec = find_spec(package)
        if spec is None:
            continue
        for directory in spec.submodule_search_locations or ():
            yield from (path for path in sorted(Path(directory).rglob("*")) if path.is_file())
        if spec.submodule_search_locations is None and spec.origin is not None:
            yield Path(spec.origin)
