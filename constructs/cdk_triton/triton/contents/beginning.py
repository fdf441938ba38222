"""How a file begins: enough to tell a pointer of Git LFS from the file that it stands for."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_git_lfs_pointer"]

# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def is_git_lfs_pointer(path: Path) -> bool:
    """Whether the file is what git checks out where Git LFS has not fetched the content."""
    try:
        with path.open("rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False
