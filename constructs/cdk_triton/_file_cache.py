"""Values that were computed from files, kept between runs for as long as the files stay as they are.

`cdk ls`, `diff` and `destroy` run the app, and the app needs digests and checks of files of many gigabytes. Such a
value is kept in the user's cache directory, beside the state of its files: size, times and inode. A file is read again
only when its state has changed.

Times have a grain (up to 2 s on some file systems), so a file that is written again right after it was read can have
the same state. As git does for its index, a state is trusted only if nobody wrote to the file in the 2 s before it was
read.

On some systems times and inodes are not reliable: a network file system may assign new ones, a tool may set them back.
With the environment variable CDK_TRITON_NO_CACHE, whatever its value, every file is read again and the cache refreshed.
It is a variable and not an option, because the values are computed within an app that `cdk` starts. A command can
ignore the values of earlier runs with `ignoring_values_before`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

__all__ = [
    "NO_CACHE",
    "SMALL_BYTES",
    "FileCache",
    "cache_directory",
    "fingerprint",
    "ignoring_values_before",
    "is_settled",
]

NO_CACHE: Final = "CDK_TRITON_NO_CACHE"
"""If this environment variable is set, every file is read again."""

SMALL_BYTES: Final = 1 << 14
"""A file of at most this size takes less time to read than to find in the cache."""

_TABLES = (
    "CREATE TABLE IF NOT EXISTS kept (kind TEXT, name BLOB, state TEXT, kept_ns INTEGER, value TEXT,"
    " PRIMARY KEY (kind, name))",
    "CREATE INDEX IF NOT EXISTS by_age ON kept (kept_ns)",
)
_LOCK_SECONDS = 1.0
_SETTLED_NS = 2 * 10**9
_EVICTED_NS = 180 * 24 * 3600 * 10**9

_oldest_ns: ContextVar[int] = ContextVar("_oldest_ns", default=0)


def cache_directory() -> Path:
    """Return the directory of disposable files: `cdk-triton` in the user's cache directory (XDG_CACHE_HOME)."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""), "cdk-triton")
    # The XDG specification: a path that is not absolute counts as unset.
    return configured if configured.is_absolute() else Path("~/.cache/cdk-triton").expanduser()


def fingerprint(state: os.stat_result) -> str:
    """Return all that changes when a file does, with the change time, because tools set the modification time back."""
    return f"{state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_dev} {state.st_ino}"


def is_settled(state: os.stat_result, read_ns: int) -> bool:
    """Whether content that was read at a time certainly belongs to this state of the file.

    Args:
        state: the file's state.
        read_ns: when the reading of its content began, in nanoseconds since 1970.
    """
    return state.st_mtime_ns <= read_ns - _SETTLED_NS and state.st_ctime_ns <= read_ns


@contextmanager
def ignoring_values_before(time_ns: int) -> Iterator[None]:
    """Recall only values kept since a time, so that several processes together compute each value once.

    Args:
        time_ns: nanoseconds since 1970.
    """
    token = _oldest_ns.set(time_ns)
    try:
        yield
    finally:
        _oldest_ns.reset(token)


class FileCache:
    """The values of earlier runs in one SQLite file, which several processes may use at once.

    Use it as a context manager; it opens the file when it first needs it. The cache only saves time: without a usable
    file everything is computed again. A damaged file is replaced. A file that is locked, or that cannot be opened, is
    not used.
    """

    def __init__(self) -> None:
        self._path = cache_directory() / "files-1.sqlite"
        self._new: list[tuple[str, bytes, str, int, str]] = []
        self._opened: sqlite3.Connection | None = None
        self._is_opened = False

    def __enter__(self) -> FileCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.save()
        if self._opened is not None:
            self._opened.close()

    @property
    def _database(self) -> sqlite3.Connection | None:
        if not self._is_opened:
            self._opened, self._is_opened = self._open(), True
        return self._opened

    def recall(self, kind: str, name: bytes, state: str) -> str | None:
        """Return a value if it was kept for the same state.

        Args:
            kind: who keeps the value, such as "digest".
            name: the name of the value among those of its kind.
            state: the state of the files that the value was computed from.
        """
        query = "SELECT value FROM kept WHERE kind = ? AND name = ? AND state = ? AND kept_ns >= ?"
        row = self._first(query, (kind, name, state, _oldest_ns.get()))
        return None if row is None else str(row[0])

    def has(self, kind: str, name: bytes) -> bool:
        """Whether a value is kept, for whatever state; the arguments are those of `recall`."""
        return self._first("SELECT 1 FROM kept WHERE kind = ? AND name = ?", (kind, name)) is not None

    def _first(self, query: str, values: tuple[object, ...]) -> tuple[object, ...] | None:
        if os.environ.get(NO_CACHE) or self._database is None:
            return None
        try:
            row: tuple[object, ...] | None = self._database.execute(query, values).fetchone()
        except sqlite3.Error as error:
            self._recover(error)
            return None
        return row

    def keep(self, kind: str, name: bytes, state: str, value: str) -> None:
        """Keep a value in place of one for another state; `save` writes it."""
        self._new.append((kind, name, state, time.time_ns(), value))

    def save(self) -> None:
        """Write the new values now, so that an interruption does not lose them, and evict the old ones."""
        rows, self._new = self._new, []
        if not rows or self._database is None:
            return
        try:
            with self._database:  # one transaction
                self._database.executemany("REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", rows)
                self._database.execute("DELETE FROM kept WHERE kept_ns < ?", (time.time_ns() - _EVICTED_NS,))
        except sqlite3.Error as error:
            self._recover(error)

    def _open(self, *, replace_damaged: bool = True) -> sqlite3.Connection | None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            database = sqlite3.connect(self._path, timeout=_LOCK_SECONDS)
        except (OSError, sqlite3.Error):
            return None
        try:
            database.execute("PRAGMA synchronous = OFF")  # a power cut may damage the file, which is then replaced
            for statement in _TABLES:
                database.execute(statement)
        except sqlite3.Error as error:
            database.close()
            return self._open(replace_damaged=False) if replace_damaged and self._removed(error) else None
        return database

    def _recover(self, error: sqlite3.Error) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = self._open() if self._removed(error) else None

    def _removed(self, error: sqlite3.Error) -> bool:
        """Whether the file was damaged and is removed now. A lock or a missing permission does not mean damage."""
        if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.OperationalError):
            return False
        try:
            self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)
        except OSError:
            return False
        return True
