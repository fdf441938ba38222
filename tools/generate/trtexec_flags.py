"""The table of trtexec's options, from a clone of NVIDIA/TensorRT: SOURCES/TensorRT.

trtexec reads its options in samples/common/sampleOptions.cpp. This reads that file at the tag of every release and
records for each option which releases have it. The table is checked by its hash where there is no clone.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from tools.generate import Files, GenerateError, Generator
from tools.generate._tables import canonical, checked_files, content_sha256, existing

SOURCE = "samples/common/sampleOptions.cpp"
TABLE = "constructs/cdk_triton/artifacts/recipes/data/trtexec_flags.json"
# The first releases of the table are older than any that a recipe builds with, so that "since" means something.
OLDEST = (8, 4)
ABOUT = (
    "The command-line options of trtexec: option -> the releases that have it, as runs of [first, last]. An option "
    "with a value, such as --a=b, tells which releases take that value, in lower case."
)
VALUES = {"--hardwareCompatibilityLevel": ("ampere+", "samecomputecapability")}
# Classes in the same file that read the options of other programs or of task files.
FOREIGN = re.compile(r"^void (?:SafeBuilderOptions|TaskInferenceOptions)::parse\(.*?^}", re.MULTILINE | re.DOTALL)


def table_of(clone: Path, committed: Mapping[str, Any]) -> dict[str, Any]:
    """Read every tag of a clone.

    Args:
        clone: the repository NVIDIA/TensorRT with its tags.
        committed: the table as it is. Its date is kept if the clone has the same input.

    Raises:
        GenerateError: the folder is not such a clone.
    """
    tags = {version: tag for tag in _git(clone, "tag").split() if (version := _version(tag)) and version >= OLDEST}
    versions = sorted(version for version in tags if version[0] != 9)  # 9.x is for other machines than servers
    if not versions:
        raise GenerateError(
            f"{clone} has no tags of TensorRT's releases: clone NVIDIA/TensorRT with all tags into this folder"
        )
    sources = {version: _git(clone, "show", f"{tags[version]}:{SOURCE}") for version in versions}
    known = {version: _options(source) for version, source in sources.items()}
    read = hashlib.sha256(
        "".join(f"{_name(version)}\0{sources[version]}\0" for version in versions).encode()
    ).hexdigest()
    data = {
        "releases": [_name(version) for version in versions],
        "flags": {name: _ranges(name, versions, known) for name in sorted(set().union(*known.values()))},
    }
    is_same = committed.get("input_sha256") == read
    return {
        "about": ABOUT,
        "retrieved": committed["retrieved"] if is_same else datetime.now(UTC).date().isoformat(),
        "sources": [f"https://github.com/NVIDIA/TensorRT, {SOURCE} at the tags of these releases"],
        "generator": "tools/generate/trtexec_flags.py",
        "input_sha256": read,
        "content_sha256": content_sha256(data),
        **data,
    }


def _git(clone: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *command], capture_output=True, text=True)  # noqa: S607
    if done.returncode != 0:
        raise GenerateError(f"{clone} cannot be read: {done.stderr.strip()}")
    return done.stdout


def _version(tag: str) -> tuple[int, ...] | None:
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.(\d+))?", tag)
    if match is None or int(match[1]) >= 19:  # tags such as 21.03 are of containers
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _options(source: str) -> set[str]:
    source = FOREIGN.sub("", source)
    found = set(re.findall(r'"(--[A-Za-z0-9]+)"', source))
    for option, values in VALUES.items():
        found |= {f"{option}={value}" for value in values if f'== "{value}"' in source}
    return found


def _ranges(name: str, versions: list[tuple[int, ...]], known: dict[tuple[int, ...], set[str]]) -> list[list[str]]:
    """The runs of releases that have an option, each by its first and its last one."""
    runs: list[list[str]] = []
    is_run = False
    for version in versions:
        if name not in known[version]:
            is_run = False
        elif is_run:
            runs[-1][1] = _name(version)
        else:
            runs.append([_name(version)] * 2)
            is_run = True
    return runs


def _name(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _from_clone(clone: Path) -> Files:
    return {TABLE: canonical(table_of(clone, existing(TABLE)))}


GENERATOR = Generator(partial(checked_files, TABLE), source="TensorRT", from_source=_from_clone)
