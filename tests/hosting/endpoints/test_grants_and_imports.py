"""Grants to models and callers, imported models, and the metrics of imported endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match

from cdk_triton import TritonEndpoint, TritonModel, TritonMultiModel, TritonVariant
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

ARN = "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/search"
ROLE = "arn:aws:iam::111122223333:role/Model"


def role(stack: cdk.Stack) -> iam.IRole:
    return iam.Role.from_role_arn(stack, "Role", ROLE)


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_a_grant_to_a_model_goes_to_its_role(world: World, stack: cdk.Stack, kind: str) -> None:
    repository = world.repository()
    model = (
        TritonModel(stack, "Model", repository=repository, platform=world.platform)
        if kind == "single"
        else TritonMultiModel(stack, "Model", ensembles={"text": repository}, platform=world.platform)
    )
    bucket = s3.Bucket(stack, "Bucket")

    assert bucket.grant_read(model).success

    arn = stack.resolve(bucket.bucket_arn)
    assert any(arn in statement["Resource"] for statement in world.statements(stack, "ModelRole"))


class TestImportedModels:
    def test_an_endpoint_serves_one(self, world: World, stack: cdk.Stack) -> None:
        model = TritonModel.from_model_attributes(
            stack, "Model", model_name="search-v1", platform=world.platform, role=role(stack), size=20_000_000_000
        )
        TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=model)])

        (variant,) = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ProductionVariants"]
        assert variant["ModelName"] == "search-v1"
        assert variant["InstanceType"] == world.platform.instance_type
        assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] > 480
        assert not world.resources(stack, "AWS::SageMaker::Model")

    def test_callers_may_name_the_ensembles_of_a_multi_model(self, world: World, stack: cdk.Stack) -> None:
        model = TritonMultiModel.from_model_attributes(
            stack,
            "Model",
            model_name="search-v1",
            platform=world.platform,
            role=role(stack),
            target_models={"text": "text-0f3c9a81d2.tar.gz"},
        )
        endpoint = TritonEndpoint(stack, "Endpoint", model=model)

        assert model.is_multi_model
        caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        assert endpoint.grant_invoke(caller, target_models=["text"]).success

    def test_a_name_that_no_model_can_have_is_rejected(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonModel.from_model_attributes(
                stack, "Model", model_name="search_v1", platform=world.platform, role=role(stack)
            )

    def test_after_a_platform_that_does_not_exist_the_id_is_free(self, world: World, stack: cdk.Stack) -> None:
        attributes: dict[str, Any] = {"model_name": "search-v1", "role": role(stack)}
        with pytest.raises(ConfigurationError):
            TritonModel.from_model_attributes(stack, "Model", platform="9.9/ml.g5.xlarge", **attributes)
        TritonModel.from_model_attributes(stack, "Model", platform=world.platform, **attributes)


class TestMetricsOfImportedEndpoints:
    def test_by_name(self, stack: cdk.Stack) -> None:
        variant = TritonEndpoint.from_endpoint_name(stack, "Search", "Search").variant("Blue")

        metric = variant.metric_model_latency(statistic="p99")
        assert metric.dimensions == {"EndpointName": "Search", "VariantName": "Blue"}
        assert (metric.account, metric.region) == (None, None)

    def test_of_another_region_they_are_read_there(self, stack: cdk.Stack) -> None:
        metric = TritonEndpoint.from_endpoint_arn(stack, "Search", ARN).variant().metric_invocations()

        assert (metric.account, metric.region) == ("111122223333", "eu-west-1")
        assert metric.dimensions == {"EndpointName": "search", "VariantName": "AllTraffic"}

    def test_metrics_of_the_import_itself_are_explained(self, messages: Messages, stack: cdk.Stack) -> None:
        endpoint = TritonEndpoint.from_endpoint_name(stack, "Search", "Search")

        with messages.raises(AttributeError):
            getattr(endpoint, "metric_invocations")  # noqa: B009  mypy knows that there is none
        with pytest.raises(AttributeError, match="'other'"):
            getattr(endpoint, "other")  # noqa: B009
        assert not hasattr(endpoint, "metric_model_latency")

    def test_a_name_that_no_variant_can_have_is_rejected(self, messages: Messages, stack: cdk.Stack) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint.from_endpoint_name(stack, "Search", "Search").variant("a_b")


WITHOUT_EFFECT: dict[str, Callable[[cdk.Stack], iam.IGrantable]] = {
    "an account": lambda stack: iam.AccountPrincipal("333333333333"),
    "a service": lambda stack: iam.ServicePrincipal("lambda.amazonaws.com"),
    "an organisation": lambda stack: iam.OrganizationPrincipal("o-1234567890"),
    "a role of another account": lambda stack: iam.Role.from_role_arn(
        stack, "Theirs", "arn:aws:iam::333333333333:role/Caller"
    ),
}


class TestGrantsWithoutEffect:
    @pytest.mark.parametrize("kind", WITHOUT_EFFECT)
    def test_they_are_warned_of(self, messages: Messages, stack: cdk.Stack, kind: str) -> None:
        TritonEndpoint.from_endpoint_arn(stack, "Search", ARN).grant_invoke(WITHOUT_EFFECT[kind](stack))

        match = Match.string_like_regexp(r"GrantWithoutEffect\]")
        (warning,) = Annotations.from_stack(stack).find_warning("*", match)
        messages.record("cdk-triton:GrantWithoutEffect", str(warning.entry.data))

    def test_roles_of_the_account_are_not(self, stack: cdk.Stack) -> None:
        endpoint = TritonEndpoint.from_endpoint_arn(stack, "Search", ARN)

        endpoint.grant_invoke(iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
        endpoint.grant_invoke(role(stack))

        match = Match.string_like_regexp(r"GrantWithoutEffect\]")
        assert Annotations.from_stack(stack).find_warning("*", match) == []
