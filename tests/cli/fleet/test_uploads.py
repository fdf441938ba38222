"""The upload of archives in parts, and what is left of one that fails."""

from __future__ import annotations

import gc
import gzip
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import HTTPClientError
from moto import mock_aws

from cdk_triton import ServingPlatform
from cdk_triton.artifacts import write_archive
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.artifacts.reading import Progress
from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.fleet import uploads
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.errors import StoreError
from cdk_triton.triton import ContainerEnvironment

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
DESCRIPTION = PublisherDescription("Fleet", "fleet", PLATFORM, ContainerEnvironment(), 8)
STORE = "the-store"
PART = 5 << 20  # S3 takes no smaller ones

pytestmark = pytest.mark.slow


class Store:
    """A bucket, and the calls that uploads make."""

    def __init__(self) -> None:
        self.s3 = boto3.client("s3")
        self.s3.create_bucket(Bucket=STORE)
        self.fleet = Fleet(Aws(), "Serving/Fleet", DESCRIPTION, "machine", STORE, frozenset())
        self.calls: list[str] = []
        self._events = self.fleet.aws.client("s3").meta.events
        self._events.register("before-call.s3", lambda model, **_: self.calls.append(model.name))

    def reject(self, number: int) -> None:
        """Have S3 reject one part."""

        def answer(params: dict[str, Any], **_: Any) -> Any:
            if params["query_string"]["partNumber"] != number:
                return None
            error = {"Error": {"Code": "AccessDenied", "Message": "no"}, "ResponseMetadata": {}}
            return SimpleNamespace(status_code=403), error

        self._events.register("before-call.s3.UploadPart", answer)


@pytest.fixture(name="store")
def _store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(uploads, "_PART_BYTES", PART)
    with mock_aws():
        yield Store()


def repository(directory: Path, size: int) -> Path:
    """A directory whose archive is as large as its file, because random bytes do not compress."""
    (directory / "model" / "1").mkdir(parents=True)
    (directory / "model" / "1" / "weights.bin").write_bytes(random.Random(size).randbytes(size))
    return directory


def test_a_large_archive_is_uploaded_in_parts_and_a_small_one_is_not(store: Store, tmp_path: Path) -> None:
    large, small = repository(tmp_path / "large", 2 * PART + 1000), repository(tmp_path / "small", 1000)

    assert uploads.upload(store.fleet, {"large": large, "small": small}) == {}

    assert Counter(store.calls) == {
        "CreateMultipartUpload": 1,
        "UploadPart": 3,
        "CompleteMultipartUpload": 1,
        "PutObject": 1,
    }
    for key, source in (("large", large), ("small", small)):
        packed = write_archive(source, tmp_path / f"{key}.tar.gz").path.read_bytes()
        uploaded = store.s3.get_object(Bucket=STORE, Key=key)["Body"].read()
        assert gzip.decompress(uploaded) == gzip.decompress(packed)
    assert store.s3.head_object(Bucket=STORE, Key="large")["ETag"].endswith('-3"')


@pytest.mark.parametrize("number", [1, 3])
def test_an_upload_that_fails_leaves_neither_an_object_nor_parts(store: Store, tmp_path: Path, number: int) -> None:
    store.reject(number)
    with pytest.raises(StoreError, match="run the same command again"):
        uploads.upload(store.fleet, {"large": repository(tmp_path, 2 * PART + 1000)})

    assert "AbortMultipartUpload" in store.calls
    assert "Uploads" not in store.s3.list_multipart_uploads(Bucket=STORE)
    assert "Contents" not in store.s3.list_objects_v2(Bucket=STORE)


ENDS = {"Ctrl-C": (signal.SIGINT, KeyboardInterrupt), "SIGTERM, as from a CI": (signal.SIGTERM, SystemExit)}


@pytest.fixture(name="temporary")
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("number", "error"), ENDS.values(), ids=ENDS)
def test_an_interruption_ends_the_transfers_and_leaves_nothing(
    store: Store, tmp_path: Path, temporary: Path, number: signal.Signals, error: type[BaseException]
) -> None:
    """boto3 takes the error that ends a transfer for one of the network, which it would send again for minutes."""
    source, left = repository(tmp_path / "large", 8 * PART), [number]

    attempts: list[str] = []
    blocks: list[int] = []

    def send_slowly(request: Any, **_: Any) -> None:
        attempts.append(request.url)
        with suppress(IndexError):
            os.kill(os.getpid(), left.pop())
        try:
            while block := request.body.read(64 << 10):
                blocks.append(len(block))
                time.sleep(0.05)
        except Exception as error:
            raise HTTPClientError(error=error) from error  # as boto3 does
        request.body.seek(0)

    store.fleet.aws.client("s3").meta.events.register_first("before-send.s3.UploadPart", send_slowly)
    with pytest.raises(error):
        uploads.upload(store.fleet, {str(each): source for each in range(4)})
    gc.collect()  # the files of parts that were never sent, which boto3 does not close

    assert len(attempts) <= 16  # those that had begun
    assert sum(blocks) < 8 * PART
    assert "CompleteMultipartUpload" not in store.calls
    assert "Uploads" not in store.s3.list_multipart_uploads(Bucket=STORE)
    assert list(temporary.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize(("number", "error"), ENDS.values(), ids=ENDS)
def test_an_interruption_ends_the_packing_and_leaves_nothing(
    store: Store,
    tmp_path: Path,
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    error: type[BaseException],
) -> None:
    def endless(source: Path, target: Path, *, progress: Progress) -> Any:
        def go_on(done: int, total: int) -> None:
            os.kill(os.getpid(), number)
            while True:
                progress(done, total)
                time.sleep(0.01)

        return write_archive(source, target, progress=go_on)

    monkeypatch.setattr(uploads, "write_archive", endless)
    with pytest.raises(error):
        uploads.upload(store.fleet, {"large": repository(tmp_path / "large", 1000)})

    assert store.calls == []
    assert list(temporary.iterdir()) == []
