"""The beginning of a file: enough to recognise a pointer of Git LFS, or ONNX Runtime's own format."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_git_lfs_pointer", "is_ort_model"]

# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def is_git_lfs_pointer(path: Path) -> bool:
    """Whether the file is the pointer that git checks out if Git LFS has not fetched the content."""
    return _head(path, len(_POINTER)) == _POINTER


def is_ort_model(path: Path) -> bool:
    """Whether the file is a model in ONNX Runtime's own format, a FlatBuffer with an identifier."""
    return _head(path, 8)[4:] == b"ORTM"


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(size)
    except OSError:
        return b""
