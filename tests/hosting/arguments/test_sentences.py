"""Whoever gives an argument of another type is told so in one sentence, with what to give instead."""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_autoscaling, aws_events
from aws_cdk import aws_ec2 as ec2

from cdk_triton.artifacts import write_archive
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import (
    AsyncInference,
    Canary,
    Capacity,
    CodeBuildGpuBuilder,
    DataCapture,
    EndpointAlarms,
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
from cdk_triton.triton import serve_arguments

if TYPE_CHECKING:
    from golden_messages import Messages

MINUTES = cdk.Duration.minutes(10)


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


REFUSED: dict[str, Callable[[Any], object]] = {
    "repository of TritonModel: None": lambda g: single(g, repository=None),
    "platform of TritonModel: a float": lambda g: single(g, platform=25.09),
    "store of TritonModel: a str": lambda g: single(g, store="arn:aws:s3:::store"),
    "store of TritonModel: a DataCapture": lambda g: single(
        g, store=DataCapture(bucket=g.bucket, sampling_percentage=1)
    ),
    "environment of TritonModel: a dict": lambda g: single(g, environment={"A": "b"}),
    "role of TritonModel: a str": lambda g: single(g, role="arn:aws:iam::111122223333:role/x"),
    "vpc of TritonModel: a str": lambda g: single(g, vpc="vpc-1"),
    "vpc of TritonModel: the class Vpc": lambda g: single(g, vpc=ec2.Vpc),
    "vpc of TritonModel: an IRole": lambda g: single(g, vpc=g.role),
    "security_groups of TritonModel: a SecurityGroup": lambda g: single(g, vpc=g.vpc, security_groups=g.group),
    "vpc_subnets of TritonModel: a list": lambda g: single(g, vpc=g.vpc, vpc_subnets=g.vpc.private_subnets),
    "network_isolation of TritonModel: a str": lambda g: single(g, network_isolation="no"),
    "ensembles of TritonMultiModel: with an int": lambda g: many(g, ensembles={"a": wrong(7)}),
    "ensembles of TritonMultiModel: a list": lambda g: many(g, ensembles=[g.repository]),
    "ensembles of TritonMultiModel: the name 1": lambda g: many(g, ensembles={1: g.repository}),
    "ensemble of target_model: a list": lambda g: g.fleet.target_model(["text"]),
    "model of TritonEndpoint: a list": lambda g: endpoint(g, model=[g.model]),
    "model of TritonEndpoint: a ModelRepository": lambda g: endpoint(g, model=g.repository),
    "variants of TritonEndpoint: a TritonVariant": lambda g: variants(g, TritonVariant(model=g.model)),
    "variants of TritonEndpoint: with a TritonModel": lambda g: variants(g, [g.model]),
    "shadow of TritonEndpoint: a TritonModel": lambda g: endpoint(g, shadow=g.model),
    "deployment_policy of TritonEndpoint: a str": lambda g: endpoint(g, deployment_policy="Canary"),
    "deployment_policy of TritonEndpoint: the class Canary": lambda g: endpoint(g, deployment_policy=Canary),
    "data_capture of TritonEndpoint: a str": lambda g: endpoint(g, data_capture="s3://captured"),
    "asynchronous of TritonEndpoint: a bool": lambda g: endpoint(g, asynchronous=True),
    "expiration of AsyncInference: an int": lambda g: AsyncInference(expiration=wrong(7)),
    "encryption_key of TritonEndpoint: a str": lambda g: endpoint(
        g, encryption_key="arn:aws:kms:eu-west-1:111122223333:key/x"
    ),
    "ssm_parameter_path of TritonEndpoint: a bool": lambda g: endpoint(g, ssm_parameter_path=True),
    "endpoint_name of TritonEndpoint: an int": lambda g: endpoint(g, endpoint_name=7),
    "model of TritonVariant: a ModelRepository": lambda g: TritonVariant(model=g.repository),
    "model of TritonVariant: the class TritonModel": lambda g: TritonVariant(model=wrong(TritonModel)),
    "container_startup_timeout of TritonVariant: an int": lambda g: TritonVariant(
        model=g.model, container_startup_timeout=wrong(600)
    ),
    "capacity_reservation_arn of TritonVariant: a list": lambda g: TritonVariant(
        model=g.model, capacity_reservation_arn=wrong(["arn:aws:sagemaker:us-east-1:111122223333:training-plan/x"])
    ),
    "volume_size of TritonVariant: an int": lambda g: TritonVariant(model=g.model, volume_size=wrong(100)),
    "topic of monitor: a str": lambda g: g.endpoint.monitor(topic="arn:aws:sns:x"),
    "thresholds of monitor: a dict": lambda g: g.endpoint.monitor(thresholds={"model_latency": 5}),
    "log_retention of monitor: an int": lambda g: g.endpoint.monitor(log_retention=45),
    "topic of add_rollback_notification: a str": lambda g: g.endpoint.add_rollback_notification("arn:aws:sns:x"),
    "alarms of roll_back_on: a str": lambda g: g.endpoint.roll_back_on("ServerErrors"),
    "alarms of roll_back_on: with the alarms of a variant": lambda g: g.endpoint.roll_back_on(
        g.monitoring.errors, [g.monitoring.variants["AllTraffic"]]
    ),
    "alarms of Canary: the alarms of a variant": lambda g: Canary(
        size=Capacity(25), wait=MINUTES, alarms=g.monitoring.variants["AllTraffic"]
    ),
    "wait of Canary: an int": lambda g: Canary(size=Capacity(25), wait=wrong(600)),
    "rollback_batch of Rolling: an int": lambda g: Rolling(batch=Capacity(25), wait=MINUTES, rollback_batch=wrong(25)),
    "percent of Capacity: text": lambda g: Capacity(wrong("25")),
    "bucket of DataCapture: a str": lambda g: DataCapture(bucket=wrong("name"), sampling_percentage=10),
    "enhanced_metrics of MetricsConfig: a str": lambda g: MetricsConfig(enhanced_metrics=wrong("false")),
    "publish_frequency of MetricsConfig: an int": lambda g: MetricsConfig(publish_frequency=wrong(10)),
    "grantee of grant_invoke: a str": lambda g: g.endpoint.grant_invoke("service"),
    "target_models of grant_invoke: a str": lambda g: g.fleet_endpoint.grant_invoke(g.role, target_models="text"),
    "target_models of grant_invoke: with an int": lambda g: g.imported.grant_invoke(g.role, target_models=[1]),
    "variant_name of variant: a list": lambda g: g.endpoint.variant(["A"]),
    "period of metric: an int": lambda g: g.endpoint.metric_model_latency(period=60),
    "min_capacity of auto_scale_instance_count: text": lambda g: g.endpoint.auto_scale_instance_count(
        min_capacity="1", max_capacity=2
    ),
    "max_requests_per_second of scale_on_invocations: text": lambda g: g.count.scale_on_invocations(
        "P", max_requests_per_second="40"
    ),
    "scale_in_cooldown of scale_on_invocations: an int": lambda g: g.count.scale_on_invocations(
        "P", max_requests_per_second=40, scale_in_cooldown=600
    ),
    "schedule of scale_on_schedule: a str": lambda g: g.count.scale_on_schedule(
        "P", schedule="cron(0 6 * * ? *)", min_capacity=2
    ),
    "schedule of scale_on_schedule: a Schedule of aws_events": lambda g: g.count.scale_on_schedule(
        "P", schedule=wrong(aws_events.Schedule.expression("rate(1 day)"))
    ),
    "scaling_steps of scale_on_metric: with an interval of aws_autoscaling": lambda g: g.count.scale_on_metric(
        "P",
        metric=g.endpoint.metric_invocations(),
        scaling_steps=wrong([aws_autoscaling.ScalingInterval(lower=1, change=1)]),
    ),
    "scaling_steps of scale_on_metric: with a dict": lambda g: g.count.scale_on_metric(
        "P", metric=g.endpoint.metric_invocations(), scaling_steps=[{"change": 1}]
    ),
    "builders of TritonArtifactStore: a CodeBuildGpuBuilder": lambda g: TritonArtifactStore(
        g.scope, "S", builders=wrong(CodeBuildGpuBuilder())
    ),
    "promotes_from of TritonArtifactStore: a Bucket": lambda g: TritonArtifactStore(
        g.scope, "S", promotes_from=g.bucket
    ),
    "access_logs_bucket of TritonArtifactStore: a str": lambda g: TritonArtifactStore(
        g.scope, "S", access_logs_bucket=wrong("name")
    ),
    "bucket of ImportedArtifactStore: a str": lambda g: TritonArtifactStore.from_bucket(g.scope, "S", wrong("name")),
    "timeout of CodeBuildGpuBuilder: an int": lambda g: CodeBuildGpuBuilder(timeout=wrong(60)),
    "timeout of SageMakerProcessingBuilder: a list": lambda g: SageMakerProcessingBuilder(timeout=wrong([1])),
    "vpc of add_vpc_endpoints: a str": lambda g: add_vpc_endpoints(wrong("vpc-1")),
    "scope of TritonArtifactStore: a str": lambda g: TritonArtifactStore(wrong("Stack"), "S"),
}
"""Argument, whose it is, and what is given: a call with it."""


@pytest.mark.parametrize("case", REFUSED)
def test_one_sentence_says_what_to_give_instead(messages: Messages, given: Any, case: str) -> None:
    with messages.raises(ConfigurationError) as error:
        REFUSED[case](given)
    assert str(error.value).startswith(case.partition(" ")[0])


def test_every_advice_names_what_the_cdk_has(given: Any) -> None:
    named = set()
    for make in REFUSED.values():
        with pytest.raises(ConfigurationError) as error:
            make(given)
        named |= set(re.findall(r"\b([a-z0-9]+)\.([A-Z]\w+)(?:\.(\w+))?", str(error.value)))
    assert len(named) > 8
    for module, kind, member in named:
        found = getattr(importlib.import_module(f"aws_cdk.aws_{module}"), kind)
        assert not member or hasattr(found, member), f"{module}.{kind}.{member}"


def test_a_rejected_construct_leaves_nothing_behind(given: Any) -> None:
    before = [child.node.path for child in given.scope.node.find_all()]
    for make in (single, many, endpoint):
        with pytest.raises(ConfigurationError):
            make(given, vpc=1) if make is not endpoint else make(given, shadow=1)
    assert [child.node.path for child in given.scope.node.find_all()] == before


def test_a_misspelt_variant_is_answered_with_the_nearest(messages: Messages, given: Any) -> None:
    variants: Mapping[str, EndpointAlarms] = given.monitoring.variants
    with messages.raises(ConfigurationError):
        variants["AllTrafic"]
    assert variants.get("B") is None
    assert "B" not in variants


def test_above_the_sentence_a_traceback_has_the_users_line_and_none_of_the_jsii_error(stack: cdk.Stack) -> None:
    with pytest.raises(ConfigurationError) as caught:
        TritonMultiModel(stack, "Models", platform="26.05/g5.xlarge", ensembles={"a": "models"})
    with pytest.raises(ConfigurationError) as without_stack:
        TritonArtifactStore(cdk.App(), "Store")
    for each in (caught, without_stack):
        frames = traceback.extract_tb(each.value.__traceback__)
        assert [frame.filename for frame in frames[1:]] == [frame.filename for frame in frames[-2:]]  # jsii's and ours
        assert "jsii.errors" not in "".join(traceback.format_exception(each.value))


def test_a_traceback_keeps_the_lines_of_a_callback(given: Any, tmp_path: Path) -> None:
    def callback(_done: int, _total: int) -> None:
        serve_arguments({}, ["models"], gpu_count="one")  # type: ignore[arg-type]  # what is rejected

    with pytest.raises(ConfigurationError) as caught:
        write_archive(given.repository, tmp_path / "model.tar.gz", progress=callback)
    assert "callback" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_the_error_that_was_being_handled_stays_above_the_sentence(stack: cdk.Stack) -> None:
    def fall_back() -> None:
        try:
            raise KeyError("the size of the user's settings")
        except KeyError:
            TritonMultiModel(stack, "Models", platform="26.05/g5.xlarge", ensembles={"a": "models"})

    with pytest.raises(ConfigurationError) as caught:
        fall_back()
    assert "the size of the user's settings" in "".join(traceback.format_exception(caught.value))
