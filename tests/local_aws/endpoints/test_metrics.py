"""The CloudWatch metrics of endpoints, as alarms and dashboards look for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from moto.cloudwatch.models import cloudwatch_backends

if TYPE_CHECKING:
    from cdk_triton_local.aws import LocalAws


def statistics(
    aws: LocalAws, endpoint: str, name: str, namespace: str = "AWS/SageMaker", **more: str
) -> dict[str, Any]:
    """The statistics of one metric of the variant `v` over the last hour, with more dimensions."""
    dimensions = {"EndpointName": endpoint, "VariantName": "v", **more}
    now = datetime.now(UTC)
    found: list[dict[str, Any]] = (
        aws.client("cloudwatch")
        .get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=7200,
            Statistics=["Sum", "SampleCount", "Minimum", "Maximum"],
        )
        .get("Datapoints")
    )
    return found[0] if found else {}


def test_what_is_recorded_is_published_under_sagemakers_names(local_aws: LocalAws) -> None:
    for value in (1.0, 0.0, 1.0):
        local_aws.metrics.record("one", "v", "ModelCacheHit", value)
    local_aws.metrics.record("one", "v", "ModelLatency", 0.002)
    local_aws.metrics.record("one", "v", "LoadedModelCount", 4)
    local_aws.metrics.record("other", "v", "ModelCacheHit", 1.0)
    local_aws.metrics.publish()
    hits = statistics(local_aws, "one", "ModelCacheHit")
    assert (hits["Sum"], hits["SampleCount"], hits["Minimum"], hits["Maximum"]) == (2, 3, 0, 1)
    latency = statistics(local_aws, "one", "ModelLatency")
    assert latency["Sum"] == pytest.approx(2000)
    assert latency["Unit"] == "Microseconds"
    assert statistics(local_aws, "one", "LoadedModelCount", "/aws/sagemaker/Endpoints")["Maximum"] == 4


def test_what_was_published_is_not_published_again(local_aws: LocalAws) -> None:
    local_aws.metrics.record("once", "v", "Invocations", 1)
    local_aws.metrics.publish()
    local_aws.metrics.publish()
    assert statistics(local_aws, "once", "Invocations")["Sum"] == 1


def test_what_is_recorded_of_an_instance_type_is_found_with_and_without_it(local_aws: LocalAws) -> None:
    local_aws.metrics.record("pooled", "v", "Invocations", 1, "ml.g5.xlarge")
    local_aws.metrics.publish()
    assert statistics(local_aws, "pooled", "Invocations")["Sum"] == 1
    assert statistics(local_aws, "pooled", "Invocations", InstanceType="ml.g5.xlarge")["Sum"] == 1
    assert statistics(local_aws, "pooled", "Invocations", InstanceType="ml.g6.xlarge") == {}


def test_many_latencies_are_one_datum_with_their_sum_number_and_extremes(local_aws: LocalAws) -> None:
    busy = [{"Name": "EndpointName", "Value": "busy"}]
    for number in range(1, 5001):
        local_aws.metrics.record("busy", "v", "ModelLatency", number / 1e6)
    local_aws.metrics.publish()

    found = statistics(local_aws, "busy", "ModelLatency")

    assert (found["SampleCount"], found["Minimum"], found["Maximum"]) == (5000, 1, 5000)
    assert found["Sum"] == pytest.approx(5000 * 5001 / 2)
    kept = cloudwatch_backends[local_aws.account][local_aws.region].metric_data
    assert len([each for each in kept if each.filter("AWS/SageMaker", "ModelLatency", busy)]) == 1
