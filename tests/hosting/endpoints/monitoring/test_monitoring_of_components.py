"""`TritonComponents.monitor`: alarms as the user guide's table has them, a dashboard, and logs that expire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template
from tests.hosting.endpoints.monitoring.test_dashboard import lines, marks, widgets
from tests.hosting.endpoints.monitoring.test_monitoring import documented, row

from cdk_triton import AlarmThresholds, Capacity, Rolling, ServingPlatform, TritonComponents, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

ALARM, DASHBOARD, SCHEDULE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Scheduler::Schedule"
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")
COPY: dict[str, Any] = {"accelerators": 2, "memory": cdk.Size.gibibytes(8)}
RUNBOOK = Path(__file__).parents[4] / "docs" / "runbook.md"


@pytest.fixture(name="text")
def _text(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "TextModel", repository=world.repository("text"), platform=PLATFORM)


@pytest.fixture(name="components")
def _components(stack: cdk.Stack) -> TritonComponents:
    return TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=3)


def found(world: World, stack: cdk.Stack, component: str) -> dict[str, dict[str, Any]]:
    """The properties of the alarms of a component, by name."""
    prefix = f"Components{component}Alarms"
    resources = world.resources(stack, ALARM).items()
    return {name[len(prefix) : -8]: each["Properties"] for name, each in resources if name.startswith(prefix)}


def name_of(world: World, stack: cdk.Stack, component: str) -> Any:
    """The name of a component as the template gives it."""
    (found,) = (
        each["Properties"]["InferenceComponentName"]
        for name, each in world.resources(stack, "AWS::SageMaker::InferenceComponent").items()
        if name.startswith(f"Components{component}")
    )
    return found


def test_a_component_has_the_alarms_of_the_page(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    components.add_component("Text", model=text, **COPY)
    made = components.monitor().components["Text"]

    alarms = found(world, stack, "Text")
    assert {name: row(alarm) for name, alarm in alarms.items()} == documented(1)["components"]
    assert {each.node.id for each in made.alarms} == set(alarms)
    assert made.no_capacity in made.alarms
    assert len(alarms) == 8
    for alarm in alarms.values():
        assert alarm["Dimensions"] == [
            {"Name": "InferenceComponentName", "Value": name_of(world, stack, "Text")},
        ]
        assert alarm["TreatMissingData"] == "notBreaching"


def test_a_component_that_is_added_later_is_monitored_too(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    components.add_component("First", model=text, **COPY)
    topic = sns.Topic(stack, "Topic")
    monitoring = components.monitor(topic=topic)
    components.add_component("Second", model=text, **COPY)

    assert set(monitoring.components) == {"First", "Second"}
    assert len(monitoring.errors) == 4
    alarms = found(world, stack, "Second")
    assert set(alarms) == set(found(world, stack, "First"))
    assert all(alarm["AlarmActions"] == [stack.resolve(topic.topic_arn)] for alarm in alarms.values())
    body = json.dumps(world.only(stack, DASHBOARD))
    assert "## Component Second: 25.09-a10g on ml.g5.12xlarge, 2 GPUs for each copy" in body
    assert len(world.resources(stack, SCHEDULE)) == 2


def test_each_alarm_says_what_happened_and_what_to_do(
    messages: Messages, world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    components.add_component("Text", model=text, **COPY)
    components.monitor()

    for name, alarm in found(world, stack, "Text").items():
        messages.record("alarm", alarm["AlarmDescription"])
        assert alarm["AlarmDescription"].startswith("Stack/Components/Components/Text: ")
        assert f"\n## {name}\n" in RUNBOOK.read_text()


def test_thresholds_of_ones_own(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    components.add_component("Text", model=text, **COPY)
    components.monitor(
        thresholds=AlarmThresholds(gpu_utilization_percent=70, memory_percent=None, no_capacity_requests=10)
    )

    alarms = found(world, stack, "Text")
    assert alarms["GpuUtilization"]["Threshold"] == 70  # and not twice as much for two GPUs
    assert alarms["NoCapacity"]["Threshold"] == 10
    assert "Memory" not in alarms


def test_the_dashboard_shows_copies_and_normalised_metrics(
    stack: cdk.Stack, components: TritonComponents, text: TritonModel, flattened: Any
) -> None:
    component = components.add_component("Text", model=text, **COPY)
    components.monitor()
    component.scale_to_zero("Idle", max_capacity=4, max_requests_per_second=10)

    found = widgets(stack, flattened)
    assert {title: lines(widget) for title, widget in found.items()} == {
        "Requests": ["requests", "at a time"],
        "Latency, ms": ["model p50", "model p90", "model p99", "overhead, mean"],
        "Errors": ["4xx", "5xx", "not 2xx in the container"],
        "GPU, percent of what the copies reserve": ["mean"],
        "GPU memory, percent of what the copies reserve": ["fullest"],
        "Memory and CPU, percent of what the copies reserve": ["memory, fullest", "CPU, mean"],
        "Copies that answer": ["copies"],
        "Requests per copy": ["requests"],
        "Requests without a copy": ["requests"],
    }
    assert marks(found["GPU, percent of what the copies reserve"]) == {"alarm": 90}
    assert marks(found["Copies that answer"]) == {"minimum": 0, "maximum": 4}


def test_logs_of_a_component_expire(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel, flattened: Any
) -> None:
    components.add_component("Text", model=text, **COPY)
    components.monitor(log_retention=logs.RetentionDays.ONE_WEEK)

    called = json.loads(flattened(world.only(stack, SCHEDULE)["Properties"]["Target"]["Input"]))
    assert called["RetentionInDays"] == 7
    assert called["LogGroupName"].startswith("/aws/sagemaker/InferenceComponents/text-")


def test_logs_may_be_kept(world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel) -> None:
    components.add_component("Text", model=text, **COPY)
    components.monitor(log_retention=logs.RetentionDays.INFINITE)

    assert not world.resources(stack, SCHEDULE)


def test_alarms_of_the_monitoring_roll_an_update_back(
    stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    policy = Rolling(batch=Capacity(50), wait=cdk.Duration.minutes(10))
    component = components.add_component("Text", model=text, **COPY, copies=2, deployment_policy=policy)
    component.roll_back_on(components.monitor().components["Text"].server_errors)

    Template.from_stack(stack)  # which rejects a dependency cycle


def test_a_second_call_and_an_unknown_name_are_rejected(
    messages: Messages, components: TritonComponents, text: TritonModel
) -> None:
    components.add_component("Text", model=text, **COPY)
    monitoring = components.monitor()
    with messages.raises(ConfigurationError):
        components.monitor()
    with messages.raises(ConfigurationError):
        _ = monitoring.components["Txt"]
    with pytest.raises(ConfigurationError) as caught:
        _ = monitoring.components["Text"].disk
    messages.record("ConfigurationError", str(caught.value))
