"""A store and a multi-model with a publisher, deployed to the local AWS without the command of the CDK."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from cdk_triton import ServingPlatform, TritonMultiModel
from cdk_triton.cli.fleet import execution
from cdk_triton.protocol import layout
from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    import pytest

__all__ = ["DeployedFleet", "publish_assets"]

ROOT = Path(__file__).parents[2]


class DeployedFleet:
    """The stack `Serving`, whose `TritonMultiModel` `Fleet` has no ensemble of its own.

    Its role `publishes` has what `grant_publish_all` grants.

    Args:
        aws: where it is deployed to.
        directory: for the cloud assembly.
        platform: what serves it.
        extend: adds to the stack, which gets an endpoint so.
        publisher: the arguments of `add_publisher`.
    """

    def __init__(
        self,
        aws: LocalAws,
        directory: Path,
        platform: ServingPlatform,
        extend: Callable[[cdk.Stack, TritonMultiModel], object] = lambda stack, fleet: None,
        **publisher: Any,
    ) -> None:
        self.aws = aws
        self._platform = platform
        self.s3, self.states = aws.client("s3"), aws.client("stepfunctions")
        context = json.loads((ROOT / "cdk.json").read_text())["context"]
        app = cdk.App(outdir=str(directory / "cdk.out"), context=context, builtin_cloud_formation_validation=False)
        stack = cdk.Stack(app, "Serving", env=cdk.Environment(account=aws.account, region=aws.region))
        self.fleet = TritonMultiModel(stack, "Fleet", platform=platform)
        publishes = iam.Role(stack, "Publishes", assumed_by=iam.AccountRootPrincipal())
        self.fleet.add_publisher(**publisher).grant_publish_all(publishes)
        extend(stack, self.fleet)
        app.synth()
        publish_assets(self.s3, directory / "cdk.out", "Serving")
        self._deploy(directory / "cdk.out" / "Serving.template.json")
        found = aws.client("cloudformation").describe_stack_resources(StackName="Serving")["StackResources"]

        def physical(kind: str, logical: str) -> str:
            """The one resource of a type whose logical id begins so."""
            ours = [each for each in found if each["ResourceType"] == kind]
            (one,) = [each["PhysicalResourceId"] for each in ours if each["LogicalResourceId"].startswith(logical)]
            return str(one)

        self.bucket = physical("AWS::S3::Bucket", "TritonArtifacts")
        self.machine = physical("AWS::StepFunctions::StateMachine", "FleetPublisher")
        self.publishes = f"arn:aws:iam::{aws.account}:role/{physical('AWS::IAM::Role', 'Publishes')}"

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

    def lead_publisher(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lead the commands of this process here, as somebody who may publish."""
        for name, value in self.aws.environment(self.publishes).items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        monkeypatch.setattr(execution, "POLL_SECONDS", 0.02)

    def executions(self) -> list[dict[str, Any]]:
        """Every execution that was started, without those of maps."""
        found: list[dict[str, Any]] = self.states.list_executions(stateMachineArn=self.machine)["executions"]
        return found

    def current(self, platform: ServingPlatform | None = None) -> dict[str, str | None]:
        """Ensemble to the target model that callers send, by the catalogue of a platform."""
        prefix = layout.catalogue_prefix(self.fleet.name_in_store, (platform or self._platform).label)
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        documents = [self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in keys]
        return {each["ensemble"]: each["current"] for each in map(json.loads, documents)}

    def writes(self) -> int:
        """How many objects of the store were written so far, old versions included."""
        return len(self._versions())

    def stored_bytes(self) -> int:
        """The size of all objects of the store, old versions included."""
        return sum(each["Size"] for each in self._versions())

    def _versions(self) -> list[dict[str, Any]]:
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=self.bucket)
        return [each for page in pages for each in page.get("Versions", [])]


def publish_assets(s3: Any, assembly: Path, stack: str) -> None:
    """Upload the assets of a stack, as the CDK CLI does."""
    buckets = {each["Name"] for each in s3.list_buckets()["Buckets"]}
    for asset in json.loads((assembly / f"{stack}.assets.json").read_text())["files"].values():
        source = assembly / asset["source"]["path"]
        (place,) = asset["destinations"].values()
        if place["bucketName"] not in buckets:
            s3.create_bucket(Bucket=place["bucketName"])
            buckets.add(place["bucketName"])
        s3.put_object(
            Bucket=place["bucketName"],
            Key=place["objectKey"],
            Body=_zipped(source) if source.is_dir() else source.read_bytes(),
        )


def _zipped(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(each for each in directory.rglob("*") if each.is_file()):
            archive.write(file, file.relative_to(directory))
    return buffer.getvalue()
