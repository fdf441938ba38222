"""Alarms and dashboard of a variant with instance pools: its GPUs are looked at by instance type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from tests.hosting.endpoints.monitoring.test_dashboard import lines, marks, widgets
from tests.hosting.endpoints.monitoring.test_monitoring import alarms

from cdk_triton import ServingPlatform, TritonEndpoint, TritonModel, TritonVariant

if TYPE_CHECKING:
    from tests.hosting.conftest import World

FOUR_GPUS, ONE_GPU = "ml.g5.12xlarge", "ml.g4dn.2xlarge"


@pytest.fixture(name="monitored")
def _monitored(world: World, stack: cdk.Stack) -> cdk.Stack:
    models = [
        TritonModel(
            stack,
            each.replace(".", ""),
            repository=world.repository(),
            platform=ServingPlatform(release="25.09", instance_type=each),
        )
        for each in (FOUR_GPUS, ONE_GPU)
    ]
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=models[0], fallback_models=models[1:])])
    endpoint.monitor()
    return stack


def types(alarm: dict[str, Any]) -> set[str]:
    stats = (each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each)
    return {one["Value"] for each in stats for one in each["Dimensions"] if one["Name"] == "InstanceType"}


@pytest.mark.parametrize(("name", "percent"), [("GpuUtilization", 90), ("GpuMemory", 95)])
def test_an_alarm_of_gpus_takes_the_highest_instance_type(monitored: cdk.Stack, name: str, percent: int) -> None:
    alarm = alarms(monitored, "Endpoint")[name]

    expression = next(each["Expression"] for each in alarm["Metrics"] if "Expression" in each)
    assert expression == "MAX([FILL(m0, 0) / 4, FILL(m1, 0) / 1])"
    assert types(alarm) == {FOUR_GPUS, ONE_GPU}
    assert alarm["Threshold"] == percent


def test_the_other_alarms_are_those_of_all_instances(monitored: cdk.Stack) -> None:
    found = alarms(monitored, "Endpoint")
    plain = {name for name, alarm in found.items() if "MetricName" in alarm}
    assert found.keys() - plain == {"GpuUtilization", "GpuMemory"}


def test_the_dashboard_tells_the_instance_types_apart(monitored: cdk.Stack, flattened: Any) -> None:
    found = widgets(monitored, flattened)

    assert lines(found["Requests by instance type"]) == [FOUR_GPUS, ONE_GPU]
    assert lines(found["Latency by instance type, p99, ms"]) == [FOUR_GPUS, ONE_GPU]
    gpu = found["GPU, percent, of each"]
    assert lines(gpu) == [f"{kind}, {what}" for kind in (FOUR_GPUS, ONE_GPU) for what in ("mean", "highest")]
    assert marks(gpu) == {"alarm": 90}
    scales = [each[0]["expression"] for each in gpu["metrics"] if isinstance(each[0], dict) and "expression" in each[0]]
    assert [each.rpartition("/ ")[2] for each in scales] == ["4", "4", "1", "1"]
