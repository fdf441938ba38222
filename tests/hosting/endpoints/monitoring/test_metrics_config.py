"""`MetricsConfig` of an endpoint: what its configuration says, and what SageMaker would not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import Duration
from aws_cdk.assertions import Annotations, Match

from cdk_triton import MetricsConfig, TritonEndpoint, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

WARNING = "cdk-triton:MetricsEveryFewMinutes"


@pytest.mark.parametrize(
    ("config", "rendered"),
    [
        (MetricsConfig(), {"EnableDetailedObservability": True, "EnableEnhancedMetrics": False}),
        (
            MetricsConfig(detailed_observability=False, enhanced_metrics=True),
            {"EnableDetailedObservability": False, "EnableEnhancedMetrics": True},
        ),
        (
            MetricsConfig(publish_frequency=Duration.seconds(10)),
            {
                "EnableDetailedObservability": True,
                "EnableEnhancedMetrics": False,
                "MetricPublishFrequencyInSeconds": 10,
            },
        ),
        (None, None),
    ],
    ids=["detailed", "enhanced", "every 10 seconds", "not said"],
)
def test_what_sagemaker_publishes_is_said_as_given(
    world: World,
    stack: cdk.Stack,
    model: TritonModel,
    config: MetricsConfig | None,
    rendered: dict[str, bool | int] | None,
) -> None:
    TritonEndpoint(stack, "Endpoint", model=model, metrics_config=config)

    assert world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"].get("MetricsConfig") == rendered


@pytest.mark.parametrize("seconds", [0, 1, 15, 90, 600])
def test_a_frequency_that_sagemaker_does_not_take_is_rejected(messages: Messages, seconds: int) -> None:
    with messages.raises(ConfigurationError):
        MetricsConfig(publish_frequency=Duration.seconds(seconds))


@pytest.mark.parametrize(
    ("frequency", "enhanced", "count"),
    [
        (Duration.minutes(1), True, 0),
        (Duration.seconds(cdk.Token.as_number({"Ref": "Frequency"})), True, 0),
        (Duration.minutes(2), False, 1),
        (Duration.minutes(5), True, 1),
    ],
    ids=["a minute", "an unresolved token", "utilization", "invocations too"],
)
def test_metrics_that_come_more_rarely_than_alarms_look_are_a_warning(
    messages: Messages, stack: cdk.Stack, model: TritonModel, frequency: Duration, enhanced: bool, count: int
) -> None:
    config = MetricsConfig(publish_frequency=frequency, enhanced_metrics=enhanced)
    TritonEndpoint(stack, "Endpoint", model=model, metrics_config=config)

    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"\[ack: {WARNING}\]"))

    assert len(found) == count
    for each in found:
        messages.record(WARNING, str(each.entry.data))
