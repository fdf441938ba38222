"""What an account has once in a region, two endpoints of an app cannot both have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest

from cdk_triton import TritonArtifactStore, TritonEndpoint, TritonModel, TritonMultiModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from constructs import Construct
    from tests.hosting.conftest import World

    from golden_messages import Messages

HERE = cdk.Environment(account="111122223333", region="eu-west-1")
ELSEWHERE = cdk.Environment(account="111122223333", region="us-east-1")


def served(world: World, stack: cdk.Stack) -> TritonModel:
    store = TritonArtifactStore(stack, "Store")
    return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)


def endpoint(scope: Construct, world: World, id: str = "Endpoint", **names: str) -> TritonEndpoint:
    stack = cdk.Stack.of(scope)
    found = stack.node.try_find_child("Model")
    model = found if isinstance(found, TritonModel) else served(world, stack)
    return TritonEndpoint(
        scope, id, model=model, endpoint_name=names.get("name"), ssm_parameter_path=names.get("ssm_parameter_path")
    )


class TestEndpointNames:
    @pytest.mark.parametrize("second", ["search", "Search"])
    def test_two_of_one_stack_are_rejected(
        self, messages: Messages, world: World, stack: cdk.Stack, second: str
    ) -> None:
        endpoint(stack, world, "First", name="search")

        with messages.raises(ConfigurationError) as caught:
            endpoint(stack, world, "Second", name=second)
        assert "Stack/First" in str(caught.value)
        assert stack.node.try_find_child("Second") is None
        endpoint(stack, world, "Third", name="search-2")

    def test_two_stacks_of_one_account_and_region_are_rejected(self, messages: Messages, world: World) -> None:
        app = world.app()
        endpoint(cdk.Stack(app, "One", env=HERE), world, name="search")

        with messages.raises(ConfigurationError) as caught:
            endpoint(cdk.Stack(cdk.Stage(app, "Production"), "Other", env=HERE), world, name="search")
        assert "One/Endpoint" in str(caught.value)

    def test_a_nested_stack_is_deployed_with_its_parent(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        endpoint(stack, world, name="search")

        with messages.raises(ConfigurationError) as caught:
            endpoint(cdk.NestedStack(stack, "Nested"), world, name="search")
        assert "Stack/Endpoint" in str(caught.value)

    @pytest.mark.parametrize("env", [ELSEWHERE, None], ids=["another region", "not said"])
    def test_elsewhere_a_name_is_free(self, world: World, env: cdk.Environment | None) -> None:
        app = world.app()
        for name, where in (("One", HERE if env else None), ("Other", env)):
            endpoint(cdk.Stack(app, name, env=where), world, name="search")

    @pytest.mark.parametrize("removed", ["itself", "its stack"])
    def test_what_is_taken_out_again_leaves_its_names(self, messages: Messages, world: World, removed: str) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack", env=HERE)
        endpoint(stack, world, name="search", ssm_parameter_path="/search")
        if removed == "itself":
            assert stack.node.try_remove_child("Endpoint")
        else:
            assert app.node.try_remove_child("Stack")
            stack = cdk.Stack(app, "Other", env=HERE)

        endpoint(stack, world, "Second", name="search", ssm_parameter_path="/search")
        with messages.raises(ConfigurationError) as caught:
            endpoint(stack, world, "Third", name="search")
        assert f"{stack.node.path}/Second" in str(caught.value)

    def test_an_endpoint_that_could_not_be_made_has_no_name(self, world: World, stack: cdk.Stack) -> None:
        cdk.CfnOutput(stack, "Endpoint", value="of the same id")
        with pytest.raises(RuntimeError, match="already a Construct with name 'Endpoint'"):
            endpoint(stack, world, name="search")

        endpoint(stack, world, "Second", name="search")

    def test_names_that_only_the_deployment_knows_are_not_compared(self, world: World, stack: cdk.Stack) -> None:
        name = cdk.CfnParameter(stack, "Name").value_as_string
        endpoint(stack, world, "First", name=name)
        endpoint(stack, world, "Second", name=name)


class TestParameters:
    def test_two_of_one_path_are_rejected(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        endpoint(stack, world, "First", ssm_parameter_path="/search")

        with messages.raises(ConfigurationError) as caught:
            endpoint(stack, world, "Second", ssm_parameter_path="/search")
        assert "'/search/endpoint-name'" in str(caught.value)

    def test_one_below_the_other_is_rejected_where_a_name_is_doubled(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        ensembles = {"endpoint-arn": world.repository()}
        fleet = TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)
        TritonEndpoint(stack, "First", model=fleet, ssm_parameter_path="/search")

        endpoint(stack, world, "Below", ssm_parameter_path="/search/text")
        with messages.raises(ConfigurationError) as caught:
            endpoint(stack, world, "Second", ssm_parameter_path="/search/target-models")
        assert "'/search/target-models/endpoint-arn'" in str(caught.value)

    def test_elsewhere_a_path_is_free(self, world: World) -> None:
        app = world.app()
        for name, where in (("One", HERE), ("Other", ELSEWHERE)):
            endpoint(cdk.Stack(app, name, env=where), world, ssm_parameter_path="/search")
