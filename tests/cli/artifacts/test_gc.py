"""`cdk-triton artifacts gc`: what it deletes, what it keeps, and what it does when somebody comes in between."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts import sweep
from cdk_triton.cli.artifacts.store import Store, open_store
from cdk_triton.errors import StoreError
from cdk_triton.protocol import layout

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import World

    from golden_messages import Messages

WHY = {"older_than_days": 30, "keep_last": 0}


def collected(run: Any, world: World, *more: str) -> dict[str, Any]:
    outcome = run("artifacts", "gc", "--store", world.stack, "--format", "json", *more)
    assert (outcome.status, outcome.err) == (0, "")
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def names(document: dict[str, Any]) -> list[str]:
    return [each["name"] for each in document["garbage"]]


@pytest.mark.slow
def test_nothing_is_deleted_without_yes(messages: Messages, run: Any, world: World) -> None:
    key = world.commit("text", "1")
    before = world.stored()

    found = collected(run, world)

    assert (names(found), found["deleted"], found["kept"]) == ([f"artifacts/text/{key}"], False, 0)
    assert world.stored() == before
    outcome = run("artifacts", "gc", "--store", world.stack)
    messages.record("cdk-triton artifacts", outcome.out.splitlines()[-1])


@pytest.mark.slow
def test_what_is_young_stays_by_default(
    messages: Messages, run: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "age", timedelta(days=29))
    world.commit("text", "1")
    outcome = run("artifacts", "gc", "--store", world.stack, "--yes")
    assert outcome.status == 0
    messages.record("cdk-triton artifacts", outcome.out.splitlines()[0].replace(world.bucket, "BUCKET"))
    assert len(world.stored()) == 2
    assert len(names(collected(run, world, "--older-than", "28"))) == 1
    assert len(names(collected(run, world, "--older-than", "28d"))) == 1


def test_the_last_ones_stay_where_the_user_says_so(run: Any, world: World) -> None:
    keys = [world.commit("text", name) for name in ("1", "2")]

    assert set(names(collected(run, world))) == {f"artifacts/text/{key}" for key in keys}
    assert collected(run, world, "--keep-last", "2")["garbage"] == []
    assert collected(run, world, "--keep-last", "2", "--yes")["garbage"] == []
    assert len(world.stored()) == 4


@pytest.mark.parametrize("days", ["0d", "-1", "36501", "1h"])
def test_an_age_that_means_nothing_is_a_usage_error(messages: Messages, run: Any, world: World, days: str) -> None:
    outcome = run("artifacts", "gc", "--store", world.stack, "--older-than", days)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton artifacts", outcome.said)


def test_the_copies_of_fleets_are_counted_by_themselves(messages: Messages, run: Any, world: World) -> None:
    served, _ = world.commit("text", "served"), world.commit("text", "unused")
    world.serve("fleet", "text-1.tar.gz", served)
    world.index("fleet", {"text": "text-1.tar.gz"})
    outcome = run("artifacts", "gc", "--store", world.stack)
    (summary,) = [line for line in outcome.out.splitlines() if line.startswith(f"s3://{world.bucket}")]
    messages.record("cdk-triton artifacts", re.sub(r"\(\d+ B\)", "(SIZE)", summary.replace(world.bucket, "BUCKET")))


def test_with_yes_only_what_nothing_uses_is_deleted(run: Any, world: World) -> None:
    used, unused, served, old = (world.commit("text", name) for name in ("used", "unused", "served", "old"))
    world.model("one", ModelDataUrl=world.archive("text", used))
    world.model("fleet", Mode="MultiModel", ModelDataUrl=f"s3://{world.bucket}/fleets/fleet/25.09-a10g/")
    world.serve("fleet", "text-1.tar.gz", served)
    stale = world.serve("fleet", "text-0.tar.gz", old)
    world.index("fleet", {"text": "text-1.tar.gz"})
    world.put("something/else", b"of the user's own")
    before = world.stored()

    found = collected(run, world, "--yes")

    gone = {f"artifacts/text/{key}/{file}" for key in (unused, old) for file in ("model.tar.gz", "manifest.json")}
    assert before - world.stored() == gone | {stale}
    assert found["deleted"]
    assert {key for each in found["garbage"] for key in each["objects"]} == gone | {stale}


def test_a_deletion_can_be_taken_back(run: Any, world: World) -> None:
    world.commit("text", "1")
    collected(run, world, "--yes")
    versions = world.s3.list_object_versions(Bucket=world.bucket, Prefix="artifacts/")
    assert len(versions["DeleteMarkers"]) == len(versions["Versions"]) == 2


@pytest.mark.parametrize(
    "container",
    [
        {"ModelDataUrl": "s3://{bucket}/artifacts/text/{key}/model.tar.gz"},
        {"ModelDataUrl": "https://{bucket}.s3.us-east-1.amazonaws.com/artifacts/text/{key}/model.tar.gz"},
        {"ModelDataUrl": "https://s3.us-east-1.amazonaws.com/{bucket}/artifacts/text/{key}/model.tar.gz"},
        {"ModelDataUrl": "s3://arn:aws:s3:us-east-1:123456789012:accesspoint/ap/artifacts/text/{key}/model.tar.gz"},
        {"ModelDataUrl": "s3://{bucket}/artifacts/", "Mode": "MultiModel"},
        {"ModelDataUrl": "s3://{bucket}/artifacts", "Mode": "MultiModel"},
        {
            "ModelDataSource": {
                "S3DataSource": {
                    "S3Uri": "s3://{bucket}/artifacts/text/{key}/",
                    "S3DataType": "S3Prefix",
                    "CompressionType": "None",
                }
            }
        },
    ],
    ids=["key", "https-host", "https-path", "access-point", "prefix", "prefix-without-slash", "data-source"],
)
def test_whatever_way_a_model_refers_to_an_archive_it_stays(run: Any, world: World, container: Any) -> None:
    key = world.commit("text", "1")
    filled = json.loads(json.dumps(container).replace("{bucket}", world.bucket).replace("{key}", key))
    world.model("model", **filled)
    assert names(collected(run, world, "--yes")) == []
    assert len(world.stored()) == 2


def test_a_model_of_another_bucket_keeps_nothing_here(run: Any, world: World) -> None:
    key = world.commit("text", "1")
    world.model("model", ModelDataUrl=f"s3://another-bucket/artifacts/text/{key}/model.tar.gz")
    assert names(collected(run, world)) == [f"artifacts/text/{key}"]


def test_a_container_in_a_pipeline_counts(run: Any, world: World) -> None:
    key = world.commit("text", "1")
    world.sagemaker.create_model(
        ModelName="pipeline",
        ExecutionRoleArn="arn:aws:iam::123456789012:role/role",
        Containers=[{"Image": "first"}, {"Image": "second", "ModelDataUrl": world.archive("text", key)}],
    )
    assert names(collected(run, world)) == []


def test_a_prefix_without_an_index_is_kept_as_a_whole(run: Any, world: World) -> None:
    key = world.commit("text", "1")
    world.serve("fleet", "text-1.tar.gz", key)
    world.model("fleet", Mode="MultiModel", ModelDataUrl=f"s3://{world.bucket}/fleets/fleet/25.09-a10g/")
    assert names(collected(run, world)) == []


@pytest.mark.parametrize(
    ("state", "members", "kept"),
    [
        ("running", None, True),
        ("running", ["the key"], True),
        ("running", ["another"], False),
        ("ended", ["the key"], False),
    ],
)
def test_a_build_that_has_not_ended_keeps_its_artifact(
    run: Any, world: World, state: str, members: list[str] | None, kept: bool
) -> None:
    key = world.commit("text", "1")
    world.lock(key, state, members and [key if each == "the key" else each for each in members])
    assert (names(collected(run, world)) == []) is kept


@pytest.mark.parametrize(("state", "kept"), [("running", True), ("ended", False)])
def test_a_rehearsal_that_has_not_ended_keeps_its_artifact(run: Any, world: World, state: str, kept: bool) -> None:
    key, rehearsal = world.commit("text", "1"), "7" * 64
    world.put(layout.pass_key("text", key, "6" * 64), b"the pass of another rehearsal")
    world.put(layout.kept_golden_key("text", key, "6" * 64), b"its golden requests")
    world.lock(key, state, [rehearsal], key=rehearsal)
    before = world.stored()

    collected(run, world, "--yes")

    assert world.stored() == (before if kept else {each for each in before if each.startswith("staging/")})


@pytest.mark.slow
def test_more_objects_than_one_page_and_one_call_takes(run: Any, world: World) -> None:
    for number in range(1001):
        world.put(f"artifacts/text/{number:064x}/model.tar.gz", b".")
    assert len(names(collected(run, world, "--yes"))) == 1001
    assert world.stored() == set()


def test_an_index_that_cannot_be_read_stops_it(messages: Messages, run: Any, world: World) -> None:
    world.commit("text", "1")
    world.put("fleets/fleet/25.09-a10g/index.json", b'{"current": ["text"]}')

    outcome = run("artifacts", "gc", "--store", world.stack, "--yes")

    assert (outcome.status, outcome.out) == (1, "")
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))
    assert len(world.stored()) == 3


def test_a_bucket_that_keeps_no_versions_stops_it(messages: Messages, run: Any, world: World) -> None:
    world.commit("text", "1")
    status = {"Status": "Suspended"}
    world.s3.put_bucket_versioning(Bucket=world.bucket, VersioningConfiguration=status)
    try:
        outcome = run("artifacts", "gc", "--store", world.stack, "--yes")
    finally:
        world.s3.put_bucket_versioning(Bucket=world.bucket, VersioningConfiguration={"Status": "Enabled"})
    assert (outcome.status, outcome.out) == (1, "")
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))
    assert len(world.stored()) == 2


class Interrupting:
    """Reads everything, and lets something happen before the reading of a number."""

    def __init__(self, store: Store, number: int, act: Callable[[], object]) -> None:
        self._store = store
        self._number = number
        self._act = act
        self.count = 0

    def __call__(self, going: Any, gone: Any) -> sweep.Survey:
        self.count += 1
        if self.count == self._number:
            self._act()
        return sweep.survey(self._store, timedelta(days=30), going, gone)


READINGS = (1, 2, 3)  # before anything, after the manifests, after the archives


@pytest.mark.parametrize("number", READINGS)
def test_a_model_that_comes_in_between_gets_everything_back(messages: Messages, world: World, number: int) -> None:
    key = world.commit("text", "1")
    before = world.stored()
    store = open_store(world.stack)
    chosen = sweep.survey(store, timedelta(days=30)).free
    look = Interrupting(store, number, lambda: world.model("late", ModelDataUrl=world.archive("text", key)))

    if number == 1:
        assert sweep.delete(store, chosen, look, WHY) == ((), None)
    else:
        with messages.raises(StoreError):
            sweep.delete(store, chosen, look, WHY)

    assert world.stored() == before


@pytest.mark.parametrize("number", READINGS)
def test_an_index_that_comes_in_between_gets_everything_back(messages: Messages, world: World, number: int) -> None:
    world.serve("fleet", "text-1.tar.gz", world.commit("text", "1"))
    before = world.stored()
    store = open_store(world.stack)
    chosen = sweep.survey(store, timedelta(days=30)).free
    look = Interrupting(store, number, lambda: world.index("fleet", {"text": "text-1.tar.gz"}))

    if number == 1:
        assert sweep.delete(store, chosen, look, WHY) == ((), None)
    else:
        with messages.raises(StoreError):
            sweep.delete(store, chosen, look, WHY)

    assert before <= world.stored()


@pytest.mark.parametrize("number", READINGS)
@pytest.mark.parametrize("fault", [KeyboardInterrupt, ClientError({"Error": {"Code": "Throttling"}}, "ListModels")])
def test_a_reading_that_fails_leaves_everything_as_it_was(world: World, number: int, fault: Any) -> None:
    world.commit("text", "1")
    before = world.stored()
    store = open_store(world.stack)
    chosen = sweep.survey(store, timedelta(days=30)).free

    def fail() -> None:
        raise fault

    with pytest.raises((KeyboardInterrupt, ClientError)):
        sweep.delete(store, chosen, Interrupting(store, number, fail), WHY)

    assert world.stored() == before


@pytest.mark.parametrize("number", READINGS)
def test_a_deployment_in_progress_stops_it(
    messages: Messages, world: World, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.commit("text", "1")
    before = world.stored()
    store = open_store(world.stack)
    chosen = sweep.survey(store, timedelta(days=30)).free
    # The stack of the local AWS is finished before one can look; the double says that it still goes on.
    look = Interrupting(store, number, lambda: monkeypatch.setattr(sweep, "_deployments", lambda aws: iter(["Models"])))

    with messages.raises(StoreError):
        sweep.delete(store, chosen, look, WHY)

    assert world.stored() == before


@pytest.mark.slow
@pytest.mark.parametrize("number", READINGS)
def test_a_commit_in_between_leaves_archive_and_manifest(messages: Messages, world: World, number: int) -> None:
    world.commit("text", "1")
    before = world.stored()
    store = open_store(world.stack)
    chosen = sweep.survey(store, timedelta(days=30)).free

    def commit_again() -> None:
        if number == 3:  # a deployment that found neither writes both
            world.commit("text", "1")
        elif number == 2:  # one that found the archive writes the manifest
            world.put(next(key for key in before if key.endswith("manifest.json")), b"{}")

    look = Interrupting(store, number, commit_again)
    if number == 1:
        assert len(sweep.delete(store, chosen, look, WHY).deleted) == 1
        return
    with messages.raises(StoreError):
        sweep.delete(store, chosen, look, WHY)

    assert world.stored() == before


def test_a_manifest_does_not_come_back_over_another_archive(messages: Messages, world: World) -> None:
    key = world.commit("text", "1")
    store = open_store(world.stack)
    chosen = sweep.survey(store, timedelta(days=30)).free
    look = Interrupting(store, 3, lambda: world.put(f"artifacts/text/{key}/model.tar.gz", b"built again"))

    with messages.raises(StoreError):
        sweep.delete(store, chosen, look, WHY)

    assert world.stored() == {f"artifacts/text/{key}/model.tar.gz"}


def test_a_manifest_does_not_come_back_without_its_archive(messages: Messages, world: World) -> None:
    """A deployment builds what is missing altogether, and fails at a manifest whose archive is missing."""
    key = world.commit("text", "1")
    store = open_store(world.stack)
    chosen = sweep.survey(store, timedelta(days=30)).free

    def come_and_go() -> None:
        world.s3.delete_object(Bucket=world.bucket, Key=f"artifacts/text/{key}/model.tar.gz")
        world.model("late", ModelDataUrl=world.archive("text", key))

    with messages.raises(StoreError):
        sweep.delete(store, chosen, Interrupting(store, 2, come_and_go), WHY)

    assert world.stored() == set()


def test_only_stacks_with_artifacts_count_as_deployments(world: World) -> None:
    def stacks(status: str, template: object, *resources: str) -> list[str]:
        return list(sweep._deployments(OneStack(status, template, resources)))  # type: ignore[arg-type]

    ours = {"Resources": {"Artifacts": {"Type": "Custom::TritonArtifacts"}}}
    assert stacks("UPDATE_IN_PROGRESS", ours) == ["Models"]
    assert stacks("UPDATE_IN_PROGRESS", "Resources:\n  Artifacts:\n    Type: Custom::TritonArtifacts\n") == ["Models"]
    assert stacks("UPDATE_IN_PROGRESS", {"Resources": {}}, "AWS::S3::Bucket", "Custom::TritonArtifacts") == ["Models"]
    assert stacks("UPDATE_IN_PROGRESS", {"Resources": {}}, "AWS::S3::Bucket") == []
    assert stacks("UPDATE_COMPLETE", ours) == []
    assert stacks("REVIEW_IN_PROGRESS", ours) == []


class OneStack:
    """A double of the region's CloudFormation."""

    def __init__(self, status: str, template: object, resources: tuple[str, ...]) -> None:
        self._status = status
        self._template = template
        self._resources = resources

    def pages(self, service: str, operation: str, member: str, **arguments: Any) -> list[Any]:
        if operation == "list_stack_resources":
            assert (service, member, arguments) == ("cloudformation", "StackResourceSummaries", {"StackName": "arn"})
            return [{"ResourceType": each} for each in self._resources]
        assert (service, operation, member) == ("cloudformation", "list_stacks", "StackSummaries")
        found = self._status in arguments["StackStatusFilter"]
        return [{"StackId": "arn", "StackName": "Models"}] if found else []

    def client(self, service: str) -> OneStack:
        return self

    def get_template(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's
        return {"TemplateBody": self._template}


@pytest.mark.slow
def test_the_passes_of_an_artifact_are_deleted_with_it(run: Any, world: World) -> None:
    key = world.commit("text", "1")
    world.rehearse("text", key, "r")

    collected(run, world, "--yes")

    assert world.stored() == set()
