"""A publisher on the local AWS: the synthesised machine, run by moto's interpreter, with the real functions."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from cdk_triton import ModelRepository, ServingPlatform, TritonMultiModel
from cdk_triton.artifacts import artifact_key, layout, source_key, write_archive
from cdk_triton.local.aws import LocalAws

ROOT = Path(__file__).parents[2]
PLATFORM = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


class Account:
    """The local AWS with a store and a multi-model that has no ensemble of its own."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        self.aws = aws
        self._directory = directory
        self.s3, self.states = aws.client("s3"), aws.client("stepfunctions")
        context = json.loads((ROOT / "cdk.json").read_text())["context"]
        app = cdk.App(outdir=str(directory / "cdk.out"), context=context, builtin_cloud_formation_validation=False)
        stack = cdk.Stack(app, "Serving", env=cdk.Environment(account=aws.account, region=aws.region))
        self.fleet = TritonMultiModel(stack, "Fleet", ensembles={}, platform=PLATFORM)
        self.fleet.add_publisher()
        app.synth()
        self._publish_assets(directory / "cdk.out")
        self._deploy(directory / "cdk.out" / "Serving.template.json")
        found = aws.client("cloudformation").describe_stack_resources(StackName="Serving")["StackResources"]
        kinds = {(each["ResourceType"], each["LogicalResourceId"][:5]): each["PhysicalResourceId"] for each in found}
        self.bucket = kinds["AWS::S3::Bucket", "Trito"]
        self.machine = kinds["AWS::StepFunctions::StateMachine", "Fleet"]

    def _publish_assets(self, assembly: Path) -> None:
        """As the CDK CLI does."""
        for asset in json.loads((assembly / "Serving.assets.json").read_text())["files"].values():
            source = assembly / asset["source"]["path"]
            (place,) = asset["destinations"].values()
            bucket = place["bucketName"]
            if not [each for each in self.s3.list_buckets()["Buckets"] if each["Name"] == bucket]:
                self.s3.create_bucket(Bucket=bucket)
            body = _zipped(source) if source.is_dir() else source.read_bytes()
            self.s3.put_object(Bucket=bucket, Key=place["objectKey"], Body=body)

    def _deploy(self, template: Path) -> None:
        client = self.aws.client("cloudformation")
        document = json.loads(template.read_text())
        del document["Parameters"], document["Rules"]  # of the CDK's bootstrap
        client.create_stack(
            StackName="Serving", TemplateBody=json.dumps(document), Capabilities=["CAPABILITY_NAMED_IAM"]
        )
        while (status := client.describe_stacks(StackName="Serving")["Stacks"][0]["StackStatus"]).endswith("PROGRESS"):
            threading.Event().wait(0.02)
        assert status == "CREATE_COMPLETE", client.describe_stack_events(StackName="Serving")["StackEvents"]

    def item(self, publication: str, ensemble: str, content: str) -> dict[str, str]:
        """Upload a repository; returns what a request says of it."""
        root = self._directory / publication / ensemble
        (root / "model" / "1").mkdir(parents=True)
        (root / "model" / "config.pbtxt").write_text(CONFIG)
        (root / "model" / "1" / "model.py").write_text(content)
        repository = ModelRepository.from_directory(root)
        key = artifact_key(repository, PLATFORM)
        archive = write_archive(repository, self._directory / f"{publication}-{ensemble}.tar.gz").path
        self.s3.upload_file(str(archive), self.bucket, f"{layout.PUBLISH_PREFIX}{publication}/{key}.tar.gz")
        keys = {"source_key": source_key(repository), "artifact_key": key}
        return {"ensemble": ensemble, "action": "publish", "repository": repository.name, **keys}

    def run(self, publication: str, items: list[dict[str, str]]) -> dict[str, Any]:
        """Write a request and run an execution for it."""
        request = {"schema": 1, "publisher": "the test", "items": items}
        key = f"{layout.PUBLISH_PREFIX}{publication}/request.json"
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=json.dumps(request).encode())
        text = json.dumps({"publish": publication})
        arn = self.states.start_execution(stateMachineArn=self.machine, name=publication, input=text)["executionArn"]
        while (found := dict(self.states.describe_execution(executionArn=arn)))["status"] == "RUNNING":
            threading.Event().wait(0.02)
        return found

    def current(self) -> dict[str, str | None]:
        """Ensemble to what callers send."""
        prefix = layout.catalogue_prefix(self.fleet.name_in_store, PLATFORM.label)
        listed = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        documents = [self.s3.get_object(Bucket=self.bucket, Key=each["Key"])["Body"].read() for each in listed]
        return {each["ensemble"]: each["current"] for each in map(json.loads, documents)}


def _zipped(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(each for each in directory.rglob("*") if each.is_file()):
            archive.write(file, file.relative_to(directory))
    return buffer.getvalue()


@pytest.fixture(name="account")
def _account(tmp_path: Path) -> Iterator[Account]:
    with LocalAws(tmp_path / "aws") as aws:
        yield Account(aws, tmp_path)


def test_ensembles_are_published_rolled_back_and_unpublished_without_a_deployment(account: Account) -> None:
    first = [account.item("first", f"tenant-{number}", "# first") for number in range(3)]
    assert account.run("first", first)["status"] == "SUCCEEDED"
    targets = {each["ensemble"]: layout.target_model(each["ensemble"], each["source_key"]) for each in first}
    assert account.current() == targets
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    head = account.s3.head_object(Bucket=account.bucket, Key=served + targets["tenant-1"])
    assert head["Metadata"]["artifact-key"] == first[1]["artifact_key"]

    second = [account.item("second", f"tenant-{number}", "# second") for number in range(2)]
    bad = {**second[1], "artifact_key": "0" * 64}
    failed = account.run("second", [second[0], bad])
    assert failed["status"] == "FAILED"
    assert "1 of 2 ensembles were not changed: tenant-1" in failed["cause"]
    changed = layout.target_model("tenant-0", second[0]["source_key"])
    assert account.current() == {**targets, "tenant-0": changed}

    back = [{"ensemble": "tenant-0", "action": "roll_back"}, {"ensemble": "tenant-2", "action": "unpublish"}]
    assert account.run("third", back)["status"] == "SUCCEEDED"
    assert account.current() == {**targets, "tenant-2": None}
