"""Generated JSON values of another author: of any type, and documents with one or more of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

__all__ = ["changed_somewhere", "odd_values"]

_PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -1, 0, 3601, math.nan, math.inf, -math.inf, 1e308, -0.5]),
    st.text(max_size=8),
    st.sampled_from(
        ["", "..", "../a", "/a", "a//b", "a/", "a\0b", "\ud800", "a\r\nb: c", "multi", "\u202e", "a" * 3000]
    ),
)

odd_values: st.SearchStrategy[Any] = st.recursive(
    _PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
"""Any value that Python's parser of JSON returns, the strange ones more often."""


@st.composite
def changed_somewhere(draw: st.DrawFn, document: Any) -> Any:
    """A document with some members replaced, removed or repeated."""
    found = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 2))):
        parent, name = draw(st.sampled_from(list(_places(found))))
        change = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if change == "replace":
            parent[name] = draw(odd_values)
        elif change == "remove":
            del parent[name]
        elif isinstance(parent, list):
            parent.append(parent[name])
        else:
            parent[draw(st.text(max_size=8))] = draw(odd_values)
        if not found:
            break
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each member of a document: its container, and its name or number there."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in members:
        yield value, name
        yield from _places(inner)
