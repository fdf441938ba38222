"""Unpacks archives of the store, within bounds. Python 3.11.2 does not have the filters of `tarfile`."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from botocore.exceptions import BotoCoreError

from cdk_triton.errors import StoreError
from cdk_triton.protocol.publication import MAX_ENTRIES
from cdk_triton.sagemaker import limits

__all__ = ["unpack"]

_MOST_BYTES: Final = limits.MAX_VOLUME_GB * 1024**3
"""An instance cannot unpack more."""


def unpack(body: IO[bytes], target: Path, name: str) -> None:
    """Unpack a `.tar.gz` of regular files into an empty directory.

    Args:
        body: the archive.
        target: the directory.
        name: the archive's, for messages.

    Raises:
        StoreError: the archive is damaged, has something that no archive of this library has, or does not fit on the
            disk.
        BotoCoreError: the connection broke while the archive was read.
    """
    total = 0
    try:
        with gzip.open(body) as content, tarfile.open(fileobj=content, mode="r|") as archive:
            for number, member in enumerate(archive, start=1):
                total += member.size
                if number > MAX_ENTRIES or total > _MOST_BYTES:
                    raise StoreError(
                        f"the archive {name} has more than {MAX_ENTRIES:,} entries or {limits.MAX_VOLUME_GB} GiB; "
                        "publish a smaller repository"
                    )
                _take(archive, member, target, name)
            while content.read(1 << 20):
                pass  # the checksum is behind the end of the tar
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise StoreError(f"the archive {name} is damaged ({error}); publish its repository again") from error
    except BotoCoreError:  # its timeouts are OSErrors too
        raise
    except OSError as error:
        raise StoreError(
            f"the archive {name} cannot be unpacked in {target.parent} ({error}); free some space, or set TMPDIR"
        ) from error


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, name: str) -> None:
    path = PurePosixPath(member.name)
    if "\0" in member.name:
        raise StoreError(
            f"the archive {name} has the path {member.name!r}, which has a NUL character; publish its repository again"
        )
    if path.is_absolute() or ".." in path.parts or not (member.isdir() or member.isreg()):
        raise StoreError(
            f"the archive {name} has {member.name!r}, which is a link or another special file, or leaves the "
            "repository; publish its repository again"
        )
    if member.isdir():
        (target / path).mkdir(parents=True, exist_ok=True)
        return
    (target / path).parent.mkdir(parents=True, exist_ok=True)
    with (target / path).open("xb") as file, cast("IO[bytes]", archive.extractfile(member)) as content:
        shutil.copyfileobj(content, file, 1 << 20)
