"""A build from plan to commit with S3 as moto has it; the services that build are doubles (`memory_aws`)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

import artifacts
from artifacts.builders import Builders
from artifacts.copying import PART_BYTES
from artifacts.storage import Storage
from build_model import PLANS, publish
from build_model.cloud import SETTINGS
from build_model.plans import ONNX, OTHER
from memory_aws import Client, Clock, CodeBuild, Logs, Processing, ProgramDouble, Wire

if TYPE_CHECKING:
    from tests.handlers.conftest import World

    from golden_messages import Messages


class MotoFolder:
    """The store's bucket as a job sees it."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    def get(self, key: str) -> bytes | None:
        try:
            return bytes(self._s3.get_object(Bucket="the-store", Key=key)["Body"].read())
        except ClientError:
            return None

    def put(self, key: str, body: bytes) -> None:
        self._s3.put_object(Bucket="the-store", Key=key, Body=body)


class MotoBuckets:
    """What the CDK CLI writes to."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    def put(self, bucket: str, key: str, body: bytes) -> None:
        self._s3.put_object(Bucket=bucket, Key=key, Body=body)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["codebuild", "processing"])
def test_a_plan_is_built_committed_and_served(world: World, kind: str) -> None:
    world.s3.create_bucket(Bucket=OTHER)
    folder, clock = MotoFolder(world.s3), Clock()
    program = ProgramDouble(folder, PART_BYTES)
    service = CodeBuild("the-project", clock, program) if kind == "codebuild" else Processing(clock, program)
    names = {"codebuild": service, "sagemaker": service, "logs": Logs()}
    clients: dict[str, Any] = {name: Client(name, double, Wire()) for name, double in names.items()} | {"s3": world.s3}
    plan = publish(MotoBuckets(world.s3), kind, ("text-1", "image-1", "plain-1"), True)
    event = {"RequestType": "Create", "StartedAt": clock(), "ResourceProperties": plan.properties}
    invocation = artifacts.Invocation(
        storage=Storage(world.s3, "the-store"),
        builders=Builders(SETTINGS, "the-store", clients.__getitem__),
        remaining_millis=lambda: 300_000,
        now=clock,
    )

    for _ in range(2):
        assert artifacts.poll(event, invocation) == {"IsComplete": False, "Seconds": 30}
    ((job, build),) = service.live().items()
    assert program.incomplete == []
    program.finish(build, {})
    service.end(job, "SUCCEEDED")
    assert artifacts.poll(event, invocation) == {"IsComplete": True}

    for commit in plan.document["commits"]:
        (archive,) = world.versions(commit["archive"])
        manifest = json.loads(world.versions(commit["manifest"])[0])
        if commit["build"] is not None:
            assert manifest["build"]["archive"]["sha256"] == hashlib.sha256(archive).hexdigest()
            assert [archive] == program.built[commit["artifact_key"]]
    with world.counted() as calls:
        accepted = artifacts.on_event(event, None)
        assert artifacts.is_complete({**event, **accepted}, world.context()) == {"IsComplete": True}
    assert set(calls) == {"GetObject", "HeadObject"}


@pytest.mark.slow
def test_the_version_that_a_recipe_names_is_what_the_build_gets(world: World) -> None:
    world.s3.create_bucket(Bucket=OTHER)
    world.s3.put_bucket_versioning(Bucket=OTHER, VersioningConfiguration={"Status": "Enabled"})
    clock = Clock()
    program = ProgramDouble(MotoFolder(world.s3), PART_BYTES)
    service = CodeBuild("the-project", clock, program)
    plan = publish(MotoBuckets(world.s3), "codebuild", ("text-1",), False)
    named = world.s3.list_object_versions(Bucket=OTHER)["Versions"][0]["VersionId"]
    world.s3.put_object(Bucket=OTHER, Key="bert.onnx", Body=b"a newer version")
    (commit,) = plan.document["commits"]
    (wanted,) = (source for source in commit["build"]["inputs"] if source["bucket"] == OTHER)
    wanted |= {"version": named, "sha256": None}
    event = world.publish_plan(plan.document)
    event["ResourceProperties"]["BuildImage"] = plan.properties["BuildImage"]
    event |= {"StartedAt": clock()}
    clients = {"codebuild": Client("codebuild", service, Wire()), "logs": Client("logs", Logs(), Wire())}

    artifacts.poll(
        event,
        artifacts.Invocation(
            storage=Storage(world.s3, "the-store"),
            builders=Builders(SETTINGS, "the-store", clients.__getitem__),
            remaining_millis=lambda: 300_000,
            now=clock,
        ),
    )

    (build,) = service.live().values()
    assert MotoFolder(world.s3).get(f"staging/{build}/in/{wanted['path']}") == ONNX


def test_the_builders_of_a_function_are_those_of_its_environment(
    messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("STORE_BUCKET", "the-store")
    monkeypatch.setenv("BUILDERS", json.dumps(SETTINGS))
    builders = Builders.of_environment()
    for kind in ("codebuild", "processing"):
        assert builders[kind] is not None
    monkeypatch.setenv("BUILDERS", "")
    with messages.raises(artifacts.failure.ArtifactError):
        Builders.of_environment()["codebuild"]


def test_every_kind_is_planned() -> None:
    assert {kind for kind, *_ in PLANS} == set(SETTINGS)
