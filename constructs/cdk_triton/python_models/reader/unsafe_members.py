"""Members of packed environments that the Python backend does not unpack."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path

from cdk_triton.python_models.reader.environment_packages import MAX_BYTES
from cdk_triton.python_models.reader.packed_environment import DAMAGED, open_archive

__all__ = ["UnsafeMember", "unsafe_member"]

UnsafeMember = tuple[str, str]
"""The name of a member, and libarchive's message about it."""


def unsafe_member(path: Path) -> UnsafeMember | None:
    """The first member of an archive that libarchive does not write with the options of python_backend 3033a6b.

    `cleanup_pathname_fsobj` and `check_symlinks_fsobj` in libarchive/archive_write_disk_posix.c decide.

    Returns:
        The member; None if all members are safe, or if the archive is damaged or too large to be read to its end.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        with open_archive(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            return _first_unsafe(archive)
    except (OSError, *DAMAGED):
        return None


def _first_unsafe(members: Iterable[tarfile.TarInfo]) -> UnsafeMember | None:
    links: set[str] = set()
    for member in members:
        if member.isdir() and not member.name:
            member.name = "/"  # tarfile takes the slashes at the end from a directory
        # A hard link is written as another name of a member that is there already.
        for written in (member.name, *([member.linkname] if member.islnk() else ())):
            reason = _reason(written, links)
            if reason:
                return member.name, reason
        name = "/".join(_parts(member.name))
        # What comes later under the name of a link replaces the link.
        links.discard(name)
        if member.issym():
            links.add(name)
    return None


def _reason(written: str, links: set[str]) -> str:
    if written.startswith("/"):
        return "Path is absolute"
    parts = _parts(written)
    if ".." in parts:
        return "Path contains '..'"
    above = ("/".join(parts[:end]) for end in range(1, len(parts)))
    link = next((each for each in above if each in links), None)
    return "" if link is None else f"Cannot extract through symlink {link}"


def _parts(written: str) -> list[str]:
    return [part for part in written.split("/") if part not in ("", ".")]
