"""A case of Triton's QA configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Case", "tensor"]


class Case(NamedTuple):
    """A repository, and what the server says of it; "" where it loads."""

    files: Mapping[str, str]
    words: str


def tensor(side: str, name: str, dims: str, more: str = "", kind: str = "FP32") -> str:
    return f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: [ {dims} ] {more} }} '
