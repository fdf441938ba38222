"""Arguments of the right type that AWS or the CDK would reject: one sentence at synth, not a failed deployment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns
from aws_cdk.aws_applicationautoscaling import ScalingInterval, Schedule

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import (
    AsyncInference,
    DataCapture,
    TritonArtifactStore,
    TritonComponents,
    TritonEndpoint,
    add_vpc_endpoints,
)

if TYPE_CHECKING:
    from golden_messages import Messages

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
VIRGINIA = cdk.Environment(account="111122223333", region="us-east-1")


def steps(given: Any, *intervals: ScalingInterval, **other: Any) -> object:
    metric = other.pop("metric", cloudwatch.Metric(namespace="Own", metric_name="Load"))
    intervals = intervals or (ScalingInterval(lower=50, change=1), ScalingInterval(upper=10, change=-1))
    return given.count.scale_on_metric("Steps", metric=metric, scaling_steps=intervals, **other)


def zone(given: Any, name: str) -> object:
    schedule = Schedule.cron(hour="7", minute="0")
    return given.count.scale_on_schedule("Morning", schedule=schedule, min_capacity=2, time_zone=cdk.TimeZone.of(name))


def dashboards(given: Any) -> object:
    TritonEndpoint(given.scope, "One", model=given.model).monitor(dashboard_name="search")
    other = cdk.Stack(given.scope.node.root, "Virginia", env=VIRGINIA)
    components = TritonComponents(other, "Components", platform=given.platform, max_instance_count=1)
    return components.monitor(dashboard_name="search")


def stores(given: Any, **arguments: str) -> object:
    other = cdk.Stack(given.scope.node.root, "".join(arguments).replace("_", ""), env=IRELAND)
    TritonArtifactStore(other, "One", **arguments)  # type: ignore[arg-type] # texts only
    return TritonArtifactStore(other, "Other", **arguments)  # type: ignore[arg-type] # texts only


def buckets_of_two_regions(given: Any) -> None:
    for name, environment in (("Europe", IRELAND), ("America", VIRGINIA)):
        stack = cdk.Stack(given.scope.node.root, name, env=environment)
        TritonArtifactStore(stack, "Store", bucket_name="in-two-regions")


def vpc(given: Any, id: str, **arguments: Any) -> ec2.Vpc:
    return ec2.Vpc(given.scope, id, **arguments)


def two_of_a_zone(given: Any) -> object:
    kinds = [ec2.SubnetConfiguration(name=name, subnet_type=ec2.SubnetType.PRIVATE_ISOLATED) for name in "ab"]
    made = vpc(given, "TwoOfAZone", subnet_configuration=kinds, max_azs=2)
    return add_vpc_endpoints(made, subnets=ec2.SubnetSelection(subnets=made.isolated_subnets))


REJECTED: dict[str, tuple[Callable[[Any], object], str]] = {
    "a part of an instance": (
        lambda g: steps(g, ScalingInterval(lower=5, change=1.5), ScalingInterval(upper=1, change=-1)),
        "1.5",
    ),
    "overlapping steps": (
        lambda g: steps(g, ScalingInterval(lower=50, change=1), ScalingInterval(upper=60, change=-1)),
        "policy 'Steps'",
    ),
    "a step without a bound": (
        lambda g: steps(g, ScalingInterval(change=1), ScalingInterval(upper=1, change=-1)),
        "'Steps'",
    ),
    "more datapoints than periods": (lambda g: steps(g, evaluation_periods=2, datapoints_to_alarm=3), "is 3, but"),
    "datapoints without periods": (lambda g: steps(g, datapoints_to_alarm=2), "evaluation_periods=2"),
    "a metric of another region": (
        lambda g: steps(g, metric=cloudwatch.Metric(namespace="Own", metric_name="Load", region="us-east-1")),
        "us-east-1",
    ),
    "a misspelt time zone": (lambda g: zone(g, "Europe/Berln"), "did you mean 'Europe/Berlin'"),
    "the dashboard of another region": (dashboards, "in all regions"),
    "the bucket of another store": (lambda g: stores(g, bucket_name="archives"), "in all accounts"),
    "the bucket of a store in another region": (buckets_of_two_regions, "in all accounts and regions"),
    "the exports of another store": (lambda g: stores(g, export_prefix="triton"), "in an account and region"),
    "a relative prefix of captured data": (
        lambda g: DataCapture(bucket=g.bucket, sampling_percentage=1, prefix="a/../artifacts"),
        "'..'",
    ),
    "a relative prefix of requests": (lambda g: AsyncInference(input_prefix="./in"), "'.'"),
    "a FIFO topic for EventBridge": (
        lambda g: g.endpoint.add_rollback_notification(sns.Topic(g.scope, "Fifo", fifo=True)),
        "MessageGroupId",
    ),
    "a VPC without DNS": (
        lambda g: add_vpc_endpoints(vpc(g, "WithoutDns", enable_dns_support=False, enable_dns_hostnames=False)),
        "enable_dns_support=False",
    ),
    "no subnet for VPC endpoints": (
        lambda g: add_vpc_endpoints(vpc(g, "NoSubnet"), subnets=ec2.SubnetSelection(subnets=[])),
        "are none",
    ),
    "subnets of another VPC": (
        lambda g: add_vpc_endpoints(vpc(g, "Mine"), subnets=ec2.SubnetSelection(subnets=g.vpc.private_subnets)),
        "another VPC",
    ),
    "two subnets in one zone": (two_of_a_zone, "one of each zone"),
}
"""What is given: a call with it, and a part of the sentence."""


@pytest.mark.parametrize("case", REJECTED)
def test_one_sentence_says_why_it_cannot_work(messages: Messages, given: Any, case: str) -> None:
    call, named = REJECTED[case]
    with messages.raises(ConfigurationError) as caught:
        call(given)
    assert named in str(caught.value)


def test_other_names_are_taken(given: Any) -> None:
    """Two stores and dashboards with names of their own, or of accounts that nobody knows, are no conflict."""
    app = given.scope.node.root
    for number in (1, 2):
        stack = cdk.Stack(app, f"Own{number}", env=cdk.Environment(account=f"11112222333{number}", region="eu-west-1"))
        TritonArtifactStore(stack, "Store", bucket_name=f"archives-{number}", export_prefix="own")
        components = TritonComponents(stack, "Components", platform=given.platform, max_instance_count=1)
        components.monitor(dashboard_name="own")


def test_stacks_that_may_be_in_different_accounts_share_no_names(given: Any) -> None:
    """Two stages without an environment may be deployed with two profiles."""
    for stage in ("Test", "Prod"):
        stack = cdk.Stack(given.scope.node.root, stage)
        TritonArtifactStore(stack, "Store", bucket_name="one-per-stage")
        components = TritonComponents(stack, "Components", platform=given.platform, max_instance_count=1)
        components.monitor(dashboard_name="one-per-stage")


def test_buckets_of_two_partitions_may_have_one_name() -> None:
    """Without the CDK's flag for literal partitions, all stacks have the same token."""
    app = cdk.App()
    for region in ("eu-west-1", "cn-north-1"):
        stack = cdk.Stack(app, f"Of-{region}", env=cdk.Environment(region=region))
        TritonArtifactStore(stack, "Store", bucket_name="one-per-partition")
