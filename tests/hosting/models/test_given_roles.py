"""Execution roles of the user's: who may assume them, and those that take no policy of the app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match

from cdk_triton import AllAtOnce, ServingPlatform, TritonEndpoint, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

ACCOUNT = "111122223333"
ARN = f"arn:aws:iam::{ACCOUNT}:role/theirs"
NOT_GRANTED = Match.string_like_regexp(r"\[ack: cdk-triton:RoleNotGranted\]")
SAGEMAKER, EC2 = iam.ServicePrincipal("sagemaker.amazonaws.com"), iam.ServicePrincipal("ec2.amazonaws.com")


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Stack", env=cdk.Environment(account=ACCOUNT, region="eu-west-1"))


def _model(world: World, stack: cdk.Stack, role: iam.IRole) -> TritonModel:
    return TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform, role=role)


def test_a_role_of_the_app_that_sagemaker_may_not_assume_is_an_error(
    world: World, stack: cdk.Stack, messages: Messages
) -> None:
    _model(world, stack, iam.Role(stack, "Theirs", assumed_by=EC2))

    (error,) = Annotations.from_stack(stack).find_error("/Stack/Model", Match.any_value())
    messages.record("cdk-triton:RoleNotTrusted", str(error.entry.data))


def test_below_a_nested_stage_the_error_stops_the_synthesis(world: World) -> None:
    """Plain `cdk synth` does not select the stacks of a nested stage, so it would not print the error."""
    app = world.app()
    stack = cdk.Stack(cdk.Stage(app, "Prod"), "Stack", env=cdk.Environment(account=ACCOUNT, region="eu-west-1"))
    _model(world, stack, iam.Role(stack, "Theirs", assumed_by=EC2))

    with pytest.raises(RuntimeError, match="RoleNotTrusted: SageMaker is not allowed to assume the role Prod/"):
        app.synth()


def _with_trust(stack: cdk.Stack, principal: Mapping[str, str], action: str) -> iam.Role:
    """A role with a trust policy of one statement."""
    role = iam.Role(stack, "Theirs", assumed_by=EC2)
    statement = {"Effect": "Allow", "Principal": dict(principal), "Action": action}
    assert role.assume_role_policy is not None
    role.assume_role_policy.add_statements(iam.PolicyStatement.from_json(statement))
    return role


TRUSTED: dict[str, Callable[[cdk.Stack], iam.IRole]] = {
    "SageMaker": lambda stack: iam.Role(stack, "Theirs", assumed_by=SAGEMAKER),
    "several": lambda stack: iam.Role(stack, "Theirs", assumed_by=iam.CompositePrincipal(EC2, SAGEMAKER)),
    "with a condition": lambda stack: iam.Role(
        stack,
        "Theirs",
        assumed_by=iam.ServicePrincipal(
            "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": ACCOUNT}}
        ),
    ),
    "from a parameter": lambda stack: iam.Role(
        stack, "Theirs", assumed_by=iam.ServicePrincipal(cdk.CfnParameter(stack, "Service").value_as_string)
    ),
    "by a pattern": lambda stack: _with_trust(stack, {"Service": "sagemaker.amazonaws.com"}, "sts:Assume*"),
    "imported": lambda stack: iam.Role.from_role_arn(stack, "Theirs", ARN),
}


@pytest.mark.parametrize("role", TRUSTED.values(), ids=TRUSTED)
def test_a_role_that_sagemaker_may_assume_is_none(
    world: World, stack: cdk.Stack, role: Callable[[cdk.Stack], iam.IRole]
) -> None:
    _model(world, stack, role(stack))

    assert Annotations.from_stack(stack).find_error("*", Match.any_value()) == []
    Annotations.from_stack(stack).has_no_warning("*", NOT_GRANTED)


def test_trust_that_is_added_after_the_model_counts(world: World, stack: cdk.Stack) -> None:
    role = iam.Role(stack, "Theirs", assumed_by=EC2)
    _model(world, stack, role)
    assert role.assume_role_policy is not None
    role.assume_role_policy.add_statements(
        iam.PolicyStatement(actions=["sts:AssumeRole"], principals=[iam.ServicePrincipal("sagemaker.amazonaws.com")])
    )

    assert Annotations.from_stack(stack).find_error("*", Match.any_value()) == []


@pytest.mark.parametrize("kind", ["mutable=False", "without_policy_updates"])
def test_a_role_that_takes_no_policy_warns_of_what_it_needs(
    world: World, stack: cdk.Stack, messages: Messages, kind: str
) -> None:
    own = iam.Role(stack, "Own", assumed_by=SAGEMAKER)
    imported = iam.Role.from_role_arn(stack, "Theirs", ARN, mutable=False)
    model = _model(world, stack, imported if kind == "mutable=False" else own.without_policy_updates())

    (warning,) = Annotations.from_stack(stack).find_warning(f"/{model.node.path}", NOT_GRANTED)
    messages.record("cdk-triton:RoleNotGranted", str(warning.entry.data))


def test_the_warning_has_conditions_and_functions_of_cloudformation(world: World, stack: cdk.Stack) -> None:
    """So that the owner of the role allows no more than the library would."""
    repository = ecr.Repository(stack, "Images")
    image = repository.repository_uri_for_digest(f"sha256:{'0' * 64}")
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge", image=image)
    role = iam.Role.from_role_arn(stack, "Theirs", ARN, mutable=False)
    TritonModel(stack, "Model", repository=world.repository(), platform=platform, role=role)

    (warning,) = Annotations.from_stack(stack).find_warning("*", NOT_GRANTED)
    text = str(warning.entry.data)
    assert '"Fn::Select"' in text
    assert "if s3:prefix StringLike artifacts/" in text
    assert "cloudwatch:PutMetricData on * if cloudwatch:namespace StringEquals" in text


def test_what_is_added_to_a_policy_warns_too(world: World, stack: cdk.Stack) -> None:
    role = iam.Role.from_role_arn(stack, "Theirs", ARN, mutable=False)
    policy = AllAtOnce(termination_wait=cdk.Duration.hours(1))
    endpoint = TritonEndpoint(
        stack, "Endpoint", endpoint_name="search", model=_model(world, stack, role), deployment_policy=policy
    )
    metric = cloudwatch.Metric(namespace="Own", metric_name="Failures")
    for name in ("First", "Second"):
        endpoint.roll_back_on(metric.create_alarm(stack, name, threshold=1, evaluation_periods=1))

    found = Annotations.from_stack(stack).find_warning(f"/{endpoint.node.path}", NOT_GRANTED)
    assert len(found) == 2
