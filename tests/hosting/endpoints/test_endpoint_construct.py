"""`TritonEndpoint` and `TritonVariant`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.assertions import Annotations, Match

from cdk_triton import TritonArtifactStore, TritonEndpoint, TritonModel, TritonMultiModel, TritonVariant
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

ENDPOINT, CONFIG = "AWS::SageMaker::Endpoint", "AWS::SageMaker::EndpointConfig"


@pytest.fixture(name="fleet")
def _fleet(world: World, stack: cdk.Stack) -> TritonMultiModel:
    ensembles = {"text": world.repository("text"), "text-large": world.repository("large")}
    return TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)


def variants(world: World, stack: cdk.Stack) -> list[dict[str, Any]]:
    return list(world.only(stack, CONFIG)["Properties"]["ProductionVariants"])


def test_one_model_is_one_variant_on_its_platform(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(stack, "Endpoint", model=model)

    (variant,) = variants(world, stack)
    (name,) = world.resources(stack, "AWS::SageMaker::Model")
    assert variant == {
        "VariantName": "AllTraffic",
        "ModelName": {"Fn::GetAtt": [name, "ModelName"]},
        "InstanceType": "ml.g5.2xlarge",
        "InferenceAmiVersion": "al2023-ami-sagemaker-inference-gpu-4-1",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1,
    }
    assert set(world.only(stack, CONFIG)["Properties"]) == {"ProductionVariants"}
    assert set(world.only(stack, ENDPOINT)["Properties"]) == {"EndpointConfigName"}


def test_the_endpoint_goes_before_the_roles_policy_does(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(stack, "Endpoint", model=model)

    (policy,) = (name for name in world.policies(stack) if name.startswith("ModelPermissions"))
    assert policy in world.only(stack, ENDPOINT)["DependsOn"]


def test_several_variants_keep_their_numbers(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(
        stack,
        "Endpoint",
        variants=[
            TritonVariant(model=model, variant_name="Blue", initial_weight=0, initial_instance_count=3),
            TritonVariant(
                model=model,
                variant_name="Green",
                initial_weight=0.5,
                container_startup_timeout=cdk.Duration.minutes(10),
                model_download_timeout=cdk.Duration.hours(1),
            ),
        ],
    )

    blue, green = variants(world, stack)
    assert (blue["InitialVariantWeight"], blue["InitialInstanceCount"]) == (0, 3)
    assert green["InitialVariantWeight"] == 0.5
    assert green["ContainerStartupHealthCheckTimeoutInSeconds"] == 600
    assert green["ModelDataDownloadTimeoutInSeconds"] == 3600
    assert "ModelDataDownloadTimeoutInSeconds" not in blue


def test_a_token_is_taken_where_sagemaker_checks_it(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    count = cdk.CfnParameter(stack, "Count", type="Number").value_as_number
    name = cdk.CfnParameter(stack, "Name").value_as_string
    variant = TritonVariant(model=model, initial_instance_count=count, initial_weight=count)  # type: ignore[arg-type]
    TritonEndpoint(stack, "Endpoint", variants=[variant], endpoint_name=name)

    assert variants(world, stack)[0]["InitialInstanceCount"] == {"Ref": "Count"}
    assert world.only(stack, ENDPOINT)["Properties"]["EndpointName"] == {"Ref": "Name"}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        pytest.param("variant_name", "", id="no name"),
        pytest.param("variant_name", "a_b", id="a name with a line"),
        pytest.param("variant_name", "x" * 64, id="a long name"),
        pytest.param("initial_instance_count", 0, id="no instance"),
        pytest.param("initial_instance_count", True, id="a truth value as count"),
        pytest.param("initial_instance_count", 1.5, id="a fraction as count"),
        pytest.param("initial_instance_count", "2", id="text as count"),
        pytest.param("initial_instance_count", float("inf"), id="an infinite count"),
        pytest.param("initial_weight", "2", id="text as weight"),
        pytest.param("initial_weight", -1, id="a negative weight"),
        pytest.param("initial_weight", float("nan"), id="no number as weight"),
        pytest.param("container_startup_timeout", cdk.Duration.seconds(59), id="a short startup"),
        pytest.param("model_download_timeout", cdk.Duration.minutes(61), id="a long download"),
        pytest.param("model_download_timeout", cdk.Duration.seconds(0), id="no time for the download"),
    ],
)
def test_what_sagemaker_would_reject_is_rejected(
    messages: Messages, model: TritonModel, argument: str, value: Any
) -> None:
    with messages.raises(ConfigurationError) as caught:
        TritonVariant(model=model, **{argument: value})
    assert argument in str(caught.value)


@pytest.mark.parametrize("name", ["", "my_endpoint", "-x", "x" * 64], ids=["none", "a line", "a dash before", "long"])
def test_a_bad_endpoint_name_is_rejected(messages: Messages, stack: cdk.Stack, model: TritonModel, name: str) -> None:
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, endpoint_name=name)


def test_model_and_variants_exclude_each_other(messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
    for arguments in ({}, {"model": model, "variants": [TritonVariant(model=model)]}):
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", **arguments)  # type: ignore[arg-type]


def test_variants_that_cannot_be_told_apart_or_get_nothing_are_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel
) -> None:
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Twice", variants=[TritonVariant(model=model), TritonVariant(model=model)])
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Silent", variants=[TritonVariant(model=model, initial_weight=0)])
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Empty", variants=[])


def test_it_is_an_endpoint_to_the_cdk(stack: cdk.Stack, model: TritonModel) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="mine")

    assert isinstance(endpoint, cdk.Resource)
    assert stack.resolve(endpoint.endpoint_name) == {"Fn::GetAtt": ["EndpointEEF1FD8F", "EndpointName"]}
    assert stack.resolve(endpoint.endpoint_arn) == {"Ref": "EndpointEEF1FD8F"}
    assert stack.resolve(endpoint.endpoint_ref.endpoint_arn) == {"Ref": "EndpointEEF1FD8F"}
    assert sagemaker.CfnEndpoint.is_cfn_endpoint(endpoint.node.default_child)
    assert [child.node.id for child in endpoint.node.children] == ["Config", "Resource", "VariantAllTraffic"]


class TestGrants:
    @pytest.fixture
    def caller(self, stack: cdk.Stack) -> iam.Role:
        return iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))

    @staticmethod
    def statement(world: World, stack: cdk.Stack) -> dict[str, Any]:
        policies = world.resources(stack, "AWS::IAM::Policy")
        (policy,) = (policy for name, policy in policies.items() if name.startswith("Caller"))
        (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
        return dict(statement)

    def test_invoking_is_granted_on_this_endpoint(
        self, world: World, stack: cdk.Stack, model: TritonModel, caller: iam.Role
    ) -> None:
        grant = TritonEndpoint(stack, "Endpoint", model=model).grant_invoke(caller)

        assert grant.success
        assert self.statement(world, stack) == {
            "Action": ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"],
            "Effect": "Allow",
            "Resource": {"Ref": "EndpointEEF1FD8F"},
        }

    @pytest.mark.parametrize("target_models", [None, ["text"]])
    def test_a_multi_model_endpoint_cannot_stream(
        self,
        world: World,
        stack: cdk.Stack,
        fleet: TritonMultiModel,
        caller: iam.Role,
        target_models: list[str] | None,
    ) -> None:
        TritonEndpoint(stack, "Endpoint", model=fleet).grant_invoke(caller, target_models=target_models)

        assert self.statement(world, stack)["Action"] == "sagemaker:InvokeEndpoint"

    def test_target_models_narrow_it_to_every_version_of_an_ensemble(
        self, world: World, stack: cdk.Stack, fleet: TritonMultiModel, caller: iam.Role
    ) -> None:
        TritonEndpoint(stack, "Endpoint", model=fleet).grant_invoke(caller, target_models=["text"])

        patterns = ["text-??????????.tar.gz"]
        assert self.statement(world, stack)["Condition"] == {"StringLike": {"sagemaker:TargetModel": patterns}}
        assert len(fleet.target_models["text"]) == len(patterns[0])
        assert len(fleet.target_models["text-large"]) != len(patterns[0])

    @pytest.mark.parametrize("of_the_stack", [None, ["text"]])
    def test_published_ensembles_are_allowed_by_a_pattern_of_their_names(
        self, world: World, stack: cdk.Stack, fleet: TritonMultiModel, caller: iam.Role, of_the_stack: list[str] | None
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path="/search")
        endpoint.grant_invoke(caller, target_models=of_the_stack, published=["tenant-*"])
        fleet.add_publisher()

        invoking, reading = world.statements(stack, "Caller")
        patterns = [f"{name}-??????????.tar.gz" for name in (*(of_the_stack or ()), "tenant-*")]
        found = invoking["Condition"]["StringLike"]["sagemaker:TargetModel"]
        assert ([found] if isinstance(found, str) else found) == patterns
        assert ("target-models/text" in json.dumps(reading)) is (of_the_stack is not None)

    @pytest.mark.parametrize("patterns", [[], ["tenant/*"], [""]])
    def test_a_pattern_that_no_published_ensemble_has_is_rejected(
        self, messages: Messages, stack: cdk.Stack, fleet: TritonMultiModel, caller: iam.Role, patterns: list[str]
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", model=fleet).grant_invoke(caller, published=patterns)

    @pytest.mark.parametrize("grant", ["call", "read"])
    def test_without_a_publisher_there_are_no_published_ensembles(
        self, messages: Messages, stack: cdk.Stack, fleet: TritonMultiModel, caller: iam.Role, grant: str
    ) -> None:
        if grant == "call":
            TritonEndpoint(stack, "Endpoint", model=fleet).grant_invoke(caller, published=["tenant-*"])
        else:
            fleet.grant_read_catalogue(caller)

        (error,) = Annotations.from_stack(stack).find_error("*", Match.any_value())
        messages.record("cdk-triton:NoPublisher", str(error.entry.data))

    def test_a_single_model_endpoint_has_no_published_ensembles(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, caller: iam.Role
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", model=model).grant_invoke(caller, published=["tenant-*"])

    def test_nothing_is_not_everything(
        self, messages: Messages, stack: cdk.Stack, fleet: TritonMultiModel, model: TritonModel, caller: iam.Role
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=fleet)
        with messages.raises(ConfigurationError):
            endpoint.grant_invoke(caller, target_models=[])

    def test_an_unknown_ensemble_is_rejected(
        self, messages: Messages, stack: cdk.Stack, fleet: TritonMultiModel, model: TritonModel, caller: iam.Role
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Multi", model=fleet).grant_invoke(caller, target_models=["image"])
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Single", model=model).grant_invoke(caller, target_models=["image"])


def test_what_is_no_model_and_no_variant_is_named(
    messages: Messages, world: World, stack: cdk.Stack, model: TritonModel
) -> None:
    wrong: Any = world.repository()
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=wrong)
    wrong = model
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", variants=[wrong])
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, shadow=wrong)


def test_a_model_in_another_stack_could_never_be_changed(messages: Messages, world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    models, endpoints = cdk.Stack(app, "Models"), cdk.Stack(app, "Endpoints")
    model = TritonModel(models, "Model", store=store, repository=world.repository(), platform=world.platform)
    TritonEndpoint(endpoints, "Endpoint", model=model)
    app.synth()

    assert [stack.node.id for stack in endpoints.dependencies] == ["Models"]
    assert "Fn::ImportValue" in json.dumps(variants(world, endpoints))
    (warning,) = Annotations.from_stack(endpoints).find_warning("*", Match.string_like_regexp("ModelInAnotherStack"))
    messages.record("cdk-triton:ModelInAnotherStack", str(warning.entry.data))


def test_a_store_in_another_stack_and_a_nested_one_are_fine(world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    stack = cdk.Stack(app, "Search")
    nested = cdk.NestedStack(stack, "Models")
    model = TritonModel(nested, "Model", store=store, repository=world.repository(), platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=model)

    assert not Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("ModelInAnotherStack"))
