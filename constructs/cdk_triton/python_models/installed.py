"""Packages that are installed beside Python models, and the builds of them that run on this machine."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdk_triton._file_cache import cache_directory

__all__ = ["OWN_PYTHON", "PROCESSORS", "InstalledPackage", "installed_packages"]

OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The Python that runs this code, and the Python models of the local AWS."""

PROCESSORS: Final = {"x86_64": "x86_64", "arm64": "aarch64"}
"""The processor of an instance (`GpuInstance.host`) as wheels and compiled modules for Linux name it."""

_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)\.dist-info")


@dataclass(frozen=True)
class InstalledPackage:
    """A package that pip or uv has installed.

    Attributes:
        name: its name, as in the name of its `*.dist-info`.
        version: its version, `2.5.1+cpu`.
        directory: the directory into which it is installed.
    """

    name: str
    version: str
    directory: Path

    @property
    def information(self) -> Path:
        """The directory that records what is installed."""
        return self.directory / f"{self.name}-{self.version}.dist-info"

    @property
    def runs_here(self) -> bool:
        """Whether its wheel is also for the Python and the processor of this machine.

        https://packaging.python.org/en/latest/specifications/binary-distribution-format/, `Tag` of the file WHEEL.
        """
        lines = (self.information / "WHEEL").read_text(encoding="utf-8", errors="replace").splitlines()
        tags = [line.partition(":")[2].strip().split("-") for line in lines if line.startswith("Tag:")]
        return any(len(tag) == 3 and _is_for_this_machine(*tag) for tag in tags)

    @property
    def own_build(self) -> Path:
        """The directory with the same version for this machine, if `cdk-triton vendor` has installed it.

        It is in the user's cache, so that no archive contains it.
        """
        machine = f"cp{sys.version_info.major}{sys.version_info.minor}-{platform.machine()}"
        return cache_directory() / "packages" / machine / f"{self.name}-{self.version}"


def installed_packages(directory: Path) -> Iterator[InstalledPackage]:
    """The packages in a directory, and in the directories below it."""
    for wheel in sorted(directory.rglob("*.dist-info/WHEEL")):
        if (found := _INFO.fullmatch(wheel.parent.name)) is not None:
            yield InstalledPackage(found["name"], found["version"], wheel.parent.parent)


def _is_for_this_machine(python: str, interface: str, system: str) -> bool:
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    is_stable = interface == "abi3" and int(python.removeprefix("cp3") or 0) <= sys.version_info.minor
    return (python == own or python.startswith("py") or is_stable) and (
        system == "any" or system.endswith(f"_{platform.machine()}")
    )
