"""A number that only the deployment knows, where a number is needed at synth: one sentence, which calls it a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest

from cdk_triton import AlarmThresholds, ContainerEnvironment, Parity, ServingPlatform, TensorRTPlan, Tolerance
from cdk_triton._tokens import is_number_token
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages

TAKERS: dict[str, Callable[[Any], object]] = {
    "thread_count": lambda number: ContainerEnvironment(thread_count=number),
    "model_load_gpu_limit": lambda number: ContainerEnvironment(model_load_gpu_limit=number),
    "safe_port_range": lambda number: ContainerEnvironment(safe_port_range=(number, 9010)),
    "workspace_mib": lambda number: TensorRTPlan("network", onnx="network.onnx", workspace_mib=number),
    "seed": lambda number: Parity(seed=number),
    "ranges": lambda number: Parity(ranges={"ids": (0, number)}),
    "tolerance": lambda number: Tolerance(absolute=number, relative=0.1),
    "gpu_utilization_percent": lambda number: AlarmThresholds(gpu_utilization_percent=number),
    "onnx": lambda number: TensorRTPlan("network", onnx=number),
}


@pytest.fixture(name="number")
def _number(stack: cdk.Stack) -> float:
    return cdk.CfnParameter(stack, "Number", type="Number").value_as_number


@pytest.mark.parametrize("argument", TAKERS)
def test_is_called_a_token(messages: Messages, number: float, argument: str) -> None:
    with messages.raises(ConfigurationError) as caught:
        TAKERS[argument](number)

    assert "unresolved token" in str(caught.value)
    assert "e+2" not in str(caught.value)


@pytest.mark.parametrize("number", [0, -1, -1.5, 1e300, -1.8e289, -(2**2000), 2**2000, float("nan"), True, "1", None])
def test_no_other_number_is_taken_for_one(number: object) -> None:
    assert not is_number_token(number)


def test_every_token_of_a_number_is_known(number: float) -> None:
    assert all(is_number_token(each) for each in (number, cdk.Token.as_number({"Ref": "A"})))


def test_an_image_that_is_a_parameter(messages: Messages, stack: cdk.Stack) -> None:
    image = cdk.CfnParameter(stack, "Image").value_as_string
    with messages.raises(ConfigurationError) as caught:
        ServingPlatform(release="25.09", image=image, instance_type="ml.g5.xlarge")

    assert "unresolved token" in str(caught.value)
