"""What callers in other stacks and languages get of an endpoint: imports, grants and parameters."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Annotations, Match

from cdk_triton import (
    AllAtOnce,
    Canary,
    Capacity,
    DataCapture,
    Linear,
    Rolling,
    TritonArtifactStore,
    TritonComponents,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import DeploymentPolicy

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

ARN = "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/search"
PARAMETER = "AWS::SSM::Parameter"


@pytest.fixture(name="caller")
def _caller(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))


@pytest.fixture(name="fleet")
def _fleet(world: World, stack: cdk.Stack) -> TritonMultiModel:
    ensembles = {"text": world.repository("text"), "text-large": world.repository("large")}
    return TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)


def statement(world: World, stack: cdk.Stack) -> dict[str, Any]:
    policies = world.resources(stack, "AWS::IAM::Policy")
    (policy,) = (policy for name, policy in policies.items() if name.startswith("Caller"))
    (found,) = policy["Properties"]["PolicyDocument"]["Statement"]
    return dict(found)


class TestImports:
    def test_by_name_it_is_in_the_stacks_account_and_region(
        self, world: World, stack: cdk.Stack, caller: iam.Role, flattened: Callable[[Any], str]
    ) -> None:
        endpoint = TritonEndpoint.from_endpoint_name(stack, "Search", "Search-V1")

        assert endpoint.grant_invoke(caller).success
        assert endpoint.endpoint_name == "Search-V1"
        found = statement(world, stack)
        assert found["Action"] == ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
        # SageMaker writes names in lower case into ARNs, and IAM compares letter by letter.
        assert flattened(found["Resource"]).endswith(":<AWS::Region>:<AWS::AccountId>:endpoint/search-v1")
        assert not stack.resolve(world.template(stack))["Resources"].keys() & {"Search"}

    def test_by_arn(self, world: World, stack: cdk.Stack, caller: iam.Role) -> None:
        endpoint = TritonEndpoint.from_endpoint_arn(stack, "Search", ARN)

        endpoint.grant_invoke(caller)
        assert (endpoint.endpoint_name, endpoint.endpoint_arn) == ("search", ARN)
        assert (endpoint.env.account, endpoint.env.region) == ("111122223333", "eu-west-1")
        assert endpoint.endpoint_ref.endpoint_arn == ARN
        assert statement(world, stack)["Resource"] == ARN

    def test_by_both_where_the_name_has_capitals(self, world: World, stack: cdk.Stack, caller: iam.Role) -> None:
        endpoint = TritonEndpoint.from_endpoint_attributes(stack, "Search", endpoint_name="Search", endpoint_arn=ARN)

        endpoint.grant_invoke(caller)
        assert endpoint.endpoint_name == "Search"
        assert statement(world, stack)["Resource"] == ARN

    def test_ensembles_are_granted_in_every_version(self, world: World, stack: cdk.Stack, caller: iam.Role) -> None:
        TritonEndpoint.from_endpoint_arn(stack, "Search", ARN).grant_invoke(caller, target_models=["text", "image"])

        assert statement(world, stack)["Condition"] == {
            "StringLike": {"sagemaker:TargetModel": ["text-??????????.tar.gz", "image-??????????.tar.gz"]}
        }

    @pytest.mark.parametrize("target_models", [[], "text", ["text*"]], ids=["none", "a text", "a pattern"])
    def test_a_grant_that_means_nothing_is_rejected(
        self, messages: Messages, stack: cdk.Stack, caller: iam.Role, target_models: list[str]
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint.from_endpoint_arn(stack, "Search", ARN).grant_invoke(caller, target_models=target_models)

    def test_names_that_are_none_are_rejected(self, messages: Messages, stack: cdk.Stack) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint.from_endpoint_name(stack, "Search", "my_endpoint")

    @pytest.mark.parametrize(
        "arn",
        ["search", "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/", ARN.replace("endpoint/", "model/")],
        ids=["a name", "no name", "a model"],
    )
    def test_an_arn_that_names_no_endpoint_is_rejected(self, messages: Messages, stack: cdk.Stack, arn: str) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint.from_endpoint_arn(stack, "Search", arn)
        with messages.raises(ConfigurationError):
            TritonEndpoint.from_endpoint_attributes(stack, "Search", endpoint_name="search", endpoint_arn=arn)

    def test_name_and_arn_are_of_one_endpoint(self, messages: Messages, stack: cdk.Stack) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint.from_endpoint_attributes(stack, "Other", endpoint_name="other", endpoint_arn=ARN)

        unknown = cdk.CfnParameter(stack, "Name").value_as_string
        of_unknown = ARN.rpartition("/")[0] + f"/{unknown}"
        TritonEndpoint.from_endpoint_attributes(stack, "A", endpoint_name=unknown, endpoint_arn=ARN)
        TritonEndpoint.from_endpoint_attributes(stack, "B", endpoint_name="other", endpoint_arn=of_unknown)

    def test_an_arn_may_leave_the_account_to_the_deployment(self, stack: cdk.Stack) -> None:
        arn = ARN.replace("111122223333", stack.account)
        assert TritonEndpoint.from_endpoint_arn(stack, "Search", arn).endpoint_arn == arn

    def test_a_name_that_only_the_deployment_knows_is_warned_of_where_something_is_granted(
        self, messages: Messages, stack: cdk.Stack, caller: iam.Role
    ) -> None:
        name = cdk.CfnParameter(stack, "Name").value_as_string
        endpoint = TritonEndpoint.from_endpoint_name(stack, "Search", name)
        match = Match.string_like_regexp(r"EndpointNameCase\]")
        assert Annotations.from_stack(stack).find_warning("*", match) == []

        endpoint.grant_invoke(caller)

        (warning,) = Annotations.from_stack(stack).find_warning("*", match)
        messages.record("cdk-triton:EndpointNameCase", str(warning.entry.data))

    def test_an_arn_that_only_the_deployment_knows_names_the_endpoint(self, stack: cdk.Stack) -> None:
        arn = cdk.CfnParameter(stack, "Arn").value_as_string
        endpoint = TritonEndpoint.from_endpoint_arn(stack, "Search", arn)

        assert "Fn::Split" in str(stack.resolve(endpoint.endpoint_name))


def test_the_arn_of_a_named_endpoint_is_in_lower_case_for_other_environments(world: World) -> None:
    app = world.app()
    here, there = (cdk.Environment(account="111122223333", region=region) for region in ("eu-west-1", "us-east-1"))
    stack, consumer = cdk.Stack(app, "Stack", env=here), cdk.Stack(app, "Consumer", env=there)
    store = TritonArtifactStore(stack, "Store")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="Search")

    cdk.CfnOutput(consumer, "Arn", value=endpoint.endpoint_arn)
    cdk.CfnOutput(consumer, "Name", value=endpoint.endpoint_name)

    outputs = world.template(consumer)["Outputs"]
    assert "endpoint/search" in str(outputs["Arn"]["Value"])
    assert outputs["Name"]["Value"] == "Search"


@pytest.mark.parametrize("where", ["same stack", "other stack", "nested stack"])
def test_what_has_a_target_model_comes_after_its_archive(
    world: World, stack: cdk.Stack, fleet: TritonMultiModel, where: str
) -> None:
    app = cast(cdk.App, stack.node.root)
    home = stack
    if where != "same stack":
        home = cdk.Stack(app, "Callers") if where == "other stack" else cdk.NestedStack(stack, "Nested")
    sns.Topic(home, "Caller", display_name=f"calls {fleet.target_model('text')}")
    cdk.CfnOutput(home, "TextModel", value=fleet.target_model("text"))

    assembly = app.synth()

    (delivery,) = world.resources(stack, "Custom::TritonArtifacts")
    caller = world.only(home, "AWS::SNS::Topic")
    # No reference, and so no export, which could not be changed while it is imported.
    assert caller["Properties"]["DisplayName"] == f"calls {fleet.target_models['text']}"
    if where == "same stack":
        assert delivery in caller["DependsOn"]
    elif where == "nested stack":
        assert delivery in world.only(stack, "AWS::CloudFormation::Stack")["DependsOn"]
    else:
        assert stack.artifact_id in [each.id for each in assembly.get_stack_by_name("Callers").dependencies]


def test_a_pipeline_may_have_the_target_model_of_its_stage(world: World) -> None:
    app = world.app()
    stage = cdk.Stage(app, "Live", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    stack = cdk.Stack(stage, "Stack")
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)
    pipeline = cdk.Stack(app, "Pipeline")
    consumer = cdk.CfnResource(pipeline, "Consumer", type="AWS::SNS::Topic")
    consumer.add_property_override("DisplayName", fleet.target_model("text"))

    found = world.only(pipeline, "AWS::SNS::Topic")
    assert found["Properties"]["DisplayName"] == fleet.target_models["text"]
    assert "DependsOn" not in found


def test_the_validation_of_cdk_and_cfn_lint_accept_all_of_it(world: World) -> None:
    app = world.app("linted", validated=True)
    stack, store = cdk.Stack(app, "Stack"), TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    theirs = iam.Role(stack, "Theirs", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    ensembles = {"text": world.repository("text")}
    fleet = TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform, store=store, role=theirs)
    minute = cdk.Duration.minutes(1)
    policies: list[DeploymentPolicy] = [
        AllAtOnce(termination_wait=minute),
        Canary(size=Capacity(10), wait=minute),
        Linear(step=Capacity(instances=1), wait=minute, maximum_time=cdk.Duration.hours(1)),
        Rolling(batch=Capacity(50), wait=minute, rollback_batch=Capacity(100)),
    ]
    for number, policy in enumerate(policies):
        endpoint = TritonEndpoint(
            stack,
            f"Endpoint{number}",
            model=fleet if number % 2 else model,
            endpoint_name=f"search{number}",
            deployment_policy=policy,
            data_capture=DataCapture(
                bucket=s3.Bucket(stack, f"Bucket{number}"),
                sampling_percentage=5,
                encryption_key=kms.Key(stack, f"Key{number}"),
            ),
            ssm_parameter_path=f"/search/{number}",
        )
        topic = endpoint.add_rollback_notification()
        endpoint.roll_back_on(endpoint.monitor(topic=topic).alarms)
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    TritonEndpoint.from_endpoint_arn(stack, "Other", ARN).grant_invoke(theirs, target_models=["text"])

    app.synth()

    template = Path(app.outdir) / "Stack.template.json"
    lint = subprocess.run(
        [world.root / ".venv" / "bin" / "cfn-lint", "--ignore-checks", "W3005", "--", template],
        capture_output=True,
        text=True,
    )
    assert (lint.returncode, lint.stdout + lint.stderr) == (0, "")


class TestParameters:
    @staticmethod
    def parameters(world: World, stack: cdk.Stack) -> dict[str, Any]:
        found = world.resources(stack, PARAMETER).values()
        return {each["Properties"]["Name"]: each["Properties"]["Value"] for each in found}

    def test_callers_find_the_endpoint_and_its_target_models(
        self, world: World, stack: cdk.Stack, fleet: TritonMultiModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path="/search/production")

        assert self.parameters(world, stack) == {
            "/search/production/endpoint-name": stack.resolve(endpoint.endpoint_name),
            "/search/production/endpoint-arn": stack.resolve(endpoint.endpoint_arn),
            "/search/production/target-models/text": fleet.target_models["text"],
            "/search/production/target-models/text-large": fleet.target_models["text-large"],
        }

    @pytest.mark.parametrize("narrowed", [False, True], ids=["all", "one ensemble"])
    def test_who_may_call_may_read_them(
        self,
        world: World,
        stack: cdk.Stack,
        fleet: TritonMultiModel,
        caller: iam.Role,
        flattened: Callable[[Any], str],
        narrowed: bool,
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path="/search")
        endpoint.grant_invoke(caller, target_models=["text"] if narrowed else None)

        (policy,) = (p for name, p in world.resources(stack, "AWS::IAM::Policy").items() if name.startswith("Caller"))
        (reading,) = (
            each
            for each in policy["Properties"]["PolicyDocument"]["Statement"]
            if each["Action"] == "ssm:GetParameters"
        )
        names = {flattened(each).partition(":parameter/")[2] for each in reading["Resource"]}
        # async/input is what TritonClient.from_parameters asks every endpoint for.
        assert {"search/endpoint-name", "search/async/input", "search/target-models/text"} <= names
        assert ("search/target-models/text-large" in names) is not narrowed
        assert not [name for name in names if "*" in name]

    @pytest.mark.parametrize("first", ["publisher", "endpoint"])
    def test_the_catalogue_of_published_ensembles_is_among_them(
        self, world: World, stack: cdk.Stack, fleet: TritonMultiModel, caller: iam.Role, first: str
    ) -> None:
        if first == "publisher":
            fleet.add_publisher()
        endpoint = TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path="/search")
        endpoint.grant_invoke(caller)
        if first == "endpoint":
            fleet.add_publisher()

        value = json.dumps(self.parameters(world, stack)["/search/catalogue"])
        assert f"/catalogue/{fleet.name_in_store}/{world.platform.label}/" in value
        policies = [p for name, p in world.resources(stack, "AWS::IAM::Policy").items() if name.startswith("Caller")]
        assert ":parameter/search/catalogue" in json.dumps(policies)

    def test_a_target_model_is_told_when_it_can_be_called(
        self, world: World, stack: cdk.Stack, fleet: TritonMultiModel
    ) -> None:
        TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path="/search")

        (endpoint,) = world.resources(stack, "AWS::SageMaker::Endpoint")
        told = [p for p in world.resources(stack, PARAMETER).values() if "target-models" in p["Properties"]["Name"]]
        assert [endpoint in parameter["DependsOn"] for parameter in told] == [True, True]

    def test_another_endpoint_of_the_stack_takes_them_over(self, world: World) -> None:
        """CloudFormation creates a new resource before it deletes the old one, so the names would be in use."""

        def logical_ids(app: cdk.App, kind: type[TritonEndpoint | TritonComponents], id: str) -> dict[str, str]:
            stack = cdk.Stack(app, "Stack")
            if kind is TritonComponents:
                TritonComponents(
                    stack, id, platform=world.platform, max_instance_count=2, ssm_parameter_path="/search/live"
                )
            else:
                model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
                TritonEndpoint(stack, id, model=model, ssm_parameter_path="/search/live")
            found = world.resources(stack, PARAMETER).items()
            return {each["Properties"]["Name"]: name for name, each in found}

        before = logical_ids(world.app(), TritonEndpoint, "Endpoint")

        assert before.keys() == {"/search/live/endpoint-name", "/search/live/endpoint-arn"}
        assert logical_ids(world.app(), TritonEndpoint, "Renamed") == before
        assert logical_ids(world.app(), TritonComponents, "Endpoint") == before

    def test_a_single_model_has_none(self, world: World, stack: cdk.Stack) -> None:
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        TritonEndpoint(stack, "Endpoint", model=model, ssm_parameter_path="/search")

        assert set(self.parameters(world, stack)) == {"/search/endpoint-name", "/search/endpoint-arn"}

    def test_without_a_prefix_there_are_none(self, world: World, stack: cdk.Stack, fleet: TritonMultiModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=fleet)

        assert self.parameters(world, stack) == {}

    def test_variants_on_two_platforms_share_their_target_models(self, world: World, stack: cdk.Stack) -> None:
        fleets = [
            TritonMultiModel(stack, f"Fleet{n}", ensembles={"text": world.repository("text")}, platform=platform)
            for n, platform in enumerate((world.platform, replace(world.platform, instance_type="ml.g4dn.xlarge")))
        ]
        variants = [TritonVariant(model=fleet, variant_name=f"V{n}") for n, fleet in enumerate(fleets)]
        TritonEndpoint(stack, "Endpoint", variants=variants, ssm_parameter_path="/search")

        assert len(self.parameters(world, stack)) == 3

    def test_variants_with_two_catalogues_are_rejected(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        fleets = [
            TritonMultiModel(stack, f"Fleet{n}", ensembles={"text": world.repository("text")}, platform=world.platform)
            for n in range(2)
        ]
        variants = [TritonVariant(model=fleet, variant_name=f"V{n}") for n, fleet in enumerate(fleets)]
        TritonEndpoint(stack, "Endpoint", variants=variants, ssm_parameter_path="/search")
        fleets[0].add_publisher()
        with messages.raises(ConfigurationError):
            fleets[1].add_publisher()

    def test_variants_that_disagree_are_rejected(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        fleets = [
            TritonMultiModel(
                stack,
                f"Fleet{n}",
                ensembles={"text": world.repository("text", weights=str(n), below=f"below{n}")},
                platform=world.platform,
            )
            for n in range(2)
        ]
        variants = [TritonVariant(model=fleet, variant_name=f"V{n}") for n, fleet in enumerate(fleets)]
        with pytest.raises(ConfigurationError) as caught:
            TritonEndpoint(stack, "Endpoint", variants=variants, ssm_parameter_path="/search")
        said = str(caught.value)
        for fleet in fleets:
            assert fleet.target_models["text"] in said
            said = said.replace(fleet.target_models["text"], f"text of {fleet.node.id}")
        messages.record("ConfigurationError", said)

    @pytest.mark.parametrize(
        "prefix",
        ["", "/", "search", "/search/", "/a b", "/aws/search", "/SSM", "/ssmx", "/x" * 14, "/" + "x" * 500],
        ids=["none", "root", "no slash", "slash behind", "space", "aws", "SSM", "ssm", "14 levels", "long"],
    )
    def test_what_the_parameter_store_would_reject_is_rejected(
        self, messages: Messages, stack: cdk.Stack, fleet: TritonMultiModel, prefix: str
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path=prefix)
        assert stack.node.try_find_child("Endpoint") is None

    def test_a_token_is_no_path(self, messages: Messages, stack: cdk.Stack, fleet: TritonMultiModel) -> None:
        prefix = cdk.CfnParameter(stack, "Prefix").value_as_string
        with pytest.raises(ConfigurationError) as caught:
            TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path=prefix)
        messages.record("ConfigurationError", str(caught.value).replace(prefix, "<token>"))
