"""Chooses the versions of a model that the server loads: VersionsToLoad of core's model_lifecycle.cc, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelConfig

__all__ = ["LARGEST_VERSION", "directory_version", "is_version_name", "served_versions"]

LARGEST_VERSION = 2**63 - 1

_CANONICAL = re.compile(r"0|[1-9][0-9]*")
_STOLL = re.compile(r"\s*([+-]?[0-9]+)", re.ASCII)


def is_version_name(name: str) -> bool:
    """Whether a directory of this name is intended as a version: a decimal number without leading zeros."""
    return _CANONICAL.fullmatch(name) is not None and int(name) <= LARGEST_VERSION


def directory_version(name: str) -> int | None:
    """The version as which the server reads a directory, or None if it ignores the directory.

    The server reads a number from the *beginning* of the name: `2_old` is version 2.
    """
    if len(name) > 1 and name.startswith("0"):
        return None
    match = _STOLL.match(name)
    return None if match is None else int(match[1])


def served_versions(subdirectories: Iterable[str], config: ModelConfig | None) -> tuple[int, ...]:
    """The versions that the version policy selects from the directories, in ascending order; by default the latest."""
    existing = {version for name in subdirectories if (version := directory_version(name)) is not None}
    if config is None or not config.HasField("version_policy"):
        return tuple(sorted(existing)[-1:])
    policy = config.version_policy
    choice = policy.WhichOneof("policy_choice")
    if choice == "specific":
        return tuple(sorted(existing & set(policy.specific.versions)))
    if choice == "latest":
        return tuple(sorted(sorted(existing, reverse=True)[: policy.latest.num_versions]))
    return tuple(sorted(existing))
