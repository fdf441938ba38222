"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Answer", "State"]


class State(StrEnum):
    """The result of a check, as a mark in front of its answer."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of one check.

    Attributes:
        subject: what was looked at, in one to three words.
        state: an error if a deployment would fail, a warning if some deployments fail, unknown if the check was not
            possible.
        found: what the check found.
        fix: what to do about it, in one sentence; empty only if there is nothing to do.
    """

    subject: str
    state: State
    found: str
    fix: str = ""
