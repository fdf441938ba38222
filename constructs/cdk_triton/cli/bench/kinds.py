"""The kinds of load, for the options of the command: nothing here imports numpy."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Arrivals"]


class Arrivals(StrEnum):
    """The distances between requests."""

    POISSON = "poisson"
    CONSTANT = "constant"
