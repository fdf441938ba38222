"""One utilization for a variant whose instance types differ in the number of GPUs or vCPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton.hosting.endpoints.variants.metrics import of_instance_type
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.sagemaker import GpuInstance

__all__ = ["GPUS", "VCPUS", "Units", "track_mean_of_types"]

Units = Callable[[GpuInstance], int]
"""The number of units (GPUs or vCPUs) of an instance. A metric is the sum over the units."""

GPUS: Final[Units] = attrgetter("gpu_count")
VCPUS: Final[Units] = attrgetter("vcpu_count")

_Metric = autoscaling.CfnScalingPolicy.TargetTrackingMetricProperty
_Query = autoscaling.CfnScalingPolicy.TargetTrackingMetricDataQueryProperty


def track_mean_of_types(
    policy: autoscaling.TargetTrackingScalingPolicy, metric: cloudwatch.Metric, units: Mapping[str, int]
) -> None:
    """Have a policy track the mean of a metric over the instance types, each divided by its units.

    The weights are those of AWS: the value of each type is divided by its capacity (AWS's sample). All types have the
    same weight, "Equal (0.5 / 0.5) … Default recommendation for most workloads" ("Use weighted custom metrics for mixed
    fleets", realtime-endpoints-heterogeneous). Both expressions of AWS add the metrics of all types, so they have no
    value while a type has no instance, which is usual for a fallback. Here such a type does not count: `FILL` makes its
    value 0 in the sum and -1 in the number of types.

    "You can use any arithmetic operator …, statistical function …, or other function that CloudWatch supports" ("Create
    a target tracking scaling policy … using metric math", user guide of Application Auto Scaling). The CDK's construct
    accepts only metrics, not expressions.

    Args:
        policy: the policy, whose metric is replaced.
        metric: a metric of the variant, the sum over the units of an instance.
        units: the number of these units, by instance type.
    """
    queries, terms, counted = [], [], []
    for number, (instance_type, count) in enumerate(units.items()):
        id = f"m{number}"
        queries.append(_query(id, of_instance_type(metric, instance_type), instance_type))
        terms.append(f"FILL({id}, 0) / {count}")
        counted.append(f"IF(FILL({id}, -1) < 0, 0, 1)")
    mean = f"({' + '.join(terms)}) / ({' + '.join(counted)})"
    queries.append(_Query(id="mean", expression=mean, label=f"{metric.metric_name} of each", return_data=True))
    resource = policy.node.default_child
    assert isinstance(resource, autoscaling.CfnScalingPolicy)  # as the CDK makes it
    given = stack_of(resource).resolve(resource.target_tracking_scaling_policy_configuration)
    resource.target_tracking_scaling_policy_configuration = (
        autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
            target_value=given["targetValue"],
            scale_in_cooldown=given["scaleInCooldown"],
            scale_out_cooldown=given["scaleOutCooldown"],
            customized_metric_specification=autoscaling.CfnScalingPolicy.CustomizedMetricSpecificationProperty(
                metrics=queries
            ),
        )
    )


def _query(id: str, metric: cloudwatch.Metric, label: str) -> _Query:
    dimensions = [
        autoscaling.CfnScalingPolicy.TargetTrackingMetricDimensionProperty(name=name, value=value)
        for name, value in (metric.dimensions or {}).items()
    ]
    return _Query(
        id=id,
        label=label,
        metric_stat=autoscaling.CfnScalingPolicy.TargetTrackingMetricStatProperty(
            metric=_Metric(metric_name=metric.metric_name, namespace=metric.namespace, dimensions=dimensions),
            stat=metric.statistic,
        ),
        return_data=False,
    )
