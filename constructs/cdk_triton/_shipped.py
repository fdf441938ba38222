"""The programs that the library ships to where they run: `lambda/` and `gpu_build/` of a checkout."""

from __future__ import annotations

from pathlib import Path

__all__ = ["shipped_directory"]


def shipped_directory(name: str) -> Path:
    """The directory of a program: within the package in a wheel, beside `constructs/` in a checkout."""
    package = Path(__file__).parent
    installed = package / f"_{name}"
    return installed if installed.is_dir() else package.parents[1] / name
