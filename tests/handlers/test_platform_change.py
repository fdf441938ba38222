"""A change of the platform of a `TritonMultiModel` with a publisher: nothing that is live is left behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

import artifacts
from artifacts import platform_change
from artifacts.failure import ArtifactError
from artifacts.invocation import Invocation
from artifacts.turn import TURN_MILLIS
from cdk_triton.protocol import layout
from golden_messages import Messages
from memory_aws import S3, Clock
from protocol.catalogue import Change, Entry, Version
from protocol.plan import Commit, ServedArchives, ServedCopy, StackPlan
from publisher_machine import storage_on

STORE, ASSETS, FLEET = "the-store", "the-assets", "fleet"
OLD, NEW = "25.09-a10g", "26.05-a10g"
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/Serving/0"

Live = Mapping[str, int | None]
"""The number of the version of each ensemble; None for one that was unpublished."""


class World:
    """A store, the catalogues of two platforms, and a stack that changes from one to the other."""

    def __init__(self, old: Live, new: Live, of_stack: tuple[str, ...] = ()) -> None:
        self.s3 = S3(Clock())
        self.status: str | Exception = "UPDATE_IN_PROGRESS"
        self.asked: list[str] = []
        self.millis: Callable[[], int] = lambda: 300_000
        for platform, live in ((OLD, old), (NEW, new)):
            for ensemble, version in live.items():
                self._catalogue(platform, ensemble, version)
        self._of_stack = of_stack

    def _catalogue(self, platform: str, ensemble: str, number: int | None) -> None:
        change = Change("2026-11-25T13:00:00+00:00", "somebody", "execution")
        source = f"{number or 0:x}" * 64
        version = Version(layout.target_model(ensemble, source), "1" * 64, source, "repository", change)
        entry = Entry(FLEET, ensemble, (version,), change if number is None else None)
        self.s3.put(STORE, layout.catalogue_key(FLEET, platform, ensemble), entry.text())

    def event(self, old: str | None = OLD, new: str | None = NEW, serves: str | None = None) -> dict[str, Any]:
        """An update of the custom resource: the publisher's platforms, and the platform that will serve."""
        index = layout.index_key(FLEET, serves or new or NEW)
        copies, commits = [], []
        for name in self._of_stack:
            self.s3.put(ASSETS, f"triton-{name}", b"archive")
            key, archive, manifest = "2" * 64, f"artifacts/{name}", f"artifacts/{name}.json"
            copies.append(ServedCopy(name, key, archive, f"fleets/{name}"))
            commits.append(Commit(name, key, new or NEW, f"triton-{name}", archive, manifest))
        text = StackPlan(tuple(commits), ServedArchives(FLEET, index, tuple(copies))).text()
        sha256 = hashlib.sha256(text).hexdigest()
        self.s3.put(ASSETS, f"triton-plan-{sha256}.json", text)
        place = {"PlanBucket": ASSETS, "PlanKey": f"triton-plan-{sha256}.json", "PlanSha256": sha256}
        return {
            "RequestType": "Update",
            "StackId": STACK,
            "ResourceProperties": place | published(new),
            "OldResourceProperties": published(old),
        }

    def poll(self, event: dict[str, Any]) -> dict[str, Any]:
        """One poll."""
        storage = storage_on(self.s3)
        invocation = Invocation(storage, {}, self.millis, stack_status=self._stack_status)
        return artifacts.poll(event, invocation)

    def _stack_status(self, stack: str) -> str:
        self.asked.append(stack)
        if isinstance(self.status, Exception):
            raise self.status
        return self.status

    def run(self, event: dict[str, Any]) -> int:
        """Poll until it is done, as the waiter does; the number of polls."""
        for number in range(1, 1000):
            answer = self.poll(event)
            if answer["IsComplete"]:
                return number
            event = {**event, "Polled": json.loads(json.dumps(answer))}
        raise AssertionError("it does not end")

    @property
    def has_changed(self) -> bool:
        """Whether the deployment has written the index of the new platform."""
        return self.s3.get(STORE, layout.index_key(FLEET, NEW)) is not None


def published(platform: str | None) -> dict[str, str]:
    """The properties of a resource whose `TritonMultiModel` has a publisher; without a platform it has none."""
    if platform is None:
        return {}
    command = f"cdk-triton fleet publish --all --platform {platform.split('-')[0]}/ml.g5.xlarge --fleet Serving/Fleet"
    return {"PublishedPlatform": platform, "PublishCommand": command}


def test_what_is_not_published_for_the_new_platform_fails_the_deployment_first(messages: Messages) -> None:
    live = {f"tenant-{number}": 1 for number in range(12)}
    world = World({**live, "gone": None}, {"tenant-0": 1, "tenant-1": 2, "tenant-2": None})
    with messages.raises(ArtifactError) as refused:
        world.run(world.event())
    assert str(refused.value).startswith("11 live ensembles")
    assert "--platform 26.05/ml.g5.xlarge --fleet Serving/Fleet" in str(refused.value)
    assert not world.has_changed
    assert world.asked == [STACK]


def test_one_that_is_missing_is_named(messages: Messages) -> None:
    world = World({"one": 1, "two": 1}, {"two": 1})
    with messages.raises(ArtifactError):
        world.run(world.event())


def test_an_object_that_is_not_an_entry_is_not_compared() -> None:
    world = World({"one": 1}, {"one": 1})
    prefix = layout.catalogue_prefix(FLEET, OLD)
    entry = world.s3.get(STORE, layout.catalogue_key(FLEET, OLD, "one"))
    assert entry is not None
    for name in ("copies/one.json", "README"):
        world.s3.put(STORE, prefix + name, entry)
    world.run(world.event())
    assert world.has_changed


def test_an_entry_that_cannot_be_read_fails_the_deployment_first(messages: Messages) -> None:
    world = World({"one": 1}, {"one": 1})
    world.s3.put(STORE, layout.catalogue_key(FLEET, OLD, "one"), b"{")
    with messages.raises(ArtifactError):
        world.run(world.event())
    assert not world.has_changed


def test_long_names_do_not_cut_the_command() -> None:
    world = World({f"{number}{'n' * 199}": 1 for number in range(9)}, {})
    with pytest.raises(ArtifactError) as rejected:
        world.run(world.event())
    assert "and 4 more" not in str(rejected.value)  # the message is cut
    assert "--platform 26.05/ml.g5.xlarge --fleet Serving/Fleet`, then deploy the change again" in str(rejected.value)


def test_the_deployment_goes_on_when_everything_is_published() -> None:
    world = World({"one": 1, "two": 2, "gone": None}, {"one": 1, "two": 2, "more": 1})
    assert world.run(world.event()) == 1
    assert world.has_changed


def test_what_the_stack_itself_names_need_not_be_published() -> None:
    world = World({"one": 1, "two": 1}, {"one": 1}, of_stack=("two",))
    world.run(world.event())
    assert world.has_changed


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])
def test_a_rollback_goes_on_whatever_is_published(status: str) -> None:
    world = World({"one": 1}, {})
    world.status = status
    world.run(world.event())
    assert world.has_changed


def test_a_rollback_reads_no_document_of_the_catalogue() -> None:
    """One that a newer library has written, for example, would fail it."""
    world = World({"one": 1}, {})
    for platform in (OLD, NEW):
        world.s3.put(STORE, layout.catalogue_key(FLEET, platform, "one"), b'{"schema": 99}')
    world.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.run(world.event())
    assert world.has_changed


ENDPOINT = "https://cloudformation.eu-west-1.amazonaws.com"
UNKNOWN = {
    "no endpoint": ConnectTimeoutError(endpoint_url=ENDPOINT),
    "no answer": ReadTimeoutError(endpoint_url=ENDPOINT),
    "no permission": ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStacks"),
}


@pytest.mark.parametrize("error", UNKNOWN.values(), ids=UNKNOWN)
def test_a_stack_whose_status_is_not_known_is_compared(error: Exception) -> None:
    world = World({"one": 1}, {"one": 1})
    world.status = error
    world.run(world.event())
    assert world.has_changed
    world = World({"one": 1}, {})
    world.status = error
    with pytest.raises(ArtifactError, match=r"^1 live ensemble"):
        world.run(world.event())


def test_a_throttled_question_for_the_status_is_repeated() -> None:
    world = World({"one": 1}, {})
    world.status = ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "DescribeStacks")
    assert not world.poll(world.event())["IsComplete"]
    world.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.run(world.event())
    assert world.has_changed


def test_a_cloudformation_that_does_not_answer_does_not_outlast_a_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def client(service: str, config: Any) -> Any:
        made.append(config)
        raise ConnectTimeoutError(endpoint_url=service)

    monkeypatch.setattr(boto3, "client", client)
    world = World({"one": 1}, {"one": 1})
    storage = storage_on(world.s3)
    assert artifacts.poll(world.event(), Invocation(storage, {}, world.millis))["IsComplete"]
    (config,) = made
    seconds = (config.connect_timeout + config.read_timeout) * config.retries["total_max_attempts"]
    assert seconds * 1000 <= TURN_MILLIS


@pytest.mark.parametrize(
    "platforms",
    [(NEW, NEW, NEW), (None, NEW, NEW), (OLD, None, OLD)],
    ids=["the same platform", "a publisher is added", "the publisher is removed"],
)
def test_what_is_no_change_of_the_platform_is_not_compared(platforms: tuple[str | None, str | None, str]) -> None:
    world = World({"one": 1}, {})
    world.run(world.event(*platforms))
    assert world.asked == []


def test_a_publisher_that_is_removed_with_the_change_is_compared(messages: Messages) -> None:
    world = World({"one": 1, "two": 1}, {"two": 1})
    with messages.raises(ArtifactError):
        world.run(world.event(OLD, None, serves=NEW))
    assert not world.has_changed

    world = World({"two": 1}, {"two": 1})
    world.run(world.event(OLD, None, serves=NEW))
    assert world.has_changed


def plainly_missing(old: Live, new: Live) -> int:
    return sum(version is not None and new.get(name) != version for name, version in old.items())


lives = st.dictionaries(st.sampled_from([f"tenant-{number}" for number in range(9)]), st.none() | st.integers(1, 2))


@pytest.mark.slow
@given(lives, lives, st.integers(1, 4), st.integers(1, 3))
def test_any_number_of_polls_finds_the_same(old: Live, new: Live, batch: int, looks: int) -> None:
    """A turn ends after some looks at the clock."""
    world, clock = World(old, new), iter(list[int]())

    def millis() -> int:
        nonlocal clock
        return next(clock, 0)

    world.millis = millis
    event, missing = world.event(), plainly_missing(old, new)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform_change, "BATCH", batch)
        for number in range(100):
            clock = iter([300_000] * (looks + (50 if number > 20 else 0)))
            answer = attempted(world, event)
            if isinstance(answer, str) or answer["IsComplete"]:
                break
            event = {**event, "Polled": json.loads(json.dumps(answer))}
    assert isinstance(answer, str) is (missing > 0)
    assert world.has_changed is (missing == 0)
    if isinstance(answer, str):
        assert answer.startswith(f"{missing} live ensemble")


def test_a_poll_lists_only_what_earlier_polls_have_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform_change, "BATCH", 2)
    live = {f"tenant-{number}": 1 for number in range(6)}
    world, listed = World(live, live), list[int]()
    list_objects = world.s3.list_objects_v2

    def list_objects_v2(p: Any) -> dict[str, Any]:
        answer = list_objects(p)
        listed.append(answer["KeyCount"])
        return answer

    monkeypatch.setattr(world.s3, "list_objects_v2", list_objects_v2)
    looks = iter([300_000, 0, 300_000, 0])  # one batch in each of two polls
    world.millis = lambda: next(looks, 300_000)
    world.run(world.event())
    assert listed == [6, 4, 2]


def attempted(world: World, event: dict[str, Any]) -> dict[str, Any] | str:
    """The answer of a poll, or why it fails the deployment."""
    try:
        return world.poll(event)
    except ArtifactError as error:
        return str(error)
