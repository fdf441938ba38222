"""No argument of any type ends in a traceback, and whatever satisfies an interface of the CDK is taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

import cdk_triton
from cdk_triton import hosting
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import (
    AllAtOnce,
    Capacity,
    CodeBuildGpuBuilder,
    DataCapture,
    TritonEndpoint,
    TritonModel,
    TritonVariant,
)

MINUTES = cdk.Duration.minutes(10)


def wrong(value: object) -> Any:
    """What somebody without mypy writes."""
    return value


MADE_HERE = {
    *("DeploymentPolicy", "EndpointAlarms", "EndpointMonitoring", "EndpointVariant", "Finding", "ImportedVariant"),
    *("ModelRepository", "Report", "ScalableCopyCount", "ScalableInstanceCount", "TritonComponent", "TritonPublisher"),
}
"""Abstract, or made by methods only."""

INTERFACES = {"BuildRecipe", "ITritonArtifactStore", "ITritonModel", "Severity"}

OF_RECIPES = {
    "model": "network",
    "lock": "conda.lock",
    "bucket": "bucket",
    "key": "key",
    "sha256": "0" * 64,
    "entry": "export.py:export",
    "onnx": "network.onnx",
    "requirements": "requirements.txt",
}

ASKED_WITHIN = {"entry_model", "model"}
"""Rules ask a repository for these."""


def calls(given: Any) -> dict[str, Callable[..., object]]:
    """Whatever a user calls with arguments, by name."""
    names = sorted({*cdk_triton.__all__, *hosting.__all__} - MADE_HERE - INTERFACES)
    found = {name: getattr(hosting if name in hosting.__all__ else cdk_triton, name) for name in names}
    made = (given.endpoint, given.endpoint.variant(), given.imported, given.store, given.count, given.repository)
    for each in (*made, given.components, given.component, given.copy_count):
        kind = type(each)
        for name in sorted(set(dir(kind)) - set(dir(cdk.Resource)) - ASKED_WITHIN):
            if not name.startswith("_") and callable(getattr(kind, name)):
                found[f"{kind.__name__}.{name}"] = getattr(each, name)
    return found | {"target_model": given.fleet.target_model}


def parameters_of(call: Callable[..., object]) -> list[inspect.Parameter]:
    # The metaclass of CDK's constructs hides what their constructors take.
    found = inspect.signature(call.__init__ if isinstance(call, type) else call).parameters.values()  # type: ignore[misc]
    return [each for each in found if each.name != "self"]


@pytest.mark.parametrize("value", [object(), object], ids=["an object", "a class"])
def test_no_argument_of_any_type_ends_in_a_traceback(given: Any, value: object) -> None:
    right: dict[str, object] = {
        **vars(given),
        "id": "Id",
        "ensembles": {"text": given.repository},
        "ensemble": "text",
        "endpoint_name": "search",
        "endpoint_arn": "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/search",
        "sampling_percentage": 10,
        "size": Capacity(25),
        "step": Capacity(25),
        "batch": Capacity(25),
        "wait": MINUTES,
        "min_capacity": 1,
        "max_capacity": 2,
        "max_requests_per_second": 1,
        "target_backlog_per_instance": 1,
        "max_instance_count": 2,
        "accelerators": 1,
        "memory": cdk.Size.gibibytes(8),
        "target_concurrent_requests": 1,
        "target_utilization_percent": 50,
        "metric": given.endpoint.metric_invocations(),
        "metric_name": "Invocations",
        "scaling_steps": [
            autoscaling.ScalingInterval(lower=1, change=1),
            autoscaling.ScalingInterval(lower=2, change=2),
        ],
        "schedule": autoscaling.Schedule.expression("rate(1 day)"),
        "grantee": given.role,
        "instance_type": "ml.g5.2xlarge",
        "release": "25.09",
        "path": given.repository.root,
        "export_prefix": "triton-artifacts",
        "model": given.model,
        "stack": cdk.Stack(),
        "prefix": "bank-",
        "model_name": "model",
        "variant_name": "Current",
        "absolute": 0.1,
        "relative": 0.1,
        "request": "golden/one.json",
        "requests": [cdk_triton.GoldenRequest("golden/one.json")],
    }
    for call in calls(given).values():
        known = right | (OF_RECIPES if call.__module__.startswith("cdk_triton.artifacts") else {})
        parameters = parameters_of(call)
        for parameter in parameters:
            arguments = {
                each.name: known[each.name]
                for each in parameters
                if each.default is each.empty and each.kind is not each.VAR_POSITIONAL
            }
            several = parameter.kind is parameter.VAR_POSITIONAL
            with pytest.raises(ConfigurationError, match=parameter.name.removesuffix("s")):
                call(value) if several else call(**(arguments | {parameter.name: value}))


def test_what_was_imported_is_taken(given: Any) -> None:
    stack = cdk.Stack(cdk.App(), "Imports", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-1", availability_zones=["a", "b"], private_subnet_ids=["subnet-1", "subnet-2"]
    )
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:111122223333:key/x")
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-1")
    CodeBuildGpuBuilder(vpc=vpc, security_groups=[group], encryption_key=key)
    fleet = codebuild.Fleet.from_fleet_arn(stack, "Fleet", "arn:aws:codebuild:eu-west-1:111122223333:fleet/f:x")
    CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4", log_retention=logs.RetentionDays.INFINITE)
    DataCapture(bucket=s3.Bucket.from_bucket_name(stack, "Bucket", "name"), sampling_percentage=1, encryption_key=key)
    alarm = cloudwatch.Alarm.from_alarm_name(stack, "Alarm", "name")
    AllAtOnce(alarms=(alarm,), termination_wait=MINUTES)
    TritonModel(
        stack,
        "Model",
        repository=given.repository,
        platform=given.platform,
        role=iam.Role.from_role_name(stack, "Role", "name", mutable=False),
        vpc=vpc,
        security_groups=[group],
    )


@jsii.implements(sns.ITopic)
class OwnTopic:
    """Stands for an interface that somebody implements in Python; nothing asks it for its properties."""

    @property
    def topic_arn(self) -> str:
        raise AssertionError("asked")


@jsii.implements(kms.IKey)
class OwnKey:
    @property
    def key_arn(self) -> str:
        raise AssertionError("asked")


def test_own_implementations_are_taken_and_types_told_without_asking_them(given: Any) -> None:
    DataCapture(bucket=given.bucket, sampling_percentage=1, encryption_key=wrong(OwnKey()))
    CodeBuildGpuBuilder(encryption_key=wrong(OwnKey()))
    with pytest.raises(AssertionError, match="asked"):
        given.endpoint.add_rollback_notification(OwnTopic())


def test_what_answers_for_any_name_is_taken() -> None:
    class Lazy:
        def __getattr__(self, name: str) -> object:
            raise AssertionError("asked")

    TritonVariant(model=wrong(Lazy()))


def test_tokens_are_taken_where_text_is_and_numbers_are(given: Any) -> None:
    token = cdk.Lazy.string(OwnProducer())
    TritonEndpoint.from_endpoint_name(given.scope, "OfToken", token)
    TritonVariant(model=given.model, initial_instance_count=wrong(cdk.Token.as_number({"Ref": "Count"})))


@jsii.implements(cdk.IStableStringProducer)
class OwnProducer:
    def produce(self) -> str:
        return "name"


def test_a_missing_argument_is_pythons_own_error(given: Any) -> None:
    missing = r"missing 1 required keyword-only argument: 'sampling_percentage'"
    with pytest.raises(TypeError, match=rf"^DataCapture\.__init__\(\) {missing}$"):
        DataCapture(bucket=given.bucket)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("deployment", " (did you mean 'deployment_policy'?)"),
        ("modle", " (did you mean 'model'?)"),
        ("capture", " (did you mean 'data_capture'?)"),
        ("colour", ""),
    ],
)
def test_an_unknown_argument_is_pythons_error_with_the_similar_ones(given: Any, name: str, suffix: str) -> None:
    with pytest.raises(TypeError) as raised:
        TritonEndpoint(given.scope, "Misspelt", **{name: None})
    assert str(raised.value) == f"TritonEndpoint.__init__() got an unexpected keyword argument {name!r}{suffix}"


def test_checked_constructors_keep_their_signatures() -> None:
    assert list(inspect.signature(TritonModel.__init__).parameters)[:4] == ["self", "scope", "id", "repository"]
    assert inspect.signature(DataCapture).parameters["prefix"].default == "data-capture"
