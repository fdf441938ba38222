"""The output of every benchmark: one JSON object per line and figure.

::

    {"figure": "archive.speed", "value": 19.4, "unit": "times tar -czf", "required": ">= 15", "holds": true}

A benchmark is a module of this directory whose name has no leading underscore. It measures what it compares in one run,
calls `report` for each figure, and writes everything else to standard error. `python benchmarks/run.py` runs them all;
one alone is `python benchmarks/archive.py`.
"""

from __future__ import annotations

import json
import sys

__all__ = ["progress", "report"]


def report(
    figure: str, value: float, unit: str, *, at_least: float | None = None, at_most: float | None = None
) -> bool:
    """Print a figure and say whether it holds.

    Args:
        figure: `<benchmark>.<what>`.
        value: what was measured, rounded here to four significant digits; the unrounded value is compared.
        unit: of the value.
        at_least: the value that has to be reached; give this or `at_most`.
        at_most: the value that must not be passed.
    """
    if at_least is not None:
        required, holds = f">= {at_least:g}", value >= at_least
    elif at_most is not None:
        required, holds = f"<= {at_most:g}", value <= at_most
    else:
        raise TypeError("a figure needs at_least or at_most")
    line = {"figure": figure, "value": float(f"{value:.4g}"), "unit": unit, "required": required, "holds": holds}
    print(json.dumps(line), flush=True)
    return holds


def progress(text: str) -> None:
    """Tell a waiting person what is being measured."""
    print(text, file=sys.stderr, flush=True)
