"""A store whose stack was destroyed gets its bucket back, by the commands of docs/store.md, whoever named it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.docs.blocks import ROOT, of_kind

from cdk_triton_local.aws import LocalAws

FIND, IMPORT = (block.text for block in of_kind("end_to_end/test_retained_bucket.py"))
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

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        self._directory = directory
        path = f"{ROOT / 'node_modules/.bin'}:{os.environ['PATH']}"
        self._environment = {**aws.process_environment(), "NODE_NO_WARNINGS": "1", "CI": "true", "PATH": path}
        self._cloudformation = aws.client("cloudformation")
        self.s3 = aws.client("s3")

    def run(self, commands: str) -> None:
        command, directory = ["bash", "-euc", commands], self._directory
        done = subprocess.run(
            command, cwd=directory, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

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
    directory = tmp_path_factory.mktemp("stores")
    subprocess.run([sys.executable, "-c", APP, directory / "assembly", ASSETS], check=True)
    settings = {"app": "assembly", "requireApproval": "never", "notices": False}
    (directory / "cdk.json").write_text(json.dumps(settings))
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock()) as aws:
        account = Account(aws, directory)
        account.s3.create_bucket(Bucket=ASSETS)
        yield account


def test_a_destroyed_store_gets_its_bucket_back(account: Account) -> None:
    account.run("cdk deploy --all")
    before = {stack: account.bucket(stack) for stack in ("Named", "Generated")}
    for _, name in before.values():
        account.s3.put_object(Bucket=name, Key="artifacts/text/key/model.tar.gz", Body=b"archive")
    account.run("cdk destroy --all --force")

    account.run(FIND.replace("TritonArtifacts", "Named"))
    account.run(IMPORT.replace("TritonArtifacts", "Generated").replace("OLD_BUCKET", before["Generated"][1]))

    assert {stack: account.bucket(stack) for stack in before} == before
    for _, name in before.values():
        assert account.s3.get_object(Bucket=name, Key="artifacts/text/key/model.tar.gz")["Body"].read() == b"archive"
        assert account.s3.get_bucket_policy(Bucket=name)["Policy"]
