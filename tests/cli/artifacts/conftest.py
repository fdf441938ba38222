"""A local AWS with an artifact store in it, and cloud assemblies as `cdk synth` writes them, made by hand."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.s3.models import s3_backends

from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Change, Entry, Version
from cdk_triton.protocol.index import Index
from cdk_triton.protocol.plan import Commit, ServedArchives, StackPlan
from cdk_triton.protocol.rehearsal import RehearsalPass, RehearsedArchive
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Component, Endpoint, Invocation, Response, Shift, all_at_once

HANDLERS = Path(__file__).parents[3] / "lambda"
ACCOUNT, REGION = "123456789012", "us-east-1"
ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
}

Synthesise = Callable[..., Path]

BUILD = {
    "schema": 1,
    "build": "cdk-triton-0123456789abcdef",
    "seconds": 812.5,
    "probed": {"gpu": "NVIDIA A10G", "tensorrt": "10.13.3.9"},
    "warnings": ["DALI is 1.51.1, and the release has 1.51.2"],
    "stand_ins": ["trtexec"],
    "steps": [
        {
            "name": "the TensorRT plan of bert",
            "commands": [["trtexec", "--onnx=model.onnx", "--fp16"]],
            "parity": {"y": {"largest_difference": 0.002, "tolerance": 0.01}},
        }
    ],
}


class EndpointDouble:
    """Stands in for Triton: nothing is served."""

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        pass

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        pass

    def place(self, component: Component, copies: int) -> None:
        pass

    def withdraw(self, name: str) -> None:
        pass

    def remove(self, name: str) -> None:
        pass

    def invoke(self, invocation: Invocation) -> Response:
        return Response(200, {}, b"")

    def stream(self, invocation: Invocation) -> Response:
        return self.invoke(invocation)

    def close(self) -> None:
        pass


def assets(world: World) -> set[str]:
    """The object keys in the bucket of the bootstrap, without the code of the store's functions."""
    return {each["Key"] for each in world.s3.list_objects_v2(Bucket=ASSETS).get("Contents", [])} - {"code.zip"}


def key_of(text: str) -> str:
    """An artifact key."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class World:
    """The local AWS with a store, and what deployments leave in it."""

    aws: LocalAws
    stack: str
    bucket: str
    function: str
    age: timedelta = timedelta(days=40)

    def __post_init__(self) -> None:
        self.s3 = self.aws.client("s3")
        self.sagemaker = self.aws.client("sagemaker")

    def commit(
        self, repository: str, name: str, *, build: dict[str, Any] | None = None, promoted_from: str | None = None
    ) -> str:
        """A committed artifact; returns its key."""
        key = key_of(name)
        prefix = f"artifacts/{repository}/{key}"
        etag = self.put(f"{prefix}/model.tar.gz", f"archive {name}".encode(), {"artifact-key": key})
        manifest = {
            "schema": 1,
            "repository": repository,
            "artifact_key": key,
            "platform": "25.09-a10g",
            "archive": {"key": f"{prefix}/model.tar.gz", "size": 8 + len(name), "etag": etag},
        }
        made = {"build": build, "promoted_from": promoted_from}
        manifest |= {name: value for name, value in made.items() if value is not None}
        self.put(f"{prefix}/manifest.json", json.dumps(manifest).encode())
        return key

    def rehearse(self, repository: str, artifact_key: str, name: str, **result: Any) -> None:
        """A pass of an artifact."""
        archive = RehearsedArchive(9, "etag", key_of("archive"))
        image, golden = "tritonserver:25.09-py3", key_of("golden")
        found = RehearsalPass(repository, artifact_key, key_of(name), image, archive, golden, {}, result)
        self.put(layout.pass_key(repository, artifact_key, key_of(name)), found.text())

    def serve(self, fleet: str, target_model: str, artifact_key: str) -> str:
        """A copy for a fleet; returns its object key."""
        key = f"fleets/{fleet}/25.09-a10g/{target_model}"
        self.put(key, b"copy", {"artifact-key": artifact_key})
        return key

    def index(self, fleet: str, current: dict[str, str], previous: dict[str, str] | None = None) -> None:
        self.put(f"fleets/{fleet}/25.09-a10g/index.json", Index(fleet, current, previous or {}).text())

    def published(self, fleet: str, ensemble: str, *targets: str, unpublished: str | None = None) -> None:
        """An entry of the catalogue, and the index that goes with it."""
        change = Change(unpublished or "2026-11-01T12:00:00+00:00", "p", "e")
        versions = (Version(target, key_of(target), key_of(target), ensemble, change) for target in targets)
        entry = Entry(fleet, ensemble, tuple(versions), change if unpublished else None)
        self.put(f"catalogue/{fleet}/25.09-a10g/{ensemble}.json", entry.text())
        self.put(f"fleets/{fleet}/25.09-a10g/index.json", Index(fleet, has_catalogue=True).text())

    def lock(
        self, artifact_key: str, state: str = "running", members: list[str] | None = None, key: str | None = None
    ) -> None:
        """The lock of a build, or of the rehearsal `key`, as `lambda/artifacts/locks.py` writes it."""
        build, key = "cdk-triton-0123456789abcdef", key or artifact_key
        lock = {"schema": 1, "key": key, "repository": "text", "build": build, "attempt": 1}
        lock |= {"artifact_key": artifact_key}
        built = {"schema": 1, "state": state, "build": build, "kind": "codebuild", "created_at": 1.8e9, "link": "log"}
        self.put(f"staging/locks/{key}.json", json.dumps(lock).encode())
        self.put(f"staging/{build}/state.json", json.dumps({**built, "members": members}).encode())

    def put(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        """Write an object, past HTTP: the local AWS runs in this process."""
        stored = s3_backends[ACCOUNT]["aws"].put_object(self.bucket, key, body)
        stored.last_modified = datetime.now(UTC).replace(tzinfo=None) - self.age
        stored.set_metadata({f"x-amz-meta-{name}": value for name, value in (metadata or {}).items()})
        etag: str = stored.etag
        return etag

    def model(self, name: str, **container: Any) -> None:
        self.sagemaker.create_model(
            ModelName=name,
            ExecutionRoleArn=f"arn:aws:iam::{ACCOUNT}:role/role",
            PrimaryContainer={"Image": "image", **container},
        )

    def endpoint(self, name: str, model: str) -> None:
        variant = {"VariantName": "v", "InitialInstanceCount": 1, "InitialVariantWeight": 1.0, "ModelName": model}
        variants = [{**variant, "InstanceType": "ml.g5.xlarge"}]
        self.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=variants)
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)

    def archive(self, repository: str, key: str) -> str:
        """The address of an archive."""
        return f"s3://{self.bucket}/artifacts/{repository}/{key}/model.tar.gz"

    def stored(self) -> set[str]:
        """The object keys of everything but the records of deletions."""
        return {key for key in self._keys() if not key.startswith("deletions/")}

    def records(self) -> dict[str, dict[str, Any]]:
        """The records of deletions, by object key."""
        keys = [key for key in self._keys() if key.startswith("deletions/")]
        return {key: json.loads(self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()) for key in keys}

    def _keys(self) -> list[str]:
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])]

    def clear(self) -> None:
        for bucket in (self.bucket, ASSETS):
            objects = s3_backends[ACCOUNT]["aws"].get_bucket(bucket).keys
            for key in [each for each in objects if each != "code.zip"]:
                for version in dict.pop(objects, key):
                    if hasattr(version, "dispose"):  # a delete marker holds nothing
                        version.dispose()
        for component in self._components():
            self.sagemaker.delete_inference_component(InferenceComponentName=component)
        while self._components():
            threading.Event().wait(0.01)
        for endpoint in self.sagemaker.list_endpoints()["Endpoints"]:
            self.sagemaker.delete_endpoint(EndpointName=endpoint["EndpointName"])
        for configuration in self.sagemaker.list_endpoint_configs()["EndpointConfigs"]:
            self.sagemaker.delete_endpoint_config(EndpointConfigName=configuration["EndpointConfigName"])
        for model in self.sagemaker.list_models()["Models"]:
            self.sagemaker.delete_model(ModelName=model["ModelName"])

    def _components(self) -> list[str]:
        found = self.sagemaker.list_inference_components()["InferenceComponents"]
        return [each["InferenceComponentName"] for each in found]

    def deploy(self, template: dict[str, Any], name: str) -> str:
        """Create a stack and wait for it; returns its last status."""
        client = self.aws.client("cloudformation")
        client.create_stack(StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"])
        while True:
            status: str = client.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
            if not status.endswith("_IN_PROGRESS"):
                return status
            threading.Event().wait(0.02)


@pytest.fixture(scope="module")
def _deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: EndpointDouble()) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        aws.client("s3").put_object(Bucket=ASSETS, Key="code.zip", Body=zipped_handlers())
        world = World(aws, "the-store", "", "")
        assert world.deploy(store_template(), "the-store") == "CREATE_COMPLETE"
        resources = aws.client("cloudformation").list_stack_resources(StackName="the-store")["StackResourceSummaries"]
        names = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in resources}
        yield World(aws, "the-store", names["Bucket"], names["IsComplete"])


@pytest.fixture(scope="module")
def _session(_deployed: World) -> boto3.Session:
    """Reading the service models takes most of a command's time; the tests do it once for each local AWS."""
    return boto3.Session()


@pytest.fixture
def world(_deployed: World, _session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty store, to which the environment of this process leads."""
    for name, value in _deployed.aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setattr(boto3, "Session", lambda **_: _session)
    yield _deployed
    _deployed.clear()


def store_template() -> dict[str, Any]:
    """A store's stack as far as the command looks at it: a bucket, the handler and another function."""
    role = {"Fn::GetAtt": ["Role", "Arn"]}
    return {
        "Resources": {
            "Bucket": {
                "Type": "AWS::S3::Bucket",
                "Properties": {"VersioningConfiguration": {"Status": "Enabled"}},
            },
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": _ASSUMED}},
            "OnEvent": _function("artifacts.on_event", role),
            "IsComplete": _function("artifacts.is_complete", role),
        }
    }


_ASSUMED = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}


def _function(handler: str, role: object) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Code": {"S3Bucket": ASSETS, "S3Key": "code.zip"},
            "Handler": handler,
            "Role": role,
            "Runtime": "python3.13",
            "Timeout": 300,
            "Environment": {"Variables": {"STORE_BUCKET": {"Ref": "Bucket"}}},
        },
    }


def zipped_handlers() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for package in ("artifacts", "protocol"):
            directory = (HANDLERS / package).resolve()  # one is a link, which a search would not follow
            for file in sorted(directory.rglob("*.py")):
                archive.write(file, Path(package, file.relative_to(directory)))
    return buffer.getvalue()


@pytest.fixture
def synthesise(tmp_path: Path) -> Callable[..., Path]:
    """Write a cloud assembly with the stack `Models`, whose plan commits archives; returns its directory."""

    def write(
        *contents: bytes, fleet: ServedArchives | None = None, environment: str = "aws://unknown-account/unknown-region"
    ) -> Path:
        directory = tmp_path / f"cdk-{uuid.uuid4().hex}.out"
        directory.mkdir()
        keys = {hashlib.sha256(content).hexdigest(): content for content in contents}
        commits = []
        for key in keys:
            archive, manifest = layout.archive_key("text", key), layout.manifest_key("text", key)
            commits.append(Commit("text", key, "25.09-a10g", f"triton-{key}.gz", archive, manifest))
        plan = StackPlan(tuple(commits), fleet).text()
        sha256 = hashlib.sha256(plan).hexdigest()
        files = {f"triton-{key}.gz": content for key, content in keys.items()}
        files[f"triton-plan-{sha256}.json"] = plan
        for name, content in files.items():
            (directory / f"asset.{name}").write_bytes(content)
        _write(directory / "Models.assets.json", {"files": {name: _published(name) for name in files}})
        _write(directory / "Models.template.json", _models(sha256))
        _write(directory / "manifest.json", _manifest(environment))
        return directory

    return write


def _published(name: str) -> dict[str, Any]:
    destination = {"bucketName": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}", "objectKey": name}
    return {
        "source": {"path": f"asset.{name}", "packaging": "file"},
        "destinations": {"current_account-current_region": destination},
    }


def _models(sha256: str) -> dict[str, Any]:
    bucket = {"Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"}
    properties = {
        "ServiceToken": {"Fn::ImportValue": "the-store:Provider"},
        "ServiceTimeout": "3480",
        "PlanBucket": bucket,
        "PlanKey": f"triton-plan-{sha256}.json",
        "PlanSha256": sha256,
    }
    return {"Resources": {"Artifacts": {"Type": "Custom::TritonArtifacts", "Properties": properties}}}


def _manifest(environment: str) -> dict[str, Any]:
    return {
        "version": "48.0.0",
        "artifacts": {
            "Models.assets": {"type": "cdk:asset-manifest", "properties": {"file": "Models.assets.json"}},
            "Models": {
                "type": "aws:cloudformation:stack",
                "environment": environment,
                "properties": {"templateFile": "Models.template.json"},
                "dependencies": ["Models.assets"],
                "displayName": "Models",
            },
        },
    }


def _write(file: Path, document: object) -> None:
    file.write_text(json.dumps(document), encoding="utf-8")
