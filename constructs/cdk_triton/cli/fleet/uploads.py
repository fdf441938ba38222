"""Packs repositories and uploads their archives, several at once, in bounded memory."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from boto3.exceptions import S3UploadFailedError
from boto3.s3.transfer import TransferConfig

from cdk_triton.artifacts.archive import write_archive
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.errors import CdkTritonError, StoreError

__all__ = ["upload"]

_AT_ONCE: Final = 4
_PARTS_AT_ONCE: Final = 4
_LONGEST_WAIT_SECONDS: Final = 0.5
_PART_BYTES: Final = 8 << 20
"""At most 16 parts of this size are in memory. boto3 makes them larger where S3's 10,000 parts would not do."""


class _StoppedError(Exception):
    """The command ends."""


class _Stop:
    """Ends the packing and the transfers that run."""

    def __init__(self) -> None:
        self._is_set = threading.Event()

    def set(self) -> None:
        """End them."""
        self._is_set.set()

    def check(self, *_: Any, **__: Any) -> None:
        """Go on, or end; is called with each block that is packed or sent, and before each attempt after the first.

        Raises:
            _StoppedError: the command ends.
        """
        if self._is_set.is_set():
            raise _StoppedError


def upload(
    fleet: Fleet,
    archives: Mapping[str, Path],
    *,
    is_as_checked: Callable[[str], bool] = lambda _: True,
    progress: Callable[[int], object] = lambda _: None,
) -> dict[str, str]:
    """Pack and upload what is absent.

    Args:
        fleet: the destination.
        archives: repository by object key.
        is_as_checked: whether the repository of an object key is still what the checks have read. It is called after
            the archive is packed, because later publications find the upload by its key.
        progress: is called with the number of archives that are done, first with 0.

    Returns:
        Why a repository cannot be packed, by its object key.

    Raises:
        StoreError: an upload failed.
        SystemExit: the process got SIGTERM.
    """
    failures: dict[str, str] = {}
    progress(0)
    stop = _Stop()
    with (
        _ending_at_sigterm(),
        tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory,
        _no_retries(fleet, stop),
    ):
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            work = {
                pool.submit(_upload, fleet, key, source, Path(directory, str(number)), is_as_checked, stop): key
                for number, (key, source) in enumerate(archives.items())
            }
            pending = set(work)
            while pending:
                # A signal that comes right before a wait is handled only when the wait has ended.
                done, pending = wait(pending, timeout=_LONGEST_WAIT_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    if (failure := future.result()) is not None:
                        failures[work[future]] = failure
                progress(len(work) - len(pending))
        except BaseException:  # an interruption too
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    return failures


@contextmanager
def _ending_at_sigterm() -> Iterator[None]:
    """End by an exception at SIGTERM, which ends a process at once otherwise and leaves files and parts behind."""
    if threading.current_thread() is not threading.main_thread():  # Python sets no handler there
        yield
        return

    def end(*_: object) -> NoReturn:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _no_retries(fleet: Fleet, stop: _Stop) -> Iterator[None]:
    """Have boto3 not repeat a request that was stopped: it takes the error of a callback for one of the network."""
    events = fleet.aws.client("s3").meta.events
    names = [f"needs-retry.s3.{operation}" for operation in ("PutObject", "UploadPart")]
    for name in names:
        events.register_first(name, stop.check)
    try:
        yield
    finally:
        for name in names:
            events.unregister(name, stop.check)


def _upload(
    fleet: Fleet, key: str, source: Path, target: Path, is_as_checked: Callable[[str], bool], stop: _Stop
) -> str | None:
    try:
        archive = write_archive(source, target, progress=stop.check)
    except CdkTritonError as error:
        return str(error)
    if not is_as_checked(key):
        archive.path.unlink()
        return f"{source} changed after it was checked: publish it again when no program writes to it any more"
    config = TransferConfig(
        multipart_threshold=_PART_BYTES, multipart_chunksize=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
    )
    try:
        fleet.aws.client("s3").upload_file(str(archive.path), fleet.bucket, key, Config=config, Callback=stop.check)
    except S3UploadFailedError as error:
        raise StoreError(f"{error}; run the same command again, which uploads what is missing") from error
    finally:
        archive.path.unlink()
    return None
