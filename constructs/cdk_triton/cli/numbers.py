"""Numbers among the options of the commands."""

from __future__ import annotations

import math

import typer

__all__ = ["finite"]


def finite(value: float | None) -> float | None:
    """Reject `inf` and `nan`, which Python reads as numbers.

    Raises:
        typer.BadParameter: it is one of them.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value
