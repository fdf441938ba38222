"""Packs a conda environment; runs in the Python that has conda-pack, with nothing else of this package.

The first argument is a JSON file with the question, the second one the JSON file for the answer.
"""

from __future__ import annotations

import gzip
import json
import os
import posixpath
import sys
import tarfile
from pathlib import Path
from typing import IO, Any

# conda-pack's own level for .tar.gz.
_COMPRESSION = 4
# Compiled files hold the time of their source, the history that of the installation: other bytes in every build.
_LEFT_OUT = ("*.pyc", "conda-meta/history")


class PackError(Exception):
    """The fault that the user has to fix, as a sentence."""


def answer(question: dict[str, str]) -> dict[str, Any]:
    """Pack `prefix` into `archive`, by way of `tar`."""
    _pack(question["prefix"], question["tar"])
    try:
        members = normalise(Path(question["tar"]), Path(question["archive"]))
    except PackError as error:
        return {"error": str(error)}
    return {"members": members}


def _pack(prefix: str, tar: str) -> None:
    from conda_pack import pack

    # conda-pack lists directories as they come, and writes the list of prefixes into the archive in that order.
    unsorted = os.listdir

    def listdir(*arguments: Any) -> list[Any]:
        return sorted(unsorted(*arguments))

    os.listdir = listdir  # type: ignore[assignment]  # this process does nothing else
    pack(
        prefix=prefix,
        output=tar,
        format="tar",
        filters=[("exclude", pattern) for pattern in _LEFT_OUT],
        verbose=False,
    )


def normalise(tar: Path, target: Path) -> int:
    """Write a tar archive again: sorted, times and ids 0, fixed modes, one gzip member without name and time.

    Returns:
        How many members it has.

    Raises:
        PackError: a member, or the target of a link, is outside of the archive, or is not a file.
    """
    with tarfile.open(str(tar), "r:") as source:
        members = sorted(source.getmembers(), key=lambda member: _name(member.name))
        with target.open("wb") as raw, gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed:
            archive = tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed below
            for member in members:
                _add(source, member, archive)
            archive.close()
    return len(members)


def _add(source: tarfile.TarFile, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    name = _name(member.name)
    if name == "." and member.isdir():
        return
    _refuse_outside(name, f"the packed environment's member {member.name!r}")
    entry = tarfile.TarInfo(name)
    content: IO[bytes] | None = None
    if member.isdir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    elif member.issym():
        _refuse_outside(
            posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname)),
            f"the link {name!r} to {member.linkname!r} in the packed environment",
        )
        entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, member.linkname
    elif member.isfile() or member.islnk():
        # A hard link is written as the file that it is: sorted, it could come before the file that it is linked to.
        content = source.extractfile(member)
        whole = source.getmember(member.linkname) if member.islnk() else member
        entry.size, entry.mode = whole.size, 0o755 if whole.mode & 0o111 else 0o644
    else:
        raise PackError(
            f"the packed environment's member {name!r} is not a file, a directory or a link: remove it from the "
            "environment"
        )
    archive.addfile(entry, content)


def _name(name: str) -> str:
    return posixpath.normpath(name)


def _refuse_outside(name: str, what: str) -> None:
    if name.startswith(("/", "../")) or name == "..":
        raise PackError(f"{what} leads out of the environment: remove the package that contains it")


if __name__ == "__main__":
    _asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(answer(_asked)), encoding="utf-8")
