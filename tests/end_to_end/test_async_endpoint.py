"""An asynchronous endpoint by the CDK CLI on the local AWS: asked, scaled to zero and back, updated and destroyed.

The real tritonserver runs a Python model that adds one to its input, and fails for a negative one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdk_triton.client import AsyncResult, TritonClient
from cdk_triton.errors import ModelError, ResultNotReadyError
from cdk_triton_local import Clock, LocalAws

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
SECONDS = 60.0
CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(pb_utils.get_input_tensor_by_name(each, "x").as_numpy()) for each in requests]

    def _answer(self, x):
        if x[0] < 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("x is negative"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x + 1)])
"""


class Account:
    """The local AWS, the cloud assemblies of an app, and a client as a caller makes it."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies

    def run(self, app: str, *command: str) -> None:
        done = subprocess.run(
            [CDK, *command, "--app", self._assemblies / app, "--no-notices", "--ci"],
            env={**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def client(self) -> TritonClient:
        return TritonClient.from_parameters(
            "/queued",
            self.aws.client("sagemaker-runtime"),
            s3=self.aws.client("s3"),
            ssm=self.aws.client("ssm"),
        )

    def submit(self, x: np.ndarray[Any, Any], **how: Any) -> AsyncResult:
        return self.client().submit({"x": x.astype(np.float32)}, **how)

    def minutes_until(self, count: int) -> int:
        """The minutes that pass until the endpoint has so many instances."""
        sagemaker, name = self.aws.client("sagemaker"), self.client().endpoint_name
        for minutes in range(60):
            (variant,) = sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
            if variant["CurrentInstanceCount"] == count:
                return minutes
            self.aws.clock.advance(60)
        raise AssertionError(f"there are not {count} instances after an hour, but {variant}")

    def scale(self, count: int) -> None:
        sagemaker = self.aws.client("sagemaker")
        name = self.client().endpoint_name
        wanted = {"VariantName": "AllTraffic", "DesiredInstanceCount": count}
        sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=[wanted])
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name, WaiterConfig={"Delay": 0.05})


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("queued")
    (directory / "text" / "net" / "1").mkdir(parents=True)
    (directory / "text" / "net" / "config.pbtxt").write_text(CONFIG)
    (directory / "text" / "net" / "1" / "model.py").write_text(MODEL)
    subprocess.run(
        [sys.executable, HERE / "async_app" / "app.py", directory / "text", ASSETS, directory / "assemblies"],
        check=True,
    )
    clock = Clock(only_moved=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), clock=clock) as aws, pytest.MonkeyPatch.context() as patch:
        patch.setattr("cdk_triton_local.endpoints.instance_changes.SECONDS", 0.0)
        aws.client("s3").create_bucket(Bucket=ASSETS)
        account = Account(aws, directory / "assemblies")
        account.run("first", "deploy", "--all", "--require-approval", "never")
        yield account


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
@pytest.mark.parametrize("elements", [3, 100_000], ids=["in the call", "by S3"])
def test_a_request_is_answered(account: Account, elements: int, *, binary: bool) -> None:
    x = np.arange(elements)

    answer = account.submit(x, binary=binary).result(SECONDS)

    np.testing.assert_array_equal(answer["y"], x + 1)


def test_a_failure_has_the_words_of_the_server(account: Account) -> None:
    with pytest.raises(ModelError) as caught:
        account.submit(np.array([-1.0])).result(SECONDS)

    assert "x is negative" in caught.value.original_message
    assert caught.value.status in (400, 500)


def test_requests_wait_for_an_instance_and_outlive_an_update(account: Account) -> None:
    account.scale(0)
    waiting = account.submit(np.array([1.0]))
    with pytest.raises(ResultNotReadyError):
        waiting.result()

    account.run("changed", "deploy", "--all", "--require-approval", "never")
    with pytest.raises(ResultNotReadyError):
        waiting.result()  # the update has kept the count

    account.scale(1)
    assert waiting.result(SECONDS)["y"].tolist() == [2.0]
    assert account.submit(np.array([2.0])).result(SECONDS)["y"].tolist() == [3.0]


def test_an_idle_endpoint_goes_to_zero_and_back(account: Account) -> None:
    account.submit(np.array([3.0])).result(SECONDS)

    assert 14 <= account.minutes_until(0) <= 16  # 15 minutes with less than 90 % of the target
    waiting = account.submit(np.array([4.0]))
    assert 2 <= account.minutes_until(1) <= 3  # two whole minutes with a backlog and without capacity
    assert waiting.result(SECONDS)["y"].tolist() == [5.0]


def test_the_stack_can_be_destroyed_and_answers_stay(account: Account) -> None:
    kept = account.submit(np.array([5.0]))
    kept.result(SECONDS)

    account.run("changed", "destroy", "--all", "--force")

    assert account.aws.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert kept.result()["y"].tolist() == [6.0]
