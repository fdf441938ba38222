"""Deployments that meet an endpoint whose number of instances is changing, by the CDK CLI on the local AWS.

The handlers are the real ones, in processes of their own, and the endpoint belongs to an app that imports its store. A
change of instances lasts until the test ends it, and no server runs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from cdk_triton_local import Clock, LocalAws
from cdk_triton_local.endpoints import instance_changes

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
BUSY = "Cannot update in-progress endpoint"


class Account:
    """The local AWS, and the cloud assemblies of an app that serves a scaled endpoint."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies

    def deploy(self, app: str) -> subprocess.Popen[str]:
        return self._start(app, "deploy", "--all", "--require-approval", "never")

    def destroy(self, app: str) -> subprocess.Popen[str]:
        return self._start(app, "destroy", "--all", "--force")

    def scale(self, count: int) -> None:
        """Do what Application Auto Scaling does; the endpoint is busy until it may settle."""
        wanted = {"VariantName": "AllTraffic", "DesiredInstanceCount": count}
        self.aws.client("sagemaker").update_endpoint_weights_and_capacities(
            EndpointName=self.endpoint()["EndpointName"], DesiredWeightsAndCapacities=[wanted]
        )

    def settle(self, process: subprocess.Popen[str]) -> str:
        """From now on, let instances start and stop at once; return the output of the CLI when it has ended."""
        while True:
            if self._is_changing():
                self.aws.clock.advance(instance_changes.SECONDS)
            try:
                return process.communicate(timeout=0.1)[0]
            except subprocess.TimeoutExpired:
                continue

    def _is_changing(self) -> bool:
        try:
            (variant,) = self.endpoint()["ProductionVariants"]
        except (ValueError, ClientError):  # the endpoint is gone
            return False
        return bool(variant["CurrentInstanceCount"] != variant["DesiredInstanceCount"])

    def endpoint(self) -> dict[str, Any]:
        sagemaker = self.aws.client("sagemaker")
        (found,) = sagemaker.list_endpoints()["Endpoints"]
        description: dict[str, Any] = sagemaker.describe_endpoint(EndpointName=found["EndpointName"])
        return description

    def instances(self) -> int:
        (variant,) = self.endpoint()["ProductionVariants"]
        return int(variant["CurrentInstanceCount"])

    def status(self) -> str:
        (stack,) = self.aws.client("cloudformation").describe_stacks(StackName="Served")["Stacks"]
        return str(stack["StackStatus"])

    def reasons(self) -> str:
        """All that CloudFormation has said about failures of the stack."""
        events = self.aws.client("cloudformation").describe_stack_events(StackName="Served")["StackEvents"]
        return "\n".join(each.get("ResourceStatusReason", "") for each in events)

    def end_of(self, process: subprocess.Popen[str], wait: str, status: str) -> str:
        """Let the endpoint settle when a wait has begun, and return the stack's id when the CLI has ended."""
        (stack,) = self.aws.client("cloudformation").describe_stacks(StackName="Served")["Stacks"]
        while process.poll() is None and not self._has_begun(stack["StackId"], wait, status):
            time.sleep(0.05)
        waited = process.poll() is None
        output = self.settle(process)
        assert waited, output
        return str(stack["StackId"])

    def _has_begun(self, stack: str, wait: str, status: str) -> bool:
        events = self.aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        latest = next((each for each in events if each["LogicalResourceId"].startswith(f"EndpointWait{wait}")), None)
        return latest is not None and latest["ResourceStatus"] == status

    def _start(self, app: str, *command: str) -> subprocess.Popen[str]:
        environment = {**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"}
        return subprocess.Popen(
            [CDK, *command, "--app", self._assemblies / app, "--no-notices", "--ci"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("scaled")
    (directory / "text" / "net" / "1").mkdir(parents=True)
    (directory / "text" / "net" / "config.pbtxt").write_text(CONFIG)
    (directory / "text" / "net" / "1" / "model.py").write_text(MODEL)
    subprocess.run(
        [sys.executable, HERE / "scaled_app" / "app.py", directory / "text", ASSETS, directory / "assemblies"],
        check=True,
    )
    clock = Clock(only_moved=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock(), clock=clock) as aws:
        account = Account(aws, directory / "assemblies")
        aws.client("s3").create_bucket(Bucket=ASSETS)
        aws.client("logs").create_log_group(logGroupName="taken")
        for app in ("home", "first"):
            done = account.deploy(app)
            output, _ = done.communicate()
            assert done.returncode == 0, output
        yield account


def test_a_deployment_waits_until_instances_are_added(account: Account) -> None:
    before = account.endpoint()["EndpointConfigName"]
    account.scale(3)

    process = account.deploy("changed")
    account.end_of(process, "BeforeUpdate", "UPDATE_IN_PROGRESS")

    assert process.returncode == 0
    assert account.endpoint()["EndpointConfigName"] != before
    assert account.instances() == 3


def test_the_rollback_of_a_deployment_that_scales_waits(account: Account) -> None:
    before = account.endpoint()["EndpointConfigName"]

    # It changes the endpoint, asks for five instances, and fails.
    process = account.deploy("failing")
    account.end_of(process, "BeforeUpdate", "UPDATE_IN_PROGRESS")

    assert process.returncode != 0
    assert account.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert account.endpoint()["EndpointConfigName"] == before


def test_the_deletion_waits_until_instances_are_added(account: Account) -> None:
    account.scale(6)

    process = account.destroy("first")
    stack = account.end_of(process, "BeforeDeletion", "DELETE_IN_PROGRESS")

    assert process.returncode == 0
    (gone,) = account.aws.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    assert gone["StackStatus"] == "DELETE_COMPLETE"
    assert account.aws.client("sagemaker").list_endpoints()["Endpoints"] == []


def test_without_waits_the_deployment_fails(account: Account) -> None:
    first = account.deploy("first-bare")
    first.communicate()
    account.scale(3)

    process = account.deploy("changed-bare")
    while process.poll() is None and BUSY not in account.reasons():
        time.sleep(0.05)
    account.settle(process)

    assert first.returncode == 0
    assert process.returncode != 0
    assert BUSY in account.reasons()
