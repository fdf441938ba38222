"""The index of a multi-model endpoint: the current and previous target models of its stack.

The store's handler writes it, and the command reads it, for example to find the archives in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .documents import Document

__all__ = ["Index"]


@dataclass(frozen=True)
class Index(Document):
    """An index.

    Attributes:
        fleet: the name of the `TritonMultiModel`.
        current: ensemble to target model, as the stack's last deployment has them.
        previous: the same for the previous deployment.
        has_catalogue: whether the catalogue lists further target models.
    """

    fleet: str
    current: Mapping[str, str] = field(default_factory=dict)
    previous: Mapping[str, str] = field(default_factory=dict)
    has_catalogue: bool = False
