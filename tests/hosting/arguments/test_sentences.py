"""Whoever gives an argument of another type is told so in one sentence, with what to give instead."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import (
    Canary,
    Capacity,
    CodeBuildGpuBuilder,
    DataCapture,
    MetricsConfig,
    Rolling,
    SageMakerProcessingBuilder,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
    add_vpc_endpoints,
)

MINUTES = cdk.Duration.minutes(10)


MODEL_FIX = "use a TritonModel or a TritonMultiModel, such as TritonModel(self, 'Model', …)"
REPOSITORY_FIX = "use a ModelRepository, such as ModelRepository.from_directory('models')"
ENSEMBLES_FIX = "use a mapping from names, such as {'text': ModelRepository.from_directory('models')}"
PLATFORM_FIX = "use a ServingPlatform, such as ServingPlatform(release='25.09', instance_type='ml.g5.2xlarge')"
VPC_FIX = "use a VPC, such as ec2.Vpc.from_lookup(self, 'Vpc', vpc_id='vpc-…')"
VARIANTS_FIX = "use a list, such as [TritonVariant(model=model)]"
SHADOW_FIX = "use a TritonVariant, such as TritonVariant(model=model)"
POLICY_FIX = "use AllAtOnce, Canary, Linear or Rolling, such as Canary(size=Capacity(25), wait=Duration.minutes(10))"
TOPIC_FIX = "use a topic, such as sns.Topic.from_topic_arn(self, 'Topic', 'arn:aws:sns:…')"
KEY_FIX = "use a key, such as kms.Key.from_key_arn(self, 'Key', 'arn:aws:kms:…')"
BUCKET_FIX = "use a bucket, such as s3.Bucket.from_bucket_name(self, 'Bucket', 'name')"
GRANTEE_FIX = "use a principal, such as a function or iam.Role.from_role_name(self, 'Role', 'name')"
DURATION_FIX = "use a Duration of the CDK's, such as Duration.minutes(10)"
ALARM = "cloudwatch.Alarm.from_alarm_name(self, 'Alarm', 'name')"
TEXT_FIX = "use text in quotes, such as 'name'"
TEXTS_FIX = "use a list, such as ['name']"


def single(given: Any, **other: object) -> TritonModel:
    arguments: dict[str, Any] = {"repository": given.repository, "platform": given.platform, "store": given.store}
    return TritonModel(given.scope, "M", **(arguments | other))


def many(given: Any, **other: object) -> TritonMultiModel:
    ensembles = {"text": given.repository}
    arguments: dict[str, Any] = {"ensembles": ensembles, "platform": given.platform, "store": given.store}
    return TritonMultiModel(given.scope, "F", **(arguments | other))


def endpoint(given: Any, **other: Any) -> TritonEndpoint:
    return TritonEndpoint(given.scope, "E", **({"model": given.model} | other))


def variants(given: Any, variants: Any) -> TritonEndpoint:
    return TritonEndpoint(given.scope, "E", variants=variants)


def wrong(value: object) -> Any:
    """What somebody without mypy writes."""
    return value


SENTENCES: list[tuple[Callable[[Any], object], str]] = [
    (lambda g: single(g, repository="models"), f"repository of TritonModel 'M' is 'models', a str: {REPOSITORY_FIX}"),
    (
        lambda g: single(g, repository=Path("models")),
        f"repository of TritonModel 'M' is PosixPath('models'), a PosixPath: {REPOSITORY_FIX}",
    ),
    (lambda g: single(g, repository=None), f"repository of TritonModel 'M' is None: {REPOSITORY_FIX}"),
    (
        lambda g: single(g, platform="25.09/ml.g5.xlarge"),
        f"platform of TritonModel 'M' is '25.09/ml.g5.xlarge', a str: {PLATFORM_FIX}",
    ),
    (
        lambda g: single(g, store="arn:aws:s3:::store"),
        "store of TritonModel 'M' is 'arn:aws:s3:::store', a str: use a TritonArtifactStore, such as "
        "TritonArtifactStore(stack, 'Artifacts')",
    ),
    (
        lambda g: single(g, environment={"A": "b"}),
        "environment of TritonModel 'M' is a dict: use a ContainerEnvironment, such as "
        "ContainerEnvironment(variables={'NAME': 'value'})",
    ),
    (
        lambda g: single(g, role="arn:aws:iam::111122223333:role/x"),
        "role of TritonModel 'M' is 'arn:aws:iam::111122223333:role/x', a str: use a role, such as "
        "iam.Role.from_role_name(self, 'Role', 'name')",
    ),
    (lambda g: single(g, vpc="vpc-1"), f"vpc of TritonModel 'M' is 'vpc-1', a str: {VPC_FIX}"),
    (lambda g: single(g, vpc=ec2.Vpc), f"vpc of TritonModel 'M' is the class Vpc: {VPC_FIX}"),
    (lambda g: single(g, vpc=g.role), f"vpc of TritonModel 'M' is an IRole: {VPC_FIX}"),
    (
        lambda g: single(g, vpc=g.vpc, security_groups=ec2.SecurityGroup(g.scope, "Group", vpc=g.vpc)),
        "security_groups of TritonModel 'M' is a SecurityGroup: use a list, such as "
        "[ec2.SecurityGroup.from_security_group_id(self, 'Group', 'sg-…')]",
    ),
    (
        lambda g: single(g, vpc=g.vpc, vpc_subnets=g.vpc.private_subnets),
        "vpc_subnets of TritonModel 'M' is a list: use an ec2.SubnetSelection, such as "
        "ec2.SubnetSelection(subnets=[…])",
    ),
    (
        lambda g: single(g, network_isolation="no"),
        "network_isolation of TritonModel 'M' is 'no', a str: use True or False",
    ),
    (
        lambda g: many(g, ensembles={"a": "models"}),
        f"ensembles of TritonMultiModel 'F' holds 'models', a str, for 'a': {ENSEMBLES_FIX}",
    ),
    (
        lambda g: many(g, ensembles=[g.repository]),
        f"ensembles of TritonMultiModel 'F' is a list: {ENSEMBLES_FIX}",
    ),
    (
        lambda g: many(g, ensembles={1: g.repository}),
        f"ensembles of TritonMultiModel 'F' has the name 1, an int: {ENSEMBLES_FIX}",
    ),
    (lambda g: g.fleet.target_model(["text"]), f"ensemble of target_model() is a list: {TEXT_FIX}"),
    (lambda g: endpoint(g, model=[g.model]), f"model of TritonEndpoint 'E' is a list: {MODEL_FIX}"),
    (lambda g: endpoint(g, model=g.repository), f"model of TritonEndpoint 'E' is a ModelRepository: {MODEL_FIX}"),
    (
        lambda g: variants(g, TritonVariant(model=g.model)),
        f"variants of TritonEndpoint 'E' is a TritonVariant: {VARIANTS_FIX}",
    ),
    (lambda g: variants(g, [g.model]), f"variants of TritonEndpoint 'E' holds a TritonModel: {VARIANTS_FIX}"),
    (lambda g: endpoint(g, shadow=g.model), f"shadow of TritonEndpoint 'E' is a TritonModel: {SHADOW_FIX}"),
    (
        lambda g: endpoint(g, deployment_policy="Canary"),
        f"deployment_policy of TritonEndpoint 'E' is 'Canary', a str: {POLICY_FIX}",
    ),
    (
        lambda g: endpoint(g, deployment_policy=Canary),
        f"deployment_policy of TritonEndpoint 'E' is the class Canary: {POLICY_FIX}",
    ),
    (
        lambda g: endpoint(g, data_capture="s3://captured"),
        "data_capture of TritonEndpoint 'E' is 's3://captured', a str: use a DataCapture, such as "
        "DataCapture(bucket=bucket, sampling_percentage=10)",
    ),
    (
        lambda g: endpoint(g, encryption_key="arn:aws:kms:eu-west-1:111122223333:key/x"),
        "encryption_key of TritonEndpoint 'E' is 'arn:aws:kms:eu-west-1:111122223333:key/x', a str: " + KEY_FIX,
    ),
    (
        lambda g: endpoint(g, ssm_parameter_path=True),
        f"ssm_parameter_path of TritonEndpoint 'E' is True, a bool: {TEXT_FIX}",
    ),
    (
        lambda g: endpoint(g, endpoint_name=7),
        f"endpoint_name of TritonEndpoint 'E' is 7, an int: {TEXT_FIX}",
    ),
    (
        lambda g: TritonVariant(model=g.repository),
        f"model of TritonVariant is a ModelRepository: {MODEL_FIX}",
    ),
    (
        lambda g: TritonVariant(model=wrong(TritonModel)),
        f"model of TritonVariant is the class TritonModel: {MODEL_FIX}",
    ),
    (
        lambda g: TritonVariant(model=g.model, container_startup_timeout=wrong(600)),
        f"container_startup_timeout of TritonVariant is 600, an int: {DURATION_FIX}",
    ),
    (
        lambda g: TritonVariant(model=g.model, volume_size=wrong(100)),
        "volume_size of TritonVariant is 100, an int: use a Size of the CDK's, such as Size.gibibytes(100)",
    ),
    (
        lambda g: g.endpoint.monitor(topic="arn:aws:sns:x"),
        f"topic of monitor() is 'arn:aws:sns:x', a str: {TOPIC_FIX}",
    ),
    (
        lambda g: g.endpoint.monitor(thresholds={"model_latency": 5}),
        "thresholds of monitor() is a dict: use AlarmThresholds, such as AlarmThresholds(gpu_utilization_percent=80)",
    ),
    (
        lambda g: g.endpoint.monitor(log_retention=45),
        "log_retention of monitor() is 45, an int: use one of the periods that CloudWatch Logs offers, such as "
        "logs.RetentionDays.THREE_MONTHS",
    ),
    (
        lambda g: g.endpoint.add_rollback_notification("arn:aws:sns:x"),
        f"topic of add_rollback_notification() is 'arn:aws:sns:x', a str: {TOPIC_FIX}",
    ),
    (
        lambda g: g.endpoint.add_rollback_alarms(g.monitoring.alarms["AllTraffic"]),
        f"alarms of add_rollback_alarms() holds a mappingproxy: pass each as an argument of its own, such as {ALARM}",
    ),
    (
        lambda g: Canary(size=Capacity(25), wait=MINUTES, alarms=g.monitoring.alarms["AllTraffic"]),
        f"alarms of Canary is a mappingproxy: use a list, such as [{ALARM}]",
    ),
    (lambda g: Canary(size=Capacity(25), wait=wrong(600)), f"wait of Canary is 600, an int: {DURATION_FIX}"),
    (
        lambda g: Rolling(batch=Capacity(25), wait=MINUTES, rollback_batch=wrong(25)),
        "rollback_batch of Rolling is 25, an int: use a share of the instances, such as Capacity(25) for 25 % or "
        "Capacity(instances=1)",
    ),
    (lambda g: Capacity(wrong("25")), "percent of a Capacity is '25': use a whole number, 1 to 100"),
    (
        lambda g: DataCapture(bucket=wrong("name"), sampling_percentage=10),
        f"bucket of DataCapture is 'name', a str: {BUCKET_FIX}",
    ),
    (
        lambda g: MetricsConfig(enhanced_metrics=wrong("false")),
        "enhanced_metrics of MetricsConfig is 'false', a str: use True or False",
    ),
    (lambda g: g.endpoint.grant_invoke("service"), f"grantee of grant_invoke() is 'service', a str: {GRANTEE_FIX}"),
    (
        lambda g: g.fleet_endpoint.grant_invoke(g.role, target_models="text"),
        f"target_models of grant_invoke() is 'text', a str: {TEXTS_FIX}",
    ),
    (
        lambda g: g.imported.grant_invoke(g.role, target_models=[1]),
        f"target_models of grant_invoke() holds 1, an int: {TEXTS_FIX}",
    ),
    (lambda g: g.endpoint.variant(["A"]), f"variant_name of variant() is a list: {TEXT_FIX}"),
    (
        lambda g: g.endpoint.metric_model_latency(period=60),
        f"period of metric() is 60, an int: {DURATION_FIX}",
    ),
    (
        lambda g: g.endpoint.auto_scale_instance_count(min_capacity="1", max_capacity=2),
        "min_capacity of variant AllTraffic of Stack/Endpoint is '1': use a whole number of instances, at least 1",
    ),
    (
        lambda g: g.count.scale_on_invocations("P", max_requests_per_second="40"),
        "max_requests_per_second of policy 'P' of variant AllTraffic of Stack/Watched is '40': the target is computed "
        "from it, so give a number",
    ),
    (
        lambda g: g.count.scale_on_invocations("P", max_requests_per_second=40, scale_in_cooldown=600),
        f"scale_in_cooldown of scale_on_invocations('P') is 600, an int: {DURATION_FIX}",
    ),
    (
        lambda g: g.count.scale_on_schedule("P", schedule="cron(0 6 * * ? *)", min_capacity=2),
        "schedule of scale_on_schedule('P') is 'cron(0 6 * * ? *)', a str: use a Schedule of "
        "aws_applicationautoscaling, such as Schedule.cron(hour='6', minute='0')",
    ),
    (
        lambda g: g.count.scale_on_metric("P", metric=g.endpoint.metric_invocations(), scaling_steps=[{"change": 1}]),
        "scaling_steps of scale_on_metric('P') holds a dict: use a list, such as "
        "[ScalingInterval(lower=50, change=1), ScalingInterval(upper=10, change=-1)]",
    ),
    (
        lambda g: TritonArtifactStore(g.scope, "S", builders=wrong(CodeBuildGpuBuilder())),
        "builders of TritonArtifactStore 'S' is a CodeBuildGpuBuilder: use a list, such as [CodeBuildGpuBuilder()]",
    ),
    (
        lambda g: TritonArtifactStore(g.scope, "S", promotes_from=g.bucket),
        "promotes_from of TritonArtifactStore 'S' is a Bucket: use an imported store, such as "
        "TritonArtifactStore.from_bucket(bucket)",
    ),
    (
        lambda g: TritonArtifactStore(g.scope, "S", access_logs_bucket=wrong("name")),
        f"access_logs_bucket of TritonArtifactStore 'S' is 'name', a str: {BUCKET_FIX}",
    ),
    (
        lambda g: TritonArtifactStore.from_bucket(wrong("name")),
        f"bucket of ImportedArtifactStore is 'name', a str: {BUCKET_FIX}",
    ),
    (
        lambda g: CodeBuildGpuBuilder(timeout=wrong(60)),
        f"timeout of CodeBuildGpuBuilder is 60, an int: {DURATION_FIX}",
    ),
    (
        lambda g: SageMakerProcessingBuilder(timeout=wrong([1])),
        f"timeout of SageMakerProcessingBuilder is a list: {DURATION_FIX}",
    ),
    (lambda g: add_vpc_endpoints(wrong("vpc-1")), f"vpc of add_vpc_endpoints() is 'vpc-1', a str: {VPC_FIX}"),
    (
        lambda g: TritonArtifactStore(wrong("Stack"), "S"),
        "scope of TritonArtifactStore 'S' is 'Stack', a str: use the stack or construct that it belongs to, such as "
        "self",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), SENTENCES, ids=[sentence.partition(":")[0] for _, sentence in SENTENCES])
def test_one_sentence_says_what_to_give_instead(given: Any, make: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        make(given)
    assert str(error.value) == sentence


def test_every_advice_names_what_the_cdk_has() -> None:
    named = {
        match for _, sentence in SENTENCES for match in re.findall(r"\b([a-z0-9]+)\.([A-Z]\w+)(?:\.(\w+))?", sentence)
    }
    assert len(named) > 8
    for module, kind, member in named:
        found = getattr(importlib.import_module(f"aws_cdk.aws_{module}"), kind)
        assert not member or hasattr(found, member), f"{module}.{kind}.{member}"


def test_a_refused_construct_leaves_nothing_behind(given: Any) -> None:
    before = [child.node.path for child in given.scope.node.find_all()]
    for make in (single, many, endpoint):
        with pytest.raises(ConfigurationError):
            make(given, vpc=1) if make is not endpoint else make(given, shadow=1)
    assert [child.node.path for child in given.scope.node.find_all()] == before


ALARMS = "ServerErrors, ModelErrors, ClientErrors, ModelLatency, GpuUtilization, GpuMemory, Memory or Disk"


def test_a_misspelt_alarm_is_answered_with_the_nearest(given: Any) -> None:
    alarms: Mapping[str, Mapping[str, cloudwatch.Alarm]] = given.monitoring.alarms
    with pytest.raises(ConfigurationError) as error:
        alarms["AllTraffic"]["ServerErors"]
    assert str(error.value) == (
        f"variant AllTraffic has no alarm 'ServerErors' (did you mean 'ServerErrors'?): use {ALARMS}"
    )
    with pytest.raises(ConfigurationError, match=r"^there are no alarms of a variant 'B': use AllTraffic$"):
        alarms["B"]
    assert alarms.get("B") is None
    assert "ServerErors" not in alarms["AllTraffic"]
