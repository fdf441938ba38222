"""Reads JSON that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["parse_json"]

MAX_DEPTH = 50
"""How deeply values are nested at most. `json` gives up at 1,000 levels when it reads, and sooner when it writes."""


def parse_json(text: bytes) -> Any:
    """A document.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        document = json.loads(text)
    except RecursionError:
        is_deep = True
    else:
        is_deep = _is_deep(document, MAX_DEPTH)
    if is_deep:
        raise ValueError(f"it has more than {MAX_DEPTH} levels of nesting")
    return document


def _is_deep(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_is_deep(each, levels - 1) for each in inner)
