"""Two inference components, by the CDK CLI on the local AWS: asked, changed, scaled to zero and back, and destroyed.

The servers are real ones. The tests build on each other, because a deployment takes some seconds.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError

from cdk_triton.client import TritonClient
from cdk_triton.errors import InvocationError, NoCapacityError
from cdk_triton_local import Clock, LocalAws

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("y", value + NUMBER)]) for value in values]
"""
TARGET = {"ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount"}


class Shop:
    """The local AWS, and the cloud assemblies of the stack `Shop`."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies
        self.sagemaker = aws.client("sagemaker")

    def cdk(self, version: str, *command: str) -> None:
        environment = {**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"}
        done = subprocess.run(
            [CDK, *command, "--app", self._assemblies / version, "--no-notices", "--ci"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def stack(self) -> dict[str, Any]:
        (stack,) = self.aws.client("cloudformation").describe_stacks(StackName="Shop")["Stacks"]
        return dict(stack)

    def output(self, name: str) -> str:
        return next(str(each["OutputValue"]) for each in self.stack()["Outputs"] if each["OutputKey"] == name)

    def ask(self, component: str | None) -> float:
        client = TritonClient(self.output("Endpoint"), self.aws.client("sagemaker-runtime"))
        return float(client.infer({"x": np.zeros(1, np.float32)}, inference_component=component)["y"][0])

    def scale(self, component: str, copies: int) -> None:
        """What Application Auto Scaling does, by its policies or the alarm."""
        self.sagemaker.update_inference_component_runtime_config(
            InferenceComponentName=component, DesiredRuntimeConfig={"CopyCount": copies}
        )
        self.settle(component)

    def settle(self, component: str) -> int:
        """Wait for the end of a change, and return the number of copies."""
        while (found := self.described(component))["InferenceComponentStatus"] == "Updating":
            threading.Event().wait(0.05)
        return int(found["RuntimeConfig"]["CurrentCopyCount"])

    def described(self, component: str) -> dict[str, Any]:
        return dict(self.sagemaker.describe_inference_component(InferenceComponentName=component))

    def instances(self) -> int:
        (variant,) = self.sagemaker.describe_endpoint(EndpointName=self.output("Endpoint"))["ProductionVariants"]
        return int(variant["CurrentInstanceCount"])

    def deleted(self, stack: str) -> list[str]:
        """Types and logical ids of the resources, in the order in which they began to go."""
        events = self.aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        return [
            f"{each['ResourceType'].rpartition('::')[2]} {each['LogicalResourceId']}"
            for each in reversed(events)
            if each["ResourceStatus"] == "DELETE_IN_PROGRESS"
        ]


@pytest.fixture(name="shop", scope="module")
def _shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("components")
    for version, name, number in (
        ("first", "text", 1),
        ("first", "image", 2),
        ("changed", "text", 10),
        ("changed", "image", 2),
    ):
        model = directory / "repositories" / version / name / "add" / "1" / "model.py"
        model.parent.mkdir(parents=True)
        model.write_text(MODEL.replace("NUMBER", str(number)))
        (model.parents[1] / "config.pbtxt").write_text(CONFIG)
    subprocess.run(
        [
            sys.executable,
            HERE / "components_app" / "app.py",
            directory / "repositories",
            ASSETS,
            directory / "assemblies",
        ],
        check=True,
    )
    with LocalAws(tmp_path_factory.mktemp("aws"), clock=Clock(only_moved=True)) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        shop = Shop(aws, directory / "assemblies")
        shop.cdk("first", "deploy", "--all", "--require-approval", "never")
        yield shop


def test_each_component_answers_by_its_name(shop: Shop) -> None:
    assert shop.ask(shop.output("Componenttext")) == 1
    assert shop.ask(shop.output("Componentimage")) == 2
    with pytest.raises(InvocationError, match="Inference Component Name header is required"):
        shop.ask(None)


def test_the_endpoint_is_kept_while_it_has_components(shop: Shop) -> None:
    with pytest.raises(ClientError, match="Cannot delete endpoint with inference component associated"):
        shop.sagemaker.delete_endpoint(EndpointName=shop.output("Endpoint"))


def test_components_go_to_zero_and_come_back(shop: Shop) -> None:
    text, image = shop.output("Componenttext"), shop.output("Componentimage")
    scaling = shop.aws.client("application-autoscaling")
    targets = scaling.describe_scalable_targets(**TARGET)["ScalableTargets"]
    assert {each["ResourceId"] for each in targets} == {f"inference-component/{name}" for name in (text, image)}
    assert shop.instances() == 1

    shop.scale(text, 0)
    shop.scale(image, 0)

    assert shop.instances() == 0
    with pytest.raises(NoCapacityError):
        shop.ask(text)
    shop.aws.metrics.publish()
    metrics = shop.aws.client("cloudwatch").list_metrics(MetricName="NoCapacityInvocationFailures")["Metrics"]
    assert [each["Dimensions"] for each in metrics] == [[{"Name": "InferenceComponentName", "Value": text}]]
    alarms = shop.aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert metrics[0]["Dimensions"] in [alarm["Dimensions"] for alarm in alarms]  # the alarm looks where it is counted

    shop.aws.clock.advance(60)  # the alarm on requests without a copy adds the first one

    assert shop.settle(text) == 1
    assert shop.ask(text) == 1
    assert shop.instances() == 1
    shop.scale(text, 2)


def test_a_deployment_changes_one_component_and_keeps_the_copies(shop: Shop) -> None:
    text, image = shop.output("Componenttext"), shop.output("Componentimage")

    shop.cdk("changed", "deploy", "--all", "--require-approval", "never")

    assert shop.ask(text) == 10
    assert (shop.output("Componenttext"), shop.output("Componentimage")) == (text, image)
    assert shop.described(text)["RuntimeConfig"]["CurrentCopyCount"] == 2
    assert shop.described(image)["RuntimeConfig"]["CurrentCopyCount"] == 0


def test_components_go_before_their_endpoint(shop: Shop) -> None:
    stack = shop.stack()["StackId"]

    shop.cdk("changed", "destroy", "--all", "--force")

    order = shop.deleted(stack)

    def place(start: str) -> int:
        """The last one: the cleanup of the update has removed a model before."""
        return max(number for number, each in enumerate(order) if each.startswith(start))

    for name in ("text", "image"):
        component = place(f"InferenceComponent Components{name}")
        assert place(f"ScalableTarget Components{name}") < component < place("Endpoint ")
        assert component < place(f"Model Model{name}")
    assert place("Endpoint ") < place("EndpointConfig ")
    assert shop.sagemaker.list_endpoints()["Endpoints"] == []
    assert shop.sagemaker.list_inference_components()["InferenceComponents"] == []


def test_the_store_was_emptied_and_is_gone(shop: Shop) -> None:
    assert [each["Name"] for each in shop.aws.client("s3").list_buckets()["Buckets"]] == [ASSETS]
