"""Paths, hashes and JSON files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath
from typing import IO, Any, Iterator

from .stop import Stop

__all__ = ["blocks", "digest_of", "is_safe_path", "write_json"]

_BLOCK_BYTES = 1 << 20


def is_safe_path(text: str) -> bool:
    """Whether the path is relative, normalised, and without `..`."""
    path = PurePosixPath(text)
    return (
        bool(path.parts)
        and not path.is_absolute()
        and ".." not in path.parts
        and "\0" not in text
        and path.as_posix() == text
    )


def blocks(stream: IO[bytes], stop: Stop) -> Iterator[bytes]:
    """The rest of a stream in blocks; raises `StoppedError` if the program has to end."""
    for block in iter(lambda: stream.read(_BLOCK_BYTES), b""):
        stop.check()
        yield block


def digest_of(file: Path, stop: Stop, algorithm: str = "sha256") -> str:
    """The hash of a file, in hexadecimal."""
    digest = hashlib.new(algorithm)
    with file.open("rb") as stream:
        for block in blocks(stream, stop):
            digest.update(block)
    return digest.hexdigest()


def write_json(file: Path, document: Any) -> None:
    """Write indented JSON. The file appears when it is complete."""
    aside = file.with_name(f".{file.name}")
    aside.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    aside.replace(file)
