"""What the checks found, remembered between runs.

`cdk ls`, `diff` and `destroy` run the app, and the checks look into models of many gigabytes. What they said of a
repository is therefore kept in the user's cache directory and said again while every file of the repository, every
file of the library's rules and everything else that the checks were told is the same. Files are compared by size, times
and inode, as digests are, and for the same reason only files that have been left alone for 2 s are trusted.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile

import cdk_triton.triton
from cdk_triton.artifacts.cache import cache_directory
from cdk_triton.artifacts.reading import file_state, fingerprint
from cdk_triton.errors import ArchiveError
from cdk_triton.triton import ContainerEnvironment, Finding, Mode, ModelRepository, Platform, Severity

__all__ = ["check"]

_SETTLED_NS = 2 * 10**9
_FORGOTTEN_SECONDS = 180 * 24 * 3600
_READERS = ("onnx", "protobuf", "tritonclient")  # whose versions decide what the checks can read


def check(
    repository: ModelRepository, mode: Mode, platform: Platform, environment: ContainerEnvironment
) -> tuple[Finding, ...]:
    """`ModelRepository.check`, from memory if nothing has changed."""
    memory = _memory(repository, (mode, platform, environment))
    findings = None if memory is None else _recall(memory)
    if findings is None:
        single = mode == "single"
        findings = repository.check(
            mode,
            platform,
            default_model=environment.default_model_name if single else None,
            additional_models=environment.additional_models if single else (),
            environment=environment,
        )
        if memory is not None:
            _remember(memory, findings)
    return findings


def _memory(repository: ModelRepository, told: tuple[object, ...]) -> Path | None:
    """Where the findings are kept; None where that cannot be said for certain."""
    if repository.recipes:  # which are no values: two that look alike may differ
        return None
    latest_ns = time.time_ns() - _SETTLED_NS
    looks = []
    for file in (*(file.source for file in repository.files), *_rules()):
        try:
            state = file_state(file)
        except ArchiveError:
            return None
        if state.st_mtime_ns > latest_ns:
            return None
        looks.append([str(file), fingerprint(state)])
    directories = [[str(model.directory), *model.subdirectories] for model in repository.models]
    acknowledged = sorted(repository.acknowledgements.items())
    versions = [sys.version, *(version(name) for name in _READERS)]
    key = json.dumps([str(repository.root.resolve()), repr(told), acknowledged, directories, looks, versions])
    return cache_directory() / "checks-1" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def _rules() -> Iterable[Path]:
    """The files that the rules and their tables are written in."""
    (root,) = cdk_triton.triton.__path__
    return sorted(path for path in Path(root).rglob("*") if path.suffix in (".py", ".json"))


def _recall(memory: Path) -> tuple[Finding, ...] | None:
    """What was remembered; None where that is nothing, or damaged."""
    try:
        rows = json.loads(memory.read_bytes())
        return tuple(Finding(**{**row, "severity": Severity(row["severity"])}) for row in rows)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _remember(memory: Path, findings: tuple[Finding, ...]) -> None:
    """Keep the findings, and forget what nobody has asked for in half a year. It is a convenience: failing is fine."""
    rows = [{name: getattr(finding, name) for name in Finding.__match_args__} for finding in findings]
    try:
        memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=memory.parent, delete=False, encoding="utf-8") as file:
            json.dump(rows, file)
        Path(file.name).replace(memory)
        for old in memory.parent.iterdir():
            if time.time() - old.stat().st_mtime > _FORGOTTEN_SECONDS:
                old.unlink()
    except OSError:
        return
