"""The metrics of a variant, and the table of them in the user guide."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton import EndpointMetrics, TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

PAGE = Path(__file__).parents[4] / "docs" / "monitoring.md"

INVOCATIONS, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"

# "Amazon SageMaker AI metrics in Amazon CloudWatch": what it calls endpoint metrics and model instance metrics.
OF_INSTANCES = {
    "CPUUtilization",
    "MemoryUtilization",
    "GPUUtilization",
    "GPUMemoryUtilization",
    "DiskUtilization",
    "LoadedModelCount",
}

# "Alarms and logs for tracking metrics from asynchronous endpoints": those with the dimension EndpointName alone.
OF_QUEUES = {"ApproximateBacklogSize", "ApproximateBacklogSizePerInstance", "ApproximateAgeOfOldestRequest"}


def documented() -> dict[str, str]:
    """Method to metric, of the page's table."""
    return dict(re.findall(r"^\| `(metric_\w+)` \| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))


def offered() -> set[str]:
    """The methods that give a metric of SageMaker's."""
    return {name for name in dir(EndpointMetrics) if name.startswith("metric_")} - {
        "metric_dimensions",
        "metric_instance_count",
    }


METRICS = EndpointMetrics(endpoint_name="search", variant_name="Blue")


def test_the_page_has_every_method() -> None:
    assert set(documented()) == offered()


@pytest.mark.parametrize(("method", "name"), documented().items())
def test_a_method_is_the_metric_that_sagemaker_publishes(method: str, name: str) -> None:
    metric: cloudwatch.Metric = getattr(METRICS, method)()

    assert (metric.metric_name, metric.namespace) == (name, INSTANCES if name in OF_INSTANCES else INVOCATIONS)
    variant = {} if name in OF_QUEUES else {"VariantName": "Blue"}
    assert metric.dimensions == {"EndpointName": "search", **variant}
    assert metric.period.to_seconds() == 60


@pytest.mark.parametrize("method", sorted(offered()))
def test_the_options_are_those_of_a_metric_of_the_cdk(method: str) -> None:
    ask: Callable[..., cloudwatch.Metric] = getattr(METRICS, method)
    metric = ask(
        account="222222222222",
        color=cloudwatch.Color.RED,
        dimensions_map={"EndpointName": "other"},
        label="Errors",
        period=cdk.Duration.minutes(5),
        region="eu-west-1",
        statistic="Minimum",
        unit=cloudwatch.Unit.COUNT,
    )

    assert (metric.account, metric.region) == ("222222222222", "eu-west-1")
    assert (metric.color, metric.label, metric.unit) == (cloudwatch.Color.RED, "Errors", cloudwatch.Unit.COUNT)
    assert (metric.statistic, metric.period.to_seconds()) == ("Minimum", 300)
    assert metric.dimensions == {"EndpointName": "other"}


def test_the_options_are_all_that_the_cdk_has() -> None:
    of_cdk = {name for name in inspect.signature(cloudwatch.Metric.with_).parameters if name != "self"}
    assert set(inspect.signature(METRICS.metric_invocations).parameters) == of_cdk


def test_an_option_that_is_none_is_not_given() -> None:
    metric = METRICS.metric_invocations(statistic=None, period=None)

    assert (metric.statistic, metric.period.to_seconds()) == ("Sum", 60)


def test_an_unknown_option_is_an_unknown_argument() -> None:
    ask: Callable[..., cloudwatch.Metric] = METRICS.metric_invocations
    with pytest.raises(TypeError, match="metric_invocations\\(\\) got an unexpected keyword argument 'statistics'"):
        ask(statistics="Sum")


def test_a_dashboard_of_another_region_shows_the_metric_of_the_endpoints_region(world: World) -> None:
    app = world.app()
    serving, watching = (
        cdk.Stack(app, name, env=cdk.Environment(account="111122223333", region=region))
        for name, region in {"Serving": "eu-west-1", "Watching": "us-east-1"}.items()
    )
    model = TritonModel(serving, "Model", repository=world.repository(), platform=world.platform)
    endpoint = TritonEndpoint(serving, "Endpoint", model=model, endpoint_name="search")
    metric = endpoint.metric_invocations()
    for stack in (serving, watching):
        cloudwatch.Dashboard(stack, "Dashboard").add_widgets(cloudwatch.GraphWidget(left=[metric]))

    here, there = (
        json.dumps(world.only(stack, "AWS::CloudWatch::Dashboard")["Properties"]["DashboardBody"])
        for stack in (serving, watching)
    )
    assert there.count("eu-west-1") == 1
    assert "accountId" not in there
    assert "eu-west-1" not in here


@pytest.mark.parametrize(
    ("method", "statistic"),
    [
        ("metric_invocations", "Sum"),
        ("metric_invocations_per_instance", "Sum"),
        ("metric_concurrent_requests", "Maximum"),
        ("metric_model_latency", "Average"),
        ("metric_invocation_5xx_errors", "Sum"),
        ("metric_gpu_utilization", "Average"),
        ("metric_model_cache_hit", "Average"),
    ],
)
def test_the_statistic_is_one_that_sagemaker_documents(method: str, statistic: str) -> None:
    assert getattr(METRICS, method)().statistic == statistic


def test_the_number_of_instances_follows_from_two_counts() -> None:
    count = METRICS.metric_instance_count(period=cdk.Duration.minutes(5))

    used = {name: metric.to_metric_config().metric_stat for name, metric in (count.using_metrics or {}).items()}
    assert count.expression == "invocations / perInstance"
    assert {name: (stat.metric_name, stat.statistic) for name, stat in used.items() if stat is not None} == {
        "invocations": ("Invocations", "Sum"),
        "perInstance": ("InvocationsPerInstance", "Sum"),
    }
    assert {stat.period.to_seconds() for stat in used.values() if stat is not None} == {300}


def test_an_endpoint_has_the_metrics_of_its_only_variant(messages: Messages, world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    one = TritonEndpoint(stack, "One", model=model)
    two = TritonEndpoint(
        stack, "Two", variants=[TritonVariant(model=model, variant_name=name) for name in ("Blue", "Green")]
    )

    assert stack.resolve(one.metric_invocations().dimensions) == {
        "EndpointName": stack.resolve(one.endpoint_name),
        "VariantName": "AllTraffic",
    }
    assert (two.variant("Green").metric_gpu_utilization().dimensions or {})["VariantName"] == "Green"
    with messages.raises(ConfigurationError):
        two.metric_invocations()


@pytest.mark.parametrize(
    "names",
    [{"endpoint_name": "my_endpoint"}, {"endpoint_name": "x", "variant_name": ""}],
    ids=["an endpoint", "a variant"],
)
def test_metrics_of_what_cannot_exist_are_rejected(messages: Messages, names: dict[str, str]) -> None:
    with messages.raises(ConfigurationError):
        EndpointMetrics(**names)
