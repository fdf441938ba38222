"""Extras of the distribution: a command that needs one names the packages that are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_triton.errors import CdkTritonError, ConfigurationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MissingExtraError", "require_extra", "require_plots", "save_plot"]


class MissingExtraError(CdkTritonError):
    """The installation does not contain the packages of an extra. No argument of the command is wrong."""


def require_extra(extra: str, what: str, *, only: Sequence[str] | None = None) -> None:
    """Reject a missing extra at once, before an import of one of its packages fails somewhere inside.

    Args:
        extra: the name of the extra.
        what: what needs the extra, such as a command.
        only: the packages of the extra that are needed; by default all packages.

    Raises:
        MissingExtraError: a package is missing.
    """
    marker = re.compile(rf"extra == ['\"]{extra}['\"]")
    wanted = [requirement for requirement in metadata.requires("cdk-triton") or [] if marker.search(requirement)]
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in wanted}
    missing = sorted(name for name in names if not _is_installed(name) and (only is None or name in only))
    if missing:
        raise MissingExtraError(
            f"{what} needs {', '.join(missing)}, which a plain installation does not contain: "
            f"pip install 'cdk-triton[{extra}]'"
        )


def require_plots(file: Path) -> None:
    """Reject a plot that could not be written after the work.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ConfigurationError: the file is a directory, or the directory of the file does not exist.
    """
    require_extra("plots", "--plot", only=("matplotlib",))
    if file.is_dir():
        raise ConfigurationError(f"--plot is {file}, which is a directory: give a file, such as {file / 'plot.svg'}")
    if not file.parent.is_dir():
        raise ConfigurationError(f"--plot is {file}, but {file.parent} does not exist: create this directory first")


def save_plot(figure: Figure, file: Path) -> None:
    """Write a picture as SVG; the file is replaced at once or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    partial = file.with_name(f".{file.name}.partial")
    try:
        figure.savefig(partial, format="svg", metadata={"Date": None})
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _is_installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
