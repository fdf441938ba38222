"""The result of a check of a model repository: findings, and what was not read. Values, never exceptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as _not_compared
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Finding", "NotRead", "Severity", "joined", "paths_not_read", "printable"]


class Severity(StrEnum):
    """How bad a finding is. `str` returns the text that the CLI prints: `error` or `warning`."""

    ERROR = "error"
    """The server or SageMaker would reject the repository, or serve something other than intended."""
    WARNING = "warning"
    """The repository may work, but probably not as intended."""


@dataclass(frozen=True, order=True)
class Finding:
    """One fault of a model repository.

    Attributes:
        code: the stable code of the rule, for example `CT301`; never reused.
        severity: error or warning.
        path: the file or directory, relative to the repository, with `/`; `.` is the repository itself.
        field: the field of the file, for example `ensemble_scheduling.step[1].input_map`, or "" for the whole file.
        message: what was found, with its value, and the effect in production, in the server's own words.
        fix: what to do.
        line: the line of the file, counted from 1, if the rule found it and `field` does not determine it. Comparisons
            of findings ignore it.
    """

    code: str
    severity: Severity
    path: str
    field: str
    message: str
    fix: str
    line: int | None = _not_compared(default=None, compare=False)

    def __str__(self) -> str:
        """The finding as one line."""
        where = f"{self.path} {self.field}".rstrip()
        return f"{where}: {self.severity} {self.code}: {joined(self.message, self.fix)}"


def joined(message: str, fix: str) -> str:
    """The message and the fix as one sentence; the message may end with the server's full stop, which is dropped."""
    ends = message.endswith(".") and not message.endswith("..")
    return f"{message[:-1] if ends else message}; {fix}"


def printable(text: str) -> str:
    """The text of a finding without control characters, so that terminals and CI logs show it without executing it.

    Findings quote names of a repository, and the author of a pull request chooses them. Control characters are written
    as escapes, and so are the commands of GitHub Actions: `::` at the beginning of a line, `##[` anywhere.
    """
    if not text.isprintable():
        text = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    if text.lstrip().startswith("::"):
        text = text.replace(":", "\\x3a", 1)
    return text.replace("##[", "#\\x23[")


class NotRead(NamedTuple):
    """A part of a repository that the server would load, but that no rule looked into.

    Attributes:
        path: the file or directory, relative to the repository, with `/`.
        model: the name of the model that it belongs to.
        reason: why the checks did not read it, as a clause; the same for all parts of one kind.
    """

    path: str
    model: str
    reason: str


def paths_not_read(parts: Iterable[NotRead]) -> Mapping[str, list[str]]:
    """Their paths by reason, for one line or sentence for each kind."""
    paths: dict[str, list[str]] = {}
    for each in parts:
        paths.setdefault(each.reason, []).append(each.path)
    return paths
