"""Fetches a file that is pinned by its SHA-256."""

from __future__ import annotations

import hashlib
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path

from .files import blocks
from .step import BuildError
from .stop import Stop

__all__ = ["download"]

_ATTEMPTS = 3
_TIMEOUT_SECONDS = 60.0
_WAIT_SECONDS = 2.0


def download(url: str, target: Path, stop: Stop, *, sha256: str, most_bytes: int, what: str) -> None:
    """Fetch a file and compare its hash; nothing is left behind if the hash differs.

    Args:
        url: where it is.
        target: where it goes.
        stop: may end it.
        sha256: its hash, in hexadecimal.
        most_bytes: more than that is not read.
        what: what it is, to begin a sentence with.

    Raises:
        BuildError: the file cannot be fetched, or has a different hash.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            found = _fetch(url, target, most_bytes, stop)
            break
        except (OSError, HTTPException) as error:  # also urllib's own, which is an OSError
            reason = getattr(error, "reason", None) or error
            if attempt == _ATTEMPTS:
                raise BuildError(
                    f"{what} cannot be fetched from {url}: {reason}; make sure that the build has access to this "
                    "address, and that the address serves the pinned file"
                ) from error
            time.sleep(_WAIT_SECONDS * attempt)
    if found != sha256:
        target.unlink()
        raise BuildError(
            f"{what} from {url} has the SHA-256 {found}, but {sha256} is pinned: the build does not use a file "
            "that may have been replaced; make sure that the address serves the pinned file"
        )


def _fetch(url: str, target: Path, most_bytes: int, stop: Stop) -> str:
    digest = hashlib.sha256()
    read = 0
    # Whatever scheme a redirect may lead to: the hash decides.
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer, target.open("wb") as file:  # noqa: S310
        for block in blocks(answer, stop):
            read += len(block)
            if read > most_bytes:
                raise OSError(f"it has more than {most_bytes} bytes")
            digest.update(block)
            file.write(block)
        size = answer.headers["Content-Length"]
        if size is not None and read < int(size):
            raise OSError(f"it ended after {read} of {size} bytes")
    return digest.hexdigest()
