"""Archives that a store takes from another one, where they were built and tested."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

import artifacts
from artifacts import clients, failure
from artifacts.failure import ArtifactError
from protocol import layout
from protocol.plan import PlannedRehearsal
from protocol.rehearsal import RehearsalPass, RehearsedArchive

if TYPE_CHECKING:
    from tests.handlers.conftest import Ensemble, Event, World

    from golden_messages import Messages

STORE, TESTED = "the-store", "the-tested-store"


class Promotion:
    """The store of the test account, and that of production, which promotes from it."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self._environment = monkeypatch
        world.s3.create_bucket(Bucket=TESTED)

    def commit_there(self, *ensembles: Ensemble) -> None:
        with self._environment.context() as environment:
            environment.setenv("STORE_BUCKET", TESTED)
            assert self.world.poll(self.world.publish(*ensembles, salt="as tested"))

    def plan(self, *ensembles: Ensemble, fleet: bool = False) -> Event:
        """What production's stack asks for; it has published no archive."""
        event = self.world.publish(*ensembles, fleet=fleet)
        properties = event["ResourceProperties"]
        place = {"Bucket": properties["PlanBucket"], "Key": properties["PlanKey"]}
        plan = json.loads(self.world.s3.get_object(**place)["Body"].read())
        for ensemble in ensembles:
            self.world.s3.delete_object(Bucket=place["Bucket"], Key=ensemble.asset)
        return self.world.publish_plan({**plan, "commits": [{**c, "asset": None} for c in plan["commits"]]})

    def of_three_parts(self) -> tuple[Ensemble, Event]:
        """An archive that is promoted in three parts, and production's request for it."""
        self._environment.setattr("artifacts.promotion.PROMOTED_PART_BYTES", 5 * 1024 * 1024)
        text = self.world.ensemble("text", size=12 * 1024 * 1024)
        self.commit_there(text)
        self.production()
        return text, self.plan(text)

    def production(self) -> None:
        self._environment.setenv("PROMOTES_FROM", TESTED)

    def manifest(self, ensemble: Ensemble) -> dict[str, Any]:
        (text,) = self.world.versions(ensemble.manifest)
        document: dict[str, Any] = json.loads(text)
        return document


@pytest.fixture(name="promotion")
def _promotion(world: World, monkeypatch: pytest.MonkeyPatch) -> Promotion:
    return Promotion(world, monkeypatch)


@pytest.mark.slow
def test_the_very_bytes_that_were_tested_are_promoted(world: World, promotion: Promotion) -> None:
    text, image = world.ensemble("text"), world.ensemble("image")
    promotion.commit_there(text, image)
    promotion.production()

    assert world.poll(promotion.plan(text, image, fleet=True))

    world.assert_served(text, image)
    assert world.versions(text.archive) == [text.content("as tested")]
    assert promotion.manifest(text)["promoted_from"] == TESTED


@pytest.mark.slow
def test_the_report_of_the_build_comes_along(world: World, promotion: Promotion) -> None:
    text = world.ensemble("text")
    promotion.commit_there(text)
    found = json.loads(world.s3.get_object(Bucket=TESTED, Key=text.manifest)["Body"].read())
    report = {"build": {"tensorrt": "10.3"}}
    world.s3.put_object(Bucket=TESTED, Key=text.manifest, Body=json.dumps(found | report))
    promotion.production()

    assert world.poll(promotion.plan(text))

    assert promotion.manifest(text)["build"] == {"tensorrt": "10.3"}


@pytest.mark.slow
def test_what_is_promoted_once_needs_the_other_store_no_more(world: World, promotion: Promotion) -> None:
    text = world.ensemble("text")
    promotion.commit_there(text)
    promotion.production()
    event = promotion.plan(text, fleet=True)
    world.poll(event)
    for key in (text.archive, text.manifest):
        world.s3.delete_object(Bucket=TESTED, Key=key)

    with world.counted("UploadPartCopy") as copies:
        assert world.poll({**event, "RequestType": "Update"})

    assert copies == []
    world.assert_served(text)


@pytest.mark.slow
def test_what_nobody_has_tested_is_rejected(messages: Messages, world: World, promotion: Promotion) -> None:
    promotion.commit_there(world.ensemble("text", "1"))
    promotion.production()
    newer = world.ensemble("text", "2")

    with messages.raises(ArtifactError) as refused:
        world.poll(promotion.plan(newer))

    assert f"25.09-a10g, key {newer.key}" in str(refused.value)
    assert world.stored_keys() == set()


@pytest.mark.slow
@pytest.mark.parametrize("manifest", [None, b"{}", b"not JSON"], ids=["another archive", "another form", "no JSON"])
def test_an_archive_that_was_changed_after_its_commit_is_rejected(
    messages: Messages, world: World, promotion: Promotion, manifest: bytes | None
) -> None:
    text = world.ensemble("text")
    promotion.commit_there(text)
    if manifest is None:
        world.s3.put_object(Bucket=TESTED, Key=text.archive, Body=b"another", Metadata={"artifact-key": text.key})
    else:
        world.s3.put_object(Bucket=TESTED, Key=text.manifest, Body=manifest)
    promotion.production()

    with messages.raises(ArtifactError):
        world.poll(promotion.plan(text))

    assert world.stored_keys() == set()


@pytest.mark.slow
def test_an_archive_that_was_never_committed_is_rejected(
    messages: Messages, world: World, promotion: Promotion
) -> None:
    text = world.ensemble("text")
    promotion.commit_there(text)
    world.s3.delete_object(Bucket=TESTED, Key=text.manifest)
    promotion.production()

    with messages.raises(ArtifactError) as refused:
        world.poll(promotion.plan(text))

    assert f"25.09-a10g, key {text.key}" in str(refused.value)
    assert world.stored_keys() == set()


@pytest.mark.slow
def test_a_store_that_promotes_from_none_says_which_stack_to_deploy(
    messages: Messages, world: World, promotion: Promotion
) -> None:
    with messages.raises(ArtifactError):
        world.poll(promotion.plan(world.ensemble("text")))


@pytest.mark.slow
def test_a_handler_that_is_killed_before_the_manifest_leaves_a_promotion_that_says_so(
    world: World, promotion: Promotion
) -> None:
    text = world.ensemble("text")
    promotion.commit_there(text)
    promotion.production()
    event = promotion.plan(text)

    def kill() -> None:
        raise world.killed

    with world.counted() as calls:
        world.poll(event)
    last = len(calls) - 1  # the manifest
    assert calls[last] == "PutObject"
    for key in (text.archive, text.manifest):
        for version in world.s3.list_object_versions(Bucket="the-store", Prefix=key)["Versions"]:
            world.s3.delete_object(Bucket="the-store", Key=key, VersionId=version["VersionId"])

    with world.disturbed("before-call", last, kill), pytest.raises(world.killed):
        world.poll(event)
    assert world.stored_keys() == {text.archive}
    assert world.poll(event)

    assert promotion.manifest(text)["promoted_from"] == TESTED


@pytest.mark.slow
def test_a_large_archive_is_promoted_in_parts_over_several_polls(world: World, promotion: Promotion) -> None:
    text, event = promotion.of_three_parts()

    assert not world.poll(event, world.context([300_000, 300_000, 1]))
    assert world.stored_keys() == set()
    assert world.poll(event)

    world.assert_committed(text)
    assert world.versions(text.archive) == [text.content("as tested")]


@pytest.mark.slow
def test_an_archive_of_another_region_is_read_and_written_if_s3_does_not_copy_it(
    world: World, promotion: Promotion
) -> None:
    """A request through a VPC endpoint cannot copy from another region."""
    text, event = promotion.of_three_parts()

    def reject(**_: object) -> None:
        error = {"Code": "AccessDenied", "Message": "VPC endpoints do not support cross-region requests"}
        response: Any = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}
        raise ClientError(response, "UploadPartCopy")

    client = clients.client("s3")
    client.meta.events.register("before-call.s3.UploadPartCopy", reject)
    with world.counted("UploadPart") as sent:
        assert not world.poll(event, world.context([300_000, 300_000, 300_000, 1]))
        assert world.poll(event)

    assert sent
    assert world.versions(text.archive) == [text.content("as tested")]


def test_a_store_that_does_not_answer_ends_the_request(messages: Messages, world: World, promotion: Promotion) -> None:
    text = world.ensemble("text")
    promotion.commit_there(text)
    promotion.production()
    event = promotion.plan(text)

    def no_route(params: dict[str, Any], **_: object) -> None:
        if TESTED in params["url"]:
            raise ConnectTimeoutError(endpoint_url=f"https://{TESTED}.s3.amazonaws.com")

    clients.client("s3").meta.events.register("before-call.s3.GetObject", no_route)
    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
def test_a_store_whose_bucket_does_not_exist_is_to_be_deployed_first(
    messages: Messages, world: World, promotion: Promotion
) -> None:
    world.s3.delete_bucket(Bucket=TESTED)
    promotion.production()

    with messages.raises(ArtifactError) as refused:
        world.poll(promotion.plan(world.ensemble("text")))

    assert f"s3://{TESTED}" in str(refused.value)


@pytest.mark.slow
def test_a_store_that_does_not_allow_this_account_to_read_has_to_grant_it(
    messages: Messages, world: World, promotion: Promotion
) -> None:
    promotion.production()
    event = promotion.plan(world.ensemble("text"))
    started = time.time() - failure.PROPAGATION_SECONDS - 1

    def denied(params: dict[str, Any], **_: object) -> None:
        if TESTED in params["url"]:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "GetObject")

    clients.client("s3").meta.events.register("before-call.s3.GetObject", denied)
    with messages.raises(ArtifactError) as refused:
        artifacts.is_complete({**event, "StartedAt": started, "PhysicalResourceId": "p"}, world.context())

    assert "grant_read" in str(refused.value)


@pytest.mark.slow
def test_an_object_of_somebody_else_is_not_promoted(messages: Messages, world: World, promotion: Promotion) -> None:
    text = world.ensemble("text")
    promotion.commit_there(text)
    etag = world.s3.put_object(Bucket=TESTED, Key=text.archive, Body=b"of somebody else")["ETag"]
    manifest = json.dumps({"archive": {"key": text.archive, "size": 16, "etag": etag}})
    world.s3.put_object(Bucket=TESTED, Key=text.manifest, Body=manifest)
    promotion.production()

    with messages.raises(ArtifactError):
        world.poll(promotion.plan(text))

    assert world.stored_keys() == set()


class Rehearsed:
    """An archive of the test account with a pass, and production's request for it."""

    key = "7" * 64

    def __init__(self, world: World, promotion: Promotion) -> None:
        self.world = world
        self.text = world.ensemble("text")
        promotion.commit_there(self.text)
        promotion.production()
        plan = promotion.plan(self.text)["ResourceProperties"]
        self.document = json.loads(world.s3.get_object(Bucket=plan["PlanBucket"], Key=plan["PlanKey"])["Body"].read())
        self.event = self.event_of(self.key)
        self.place = layout.pass_key("text", self.text.key, self.key)

    def event_of(self, *keys: str) -> dict[str, Any]:
        """The request of a stack that needs the passes with these keys."""
        rehearsals = [
            PlannedRehearsal("text", self.text.key, key, "tritonserver:25.09", (), "0" * 64, {}) for key in keys
        ]
        plan = {**self.document, "rehearsals": [asdict(each) for each in rehearsals]}
        return self.world.publish_plan(plan) | {"StackId": "stack"}

    def passed_there(self, etag: str | None = None, key: str = key) -> None:
        found = self.world.s3.head_object(Bucket=TESTED, Key=self.text.archive)
        archive = RehearsedArchive(found["ContentLength"], etag or found["ETag"], "0" * 64)
        result = {"load_seconds": 2}
        found_there = RehearsalPass("text", self.text.key, key, "tritonserver:25.09", archive, "0" * 64, {}, result)
        text = found_there.text()
        self.world.s3.put_object(Bucket=TESTED, Key=layout.pass_key("text", self.text.key, key), Body=text)


@pytest.fixture
def rehearsed(world: World, promotion: Promotion, monkeypatch: pytest.MonkeyPatch) -> Rehearsed:
    monkeypatch.setattr("artifacts.rehearsals.rolls_back", lambda *_: False)
    return Rehearsed(world, promotion)


@pytest.mark.slow
def test_a_pass_is_promoted_with_its_archive(world: World, rehearsed: Rehearsed) -> None:
    rehearsed.passed_there()

    assert world.poll(rehearsed.event)

    found = RehearsalPass.parse(world.versions(rehearsed.place)[0])
    assert (found.promoted_from, found.result) == (TESTED, {"load_seconds": 2})
    assert found.archive.etag == world.s3.head_object(Bucket=STORE, Key=rehearsed.text.archive)["ETag"]
    world.s3.delete_object(Bucket=TESTED, Key=rehearsed.place)
    assert world.poll(rehearsed.event)


@pytest.mark.slow
def test_passes_for_which_a_poll_has_no_time_are_promoted_by_the_next_one(world: World, rehearsed: Rehearsed) -> None:
    keys = [digit * 64 for digit in "123"]
    for key in keys:
        rehearsed.passed_there(key=key)
    event = rehearsed.event_of(*keys)
    # The archive and one pass get time.
    assert not world.poll(event, world.context([300_000, 300_000, *[280_000] * 9]))

    promoted = [key for key in keys if layout.pass_key("text", rehearsed.text.key, key) in world.stored_keys()]
    assert len(promoted) == 1
    assert world.poll(event)


@pytest.mark.slow
@pytest.mark.parametrize("etag", [None, '"of another archive"'], ids=["no pass", "another archive"])
def test_a_store_that_cannot_rehearse_needs_the_pass_of_the_other_store(
    messages: Messages, world: World, rehearsed: Rehearsed, etag: str | None
) -> None:
    if etag is not None:
        rehearsed.passed_there(etag)

    with messages.raises(ArtifactError):
        world.poll(rehearsed.event)

    assert rehearsed.place not in world.stored_keys()


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"of another size", None], ids=["another size", "another SHA-256"])
def test_a_pass_for_an_archive_that_was_built_again_there_is_not_promoted(
    world: World, rehearsed: Rehearsed, body: bytes | None
) -> None:
    text = rehearsed.text
    there = json.loads(world.s3.get_object(Bucket=TESTED, Key=text.manifest)["Body"].read())
    there["build"] = {"archive": {"sha256": "1" * 64}}
    world.s3.put_object(Bucket=TESTED, Key=text.manifest, Body=json.dumps(there))
    with pytest.raises(ArtifactError):
        world.poll(rehearsed.event)
    assert text.archive in world.stored_keys()
    if body is not None:
        found = world.s3.put_object(Bucket=TESTED, Key=text.archive, Body=body, Metadata={"artifact-key": text.key})
        there["archive"] |= {"size": len(body), "etag": found["ETag"]}
        world.s3.put_object(Bucket=TESTED, Key=text.manifest, Body=json.dumps(there))
    rehearsed.passed_there()

    with pytest.raises(ArtifactError, match="does not have a pass"):
        world.poll(rehearsed.event)

    assert rehearsed.place not in world.stored_keys()
