"""Writes a repository as one `.tar.gz`: deterministic, streaming, all or nothing.

The same files give the same bytes on one kind of processor, independent of the user, the time and the order in which
the directory lists them. Entries are sorted, times and ids are 0, modes are fixed, and the gzip header has neither name
nor time. The gzip stream is a single member, because Python's streaming tar reader fails at the end of the first one.
Entries are regular files and directories only: SageMaker rejects an archive with symbolic links, so the writer packs
the targets of links inside the repository.

The tar format is PAX (POSIX.1-2001). A name of up to 100 ASCII characters and a size below 8 GiB need nothing beyond
the old ustar header, so most archives are plain ustar; longer names, other alphabets and larger files need an
extension. PAX is the standard one, fixes UTF-8 for names, and is what Python's `tarfile`, and with it SageMaker's own
SDK, writes. ustar alone cannot hold a weight file of 8 GiB; GNU's extension leaves the encoding of names open.

isal's level 1 takes about a twentieth of the time of `tar -czf` for the same size on weights, which hardly compress. It
runs in one thread beside the one that reads; more threads gain nothing there. It has to be isal 1.9: 1.7 ends with a
second, empty gzip member, and up to 1.8, isal waits for ever if the disk is full.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedWriter, FileIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final

from isal import igzip_threaded

from cdk_triton._checked import checked
from cdk_triton.artifacts.contents import ArchiveFile, archive_files
from cdk_triton.artifacts.keys import file_keys
from cdk_triton.artifacts.reading import BLOCK_BYTES, Progress, changed, file_state, read_blocks
from cdk_triton.errors import ArchiveError
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.repository import repository_of

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from cdk_triton.artifacts.prepare import Prepared

__all__ = ["Archive", "pack_prepared", "write_archive"]

_LEVEL: Final = 1
_ADVICE_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class Archive:
    """An archive that was written.

    Attributes:
        path: the file.
        size: the size of the archive in bytes.
        file_count: the number of files in the archive, including placeholders.
        content_size: the size of these files before compression, in bytes.
    """

    path: Path
    size: int
    file_count: int
    content_size: int


@checked
def write_archive(
    source: ModelRepository | str | Path, target: str | Path, *, progress: Progress | None = None
) -> Archive:
    """Pack a model repository into one `.tar.gz`.

    A complete archive replaces the target in one step. After a failure, the target is unchanged.

    Args:
        source: the repository or its directory.
        target: the file to write, in a directory that exists and is not inside the repository.
        progress: a function that is called with the bytes read so far and the bytes to read in total.

    Raises:
        RepositoryError: the directory is not a model repository.
        ArchiveError: the target is inside the repository, or cannot be written, for example because the disk is full;
            a link leaves the repository; or a file cannot be read, or changed after the repository was read.
    """
    repository = repository_of(source)
    return _write(archive_files(repository), repository.root, Path(target), progress=progress)


def pack_prepared(prepared: Prepared, target: Path) -> None:
    """Pack a prepared repository; an archive whose files have changed since does not replace the target.

    Raises:
        ArchiveError: `write_archive` would raise it, or a file has changed.
    """

    def verify() -> None:
        if file_keys(prepared.files) != prepared.files:
            raise changed(prepared.repository.root, "the repository was packed")

    _write(tuple(prepared.files), prepared.repository.root, target, verify=verify)


def _write(
    files: tuple[ArchiveFile, ...],
    repository: Path,
    target: Path,
    *,
    progress: Progress | None = None,
    verify: Callable[[], None] = lambda: None,
) -> Archive:
    """Write an archive of a repository's files; `verify` raises if the complete archive must not replace the target."""
    _check_places(files, repository.resolve(), target)
    content_size = sum(file.size for file in files)
    try:
        with _replacing(target) as stream:
            with _gzip(stream) as tar:
                _write_tar(tar, files, progress)
            size = stream.tell()
            verify()
    except OSError as error:
        raise ArchiveError(_why_not_written(target, error, content_size)) from error
    return Archive(target, size, len(files), content_size)


def _gzip(stream: BinaryIO) -> BinaryIO:
    tar: BinaryIO = igzip_threaded.open(  # type: ignore[no-untyped-call]  # isal types its classes, not this function
        stream, "wb", compresslevel=_LEVEL, threads=1, block_size=BLOCK_BYTES
    )
    return tar


def _check_places(files: Iterable[ArchiveFile], root: Path, target: Path) -> None:
    if target.resolve().is_relative_to(root):
        raise ArchiveError(
            f"the archive {target} of the repository {root} would be inside this repository: write the archive "
            "somewhere else"
        )
    for file in files:
        # Checked when the repository was read, and again here: a link may have been put in place since.
        if file.source is not None and not file.source.resolve().is_relative_to(root):
            raise ArchiveError(
                f"{file.source} is a link to {file.source.resolve()}, which is outside the repository: replace the "
                "link with the file itself"
            )


def _write_tar(tar: BinaryIO, files: tuple[ArchiveFile, ...], progress: Progress | None) -> None:
    done, total = 0, sum(file.size for file in files)
    for path, file in _entries(files):
        tar.write(_header(path, file))
        if file is None or file.source is None:
            continue
        state = file_state(file.source)
        if state.st_size != file.size:
            raise ArchiveError(
                f"{file.source} had {file.size} bytes when cdk-triton read the repository, but has {state.st_size} "
                "now: try again when no other program writes to this file"
            )
        for block in read_blocks(file.source, state):
            tar.write(block)
            done += len(block)
            if progress is not None:
                progress(done, total)
        tar.write(bytes(-file.size % tarfile.BLOCKSIZE))
    tar.write(bytes(2 * tarfile.BLOCKSIZE))  # the end-of-archive mark


def _entries(files: Iterable[ArchiveFile]) -> list[tuple[str, ArchiveFile | None]]:
    """In order. None stands for a directory, whose path sorts before those below it."""
    entries: dict[str, ArchiveFile | None] = {file.path: file for file in files}
    for path in list(entries):
        entries.update(dict.fromkeys(parent.as_posix() for parent in PurePosixPath(path).parents[:-1]))
    return sorted(entries.items(), key=lambda entry: entry[0])


def _header(path: str, file: ArchiveFile | None) -> bytes:
    entry = tarfile.TarInfo(path)  # its defaults: time 0, ids 0, no names
    if file is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        entry.size, entry.mode = file.size, 0o644
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


class _Output(BufferedWriter):
    """A file whose pages leave the page cache as soon as they are on disk.

    Nothing reads an archive while it is written, and one of many gigabytes would evict what others read. It is also
    faster on a virtual machine, where the first use of a page of memory costs more than compressing its content.
    """

    _advised = 0

    def write(self, data: ReadableBuffer) -> int:
        """Write, and at intervals start to write the newest pages to disk and drop the ones before."""
        count = super().write(data)
        position = self.tell()
        if position - self._advised >= _ADVICE_BYTES:
            self.flush()
            with suppress(OSError, AttributeError):  # advice: a file system may decline it, and macOS has no such call
                os.posix_fadvise(self.fileno(), max(0, self._advised - _ADVICE_BYTES), 0, os.POSIX_FADV_DONTNEED)
            self._advised = position
        return count


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """The file replaces the target when the context ends without an error, and is removed otherwise."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with _Output(FileIO(temporary, "xb")) as stream:
            yield stream
        temporary.replace(target)
    except BaseException:  # an interruption too
        with suppress(OSError):
            temporary.unlink()
        raise


def _why_not_written(target: Path, error: OSError, content_size: int) -> str:
    directory = target.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(directory).free
        return (
            f"the archive {target} cannot be written: no space is left in {directory.resolve()} (the archive needs up "
            f"to {content_size:,} bytes, and {free:,} bytes are free); free some space, or write the archive somewhere "
            "else"
        )
    if not directory.is_dir():
        return f"the archive {target} cannot be written: there is no directory {directory}; create the directory first"
    return (
        f"the archive {target} cannot be written: {error.strerror}; remove the cause, or write the archive somewhere "
        "else"
    )
