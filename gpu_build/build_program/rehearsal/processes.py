"""Whatever a server has started is a descendant of this process, and is ended with it.

A process that leaves the server's group becomes a child of the nearest ancestor that adopts orphans, instead of process
1 (`PR_SET_CHILD_SUBREAPER` in prctl(2)), so it is found.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Collection, Iterator

__all__ = ["adopting", "children", "descendants", "end_all"]

_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_PAUSE_SECONDS = 0.01
_MOST_SECONDS = 10.0


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """While this lasts, descendants whose parent ends become children of this process."""
    library = ctypes.CDLL(None)
    library.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        library.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def children() -> set[int]:
    """The children of this process, the ended ones among them."""
    return {process for process, parent in _parents().items() if parent == os.getpid()}


def descendants(without: Collection[int]) -> set[int]:
    """The descendants of this process, except some of its children and their descendants."""
    parents = _parents()
    found: set[int] = set()
    level = {process for process, parent in parents.items() if parent == os.getpid()} - set(without)
    while level:
        found |= level
        level = {process for process, parent in parents.items() if parent in level} - found
    return found


def end_all(without: Collection[int]) -> list[str]:
    """End the descendants of this process, except some of its children and their descendants.

    Returns:
        The names of those that were still running.
    """
    names = []
    patience = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < patience:
        found = descendants(without)
        for process in found:
            names += _killed(process)
        for process in children() - set(without):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        if not found:
            break
        time.sleep(_PAUSE_SECONDS)  # what they had started becomes a child of this process
    return sorted(set(names))


def _killed(process: int) -> list[str]:
    try:
        name = Path(f"/proc/{process}/comm").read_text(encoding="utf-8", errors="replace").strip()
        is_running = _fields(process)[0] != "Z"
        os.kill(process, signal.SIGKILL)
    except OSError:
        return []
    return [name] if is_running else []


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):
                found[int(each.name)] = int(_fields(int(each.name))[1])
    return found


def _fields(process: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, … (proc(5))."""
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
