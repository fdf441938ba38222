"""What the handler makes of crashes, lost answers, throttling, other committers and tampered objects."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ProxyConnectionError,
    ReadTimeoutError,
    ResponseStreamingError,
    SSLError,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import artifacts
from artifacts import copying, failure, storage
from artifacts.failure import ArtifactError

if TYPE_CHECKING:
    from tests.handlers.conftest import World

    from golden_messages import Messages

SIDES: list[Literal["before-call", "after-call"]] = ["before-call", "after-call"]


def refusal(code: str, status: int, call: str = "AnyCall") -> Callable[[], None]:
    def act() -> None:
        raise ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, call)  # type: ignore[typeddict-item]

    return act


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_a_crash_at_any_call_is_mended_by_the_next_poll(make_world: Callable[[], World], side: Any) -> None:
    for number in itertools.count():
        world = make_world()
        text = world.ensemble("text")
        event = world.publish(text, fleet=True)

        def die(killed: type[BaseException] = world.killed) -> None:
            raise killed

        try:
            with world.disturbed(side, number, die):
                world.poll(event)
        except world.killed:
            assert world.poll(event)
            world.assert_served(text)
        else:
            break
    assert number > 14  # every call was the one that failed, once


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_another_committer_between_any_two_calls_is_adopted(make_world: Callable[[], World], side: Any) -> None:
    for number in itertools.count():
        world = make_world()
        text = world.ensemble("text")
        ours = world.publish(text, fleet=True)
        theirs = world.publish(text, fleet=True, salt="other bytes of the same files")
        met: list[bool] = []

        def run_theirs(world: World = world, theirs: Any = theirs, met: list[bool] = met) -> None:
            met.append(True)
            assert world.poll(theirs)

        with world.disturbed(side, number, run_theirs):
            assert world.poll(ours)
        world.assert_served(text)
        if not met:
            break
    assert number > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        refusal("SlowDown", 503),
        refusal("InternalError", 500),
        refusal("ThrottlingException", 429),
        refusal("AnotherWordForIt", 429),
        refusal("ConditionalRequestConflict", 409),
        refusal("AccessDenied", 403),
    ],
    ids=["slow-down", "internal", "throttled", "throttled-in-other-words", "conflict", "policy-not-yet-there"],
)
def test_a_passing_fault_is_taken_up_by_the_next_poll(world: World, fault: Callable[[], None]) -> None:
    text = world.ensemble("text")
    event = world.publish(text, fleet=True)

    with world.disturbed("before-call", 3, fault):
        assert not world.poll(event)

    assert world.poll(event)
    world.assert_served(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        ConnectionClosedError(endpoint_url="https://s3"),
        ConnectTimeoutError(endpoint_url="https://s3"),
        EndpointConnectionError(endpoint_url="https://s3"),
        HTTPClientError(error="reset by peer"),
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        ProxyConnectionError(proxy_url="https://proxy"),
        ReadTimeoutError(endpoint_url="https://s3"),
        ResponseStreamingError(error="broken pipe"),
        SSLError(endpoint_url="https://s3", error=OSError("unexpected EOF")),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_a_broken_connection_is_taken_up_by_the_next_poll(world: World, fault: Exception) -> None:
    def break_off() -> None:
        raise fault

    event = world.publish(world.ensemble("text"))
    with world.disturbed("before-call", 2, break_off):
        assert not world.poll(event)
    assert world.poll(event)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("waited", "fault", "code"),
    [
        (failure.PROPAGATION_SECONDS + 1, refusal("AccessDenied", 403), "AccessDenied"),
        (failure.PATIENCE_SECONDS + 1, refusal("SlowDown", 503), "SlowDown"),
        (0, refusal("NoSuchBucket", 404), "NoSuchBucket"),
        (0, refusal("InvalidRequest", 400), "InvalidRequest"),
    ],
    ids=["refused-for-good", "throttled-for-good", "no-bucket", "our-mistake"],
)
def test_a_lasting_fault_fails_with_its_reason(
    messages: Messages, world: World, waited: float, fault: Callable[[], None], code: str
) -> None:
    event = {**world.publish(world.ensemble("text")), "StartedAt": time.time() - waited}

    with world.disturbed("before-call", 2, fault), messages.raises(ArtifactError) as failed:
        artifacts.is_complete({**event, "PhysicalResourceId": "p"}, world.context())

    assert code in str(failed.value)
    assert "s3://" in str(failed.value)  # it names the object


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "fault"),
    [(0, refusal("AccessDenied", 403, "GetObject")), (3, refusal("403", 403, "HeadObject"))],
    ids=["plan", "archive"],
)
def test_what_may_not_be_read_may_also_be_missing(
    messages: Messages, world: World, number: int, fault: Callable[[], None]
) -> None:
    """The handler may not list the bucket of the assets, nor that of a user's file, and S3 tells only who may."""
    event = {**world.publish(world.ensemble("text")), "StartedAt": time.time() - failure.PROPAGATION_SECONDS - 1}

    with (
        world.disturbed("before-call", number, fault),
        messages.raises(ArtifactError),
    ):
        artifacts.is_complete({**event, "PhysicalResourceId": "p"}, world.context())


@pytest.mark.slow
def test_a_manifest_that_went_while_it_was_written_is_written_by_the_next_poll(world: World) -> None:
    text = world.ensemble("text")
    event = world.publish(text)
    assert world.poll(event)
    manifest = world.versions(text.manifest)[0]
    world.s3.delete_object(Bucket="the-store", Key=text.manifest)

    def written_by_another() -> None:
        world.s3.put_object(Bucket="the-store", Key=text.manifest, Body=manifest)

    def deleted() -> None:
        world.s3.delete_object(Bucket="the-store", Key=text.manifest)

    with world.disturbed("before-call", 3, written_by_another), world.disturbed("after-call", 3, deleted):
        assert not world.poll(event)

    assert world.poll(event)
    assert text.manifest in world.stored_keys()


@pytest.mark.slow
def test_a_missing_archive_fails_with_its_name(messages: Messages, world: World) -> None:
    text = world.ensemble("text")
    event = world.publish(text)
    world.s3.delete_object(Bucket="the-assets", Key=text.asset)

    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
def test_an_empty_archive_is_rejected(messages: Messages, world: World) -> None:
    text = world.ensemble("text")
    event = world.publish(text)
    world.s3.put_object(Bucket="the-assets", Key=text.asset, Body=b"")

    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["archive", "manifest", "target", "index"])
def test_a_foreign_object_in_the_way_is_named_and_kept(messages: Messages, world: World, what: str) -> None:
    text = world.ensemble("text")
    key = {
        "archive": text.archive,
        "manifest": text.manifest,
        "target": world.prefix + text.target,
        "index": f"{world.prefix}index.json",
    }[what]
    event = world.publish(text, fleet=True)
    world.s3.put_object(Bucket="the-store", Key=key, Body=b"[]")

    with messages.raises(ArtifactError) as failed:
        world.poll(event)

    assert key in str(failed.value)
    assert world.versions(key) == [b"[]"]


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"", b"{", b"{}", b"7"], ids=["empty", "cut off", "an object", "a number"])
def test_an_index_of_somebody_else_is_a_sentence(messages: Messages, world: World, body: bytes) -> None:
    event = world.publish(world.ensemble("text"), fleet=True)
    world.s3.put_object(Bucket="the-store", Key=f"{world.prefix}index.json", Body=body)

    with messages.raises(ArtifactError) as failed:
        world.poll(event)

    assert "Error(" not in str(failed.value)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 40], ids=["another size", "the same size"])
def test_an_archive_that_was_replaced_after_its_commit_is_rejected(messages: Messages, world: World, size: int) -> None:
    text = world.ensemble("text")
    event = world.publish(text, fleet=True)
    world.poll(event)
    world.s3.put_object(Bucket="the-store", Key=text.archive, Body=b"x" * size, Metadata={"artifact-key": text.key})

    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
def test_a_deleted_archive_of_a_commit_is_rejected(messages: Messages, world: World) -> None:
    text = world.ensemble("text")
    event = world.publish(text)
    world.poll(event)
    world.s3.delete_object(Bucket="the-store", Key=text.archive)

    with messages.raises(ArtifactError):
        world.poll(event)


class TestSlices:
    """A copy that takes longer than one invocation. The smallest parts that S3 takes are 5 MiB."""

    @pytest.fixture(autouse=True)
    def _small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(copying, "PART_BYTES", 5 * 2**20)
        # moto dates every upload to 2010; on S3 it begins after the source was written.
        answer = storage.Storage.oldest_upload

        def dated(self: storage.Storage, key: str, *, since: datetime) -> str | None:
            return answer(self, key, since=since - timedelta(days=365 * 30))

        monkeypatch.setattr(storage.Storage, "oldest_upload", dated)

    @pytest.mark.slow
    def test_each_poll_goes_on_where_the_last_one_stopped(self, world: World) -> None:
        large = world.ensemble("large", size=12 * 2**20)
        event = world.publish(large)

        with world.counted("UploadPartCopy", "CreateMultipartUpload") as calls:
            assert not world.poll(event, world.context([300_000, 59_000]))
            assert not world.poll(event, world.context([300_000, 59_000]))
            assert world.poll(event)

        assert calls == ["CreateMultipartUpload", "UploadPartCopy", "UploadPartCopy", "UploadPartCopy"]
        assert world.versions(large.archive) == [large.content()]

    @pytest.mark.slow
    def test_no_time_at_all_begins_nothing(self, world: World) -> None:
        event = world.publish(world.ensemble("text"))

        with world.counted("CreateMultipartUpload") as begun:
            assert not world.poll(event, world.context([59_000]))

        assert begun == []

    @pytest.mark.slow
    def test_an_upload_that_vanished_is_begun_anew(self, world: World) -> None:
        large = world.ensemble("large", size=12 * 2**20)
        event = world.publish(large)
        world.poll(event, world.context([300_000, 59_000]))
        (upload,) = world.s3.list_multipart_uploads(Bucket="the-store")["Uploads"]

        def expire() -> None:
            world.s3.abort_multipart_upload(Bucket="the-store", Key=large.archive, UploadId=upload["UploadId"])

        with world.disturbed("before-call", 5, expire):  # between finding the upload and listing its parts
            assert not world.poll(event)

        assert world.poll(event)
        assert world.versions(large.archive) == [large.content()]


@pytest.mark.slow
def test_an_upload_older_than_its_source_is_not_resumed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PART_BYTES", 5 * 2**20)
    large = world.ensemble("large", size=12 * 2**20)
    event = world.publish(large)
    world.s3.create_multipart_upload(Bucket="the-store", Key=large.archive)  # moto dates it to 2010

    with world.counted("CreateMultipartUpload") as begun:
        assert world.poll(event)

    assert begun == ["CreateMultipartUpload"]


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["1", "2", "3"]),
            st.sampled_from(["Create", "Update", "Delete"]),
            st.sampled_from(SIDES),
            st.integers(0, 40),
        ),
        max_size=8,
    )
)
def test_whatever_happened_one_more_deployment_converges(
    make_world: Callable[[], World], steps: list[tuple[str, str, Any, int]]
) -> None:
    """Creates, updates, deletes, duplicates and late events of three plans, each killed at some call or not at all."""
    world = make_world()
    image = world.ensemble("image")
    texts = {version: world.ensemble("text", version) for version in "123"}
    events = {version: world.publish(text, image, fleet=True) for version, text in texts.items()}

    def die() -> None:
        raise world.killed

    for version, kind, side, number in steps:
        try:
            with world.disturbed(side, number, die):
                world.poll({**events[version], "RequestType": kind, "PhysicalResourceId": "any"})
        except world.killed:
            pass

    assert world.poll(events["1"])
    world.assert_served(texts["1"], image)
    for key in world.stored_keys():
        if not key.endswith("index.json"):
            assert len(world.versions(key)) == 1, f"{key} was changed"
