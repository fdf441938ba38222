"""What the constructs' arguments have to be: a row for each name, which means the same wherever it is taken.

The interfaces of the CDK are Protocols: what satisfies one is told by an attribute that nothing else has, not even the
L1 of the same resource. So what was imported passes, and what implements an interface in Python. Classes are told by
their names where they are above this module, or where their module of `aws_cdk` takes a while to be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aws_cdk import Size

from cdk_triton._arguments import FLAG, TEXT, Kind, by_name, check, has_attribute, one, several
from cdk_triton.hosting._cdk.literals import DURATION, is_whole
from cdk_triton.sagemaker.platform import PLATFORM
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.environment import ENVIRONMENT

__all__ = ["check_arguments", "check_optional"]


def check_arguments(of: str, /, **given: object) -> None:
    """Refuse arguments of other types than they must have.

    Args:
        of: whose they are, as a sentence says it: "TritonModel 'Search'", "monitor()".
        given: the arguments, by names of the table.

    Raises:
        ConfigurationError: one is something else.
    """
    for name, value in given.items():
        check(f"{name} of {of}", value, _KINDS[name])


def check_optional(of: str, /, **given: object) -> None:
    """`check_arguments` of what may be left out, as None.

    Raises:
        ConfigurationError: one is something else.
    """
    check_arguments(of, **{name: value for name, value in given.items() if value is not None})


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


def _is_named(name: str) -> Callable[[object], bool]:
    """Tells an instance of a class, or of one below it, by the class's full name."""
    return lambda value: any(f"{each.__module__}.{each.__qualname__}" == name for each in type(value).__mro__)


_IS_STORE: Final = has_attribute("builder_for")

# Refused elsewhere, with the reason why no model is served from it.
_IS_IMPORTED_STORE: Final = _is_named("cdk_triton.hosting.store.imported.ImportedArtifactStore")

_SIZE: Final = one(_is(Size), "use a Size of the CDK's, such as Size.gibibytes(100)")

_CAPACITY: Final = one(
    _is_named("cdk_triton.hosting.endpoints.deployment.Capacity"),
    "use a share of the instances in percent, such as Capacity(25), or their number, such as Capacity(instances=1)",
)

_BUCKET: Final = one(
    has_attribute("bucket_arn"), "use a bucket, such as s3.Bucket.from_bucket_name(self, 'Bucket', 'name')"
)

_SUBNETS: Final = one(
    _is_named("aws_cdk.aws_ec2.SubnetSelection"),
    "use an ec2.SubnetSelection, such as ec2.SubnetSelection(subnets=[…]), or leave it out for the private subnets",
)

_COUNT: Final = one(lambda value: is_whole(value, 1), "use a whole number, at least 1")

_THINGS: Final[Mapping[str, Kind]] = {
    "access_logs_bucket": _BUCKET,
    "alarm": one(
        has_attribute("alarm_arn"),
        "give alarms one by one, such as add_rollback_alarms(*monitoring.alarms['AllTraffic'].values())",
    ),
    "alarms": several(
        has_attribute("alarm_arn"),
        "use a list of alarms, such as [cloudwatch.Alarm.from_alarm_name(self, 'Alarm', 'name')]",
    ),
    "batch": _CAPACITY,
    "bucket": _BUCKET,
    "builders": several(has_attribute("provide"), "use a list of builders, such as [CodeBuildGpuBuilder()]"),
    "data_capture": one(
        _is_named("cdk_triton.hosting.endpoints.data_capture.DataCapture"),
        "use a DataCapture, such as DataCapture(bucket=bucket, sampling_percentage=10)",
    ),
    "datapoints_to_alarm": _COUNT,
    "deployment_policy": one(
        _is_named("cdk_triton.hosting.endpoints.deployment.DeploymentPolicy"),
        "use AllAtOnce, Canary, Linear or Rolling, such as Canary(size=Capacity(25), wait=Duration.minutes(10))",
    ),
    "encryption_key": one(
        has_attribute("key_arn"), "use a key, such as kms.Key.from_key_arn(self, 'Key', 'arn:aws:kms:…')"
    ),
    "ensembles": by_name(
        _is(ModelRepository),
        "use a mapping from names to repositories, such as {'text': ModelRepository.from_directory('models')}",
    ),
    "environment": ENVIRONMENT,
    "evaluation_periods": _COUNT,
    "fleet": one(
        has_attribute("fleet_arn"),
        "use a fleet, such as codebuild.Fleet.from_fleet_arn(self, 'Fleet', 'arn:aws:codebuild:…')",
    ),
    "grantee": one(
        has_attribute("grant_principal"),
        "use what can be granted to, such as a function or iam.Role.from_role_name(self, 'Role', 'name')",
    ),
    "log_retention": one(
        _is_named("aws_cdk.aws_logs.RetentionDays"),
        "CloudWatch Logs keeps logs for certain numbers of days only, so use one of logs.RetentionDays, such as "
        "logs.RetentionDays.THREE_MONTHS",
    ),
    "metric": one(
        has_attribute("to_metric_config"), "use a metric of CloudWatch, such as endpoint.metric_model_latency()"
    ),
    "metrics_config": one(
        _is_named("cdk_triton.hosting.monitoring.metrics_config.MetricsConfig"),
        "use a MetricsConfig, such as MetricsConfig(enhanced_metrics=True)",
    ),
    "model": one(has_attribute("is_multi_model"), "use a TritonModel or a TritonMultiModel, which serve repositories"),
    "platform": PLATFORM,
    "promotes_from": one(
        _IS_IMPORTED_STORE,
        "import the store with TritonArtifactStore.from_bucket(bucket)",
    ),
    "repository": one(_is(ModelRepository), "use a ModelRepository, such as ModelRepository.from_directory('models')"),
    "rollback_batch": _CAPACITY,
    "role": one(has_attribute("role_arn"), "use a role, such as iam.Role.from_role_name(self, 'Role', 'name')"),
    "scaling_steps": several(
        _is_named("aws_cdk.aws_applicationautoscaling.ScalingInterval"),
        "use a list of ScalingInterval, such as [ScalingInterval(lower=50, change=1), ScalingInterval(upper=10, "
        "change=-1)]",
    ),
    "schedule": one(
        _is_named("aws_cdk.aws_applicationautoscaling.Schedule"),
        "use a Schedule of aws_applicationautoscaling, such as Schedule.cron(hour='6', minute='0')",
    ),
    "scope": one(has_attribute("node"), "give the stack or construct that it belongs to, such as self"),
    "security_groups": several(
        has_attribute("security_group_id"),
        "use a list of security groups, such as [ec2.SecurityGroup.from_security_group_id(self, 'Group', 'sg-…')]",
    ),
    "shadow": one(
        _is_named("cdk_triton.hosting.variant.TritonVariant"),
        "use a TritonVariant, such as TritonVariant(model=model, variant_name='Shadow')",
    ),
    "size": _CAPACITY,
    "step": _CAPACITY,
    "store": one(
        lambda value: _IS_STORE(value) or _IS_IMPORTED_STORE(value),
        "use a TritonArtifactStore, such as TritonArtifactStore(stack, 'Artifacts'), or leave it out for a first try",
    ),
    "subnets": _SUBNETS,
    "target_models": several(_is(str), "use a list of names, such as ['text']"),
    "thresholds": one(
        _is_named("cdk_triton.hosting.monitoring.alarms.AlarmThresholds"),
        "use AlarmThresholds, such as AlarmThresholds(gpu_utilization_percent=80)",
    ),
    "time_zone": one(has_attribute("timezone_name"), "use a TimeZone of the CDK's, such as TimeZone.EUROPE_BERLIN"),
    "topic": one(
        has_attribute("topic_arn"), "use a topic, such as sns.Topic.from_topic_arn(self, 'Topic', 'arn:aws:sns:…')"
    ),
    "variants": several(
        _is_named("cdk_triton.hosting.variant.TritonVariant"),
        "use a list of TritonVariant, such as [TritonVariant(model=model)]",
    ),
    "vpc": one(has_attribute("select_subnets"), "use a VPC, such as ec2.Vpc.from_lookup(self, 'Vpc', vpc_id='vpc-…')"),
    "volume": _SIZE,
    "volume_size": _SIZE,
    "vpc_subnets": _SUBNETS,
    "exclude": several(_is(str), "use a list of services, such as ['s3']"),
}

_TEXTS: Final = (
    "endpoint_name",
    "ensemble",
    "export_prefix",
    "gpu",
    "id",
    "instance_type",
    "metric_name",
    "namespace",
    "ssm_parameter_path",
    "prefix",
    "runbook",
    "statistic",
    "variant_name",
)

_FLAGS: Final = (
    "detailed_observability",
    "has_encryption_key",
    "enhanced_metrics",
    "capture_requests",
    "model_cache",
    "network_isolation",
    "capture_responses",
    "uncompressed",
)

_DURATIONS: Final = ("period", "scale_in_cooldown", "scale_out_cooldown")

_KINDS: Final[Mapping[str, Kind]] = {
    **_THINGS,
    **dict.fromkeys(_TEXTS, TEXT),
    **dict.fromkeys(_FLAGS, FLAG),
    **dict.fromkeys(_DURATIONS, DURATION),
}
