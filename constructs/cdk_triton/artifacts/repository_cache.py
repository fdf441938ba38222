"""Caches answers to questions about repositories between runs of the app, in the cache of file states.

An answer is reused until something that it depends on changes: the files of the repositories, golden files included,
the files of this library's rules and recipes, or the rest of the question.
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
from typing import Any

from cdk_triton._file_cache import FileCache, fingerprint, is_settled
from cdk_triton.artifacts.reading import file_state
from cdk_triton.checks.own_rules import own_rule_files
from cdk_triton.errors import ArchiveError
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.rehearsal import golden_files

__all__ = ["cached_answer", "library_state"]

_KIND = "answer"
# Whose code and tables decide nothing about a repository.
_OTHER_PACKAGES = ("cli", "hosting", "__pycache__")
_DECIDING = (".py", ".json")
_COMPILED = (".pyc",)  # written by an import
_READERS = ("onnx", "protobuf", "tritonclient")  # whose versions decide what can be read


def cached_answer(
    repositories: Sequence[ModelRepository],
    question: Sequence[object],
    answer: Callable[[], Any],
) -> Any:
    """The answer to a question about repositories, from the cache if nothing has changed.

    Args:
        repositories: the repositories that the question is about.
        question: the question, and everything else that the answer depends on; values whose `repr` is complete.
        answer: finds the answer, as JSON values.
    """
    state = _state(repositories)
    if state is None:
        return answer()
    name = _cache_name(repositories, question)
    with FileCache() as cache:
        recalled = cache.recall(_KIND, name, state)
    if recalled is not None:
        with suppress(ValueError):  # it is damaged
            return json.loads(recalled)
    found = answer()
    with FileCache() as cache:
        cache.keep(_KIND, name, state, json.dumps(found))
    return found


def _state(repositories: Sequence[ModelRepository]) -> str | None:
    """None if a file that the answer depends on is not settled."""
    if not all(_is_known(recipe) for each in repositories for recipe in each.recipes):
        return None
    states = [_states(_files(each), read_ns=each.read_ns) for each in repositories]
    library = library_state()
    if None in states or library is None:
        return None
    return hashlib.sha256(repr([states, library]).encode()).hexdigest()


def _files(repository: ModelRepository) -> list[Path]:
    return [file.source for file in repository.files] + golden_files(repository.rehearsal, repository.root)


def _cache_name(repositories: Sequence[ModelRepository], question: Sequence[object]) -> bytes:
    about = [
        [
            str(repository.root),
            sorted(repository.acknowledgements.items()),
            [[str(model.directory), *model.subdirectories] for model in repository.models],
            [str(file.path) for file in repository.files],  # a link may get another name, and lead where it led
            [repr(recipe) for recipe in repository.recipes],
            repository.image_modules,
            repository.rehearsal,
        ]
        for repository in repositories
    ]
    return hashlib.sha256(repr([about, question]).encode()).digest()


def _is_known(recipe: object) -> bool:
    """A user's own class may behave otherwise after a change of its code."""
    return is_dataclass(recipe) and type(recipe).__module__.startswith("cdk_triton.")


def _states(files: Iterable[Path], *, read_ns: int) -> list[tuple[str, str]] | None:
    """None if one of the files is not settled."""
    states = []
    for file in files:
        try:
            state = file_state(file)
        except ArchiveError:
            return None
        if not is_settled(state, read_ns):
            return None
        states.append((str(file), fingerprint(state)))
    return states


@cache  # a process runs one version of it, and a thousand ensembles ask
def library_state() -> str | None:
    """The digest of all rules, recipes and tables, own rules included, and of the versions of what reads files.

    Returns:
        None while one of these files may be changing.
    """
    package = Path(__file__).parents[1]
    files: list[Path] = []
    for directory, below, names in os.walk(package):
        below[:] = [each for each in below if each not in _OTHER_PACKAGES]
        files += [Path(directory, name) for name in names if name.endswith(_DECIDING)]
    own = [file for file in own_rule_files() if file.suffix not in _COMPILED]
    states = _states(sorted([*files, *own], key=str), read_ns=time.time_ns())
    versions = [("python", sys.version), *((name, version(name)) for name in _READERS)]
    return None if states is None else hashlib.sha256(json.dumps([states, versions]).encode()).hexdigest()
