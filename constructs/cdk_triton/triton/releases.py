"""The contents of each Triton container release.

The table is `data/releases.json`. The file contains its sources, its date and the meaning of each field.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError

__all__ = [
    "Release",
    "backends_in",
    "is_at_least",
    "release",
    "release_order",
    "releases",
    "tensorrt_bounds",
]

_NAME = re.compile(r"([0-9]{2})\.([0-9]{2})")
_MONTHS = 12


@dataclass(frozen=True)
class Release:
    """One Triton container release. `None` stands for a version that was not found.

    A release newer than the table has the versions of the table's newest row, and `assumed` lists the copied versions.
    The `triton`, `cuda`, `cuda_driver` and `dali` of such a release are `None`.

    Attributes:
        release: the name of the release, `25.09`.
        triton: version of the server.
        sagemaker_image: whether AWS published a `sagemaker-tritonserver` image of it.
        python: version of the Python that the Python backend runs, `3.12`.
        cuda: version of the CUDA toolkit.
        cuda_read: whether the CUDA version was read in NVIDIA's pages rather than recalled.
        cuda_driver: version of the driver that came with the CUDA toolkit.
        minimum_driver: version of the oldest driver that CUDA's minor-version compatibility allows.
        tensorrt: version of TensorRT; `11.x` if only the major version is known.
        tensorrt_confidence: `high` if the version was read for this release, `medium` if it was derived from a related
            image, `unverified` otherwise. No check rejects anything because of an `unverified` version.
        tensorrt_source: where the TensorRT version comes from.
        onnxruntime: version of ONNX Runtime.
        dali: version of DALI.
        min_compute_capability: the lowest compute capability of a GPU that the release supports, such as `7.5`.
        assumed: the fields whose version was not read; each has the version of the previous release.
    """

    release: str
    triton: str | None
    sagemaker_image: bool
    python: str
    cuda: str | None
    cuda_read: bool
    cuda_driver: str | None
    minimum_driver: str
    tensorrt: str
    tensorrt_confidence: Literal["high", "medium", "unverified"]
    tensorrt_source: str
    onnxruntime: str
    dali: str | None
    min_compute_capability: str | None
    assumed: tuple[str, ...]

    @property
    def order(self) -> tuple[int, int]:
        """Year and month, for comparing releases."""
        return release_order(self.release)


@cache
def release_order(name: str) -> tuple[int, int]:
    """Year and month of a release, known or not, for comparing: `25.09` → (25, 9).

    Raises:
        ConfigurationError: the name is not two digits, a dot and two digits.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigurationError(f"{quoted(name)} is not a Triton release; write year and month, for example '25.09'")
    return int(match[1]), int(match[2])


def is_at_least(name: str, other: str) -> bool:
    """Whether a release, known or not, is another one or newer.

    Raises:
        ConfigurationError: a name is not two digits, a dot and two digits.
    """
    return release_order(name) >= release_order(other)


@cache
def releases() -> tuple[Release, ...]:
    """Every known release, oldest first."""
    names = [field.name for field in fields(Release)]
    return tuple(
        Release(**{name: row[name] for name in names} | {"assumed": tuple(row["assumed"])})
        for row in _table()["releases"]
    )


@cache
def backends_in(name: str | None) -> frozenset[str]:
    """The backends in the image of a release, known or not; for None, those that any release had.

    Raises:
        ConfigurationError: the name is not two digits, a dot and two digits.
    """
    since: dict[str, list[str]] = _table()["backends"]["since"]  # oldest first
    if name is None:
        return frozenset(backend for names in since.values() for backend in names)
    return frozenset(next((names for first, names in reversed(since.items()) if is_at_least(name, first)), ()))


@cache
def release(name: str) -> Release:
    """The release of that name.

    A release newer than the table gets the versions of the table's newest row, and `assumed` lists the copied versions.
    The `triton`, `cuda`, `cuda_driver` and `dali` of such a release are `None`.

    NVIDIA publishes a release each month, which only a new version of this library adds to the table.

    Raises:
        ConfigurationError: the release is not in the table, and is not newer than the table. The message lists the
            known releases.
    """
    found = next((row for row in releases() if row.release == name), None)
    if found is None and _is_newer(name):
        # The host's driver and a plan depend on CUDA, TensorRT and DALI: these stay open instead of assumed.
        return replace(
            releases()[-1],
            release=name,
            triton=None,
            cuda=None,
            cuda_read=False,
            cuda_driver=None,
            dali=None,
            tensorrt_confidence="unverified",
            tensorrt_source=f"that of {releases()[-1].release}, the newest known",
            assumed=("python", "onnxruntime", "tensorrt", "min_compute_capability"),
        )
    if found is None:
        known = ", ".join(row.release for row in releases())
        raise ConfigurationError(f"the Triton release {quoted(name)} is not known; choose one of {known}")
    return found


def _is_newer(name: str) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and 1 <= int(match[2]) <= _MONTHS and release_order(name) > releases()[-1].order


@cache
def tensorrt_bounds(name: str) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """The oldest and the newest TensorRT that a release can have, from the rows whose version was read.

    Versions never go back from one release to the next, so the neighbours of an `unverified` row bound it.

    Args:
        name: a release, known or not.

    Returns:
        Both versions as numbers. They are equal if the version of this release was read. None stands for a bound that
        no release gives.

    Raises:
        ConfigurationError: the name is not two digits, a dot and two digits.
    """
    order = release_order(name)
    read = [(row.order, row.tensorrt) for row in releases() if row.tensorrt_confidence != "unverified"]
    older = [version for at, version in read if at <= order]
    newer = [version for at, version in read if at >= order]
    return (_numbers(older[-1]) if older else None), (_numbers(newer[0]) if newer else None)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("data", "releases.json").read_text(encoding="utf-8"))
    return table


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
