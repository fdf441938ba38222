"""Paths, hashes and JSON files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath
from typing import Any

from .stop import Stop

__all__ = ["BLOCK_BYTES", "is_safe_path", "sha256_of", "write_json"]

BLOCK_BYTES = 1 << 20


def is_safe_path(text: str) -> bool:
    """Whether it is a relative path with `/` that stays below where it starts, written in the one shortest way."""
    path = PurePosixPath(text)
    return (
        bool(path.parts)
        and not path.is_absolute()
        and ".." not in path.parts
        and "\0" not in text
        and path.as_posix() == text
    )


def sha256_of(file: Path, stop: Stop) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        for block in iter(lambda: stream.read(BLOCK_BYTES), b""):
            stop.check()
            digest.update(block)
    return digest.hexdigest()


def write_json(file: Path, document: Any) -> None:
    """Write a JSON file that a person can read."""
    file.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
