"""Computes the SHA-256 of files, and caches those of large files until the files change.

The cache identifies a file by its inode, so a file that many repositories share by links of either kind is hashed once.
Several processes may check such repositories at once. Then one of them hashes the file, and the others wait for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from cdk_triton._file_cache import NO_CACHE, SMALL_BYTES, FileCache, cache_directory, fingerprint, is_settled
from cdk_triton.artifacts.reading import BLOCK_BYTES, Progress, file_state, read_blocks

__all__ = ["file_digests"]

_KIND = "digest"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LOCK_BYTES: Final = 1 << 62


def file_digests(files: Iterable[Path], *, progress: Progress | None = None) -> dict[Path, str]:
    """The SHA-256 of each file, in hexadecimal.

    Args:
        files: regular files; links are followed.
        progress: is called with the bytes that have to be read.

    Raises:
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
    """
    states = {file: file_state(file) for file in files}
    names = {file: _cache_name(file, state) for file, state in states.items()}
    distinct = {name: file for file, name in names.items()}
    with FileCache() as cache:
        digests = {name: _recalled(cache, name, states[file]) for name, file in distinct.items()}
        unknown = {name: file for name, file in distinct.items() if digests[name] is None}
        done, total = 0, sum(states[file].st_size for file in unknown.values())

        def count(read: int) -> None:
            nonlocal done
            done += read
            if progress is not None:
                progress(done, total)

        for name, file in unknown.items():
            state = states[file]
            if state.st_size <= BLOCK_BYTES:
                digests[name] = _hashed(cache, name, file, state, count)
                continue
            with _only_one(state):
                digests[name] = _recalled(cache, name, state)
                if digests[name] is not None:  # another process has hashed it
                    count(state.st_size)
                else:
                    digests[name] = _hashed(cache, name, file, state, count)
                    cache.save()  # hashing it took long, so an interruption must not lose it
    return {file: digest for file, name in names.items() if (digest := digests[name]) is not None}


def _cache_name(file: Path, state: os.stat_result) -> bytes:
    """The cache has only large files, which it knows by their inodes."""
    return os.fsencode(file) if state.st_size <= SMALL_BYTES else b"%d %d" % (state.st_dev, state.st_ino)


def _recalled(cache: FileCache, name: bytes, state: os.stat_result) -> str | None:
    digest = None if state.st_size <= SMALL_BYTES else cache.recall(_KIND, name, fingerprint(state))
    return digest if digest is not None and _SHA256.fullmatch(digest) else None


def _hashed(cache: FileCache, name: bytes, file: Path, state: os.stat_result, count: Callable[[int], object]) -> str:
    started_ns, sha256 = time.time_ns(), hashlib.sha256()
    for block in read_blocks(file, state):
        sha256.update(block)
        count(len(block))
    if state.st_size > SMALL_BYTES and is_settled(state, started_ns):
        cache.keep(_KIND, name, fingerprint(state), sha256.hexdigest())
    return sha256.hexdigest()


@contextmanager
def _only_one(state: os.stat_result) -> Iterator[None]:
    """Wait while another process hashes the same file.

    One lock file is enough, because each inode locks a byte of its own. The lock only saves work: nothing waits if the
    cache directory cannot be used, if the cache would not keep the digest, or on Windows. The system releases the locks
    of a process that ends.
    """
    with ExitStack() as stack:
        if NO_CACHE not in os.environ and is_settled(state, time.time_ns()):
            with suppress(OSError, ImportError):
                import fcntl  # not in the Python of Windows

                lock = stack.enter_context((cache_directory() / "digests.lock").open("wb"))
                fcntl.lockf(lock, fcntl.LOCK_EX, 1, state.st_ino % _LOCK_BYTES)
        yield
