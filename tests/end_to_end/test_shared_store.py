"""Two apps of one account that share an artifact store, deployed by the CDK CLI onto the local AWS.

The handlers and the build program are the real ones; `trtexec` is a stand-in, and no server runs.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import onnx.parser
import pytest

from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from golden_messages import Messages

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
CONFIG = """
platform: "tensorrt_plan"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
NETWORK = '<ir_version: 8, opset_import: ["" : 17]>\ngraph (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }'


class Account:
    """The local AWS, and the apps' cloud assemblies."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies

    def deploy(self, app: str, *stacks: str) -> None:
        quiet = ("--require-approval", "never", "--no-notices", "--ci")
        self._run(CDK, "deploy", *stacks, "--app", self._assemblies / app, *quiet)

    def doctor(self, app: str) -> str:
        """What the doctor says of the app's store, whatever it says of this machine."""
        command = (Path(sys.executable).parent / "cdk-triton", "doctor", "--app", self._assemblies / app)
        done = subprocess.run(command, env=self.aws.process_environment(), capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        (number,) = (number for number, line in enumerate(lines) if line[9:].startswith("artifact store: "))
        return "\n".join([lines[number], *(line for line in lines[number + 1 : number + 2] if line.startswith("    "))])

    def users(self) -> list[str]:
        """Who uses the one artifact that the owner's store has."""
        command = Path(sys.executable).parent / "cdk-triton"
        listed = self._run(command, "artifacts", "list", "--store", "Home", "--format", "json")
        (artifact,) = json.loads(listed)["artifacts"]
        return list(artifact["in_use_by"])

    def resources(self, stack: str) -> dict[str, str]:
        """Type to physical id of what a stack has one of."""
        found = self.aws.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
        return {each["ResourceType"]: each["PhysicalResourceId"] for each in found}

    def events(self, stack: str) -> list[tuple[str, str]]:
        """Name and status, oldest first."""
        events = self.aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        return [(each["LogicalResourceId"], each["ResourceStatus"]) for each in reversed(events)]

    def builds(self) -> list[str]:
        codebuild = self.aws.client("codebuild")
        return [
            build
            for project in codebuild.list_projects()["projects"]
            for build in codebuild.list_builds_for_project(projectName=project)["ids"]
        ]

    def _run(self, *command: Any) -> str:
        environment = {**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("shared")
    network = onnx.parser.parse_model(NETWORK).SerializeToString()
    (directory / "text" / "net").mkdir(parents=True)
    (directory / "text" / "net" / "config.pbtxt").write_text(CONFIG)
    sha256 = hashlib.sha256(network).hexdigest()
    app = HERE / "shared_store_app" / "app.py"
    subprocess.run([sys.executable, app, directory / "text", sha256, ASSETS, directory / "assemblies"], check=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock()) as aws:
        s3 = aws.client("s3")
        for bucket in (ASSETS, "networks"):
            s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket="networks", Key="net.onnx", Body=network)
        yield Account(aws, directory / "assemblies")


def test_the_second_app_finds_what_the_first_has_built(account: Account) -> None:
    account.deploy("owner", "--all")
    account.deploy("sharing", "Search")

    models = [account.resources(stack)["AWS::SageMaker::Model"] for stack in ("Translation", "Search")]
    assert len(account.builds()) == 1
    assert account.users() == sorted(f"model {model.rsplit('/', 1)[-1]}" for model in models)
    assert "AWS::S3::Bucket" not in account.resources("Search")


def test_a_second_app_that_declares_the_same_store_is_warned_before_it_deploys(
    messages: Messages, account: Account
) -> None:
    account.deploy("owner", "--all")

    assert account.doctor("owner").startswith("ok ")
    warning = account.doctor("intruding")
    assert warning.startswith("warning")
    assert "Translation" in warning
    messages.record("cdk-triton doctor", warning)

    account.aws.client("cloudformation").delete_stack(StackName="Translation")
    account.aws.client("cloudformation").get_waiter("stack_delete_complete").wait(StackName="Translation")
    assert account.doctor("intruding").startswith("ok ")  # a stack that is gone loses nothing
    account.deploy("owner", "--all")


def test_what_asks_another_store_and_may_read_it_comes_before_the_endpoint_and_the_old_goes_after(
    account: Account,
) -> None:
    before = len(account.events("Search"))
    account.deploy("alone", "Search")

    events = account.events("Search")[before:]
    names = {name for name, _ in events}
    (endpoint,) = (name for name in names if name.startswith("Endpoint") and "Config" not in name)
    for kind in ("ModelPermissions", "ModelArtifacts"):
        (new,) = (name for name in names if name.startswith(kind) and (name, "CREATE_COMPLETE") in events)
        (old,) = (name for name in names if name.startswith(kind) and (name, "DELETE_COMPLETE") in events)
        order = [(new, "CREATE_COMPLETE"), (endpoint, "UPDATE_COMPLETE"), (old, "DELETE_COMPLETE")]
        assert [event for event in events if event in order] == order
