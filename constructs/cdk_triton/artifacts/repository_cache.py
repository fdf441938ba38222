"""Answers to questions about repositories, kept between runs of the app.

`cdk ls`, `diff` and `destroy` run the app, and the app looks into models of many gigabytes. So each answer is kept in
the user's cache directory. It is used again while nothing that decides it has changed: the files of the repositories,
the files of this library's rules and recipes, and the rest of the question. Files are compared by size, times and
inode, as for digests. For the same reason a file is trusted only if nobody wrote to it in the last 2 s before its
repository was read. CDK_TRITON_NO_CACHE disables this cache too.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from cdk_triton.artifacts.cache import NO_CACHE, cache_directory
from cdk_triton.artifacts.reading import file_state, fingerprint
from cdk_triton.checks.own_rules import own_rule_files
from cdk_triton.errors import ArchiveError
from cdk_triton.triton import ModelRepository

__all__ = ["cached_answer"]

_SETTLED_NS = 2 * 10**9
_FORGOTTEN_SECONDS = 180 * 24 * 3600
_PACKAGES = ("artifacts", "checks", "sagemaker", "triton")  # whose code and tables decide an answer
_DECIDING = (".py", ".json")
_COMPILED = (".pyc",)  # written by an import
_READERS = ("onnx", "protobuf", "tritonclient")  # whose versions decide what can be read


def cached_answer(
    repositories: Sequence[ModelRepository], question: Sequence[object], answer: Callable[[], Any]
) -> Any:
    """The answer to a question about repositories, from the cache if nothing has changed.

    Args:
        repositories: the repositories that the question is about.
        question: the question, and everything else that decides the answer; values whose `repr` is complete.
        answer: finds the answer, as JSON values.
    """
    memory = _memory(repositories, question)
    if memory is None:
        return answer()
    with suppress(OSError, ValueError):  # nothing is remembered, or it is damaged
        return json.loads(memory.read_bytes())
    found = answer()
    _remember(memory, found)
    return found


def _memory(repositories: Sequence[ModelRepository], question: Sequence[object]) -> Path | None:
    """Where the answer is kept; None where that cannot be said for certain."""
    if os.environ.get(NO_CACHE) or not all(_is_known(recipe) for each in repositories for recipe in each.recipes):
        return None
    looks = [_looks((file.source for file in each.files), unchanged_since_ns=each.read_ns) for each in repositories]
    library = _library()
    if None in looks or library is None:
        return None
    about = [
        [
            sorted(repository.acknowledgements.items()),
            [[str(model.directory), *model.subdirectories] for model in repository.models],
            [str(file.path) for file in repository.files],  # a link may get another name, and lead where it led
            [repr(recipe) for recipe in repository.recipes],
        ]
        for repository in repositories
    ]
    key = repr([about, question, looks, library])
    return cache_directory() / f"checks-5/{hashlib.sha256(key.encode()).hexdigest()}.json"


def _is_known(recipe: object) -> bool:
    """Whether a recipe is a value of this library's; what a user's own class does may change with its code."""
    return is_dataclass(recipe) and type(recipe).__module__.startswith("cdk_triton.")


def _looks(files: Iterable[Path], *, unchanged_since_ns: int) -> list[tuple[str, str]] | None:
    """How each file looks; None where one may have been written to or replaced since then."""
    looks = []
    for file in files:
        try:
            state = file_state(file)
        except ArchiveError:
            return None
        if state.st_mtime_ns > unchanged_since_ns - _SETTLED_NS or state.st_ctime_ns > unchanged_since_ns:
            return None
        looks.append((str(file), fingerprint(state)))
    return looks


@cache  # a process runs one version of it, and a thousand ensembles ask
def _library() -> str | None:
    """The digest of all rules, recipes and tables, own rules included, and of the versions of what reads files."""
    package = Path(__file__).parents[1]
    walks = (walk for each in _PACKAGES for walk in os.walk(package / each))
    files = [Path(directory, name) for directory, _, names in walks for name in names if name.endswith(_DECIDING)]
    own = [file for file in own_rule_files() if file.suffix not in _COMPILED]
    looks = _looks(sorted([*files, *own], key=str), unchanged_since_ns=time.time_ns())
    versions = [("python", sys.version), *((name, version(name)) for name in _READERS)]
    return None if looks is None else hashlib.sha256(json.dumps([looks, versions]).encode()).hexdigest()


def _remember(memory: Path, answer: Any) -> None:
    """Keep the answer. It is a convenience: failing is fine."""
    with suppress(OSError):
        memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=memory.parent, delete=False, encoding="utf-8") as file:
            json.dump(answer, file)
        Path(file.name).replace(memory)
        _forget(memory.parents[1])


@cache  # there may be many, and a thousand ensembles are remembered at a time
def _forget(directory: Path) -> None:
    """Forget what has been kept for half a year, also what earlier versions kept elsewhere."""
    for old in directory.glob("checks-*/*"):
        if time.time() - old.stat().st_mtime > _FORGOTTEN_SECONDS:
            old.unlink()
