"""Compares what generators return with the repository, and writes what differs."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from tools.generate._generator import Files, GenerateError, Generator

MAX_DIFF_LINES = 20


def run(generators: Mapping[str, Generator], root: Path, *, sources: Path | None = None, check: bool = False) -> int:
    """Write every file that differs, or with `check` only print how it differs.

    Args:
        generators: by name.
        root: the repository.
        sources: the folder with outside sources. A generator whose source is not there uses the repository alone.
        check: whether nothing is written.

    Returns:
        The exit status: 1 if a generator failed, or if a file differs and `check` was given.
    """
    failed, count, written = False, 0, 0
    for name, generator in generators.items():
        try:
            files = _files(generator, sources)
        except GenerateError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
            continue
        count += len(files)
        for path, content in _changes(generator, files, root):
            if check:
                failed = True
                print(f"{path} differs: run `make generate`")
                print(short_diff(_content(root / path), content), end="")
            else:
                print(f"{'remove' if content is None else 'write'} {path}")
                replace(root / path, content)
                written += 1
    if not failed:
        print(f"files compared: {count}" if check else f"files compared: {count}, changed: {written}")
    return 1 if failed else 0


def short_diff(old: bytes | None, new: bytes | None) -> str:
    """The first lines of the difference between two contents; None is a file that does not exist."""
    try:
        before, after = ((text or b"").decode().splitlines(keepends=True) for text in (old, new))
    except UnicodeDecodeError:
        return "  (not text)\n"
    lines = difflib.unified_diff(before, after, "committed", "generated", n=1)
    shown = [line if line.endswith("\n") else f"{line}\n" for line in islice(lines, MAX_DIFF_LINES)]
    return "".join(shown) + ("  ...\n" if next(lines, None) else "")


def replace(path: Path, content: bytes | None) -> None:
    """Write or remove a file at once: after an interruption, the file has the old content or the new one."""
    if content is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _files(generator: Generator, sources: Path | None) -> Files:
    if sources is not None and generator.from_source is not None:
        source = sources / generator.source
        if source.is_dir():
            return generator.from_source(source)
        print(f"{source} does not exist: the files that are made from it stay as they are", file=sys.stderr)
    return generator.files()


def _changes(generator: Generator, files: Files, root: Path) -> Iterator[tuple[str, bytes | None]]:
    """Path and new content of each file that differs; None for one that is to be removed."""
    for path, content in files.items():
        if _content(root / path) != content:
            yield path, content
    if generator.obsolete:
        for found in sorted(root.glob(generator.obsolete)):
            if (path := found.relative_to(root).as_posix()) not in files:
                yield path, None


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
