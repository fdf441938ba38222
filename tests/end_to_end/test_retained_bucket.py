"""A store whose stack was destroyed gets its bucket back, by the CDK CLI, whoever named the bucket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from cdk_triton_local.aws import LocalAws

CDK = Path(__file__).parents[2] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
APP = """
import sys
import aws_cdk as cdk
from cdk_triton import TritonArtifactStore

app = cdk.App(
    outdir=sys.argv[1],
    default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=sys.argv[2]),
    builtin_cloud_formation_validation=False,
)
for name, bucket in (("Named", "bank-artifacts"), ("Generated", None)):
    stack = cdk.Stack(app, name, env=cdk.Environment(account="123456789012", region="us-east-1"))
    TritonArtifactStore(stack, "Store", builders=[], bucket_name=bucket)
app.synth()
"""


class Account:
    """The local AWS, and the cloud assembly with the two stores."""

    def __init__(self, aws: LocalAws, assembly: Path) -> None:
        self._assembly = assembly
        self._environment = {**aws.process_environment(), "NODE_NO_WARNINGS": "1"}
        self._cloudformation = aws.client("cloudformation")
        self.s3 = aws.client("s3")

    def cdk(self, *arguments: str) -> None:
        command = [CDK, *arguments, "--app", self._assembly, "--ci", "--no-notices"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def deploy(self, *arguments: str) -> None:
        self.cdk("deploy", *arguments, "--require-approval", "never")

    def bucket(self, stack: str) -> tuple[str, str]:
        """The logical id and the name of the store's bucket."""
        found = self._cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
        ((logical, name),) = (
            (each["LogicalResourceId"], each["PhysicalResourceId"])
            for each in found
            if each["ResourceType"] == "AWS::S3::Bucket"
        )
        return logical, name


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    assembly = tmp_path_factory.mktemp("stores") / "assembly"
    subprocess.run([sys.executable, "-c", APP, assembly, ASSETS], check=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock()) as aws:
        account = Account(aws, assembly)
        account.s3.create_bucket(Bucket=ASSETS)
        yield account


def test_a_destroyed_store_gets_its_bucket_back(account: Account) -> None:
    account.deploy("--all")
    before = {stack: account.bucket(stack) for stack in ("Named", "Generated")}
    for _, name in before.values():
        account.s3.put_object(Bucket=name, Key="artifacts/text/key/model.tar.gz", Body=b"archive")
    account.cdk("destroy", "--all", "--force")

    account.deploy("Named", "--import-existing-resources")
    logical, name = before["Generated"]
    mapping = json.dumps({logical: {"BucketName": name}})
    account.cdk("import", "Generated", "--resource-mapping-inline", mapping)
    account.deploy("Generated")

    assert {stack: account.bucket(stack) for stack in before} == before
    for _, name in before.values():
        assert account.s3.get_object(Bucket=name, Key="artifacts/text/key/model.tar.gz")["Body"].read() == b"archive"
        assert account.s3.get_bucket_policy(Bucket=name)["Policy"]
