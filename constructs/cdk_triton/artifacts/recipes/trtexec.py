"""The options of trtexec by version of TensorRT, and the versions of TensorRT that a release of Triton may have.

The table is `data/trtexec_flags.json`. `tools/generate/trtexec_flags.py` writes it from NVIDIA's sources at their tags.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from cdk_triton.triton.releases import release, tensorrt_bounds

__all__ = ["major_version", "newest_with", "oldest_with", "possible_versions", "trtexec_has_option", "trtexec_versions"]

Version = tuple[int, ...]


@cache
def trtexec_versions() -> tuple[Version, ...]:
    """The versions of TensorRT whose trtexec is in the table, oldest first."""
    return tuple(_numbers(name) for name in _table()["releases"])


def trtexec_has_option(option: str, version: Version) -> bool:
    """Whether a trtexec has an option.

    Args:
        option: the option's name, such as `--fp16`. For a value that not every version takes, the name with the value,
            such as `--hardwareCompatibilityLevel=sameComputeCapability`.
        version: a version of the table.
    """
    return any(_numbers(first) <= version <= _numbers(last) for first, last in _version_ranges(option))


def oldest_with(option: str) -> str:
    """The oldest version of the table that has an option; one must have it."""
    return _version_ranges(option)[0][0]


def newest_with(option: str) -> str:
    """The newest version of the table that has an option; one must have it."""
    return _version_ranges(option)[-1][1]


def major_version(name: str) -> int:
    """The major version of TensorRT in a release of Triton; the build fails if the image has another."""
    return int(release(name).tensorrt.partition(".")[0])


@cache
def possible_versions(name: str) -> tuple[Version, ...]:
    """The versions of the table that a release of Triton may have.

    It is one version if the release's TensorRT was read, and several if it was only recalled. An unread version must
    not cause an error.

    Args:
        name: a release in the table of releases.
    """
    versions = trtexec_versions()
    oldest, newest = tensorrt_bounds(name)
    first = versions[0] if oldest is None else _row_of(oldest)
    last = versions[-1] if newest is None else _row_of(newest)
    return tuple(version for version in versions if first <= version <= last)


def _row_of(version: Version) -> Version:
    """A patch between two versions of the table has the options of the older one."""
    older = [each for each in trtexec_versions() if each <= version]
    return older[-1] if older else trtexec_versions()[0]


def _version_ranges(option: str) -> list[list[str]]:
    """The ranges of an option, or of its value if the table lists values separately."""
    flags: dict[str, list[list[str]]] = _table()["flags"]
    name, equals, value = option.partition("=")
    return flags.get(f"{name}{equals}{value.lower()}", flags.get(name, []))


def _numbers(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))


@cache
def _table() -> dict[str, Any]:
    text = files(__package__).joinpath("data", "trtexec_flags.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
