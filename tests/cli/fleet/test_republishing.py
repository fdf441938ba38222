"""What is published is downloaded for the checks of another platform, over connections that break."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pytest
from botocore.response import StreamingBody
from tests.cli.conftest import MODEL, PYTHON_MODEL
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.artifacts import artifact_key, source_key
from cdk_triton.artifacts.archive import write_archive
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.republishing import has_passed_there, judge_published
from cdk_triton.cli.fleet.verdicts import Verdict
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Change, Version
from cdk_triton.protocol.plan import BuildInput, BuildMachine
from cdk_triton.protocol.publication import UploadedRehearsal
from cdk_triton.protocol.rehearsal import RehearsalPass, RehearsedArchive
from cdk_triton.rehearsal.variables import rehearsed_variables
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from golden_messages import Messages

PRESENT = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
NEXT = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")


class Broken(io.BytesIO):
    """A connection that breaks after half of an answer; without a fault it just ends."""

    def __init__(self, content: bytes, fault: Exception | None) -> None:
        super().__init__(content[: len(content) // 2])
        self._fault = fault

    def read(self, amount: int | None = None) -> bytes:
        found = super().read(-1 if amount is None else amount)
        if not found and self._fault is not None:
            raise self._fault
        return found


class AwsDouble:
    """A store with one archive, and others by name; the first connections break."""

    def __init__(
        self, content: bytes, breaks: int, fault: Exception | None, others: Mapping[str, bytes] | None = None
    ) -> None:
        self._content, self._breaks, self._fault, self._others = content, breaks, fault, others or {}
        self.downloads = 0
        self.uploads: dict[str, bytes] = {}

    def client(self, _: str) -> AwsDouble:
        return self

    def get_caller_identity(self) -> dict[str, str]:
        return {"UserId": "alice"}

    def put_object(self, Key: str, Body: IO[bytes], **_: str) -> None:  # noqa: N803  boto3's
        self.uploads[Key] = Body.read()

    def get_object(self, **asked: str) -> dict[str, Any]:
        self.downloads += 1
        is_whole = self.downloads > self._breaks
        content = self._others.get(asked["Key"].rpartition("/")[2], self._content)
        body: io.BytesIO = io.BytesIO(content) if is_whole else Broken(content, self._fault)
        return {"Body": StreamingBody(body, len(content))}


def fleet(aws: AwsDouble, platform: ServingPlatform, **described_as: Any) -> Fleet:
    described = PublisherDescription("Fleet", "fleet", platform, ContainerEnvironment(), 8, **described_as)
    return Fleet(cast(Aws, aws), "Serving/Fleet", described, "machine", "bucket", frozenset())


@pytest.fixture(name="published")
def _published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Version, bytes]:
    """An ensemble `acme`, and its archive."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    version = tmp_path / "acme" / "model" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(MODEL)
    (version / "model.py").write_text(PYTHON_MODEL)
    archive = write_archive(tmp_path / "acme", tmp_path / "archive.tar.gz").path.read_bytes()
    found = ModelRepository.from_directory(tmp_path / "acme")
    source, change = source_key(found), Change("2026-11-27T12:00:00+00:00", "me", "first")
    version_of = Version(layout.target_model("acme", source), artifact_key(found, PRESENT), source, "acme", change)
    return version_of, archive


FAULTS = {
    "a body that ends": None,
    "a timeout": ReadTimeoutError(cast(Any, None), "https://s3", "read timed out"),
    "a reset": ProtocolError("connection reset"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_archive_is_downloaded_again_after_its_connection_broke(
    published: tuple[Version, bytes], fault: Exception | None
) -> None:
    version, archive = published
    aws = AwsDouble(archive, 1, fault)
    (verdict,), failed = judge_published(fleet(aws, PRESENT), fleet(aws, NEXT), {"acme": version})
    assert (verdict.target_model, verdict.errors, failed) == (version.target_model, [], {})
    assert aws.downloads == 2


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_connection_that_breaks_twice_is_the_reason_of_its_ensemble_alone(
    messages: Messages, published: tuple[Version, bytes], fault: Exception | None
) -> None:
    version, archive = published
    aws = AwsDouble(archive, 2, fault)
    verdicts, failed = judge_published(fleet(aws, PRESENT), fleet(aws, NEXT), {"acme": version})
    assert (verdicts, list(failed), aws.downloads) == ([], ["acme"], 2)
    reason = failed["acme"].replace(version.target_model, "acme-KEY.tar.gz")
    messages.record("cdk-triton fleet", re.sub(r"\d+ read, (.*) is \d+", r"5 read, \1 is 10", reason))


def test_an_archive_that_cannot_be_unpacked_is_the_reason_of_its_ensemble_alone(
    messages: Messages, published: tuple[Version, bytes]
) -> None:
    version, archive = published
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("model")
        member.pax_headers = {"path": "model/a\0b"}
        tar.addfile(member)
    other = dataclasses.replace(version, target_model="other-KEY.tar.gz")
    aws = AwsDouble(archive, 0, None, {"other-KEY.tar.gz": buffer.getvalue()})
    (verdict,), failed = judge_published(fleet(aws, PRESENT), fleet(aws, NEXT), {"acme": version, "other": other})
    assert (verdict.listed.ensemble, verdict.errors, list(failed)) == ("acme", [], ["other"])
    messages.record("cdk-triton fleet", failed["other"])


KEY = "7" * 64


GOLDEN = hashlib.sha256(b"golden requests").hexdigest()
MACHINE = BuildMachine("codebuild", 60, {}, BuildInput(None, "", ""))


def passed(environment: Mapping[str, str], *own: str, golden: str = GOLDEN) -> bytes:
    """The pass of a rehearsal that sets the variables `own` itself."""
    document = {"mode": "multi", "environment": dict(environment), "own_variables": list(own), "requests": []}
    return RehearsalPass("acme", KEY, KEY, "image", RehearsedArchive(1, "etag", KEY), golden, document, {}).text()


def rehearsing(aws: AwsDouble) -> tuple[Fleet, Fleet]:
    """The publishers of two platforms with other variables."""
    present, following = (
        fleet(aws, platform, builder=MACHINE, rehearse=True, variables={"STAGE": stage})
        for platform, stage in ((PRESENT, "now"), (NEXT, "after"))
    )
    return present, following


def variables(**own: str) -> dict[str, str]:
    return rehearsed_variables(None, "multi", ContainerEnvironment(variables=own), None)


def republished(version: Version, archive: bytes, text: bytes) -> tuple[list[Verdict], dict[str, str], AwsDouble]:
    """What becomes of a version with golden requests, between platforms with other variables."""
    version = dataclasses.replace(version, rehearsal=KEY)
    aws = AwsDouble(archive, 0, None, {f"{KEY}.json": text, f"{KEY}.zip": b"golden requests"})
    present, following = rehearsing(aws)
    return *judge_published(present, following, {"acme": version}), aws


@pytest.mark.slow
def test_what_was_rehearsed_is_rehearsed_with_the_variables_of_the_other_platform(
    published: tuple[Version, bytes],
) -> None:
    # A deployment has changed STAGE since the rehearsal.
    kept = passed({**variables(STAGE="before"), "OWN": "of the rehearsal"}, "OWN")

    (verdict,), failed, aws = republished(*published, kept)

    assert failed == {}
    assert verdict.rehearsal is not None
    assert (verdict.rehearsal.golden, len(verdict.rehearsal_key)) == (GOLDEN, 64)
    assert verdict.rehearsal.document["environment"] == variables(STAGE="after", OWN="of the rehearsal")
    assert aws.uploads == {layout.golden_upload_key("fleet", "alice", GOLDEN): b"golden requests"}


def test_a_pass_that_cannot_be_read_is_the_reason_of_its_ensemble_alone(
    messages: Messages, published: tuple[Version, bytes]
) -> None:
    verdicts, failed, _ = republished(*published, b"?")
    assert verdicts == []
    messages.record("cdk-triton fleet", failed["acme"])


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (lambda: passed(variables(STAGE="before")), True),
        (lambda: passed({**variables(STAGE="before"), "STAGE": "test"}, "STAGE"), False),
        (lambda: passed(variables(STAGE="before"), golden=KEY), False),
        (lambda: b"?", True),
    ],
    ids=["the same golden requests", "a variable of the rehearsal", "other golden requests", "no pass to compare"],
)
def test_an_ensemble_of_both_platforms_is_unchanged_after_the_same_rehearsal(
    published: tuple[Version, bytes], text: Callable[[], bytes], same: bool
) -> None:
    present, following = rehearsing(AwsDouble(b"", 0, None, {f"{KEY}.json": text()}))
    version = dataclasses.replace(published[0], rehearsal=KEY)
    document = {"mode": "multi", "environment": variables(STAGE="after"), "own_variables": [], "requests": []}
    key = following.description.rehearsal_key(UploadedRehearsal(GOLDEN, document), version.artifact_key)
    there = dataclasses.replace(version, rehearsal=key)

    assert has_passed_there(present, following, version, there) is same
    assert not has_passed_there(present, following, version, dataclasses.replace(version, rehearsal=None))
    assert has_passed_there(present, following, dataclasses.replace(version, rehearsal=None), there)
