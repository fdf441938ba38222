"""The upload of archives in parts, and what is left of one that fails."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cdk_triton import ServingPlatform
from cdk_triton.artifacts import write_archive
from cdk_triton.artifacts.publisher_description import PublisherDescription
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
        assert store.s3.get_object(Bucket=STORE, Key=key)["Body"].read() == packed
    assert store.s3.head_object(Bucket=STORE, Key="large")["ETag"].endswith('-3"')


@pytest.mark.parametrize("number", [1, 3])
def test_an_upload_that_fails_leaves_neither_an_object_nor_parts(store: Store, tmp_path: Path, number: int) -> None:
    store.reject(number)
    with pytest.raises(StoreError, match="run the same command again"):
        uploads.upload(store.fleet, {"large": repository(tmp_path, 2 * PART + 1000)})

    assert "AbortMultipartUpload" in store.calls
    assert "Uploads" not in store.s3.list_multipart_uploads(Bucket=STORE)
    assert "Contents" not in store.s3.list_objects_v2(Bucket=STORE)
