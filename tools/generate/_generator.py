"""The interface of a generator, and the discovery of all of them."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
Files: TypeAlias = Mapping[str, bytes]
"""Path below the root of the repository to content."""


class GenerateError(Exception):
    """A file cannot be generated, or does not hold what its generator wrote."""


@dataclass(frozen=True)
class Generator:
    """One thing that is generated.

    Attributes:
        files: returns every file that it writes, from the repository alone. Raises GenerateError.
        tests: the tests that already compare these files in `make test`.
        obsolete: a glob pattern. A file that matches, and that `files` does not return, is removed.
        source: the name of the folder below SOURCES that `from_source` reads.
        from_source: returns the same files from an outside source. Raises GenerateError.
    """

    files: Callable[[], Files]
    tests: tuple[str, ...] = ()
    obsolete: str = ""
    source: str = ""
    from_source: Callable[[Path], Files] | None = None


def generators() -> dict[str, Generator]:
    """Every generator, by the name of its module; those that run tests come last, for tests read generated files."""
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    found = {
        name: importlib.import_module(f"tools.generate.{name}").GENERATOR for name in names if not name.startswith("_")
    }
    return dict(sorted(found.items(), key=lambda item: bool(item[1].tests)))


def recorded_by(*tests: str, obsolete: str = "") -> Generator:
    """Return the generator of files that tests compare: it runs these tests and collects what they found.

    Args:
        tests: what pytest is called with, such as `tests/a/test_b.py::test_c`. They call `assert_recorded`.
        obsolete: as in `Generator`.
    """
    return Generator(partial(_recorded, tests), tests=tests, obsolete=obsolete)


def _recorded(tests: tuple[str, ...]) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
            cwd=ROOT,
            env={**os.environ, "RECORD_TO": folder},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise GenerateError(f"the tests that record it fail:\n{done.stdout}{done.stderr}")
        found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
