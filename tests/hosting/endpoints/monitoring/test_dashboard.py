"""`TritonEndpoint.monitor`: what the dashboard shows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from cdk_triton import (
    AlarmThresholds,
    AsyncInference,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.drawing import as_text, diagrams
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

DASHBOARD = "AWS::CloudWatch::Dashboard"


def widgets(stack: cdk.Stack, flattened: Any) -> dict[str, dict[str, Any]]:
    """Title to properties, of the only dashboard of the stack."""
    (dashboard,) = Template.from_stack(stack).find_resources(DASHBOARD).values()
    body = json.loads(flattened(dashboard["Properties"]["DashboardBody"]))
    return {each["properties"]["title"]: each["properties"] for each in body["widgets"] if each["type"] == "metric"}


def texts(stack: cdk.Stack, flattened: Any) -> list[dict[str, Any]]:
    """The widgets with text, of the only dashboard of the stack."""
    (dashboard,) = Template.from_stack(stack).find_resources(DASHBOARD).values()
    body = json.loads(flattened(dashboard["Properties"]["DashboardBody"]))
    return [each for each in body["widgets"] if each["type"] == "text"]


def lines(widget: dict[str, Any]) -> list[str]:
    """What a widget draws."""
    shown = [metric[-1] for metric in widget["metrics"] if metric[-1].get("visible", True)]
    return [each["label"] for each in shown]


def marks(widget: dict[str, Any]) -> dict[str, float]:
    return {each["label"]: each["value"] for each in widget.get("annotations", {}).get("horizontal", [])}


def test_it_shows_what_a_person_looks_for(stack: cdk.Stack, model: TritonModel, flattened: Any) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor()

    shown = {title: lines(widget) for title, widget in widgets(stack, flattened).items()}
    assert shown == {
        "Requests": ["requests", "at a time"],
        "Latency, ms": ["model p50", "model p90", "model p99", "overhead, mean"],
        "Errors": ["4xx", "5xx", "not 2xx in the container"],
        "GPU, percent, of each": ["mean", "highest"],
        "GPU memory, percent, of each": ["mean", "highest"],
        "Memory and disk (left), CPU in percent of one vCPU (right)": [
            "memory, fullest",
            "disk, fullest",
            "CPU, mean",
        ],
        "Instances that answer": ["instances"],
        "Requests per instance": ["requests"],
    }


def test_it_ends_with_a_drawing_of_each_ensemble(stack: cdk.Stack, fleet: TritonMultiModel, flattened: Any) -> None:
    TritonEndpoint(stack, "Endpoint", model=fleet).monitor()

    drawing = texts(stack, flattened)[-1]["properties"]["markdown"]
    heading, fence, *block, end = drawing.split("\n")
    assert (heading, fence, end) == ("### text", "```", "```")
    (drawn,) = diagrams(fleet.ensembles["text"])
    assert "\n".join(block) == as_text(drawn)


def test_it_draws_one_repository_once_and_four_at_most(world: World, stack: cdk.Stack, flattened: Any) -> None:
    several = {f"text{number}": world.repository() for number in range(5)}
    ensembles = {**several, "again": several["text0"]}
    model = TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=model).monitor()

    headings = [each["properties"]["markdown"].partition("\n")[0] for each in texts(stack, flattened)]
    assert headings[-5:-1] == ["### text0 and 1 more", "### text1", "### text2", "### text3"]
    assert headings[-1].startswith("1 more ensembles")


def test_it_has_the_name_that_is_given(stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor(dashboard_name="search-eu_1")

    (dashboard,) = Template.from_stack(stack).find_resources(DASHBOARD).values()
    assert dashboard["Properties"]["DashboardName"] == "search-eu_1"


@pytest.mark.parametrize("name", ["", "search endpoint", "d" * 256], ids=["empty", "space", "long"])
def test_a_name_that_cloudwatch_rejects_is_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel, name: str
) -> None:
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model).monitor(dashboard_name=name)


def test_a_fleet_adds_what_it_loads(stack: cdk.Stack, fleet: TritonMultiModel, flattened: Any) -> None:
    TritonEndpoint(stack, "Endpoint", model=fleet).monitor()

    shown = widgets(stack, flattened)
    assert lines(shown["Loaded archives"]) == ["per instance", "unloads"]
    assert lines(shown["Requests that find their archive loaded, percent"]) == ["cache hits"]
    assert lines(shown["Loading, s"]) == ["wait, longest", "download, mean", "load, mean", "unload, mean"]
    assert marks(shown["Requests that find their archive loaded, percent"]) == {"alarm": 80}
    assert marks(shown["Loading, s"]) == {"alarm": 30}
    assert marks(shown["GPU memory, percent, of each"]) == {}


def test_an_asynchronous_endpoint_shows_its_queue_and_only_what_is_published(
    stack: cdk.Stack, model: TritonModel, flattened: Any
) -> None:
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference()).monitor()

    shown = widgets(stack, flattened)
    assert lines(shown["Requests that wait or are worked on"]) == ["backlog"]
    assert marks(shown["Age of the oldest request, s"]) == {"alarm": 1800}
    assert lines(shown["Requests without an answer"]) == ["failed", "expired in the queue"]
    assert lines(shown["Backlog per instance"]) == ["requests"]
    drawn = json.dumps(list(shown.values()))
    unpublished = ("Invocations", "InvocationsPerInstance", "OverheadLatency", "InvocationModelErrors")
    assert not [name for name in unpublished if f'"{name}"' in drawn]


def test_gpus_are_shown_in_percent_of_each(world: World, stack: cdk.Stack, flattened: Any) -> None:
    platform = replace(world.platform, instance_type="ml.g5.12xlarge")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    TritonEndpoint(stack, "Endpoint", model=model).monitor()

    widget = widgets(stack, flattened)["GPU, percent, of each"]
    assert [each[0]["expression"] for each in widget["metrics"] if len(each) == 1] == [
        "m_GPUUtilization_Average / 4",
        "m_GPUUtilization_Maximum / 4",
    ]
    assert marks(widget) == {"alarm": 90}


def test_latency_is_shown_in_milliseconds(stack: cdk.Stack, model: TritonModel, flattened: Any) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor()

    widget = widgets(stack, flattened)["Latency, ms"]
    assert widget["metrics"][0][0]["expression"] == "m_ModelLatency_p50 / 1000"
    assert marks(widget) == {"alarm": 5000}


def test_instances_are_shown_between_limits_that_may_come_later(
    stack: cdk.Stack, model: TritonModel, flattened: Any
) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=model, initial_instance_count=2)])
    endpoint.monitor()
    endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=7)

    assert marks(widgets(stack, flattened)["Instances that answer"]) == {"minimum": 2, "maximum": 7}


def test_without_scaling_the_limits_are_the_initial_count(stack: cdk.Stack, model: TritonModel, flattened: Any) -> None:
    TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=model, initial_instance_count=3)]).monitor()

    assert marks(widgets(stack, flattened)["Instances that answer"]) == {"minimum": 3, "maximum": 3}


def test_a_threshold_without_an_alarm_is_not_marked(stack: cdk.Stack, model: TritonModel, flattened: Any) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor(thresholds=AlarmThresholds(disk_percent=None))

    widget = widgets(stack, flattened)["Memory and disk (left), CPU in percent of one vCPU (right)"]
    assert marks(widget) == {"memory alarm": 90}
