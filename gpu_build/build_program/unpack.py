"""Puts a repository's files in place: sources and inputs that are verified by their SHA-256, or a whole archive.

An archive is unpacked by this module's own rules and not by `tarfile.extractall`, whose filters Python 3.8 may not
have: regular files and directories only, each path below the repository. Of the sources, each file is one that
`plan.json` names, with its content's SHA-256.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tarfile
from pathlib import Path
from typing import IO, Iterator, Mapping

from .files import blocks, is_safe_path
from .plan import Ensemble, Input
from .step import BuildError
from .stop import Stop

__all__ = ["unpack", "unpack_archive"]


def unpack(ensemble: Ensemble, folder: Path, repository: Path, stop: Stop) -> None:
    """Unpack the sources of an ensemble and put its inputs in place.

    Args:
        ensemble: what is expected.
        folder: the input folder, which holds the archive and the inputs.
        repository: an empty directory.
        stop: may end it.

    Raises:
        BuildError: something is missing, damaged, not expected, or does not fit on the disk.
    """
    _unpack_sources(folder / ensemble.sources, ensemble.files, repository, stop)
    for entry in ensemble.inputs:
        _place(entry, folder, repository, stop)


def unpack_archive(archive: Path, repository: Path, stop: Stop) -> None:
    """Unpack an archive that was packed for an endpoint.

    Args:
        archive: the archive.
        repository: an empty directory.
        stop: may end it.

    Raises:
        BuildError: the archive is missing or damaged, or does not fit on the disk.
    """
    with _members(archive, "the packed files", repository, stop) as members:
        for member, content in members:
            _write(content, member.size, repository / member.name, stop)


def _unpack_sources(archive: Path, files: Mapping[str, str], repository: Path, stop: Stop) -> None:
    found: set[str] = set()
    with _members(archive, "the sources", repository, stop) as members:
        for member, content in members:
            _take(member, content, files, found, repository, stop)
    missing = sorted(set(files) - found)
    if missing:
        raise BuildError(
            f"the sources {archive.name} do not contain {', '.join(map(repr, missing[:3]))}, which the plan lists; "
            "deploy again"
        )


@contextlib.contextmanager
def _members(
    archive: Path, what: str, repository: Path, stop: Stop
) -> Iterator[Iterator[tuple[tarfile.TarInfo, IO[bytes]]]]:
    """The regular files of an archive, each with its content; its directories are made."""
    try:
        with tarfile.open(archive, "r|gz") as members:
            yield _files(members, what, repository, stop)
    except BuildError:
        raise
    except Exception as error:  # a damaged archive makes tarfile raise nearly anything, and all of it means this
        raise BuildError(
            f"{what} {archive.name} cannot be unpacked: {type(error).__name__}: {error}; the archive was damaged "
            "on the way to this build; deploy again"
        ) from error


def _files(
    members: tarfile.TarFile, what: str, repository: Path, stop: Stop
) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    for member in members:
        stop.check()
        if not is_safe_path(member.name):
            raise BuildError(f"{what} contain the path {member.name!r}, which leaves the repository; deploy again")
        if member.isdir():
            (repository / member.name).mkdir(parents=True, exist_ok=True)
            continue
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
            raise BuildError(f"{what} contain {member.name!r}, which is a link or another special file; deploy again")
        content = members.extractfile(member)
        assert content is not None  # for the type checker: it is a regular file
        with content:
            yield member, content


def _take(
    member: tarfile.TarInfo,
    content: IO[bytes],
    files: Mapping[str, str],
    found: set[str],
    repository: Path,
    stop: Stop,
) -> None:
    if member.name not in files or member.name in found:
        fault = " twice" if member.name in found else ", which the plan does not list"
        raise BuildError(f"the sources contain {member.name!r}{fault}; deploy again")
    sha256 = _write(content, member.size, repository / member.name, stop)
    if sha256 != files[member.name]:
        raise BuildError(
            f"{member.name!r} has the SHA-256 {sha256} in the sources, but {files[member.name]} in the plan: the file "
            "was changed on the way to this build; deploy again"
        )
    found.add(member.name)


def _write(content: IO[bytes], size: int, target: Path, stop: Stop) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    _check_space(size, target)
    digest = hashlib.sha256()
    with target.open("xb") as stream:
        for block in blocks(content, stop):
            digest.update(block)
            stream.write(block)
    return digest.hexdigest()


def _place(entry: Input, folder: Path, repository: Path, stop: Stop) -> None:
    source, target = folder / entry.path, repository / entry.to
    if not source.is_file():
        raise BuildError(f"{entry.to!r} is missing: there is no {entry.path} in the build's input; deploy again")
    if target.exists():
        raise BuildError(f"{entry.to!r} comes from the repository and from S3: remove one of them")
    # A copy, because a step may write to it, and the input folder may be read-only or shared by ensembles.
    with source.open("rb") as content:
        sha256 = _write(content, source.stat().st_size, target, stop)
    if sha256 != entry.sha256:
        raise BuildError(
            f"{entry.to!r} has the SHA-256 {sha256}, but its S3File has {entry.sha256}: restore the object, or correct "
            "the S3File"
        )


def _check_space(size: int, target: Path) -> None:
    free = shutil.disk_usage(target.parent).free
    if size > free:
        raise BuildError(
            f"{target.name!r} needs {size:,} bytes, but the build's disk has {free:,} free: give the build a larger "
            "disk (volume= of the Processing builder)"
        )
