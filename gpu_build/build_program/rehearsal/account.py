"""The account that runs a model's code: not the job's, whose folders and credentials it must not reach."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import tempfile
from pathlib import Path
from typing import Iterator, Sequence

__all__ = ["Account", "guarded_from", "server_account"]

_NAMES = ("triton-server", "nobody")
"""The account that Triton's images have for a server (server: build.py, `TRITON_SERVER_USER`), and one that every
system has."""


_SERVICE = Path("/codebuild")
"""CodeBuild keeps a build's sources there, and scripts with its variables."""


class Account:
    """An account without rights.

    Attributes:
        name: its name.
        home: a directory of its own, for the variables HOME and TMPDIR.
    """

    def __init__(self, name: str, home: Path) -> None:
        entry = pwd.getpwnam(name)
        self.name = name
        self.home = home
        self._user, self._group = entry.pw_uid, entry.pw_gid
        self.take_over(home)

    def take_over(self, directory: Path) -> None:
        """Make it the owner of a directory: a server writes into its repository."""
        os.chown(directory, self._user, self._group)
        for path in directory.rglob("*"):
            os.chown(path, self._user, self._group, follow_symlinks=False)

    def enter(self) -> None:
        """Become it, without a way back."""
        os.setgroups([])
        os.setgid(self._group)
        os.setuid(self._user)

    def remove_files(self, directories: Sequence[Path]) -> None:
        """Remove what it has left in directories where everybody may write."""
        for each in (path for directory in directories if directory.is_dir() for path in directory.iterdir()):
            with contextlib.suppress(OSError):
                if each.lstat().st_uid != self._user:
                    continue
                if each.is_dir() and not each.is_symlink():
                    shutil.rmtree(each, ignore_errors=True)
                else:
                    each.unlink()


@contextlib.contextmanager
def server_account(root: Path) -> Iterator[Account]:
    """An account for a server, whose home lasts as long.

    Args:
        root: the directory that stands for `/`.
    """
    temporary = root / "tmp"
    temporary.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=str(temporary)))
    try:
        yield Account(next(filter(_exists, _NAMES)), home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def guarded_from(folders: Sequence[Path]) -> Iterator[None]:
    """While this lasts, only the job's own account can enter some folders, and the one of CodeBuild."""
    closed = [*folders, *([_SERVICE] if _SERVICE.is_dir() else [])]
    modes = {folder: folder.stat().st_mode & 0o7777 for folder in closed}
    try:
        for folder in closed:
            folder.chmod(0o700)
        yield
    finally:
        for folder, mode in modes.items():
            folder.chmod(mode)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
