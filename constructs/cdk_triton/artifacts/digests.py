"""The SHA-256 of files, from the cache where a large file has not changed since it was hashed."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from cdk_triton._file_cache import SMALL_BYTES, FileCache, fingerprint, is_settled
from cdk_triton.artifacts.reading import BLOCK_BYTES, Progress, file_state, read_blocks

__all__ = ["file_digests"]

_KIND = "digest"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def file_digests(files: Iterable[Path], *, progress: Progress | None = None) -> dict[Path, str]:
    """The SHA-256 of each file, in hexadecimal.

    Args:
        files: regular files; links are followed.
        progress: is called with the bytes that have to be read.

    Raises:
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
    """
    states = {file: file_state(file) for file in files}
    with FileCache() as cache:
        large = {file: state for file, state in states.items() if state.st_size > SMALL_BYTES}
        recalled = {file: _recalled(cache, file, state) for file, state in large.items()}
        digests = {file: recalled.get(file) for file in states}
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
            if file in large and is_settled(states[file], started_ns):
                cache.keep(_KIND, _name(file), fingerprint(states[file]), sha256.hexdigest())
            if states[file].st_size > BLOCK_BYTES:  # hashing it took long, so an interruption must not lose it
                cache.save()
    return {file: digest for file, digest in digests.items() if digest is not None}


def _recalled(cache: FileCache, file: Path, state: os.stat_result) -> str | None:
    digest = cache.recall(_KIND, _name(file), fingerprint(state))
    return digest if digest is not None and _SHA256.fullmatch(digest) else None


def _name(file: Path) -> bytes:
    return os.fsencode(os.path.realpath(file))
