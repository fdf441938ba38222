"""Policies that are replaced, under names that an aspect gives them, and another key of the store, by the CDK CLI.

References between the stacks are weak. The handlers are the real ones, and no server runs. Nothing on the local AWS
evaluates permissions: what each policy allows is read from it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from cdk_triton_local.aws import LocalAws

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""
STACKS = ("ByPath", "ByPrefix")


class Account:
    """The local AWS, and the cloud assemblies of the app."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies
        self._cloudformation = aws.client("cloudformation")

    def deploy(self, app: str) -> None:
        command: list[str | Path] = [
            CDK,
            "deploy",
            "--all",
            "--concurrency",
            "2",
            "--app",
            self._assemblies / app,
            "--require-approval",
            "never",
            "--ci",
        ]
        environment = {**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"}
        done = subprocess.run([*command, "--no-notices"], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def resources(self, stack: str) -> dict[str, str]:
        """Type to physical id of what a stack has one of."""
        found = self._cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
        return {each["ResourceType"]: each["PhysicalResourceId"] for each in found}

    def policy(self, stack: str) -> tuple[str, dict[str, Any]]:
        """The name of the one managed policy of a stack, and what it allows."""
        arn, iam = self.resources(stack)["AWS::IAM::ManagedPolicy"], self.aws.client("iam")
        found = iam.get_policy(PolicyArn=arn)["Policy"]
        version = iam.get_policy_version(PolicyArn=arn, VersionId=found["DefaultVersionId"])["PolicyVersion"]
        return found["PolicyName"], version["Document"]

    def keys(self) -> set[str]:
        found = self._cloudformation.describe_stack_resources(StackName="Home")["StackResources"]
        return {each["PhysicalResourceId"] for each in found if each["ResourceType"] == "AWS::KMS::Key"}


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("names")
    for repository in ("text", "sentences"):
        model = directory / "repositories" / repository / "model"
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(CONFIG)
        (model / "1" / "model.py").write_text(MODEL)
    app = HERE / "names_app" / "app.py"
    subprocess.run([sys.executable, app, directory / "repositories", ASSETS, directory / "assemblies"], check=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock()) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        yield Account(aws, directory / "assemblies")


def test_a_named_policy_is_replaced_beside_the_old_one(account: Account) -> None:
    account.deploy("first")
    before = {stack: account.policy(stack)[0] for stack in STACKS}
    account.deploy("renamed")
    after = {stack: account.policy(stack)[0] for stack in STACKS}

    for stack in STACKS:
        assert before[stack].startswith("bank-")
        assert after[stack].startswith("bank-")
        assert before[stack] != after[stack]
    roles = {account.resources(stack)["AWS::IAM::Role"][:5] for stack in STACKS}
    assert roles == {"bank-"}
    left = account.aws.client("iam").list_policies(Scope="Local")["Policies"]
    assert not set(before.values()) & {each["PolicyName"] for each in left}


def test_endpoints_keep_reading_with_the_former_keys(account: Account) -> None:
    models = {stack: account.resources(stack)["AWS::SageMaker::Model"] for stack in STACKS}
    account.deploy("rekeyed")

    for stack in STACKS:
        assert account.resources(stack)["AWS::SageMaker::Model"] == models[stack]  # which still reads its old archive
        _, document = account.policy(stack)
        (decrypting,) = [each for each in document["Statement"] if each["Action"] == "kms:Decrypt"]
        assert {arn.rpartition("/")[2] for arn in decrypting["Resource"]} == account.keys()


def test_a_store_has_the_name_that_it_was_given(account: Account) -> None:
    assert account.resources("Home")["AWS::S3::Bucket"] == "bank-artifacts"


def test_nothing_keeps_a_store_whose_users_refer_to_it_weakly(account: Account) -> None:
    imports = json.dumps(account.aws.client("cloudformation").list_exports()["Exports"])
    assert "Store" not in imports
