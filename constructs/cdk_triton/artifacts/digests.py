"""The SHA-256 of files, remembered between runs.

`cdk ls`, `diff` and `destroy` run the app, and the app needs the keys of archives of many gigabytes. What was hashed
once is therefore kept in the user's cache directory, and a file is read again only when its size, its times or its
inode say that it may have changed.

Times have a grain (up to 2 s on some file systems), so a file written again right after it was hashed can look the
same. As git does for its index, a digest is kept only if the file had been left alone for 2 s when it was hashed.

Where times and inodes tell nothing (a network file system that hands out both anew, a tool that sets them back), the
environment variable CDK_TRITON_NO_CACHE, with any value, has every file read. It is a variable and no option, because
the key is computed within an app that `cdk` starts.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from cdk_triton.artifacts.cache import NO_CACHE, cache_directory
from cdk_triton.artifacts.reading import BLOCK_BYTES, Progress, file_state, fingerprint, read_blocks

__all__ = ["file_digests"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_TABLE = """
CREATE TABLE IF NOT EXISTS digests (path BLOB PRIMARY KEY, look TEXT, hashed_ns INTEGER, sha256 TEXT) WITHOUT ROWID
"""
_LOCK_SECONDS = 1.0
_SETTLED_NS = 2 * 10**9
_FORGOTTEN_NS = 180 * 24 * 3600 * 10**9


def file_digests(files: Iterable[Path], *, progress: Progress | None = None) -> dict[Path, str]:
    """The SHA-256 of each file, in hexadecimal.

    Args:
        files: regular files; links are followed.
        progress: is told about the bytes that have to be read, which are none when nothing changed.

    Raises:
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
    """
    states = {file: file_state(file) for file in files}
    with _Memory(cache_directory() / "digests-1.sqlite") as memory:
        all_anew = bool(os.environ.get(NO_CACHE))
        digests = {file: None if all_anew else memory.recall(file, state) for file, state in states.items()}
        unknown = [file for file, digest in digests.items() if digest is None]
        done, total = 0, sum(states[file].st_size for file in unknown)
        for file in unknown:
            started_ns = time.time_ns()
            sha256 = hashlib.sha256()
            for block in read_blocks(file, states[file]):
                sha256.update(block)
                done += len(block)
                if progress is not None:
                    progress(done, total)
            digests[file] = sha256.hexdigest()
            memory.remember(file, states[file], started_ns, sha256.hexdigest())
    return {file: digest for file, digest in digests.items() if digest is not None}


class _Memory:
    """The digests of earlier runs, in one SQLite file, so that two processes may use it at once.

    It is a convenience: a file that cannot be opened, is locked or is damaged makes hashing slower, never wrong. A
    damaged one is replaced.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new: list[tuple[bytes, str, int, str]] = []
        self._database = self._open()

    def __enter__(self) -> _Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self._save()
        if self._database is not None:
            self._database.close()

    def recall(self, file: Path, state: os.stat_result) -> str | None:
        """The digest of the file if it still looks as it did."""
        if self._database is None:
            return None
        try:
            query = self._database.execute(
                "SELECT sha256 FROM digests WHERE path = ? AND look = ?", (_name(file), fingerprint(state))
            )
            row = query.fetchone()
        except sqlite3.Error as error:
            self._recover(error)
            return None
        return row[0] if row is not None and _SHA256.fullmatch(str(row[0])) else None

    def remember(self, file: Path, state: os.stat_result, hashed_ns: int, sha256: str) -> None:
        """Keep a digest, unless the file may have been written again within the grain of its times."""
        if hashed_ns - state.st_mtime_ns >= _SETTLED_NS:
            self._new.append((_name(file), fingerprint(state), hashed_ns, sha256))
        if state.st_size > BLOCK_BYTES:  # what took long survives an interruption
            self._save()

    def _save(self) -> None:
        rows, self._new = self._new, []
        if self._database is None or not rows:
            return
        try:
            with self._database:  # one transaction
                self._database.executemany("REPLACE INTO digests VALUES (?, ?, ?, ?)", rows)
                self._database.execute("DELETE FROM digests WHERE hashed_ns < ?", (time.time_ns() - _FORGOTTEN_NS,))
        except sqlite3.Error as error:
            self._recover(error)

    def _open(self, *, replace_damaged: bool = True) -> sqlite3.Connection | None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            database = sqlite3.connect(self._path, timeout=_LOCK_SECONDS)
        except (OSError, sqlite3.Error):
            return None
        try:
            database.execute("PRAGMA synchronous = OFF")  # a power cut may cost the file, and that is all
            database.execute(_TABLE)
        except sqlite3.Error as error:
            database.close()
            return self._open(replace_damaged=False) if replace_damaged and self._removed(error) else None
        return database

    def _recover(self, error: sqlite3.Error) -> None:
        if self._database is not None:
            self._database.close()
        self._database = self._open() if self._removed(error) else None

    def _removed(self, error: sqlite3.Error) -> bool:
        """Whether the error meant damage, and the damaged file is gone; a lock or a missing right is no damage."""
        if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.OperationalError):
            return False
        try:
            self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)
        except OSError:
            return False
        return True


def _name(file: Path) -> bytes:
    return os.fsencode(os.path.realpath(file))
