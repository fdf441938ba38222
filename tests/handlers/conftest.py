"""A moto S3 with an asset bucket and a store, and the handler of `lambda/artifacts` running against it."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import boto3
import pytest
from moto import mock_aws

import artifacts
from artifacts import clients
from build_model.cloud import Cloud, small_parts
from protocol.plan import Commit, ServedArchives, ServedCopy, StackPlan
from waiting_account import Account

STORE, ASSETS, OTHER_ASSETS = "the-store", "the-assets", "the-assets-of-another-machine"

Event = dict[str, Any]


class Killed(BaseException):
    """The process of the Lambda is gone: no except clause of the handler sees it."""


@dataclass
class Context:
    """A double of Lambda's context; each question for the remaining time takes the next value of `millis`."""

    millis: list[int] = field(default_factory=list)

    def get_remaining_time_in_millis(self) -> int:
        return self.millis.pop(0) if self.millis else 300_000


@dataclass(frozen=True)
class Ensemble:
    """An ensemble as the synth describes it; `version` stands for everything that determines its archive."""

    name: str
    version: str = "1"
    size: int = 40

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.name} {self.version}".encode()).hexdigest()

    @property
    def asset(self) -> str:
        return f"triton-{self.key}.gz"

    @property
    def archive(self) -> str:
        return f"artifacts/{self.name}/{self.key}/model.tar.gz"

    @property
    def manifest(self) -> str:
        return f"artifacts/{self.name}/{self.key}/manifest.json"

    @property
    def target(self) -> str:
        return f"{self.name}-{self.key[:10]}.tar.gz"

    def content(self, salt: str = "") -> bytes:
        """The archive's bytes; another machine's compressor makes others (`salt`) of the same files."""
        return f"{self.name} {self.version} {salt}".encode().ljust(self.size, b".")


class World:
    """The two buckets, and what CloudFormation, the CDK CLI and Lambda do to them."""

    prefix = "fleets/fleet/25.09-a10g/"
    ensemble = Ensemble
    context = Context
    killed = Killed

    def __init__(self) -> None:
        self.s3 = boto3.client("s3", region_name="us-east-1")
        self.s3.create_bucket(Bucket=ASSETS)
        self.s3.create_bucket(Bucket=OTHER_ASSETS)
        self.s3.create_bucket(Bucket=STORE)
        self.s3.put_bucket_versioning(Bucket=STORE, VersioningConfiguration={"Status": "Enabled"})

    # -- what the CDK CLI and CloudFormation do

    def publish(self, *ensembles: Ensemble, fleet: bool = False, salt: str = "") -> Event:
        """Publish archives and plan as the CLI does, and return the event that CloudFormation sends for them."""
        bucket = OTHER_ASSETS if salt else ASSETS
        for ensemble in ensembles:
            self.s3.put_object(Bucket=bucket, Key=ensemble.asset, Body=ensemble.content(salt))
        copies = (ServedCopy(e.name, e.key, e.archive, self.prefix + e.target) for e in ensembles)
        served = ServedArchives("fleet", f"{self.prefix}index.json", tuple(copies))
        commits = (Commit(e.name, e.key, "25.09-a10g", e.asset, e.archive, e.manifest) for e in ensembles)
        return self.publish_plan(StackPlan(tuple(commits), served if fleet else None), bucket)

    def publish_plan(self, plan: object, bucket: str = ASSETS) -> Event:
        text = plan.text() if isinstance(plan, StackPlan) else json.dumps(plan).encode()
        sha256 = hashlib.sha256(text).hexdigest()
        key = f"triton-plan-{sha256}.json"
        self.s3.put_object(Bucket=bucket, Key=key, Body=text)
        return {
            "RequestType": "Create",
            "ResponseURL": "https://bucket.example/?Signature=s3cr3t",
            "ResourceProperties": {"ServiceToken": "t", "PlanBucket": bucket, "PlanKey": key, "PlanSha256": sha256},
        }

    def poll(self, event: Event, context: Context | None = None) -> bool:
        """One round of the provider framework: `on_event`, then `is_complete` with what it answered."""
        accepted = artifacts.on_event(event, None)
        return bool(artifacts.is_complete({**event, **accepted}, context or Context())["IsComplete"])

    # -- what goes wrong; botocore's own hooks, so that the calls stay real and validated

    @contextmanager
    def disturbed(
        self, when: Literal["before-call", "after-call"], number: int, act: Callable[[], None]
    ) -> Iterator[None]:
        """Let `act` happen once, around the handler's call of this number (from 0), before or after S3 has seen it."""
        calls = itertools.count()

        def hook(**_: object) -> None:
            if next(calls) == number:
                act()

        client = clients.client("s3")
        client.meta.events.register(f"{when}.s3", hook)
        try:
            yield
        finally:
            client.meta.events.unregister(f"{when}.s3", hook)

    @contextmanager
    def counted(self, *operations: str) -> Iterator[list[str]]:
        """The handler's calls of these operations (all without any)."""
        seen: list[str] = []

        def hook(model: Any, **_: object) -> None:
            if not operations or model.name in operations:
                seen.append(model.name)

        client = clients.client("s3")
        client.meta.events.register("before-call.s3", hook)
        try:
            yield seen
        finally:
            client.meta.events.unregister("before-call.s3", hook)

    # -- what is found afterwards

    def versions(self, key: str) -> list[bytes]:
        """Every content that the object ever had."""
        found = self.s3.list_object_versions(Bucket=STORE, Prefix=key).get("Versions", [])
        get = functools.partial(self.s3.get_object, Bucket=STORE, Key=key)
        return [get(VersionId=v["VersionId"])["Body"].read() for v in found if v["Key"] == key]

    def stored_keys(self) -> set[str]:
        return {o["Key"] for o in self.s3.list_objects_v2(Bucket=STORE).get("Contents", [])}

    def index(self) -> dict[str, Any]:
        body = self.s3.get_object(Bucket=STORE, Key=f"{self.prefix}index.json")["Body"].read()
        index: dict[str, Any] = json.loads(body)
        return index

    def assert_committed(self, *ensembles: Ensemble) -> None:
        """Archive and manifest were each written once, and the one names the other."""
        for ensemble in ensembles:
            (archive,) = self.versions(ensemble.archive)
            (manifest,) = self.versions(ensemble.manifest)
            assert archive.startswith(f"{ensemble.name} {ensemble.version}".encode())
            etag = self.s3.head_object(Bucket=STORE, Key=ensemble.archive)["ETag"]
            assert json.loads(manifest)["archive"] == {"key": ensemble.archive, "size": len(archive), "etag": etag}

    def assert_served(self, *ensembles: Ensemble) -> None:
        """The committed archives are what the multi-model endpoint finds, and the index says so."""
        self.assert_committed(*ensembles)
        for ensemble in ensembles:
            assert self.versions(self.prefix + ensemble.target) == self.versions(ensemble.archive)
        assert self.index()["current"] == {e.name: e.target for e in ensembles}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sequences", type=int, metavar="N", help="how many generated sequences of events are tried")


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """An AWS in memory, where archives of a few bytes have several parts."""
    with small_parts():
        yield Cloud()


@pytest.fixture
def sequences(pytestconfig: pytest.Config) -> int | None:
    """How many sequences the model-based test tries; None: a fixed few."""
    count: int | None = pytestconfig.getoption("sequences", default=None)
    return count


@pytest.fixture(name="make_world")
def _make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], World]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("STORE_BUCKET", STORE)
    mocks: list[Any] = []

    def make() -> World:
        while mocks:
            mocks.pop().stop()
        clients.client.cache_clear()
        mocks.append(mock_aws())
        mocks[0].start()
        return World()

    yield make
    while mocks:
        mocks.pop().stop()
    clients.client.cache_clear()


@pytest.fixture(name="world")
def _world(make_world: Callable[[], World]) -> World:
    return make_world()


@pytest.fixture(name="account")
def _account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "testing")
    with mock_aws():
        clients.client.cache_clear()
        yield Account()
    clients.client.cache_clear()
