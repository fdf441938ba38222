"""Replaces the packages of Python models by their builds for this machine, where `cdk-triton vendor` has put some."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from cdk_triton.python_models.installed import OWN_PYTHON, installed_packages

__all__ = ["use_own_builds"]


def use_own_builds(repository: Path, log: Callable[[str], None]) -> None:
    """Copy the same versions for this machine over packages for another Python or processor.

    A model finds its packages where it looks for them, in whatever order it has put its paths.

    Args:
        repository: the unpacked model data.
        log: gets a line per package.
    """
    for package in list(installed_packages(repository)):
        if not package.runs_here and package.own_build.is_dir():
            shutil.copytree(package.own_build, package.directory, dirs_exist_ok=True)
            place = package.directory.relative_to(repository)
            log(f"{place}: {package.name} {package.version} is the build for Python {OWN_PYTHON} of this machine")
