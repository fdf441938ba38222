"""Writes files into a directory: new ones all or none, and never over an existing file that is not named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import typer

from cdk_triton._wording import listed

__all__ = ["Content", "require_free", "write_new"]

Content = str | bytes | Path
"""The text or the bytes of a new file, or the file that it is a copy of."""


def require_free(directory: Path, names: Mapping[str, Content], hint: str) -> None:
    """Reject a directory in which the path of one of these files is taken, by a file or by a directory.

    Args:
        directory: the directory in which the files will be; it may be missing.
        names: the files, relative to the directory.
        hint: the argument that names the directory.

    Raises:
        BadParameter: something has the path of one of the files already, or a file has the path of a directory that
            they need.
    """
    taken = sorted({str(path) for name in names for path in _in_the_way(directory, name)})
    if taken:
        exist, them = ("exist", "these paths") if len(taken) > 1 else ("exists", "this path")
        raise typer.BadParameter(
            f"{listed(taken)} {exist} already, but the command overwrites nothing; move {them}, or name another "
            "directory",
            param_hint=hint,
        )


def _in_the_way(directory: Path, name: str) -> Iterator[Path]:
    target = directory / name
    if target.exists() or target.is_symlink():
        yield target
    yield from (path for path in target.parents if path.exists() and not path.is_dir())


def write_new(directory: Path, files: Mapping[str, Content], replacing: Mapping[str, str] | None = None) -> None:
    """Write the files; if one cannot be written, remove those that were.

    Args:
        directory: the directory in which the files will be; it may be missing.
        files: the new files, relative to the directory.
        replacing: the texts of files to replace, which are replaced after all others are written.

    Raises:
        OSError: a file cannot be written, or appeared meanwhile.
    """
    made: list[Path] = []
    try:
        for name, content in files.items():
            target = directory / name
            made.extend(reversed([path for path in target.parents if not path.exists()]))
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                made.append(target)
                _write(content, file)
        for name, text in (replacing or {}).items():
            _write_over(directory / name, text)
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def _write(content: Content, file: BinaryIO) -> None:
    if isinstance(content, str | bytes):
        file.write(content.encode() if isinstance(content, str) else content)
    else:
        with content.open("rb") as source:
            shutil.copyfileobj(source, file)


def _write_over(file: Path, text: str) -> None:
    """Replace a file in one step, so that it is never half-written; if that fails, it is as before."""
    new = file.with_name(f".{file.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
