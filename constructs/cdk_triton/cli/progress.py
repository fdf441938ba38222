"""Progress of long work, on a terminal only: a file, a pipe and a CI log get none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Progress", "working"]


class Progress:
    """What `working` yields: `say` replaces the text."""

    def say(self, text: str) -> None:
        """Show a text instead of the last one."""


class _Shown(Progress):
    def __init__(self, status: object) -> None:
        self._status = status

    def say(self, text: str) -> None:
        self._status.update(text)  # type: ignore[attr-defined]  # rich's Status, which is imported on a terminal only


@contextmanager
def working(text: str) -> Iterator[Progress]:
    """Show a text with a mark that moves on stderr, until the work ends."""
    if not sys.stderr.isatty():
        yield Progress()
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)) as status:
        yield _Shown(status)
