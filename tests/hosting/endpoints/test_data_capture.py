"""Which requests and answers an endpoint keeps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match

from cdk_triton import (
    AllAtOnce,
    DataCapture,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

CONFIG, ENDPOINT = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Endpoint"


@pytest.fixture(name="bucket")
def _bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, "Captured", "captured")


def config(world: World, stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = world.only(stack, CONFIG)["Properties"]["DataCaptureConfig"]
    return found


def policy(world: World, stack: cdk.Stack, kind: str = "AWS::IAM::ManagedPolicy") -> tuple[str, dict[str, Any]]:
    policies = world.resources(stack, kind)
    ((name, found),) = ((n, p["Properties"]) for n, p in policies.items() if n.startswith("EndpointDataCapture"))
    return name, found


def test_binary_is_base64_and_json_is_text(
    world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket
) -> None:
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=DataCapture(bucket=bucket, sampling_percentage=5))

    assert config(world, stack) == {
        "EnableCapture": True,
        "InitialSamplingPercentage": 5,
        "DestinationS3Uri": "s3://captured/data-capture",
        "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
        # What no list names is BASE64: Triton's binary content types.
        "CaptureContentTypeHeader": {"JsonContentTypes": ["application/json"]},
    }


def test_one_side_is_enough(world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket) -> None:
    capture = DataCapture(bucket=bucket, sampling_percentage=100, capture_responses=False, prefix="search/v1")
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)

    assert config(world, stack)["CaptureOptions"] == [{"CaptureMode": "Input"}]
    assert config(world, stack)["DestinationS3Uri"] == "s3://captured/search/v1"


def test_the_execution_role_may_write_below_the_prefix_before_the_endpoint_exists(
    world: World,
    stack: cdk.Stack,
    model: TritonModel,
    bucket: s3.IBucket,
    flattened: Callable[[Any], str],
) -> None:
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=DataCapture(bucket=bucket, sampling_percentage=5))

    name, found = policy(world, stack)
    (statement,) = found["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Effect"]) == ("s3:PutObject", "Allow")
    assert flattened(statement["Resource"]).endswith(":s3:::captured/data-capture/*")
    (role,) = (role for role in world.resources(stack, "AWS::IAM::Role") if role.startswith("ModelRole"))
    assert found["Roles"] == [{"Ref": role}]
    assert name in world.only(stack, ENDPOINT)["DependsOn"]


@pytest.mark.parametrize("own", [True, False], ids=["own key", "key of the bucket"])
def test_a_key_encrypts_what_is_captured(world: World, stack: cdk.Stack, model: TritonModel, own: bool) -> None:
    first, second = (kms.Key.from_key_arn(stack, id, f"arn:aws:kms:us-east-1:111122223333:key/{id}") for id in "ab")
    bucket = s3.Bucket.from_bucket_attributes(stack, "Captured", bucket_name="captured", encryption_key=first)
    capture = DataCapture(bucket=bucket, sampling_percentage=5, encryption_key=second if own else None)
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)

    key = (second if own else first).key_arn
    assert config(world, stack)["KmsKeyId"] == key
    _, found = policy(world, stack)
    assert found["PolicyDocument"]["Statement"][1] == {
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Effect": "Allow",
        "Resource": key,
    }


def test_the_page_of_roles_has_what_the_roles_get(
    world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket
) -> None:
    alarm = cloudwatch.Alarm.from_alarm_arn(stack, "Alarm", "arn:aws:cloudwatch:us-east-1:111122223333:alarm:a")
    TritonEndpoint(
        stack,
        "Endpoint",
        model=model,
        endpoint_name="search",
        deployment_policy=AllAtOnce(termination_wait=cdk.Duration.minutes(5), alarms=[alarm]),
        data_capture=DataCapture(bucket=bucket, sampling_percentage=5, encryption_key=kms.Key(stack, "Key")),
    )

    policies = world.resources(stack, "AWS::IAM::ManagedPolicy")
    actions: set[str] = set()
    for policy in (found for name, found in policies.items() if name.startswith("Endpoint")):
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            actions.update([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    page = (world.root / "docs" / "roles.md").read_text()
    (paragraph,) = (text for text in page.split("\n\n") if text.startswith("With `data_capture=`"))
    assert set(re.findall(r"`(\w+:\w+)`", paragraph)) == actions


def test_every_role_behind_the_endpoint_may_write(
    world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket
) -> None:
    theirs = iam.Role(stack, "Theirs", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    other = TritonModel(stack, "Other", repository=model.repository, platform=world.platform, role=theirs)
    TritonEndpoint(
        stack,
        "Endpoint",
        model=model,
        shadow=TritonVariant(model=other, variant_name="Shadow"),
        data_capture=DataCapture(bucket=bucket, sampling_percentage=5),
    )

    ours, _ = policy(world, stack)
    inline, found = policy(world, stack, "AWS::IAM::Policy")
    assert found["Roles"] == [stack.resolve(theirs.role_name)]
    assert {ours, inline} <= set(world.only(stack, ENDPOINT)["DependsOn"])


def test_a_fleet_is_warned_of(messages: Messages, world: World, stack: cdk.Stack, bucket: s3.IBucket) -> None:
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=fleet, data_capture=DataCapture(bucket=bucket, sampling_percentage=5))

    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(r"CaptureOfMultiModel\]"))
    (warning,) = (str(each.entry.data) for each in found)
    messages.record("cdk-triton:CaptureOfMultiModel", warning)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"sampling_percentage": 0}, id="no percent"),
        pytest.param({"sampling_percentage": 101}, id="101 percent"),
        pytest.param({"sampling_percentage": 0.5}, id="half a percent"),
        pytest.param({"sampling_percentage": True}, id="a truth value"),
        pytest.param({"sampling_percentage": float("inf")}, id="infinite"),
        pytest.param({"prefix": ""}, id="no prefix"),
        pytest.param({"prefix": "/search"}, id="slash before"),
        pytest.param({"prefix": "search/"}, id="slash behind"),
        pytest.param({"prefix": "a" * 401}, id="a long prefix"),
        pytest.param({"capture_requests": False, "capture_responses": False}, id="neither"),
    ],
)
def test_what_sagemaker_would_reject_or_what_keeps_nothing_is_rejected(
    messages: Messages, bucket: s3.IBucket, arguments: dict[str, Any]
) -> None:
    with messages.raises(ConfigurationError) as caught:
        DataCapture(**{"bucket": bucket, "sampling_percentage": 5, **arguments})
    assert all(name in str(caught.value) for name in arguments)


def test_no_model_writes_where_archives_are(messages: Messages, stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store")
    DataCapture(bucket=store.bucket, sampling_percentage=5)
    for prefix in ("artifacts", "fleets/text", "staging/x"):
        with messages.raises(ConfigurationError):
            DataCapture(bucket=store.bucket, sampling_percentage=5, prefix=prefix)


def test_a_token_is_a_percentage(world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket) -> None:
    share = cdk.CfnParameter(stack, "Share", type="Number").value_as_number
    capture = DataCapture(bucket=bucket, sampling_percentage=share)  # type: ignore[arg-type]
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)

    assert config(world, stack)["InitialSamplingPercentage"] == {"Ref": "Share"}


def test_a_bucket_of_another_region_is_rejected(messages: Messages, world: World) -> None:
    app = world.app()
    stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="111122223333", region="us-east-1"))
    bucket = s3.Bucket.from_bucket_attributes(stack, "Captured", bucket_name="captured", region="eu-west-1")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, data_capture=DataCapture(bucket=bucket, sampling_percentage=5))


@pytest.mark.parametrize("region", [None, "us-east-1"], ids=["region not known", "same region"])
def test_a_bucket_that_may_be_of_the_region_is_taken(world: World, stack: cdk.Stack, region: str | None) -> None:
    bucket = s3.Bucket.from_bucket_attributes(stack, "Captured", bucket_name="captured", region=region)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=DataCapture(bucket=bucket, sampling_percentage=5))
    assert config(world, stack)["DestinationS3Uri"] == "s3://captured/data-capture"


def captured_to(world: World, name: str, prefix: str, role: str | None = None) -> tuple[str, dict[str, Any]]:
    """The policy of an endpoint that captures to a prefix."""
    stack = cdk.Stack(world.app(name), "Stack")
    given = None if role is None else iam.Role.from_role_arn(stack, "Given", f"arn:aws:iam::111122223333:role/{role}")
    bucket = s3.Bucket.from_bucket_name(stack, "Captured", "captured")
    repository = world.repository_again("text")
    model = TritonModel(stack, "Model", repository=repository, platform=world.platform, role=given)
    capture = DataCapture(bucket=bucket, sampling_percentage=5, prefix=prefix)
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)
    return policy(world, stack, "AWS::IAM::ManagedPolicy" if role is None else "AWS::IAM::Policy")


@pytest.mark.parametrize("role", [None, "mine"], ids=["role of ours", "role of the user's"])
def test_the_old_permissions_outlive_an_update_to_another_prefix(world: World, role: str | None) -> None:
    world.repository("text")
    before, same, other = (
        captured_to(world, name, prefix, role) for name, prefix in (("a", "one"), ("b", "one"), ("c", "two"))
    )

    # CloudFormation removes another logical id after the endpoint's update; one policy name would be one policy.
    assert before[0] == same[0]
    assert before[0] != other[0]
    names = [found.get("PolicyName") for _, found in (before, other)]
    assert names == [None, None] or names[0] != names[1]


def test_a_scaled_endpoint_that_captures_is_warned_of(
    messages: Messages, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket
) -> None:
    capture = DataCapture(bucket=bucket, sampling_percentage=5)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)
    pattern = Match.string_like_regexp("CaptureOfScaledVariant")
    assert not Annotations.from_stack(stack).find_warning("*", pattern)

    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    (warning,) = Annotations.from_stack(stack).find_warning("/Stack/Endpoint", pattern)
    messages.record("cdk-triton:CaptureOfScaledVariant", str(warning.entry.data))


def test_a_scaled_endpoint_that_retains_nothing_is_not(world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    stack.node.set_context("cdk-triton:retainVariantProperties", "false")
    bucket = s3.Bucket.from_bucket_name(stack, "Captured", "captured")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    capture = DataCapture(bucket=bucket, sampling_percentage=5)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    assert not Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("CaptureOfScaledVariant"))
