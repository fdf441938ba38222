"""A store that several apps of an account and region use: what its app exports, and what the others make of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks

from cdk_triton import (
    CodeBuildGpuBuilder,
    S3File,
    SageMakerProcessingBuilder,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from cdk_triton.hosting import ITritonArtifactStore
    from golden_messages import Messages

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
DELIVERY, POLICY = "Custom::TritonArtifacts", "AWS::IAM::Policy"
NAME = "triton-artifacts"
IN_S3 = S3File(bucket="models", key="bert/bert.onnx", sha256="ab" * 32)
OWN_IMAGE = ServingPlatform(
    release="25.09",
    instance_type="ml.g5.2xlarge",
    image=f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror/triton@sha256:{'a' * 64}",
)


@pytest.fixture(name="exported")
def _exported(world: World) -> Callable[..., set[str]]:
    """The names that a store with these options exports."""

    def names(*, encrypted: bool = False, **options: Any) -> set[str]:
        stack = cdk.Stack(world.app("owner"), "Artifacts", env=IRELAND)
        key = kms.Key(stack, "Key") if encrypted else None
        TritonArtifactStore(stack, "Store", export_prefix=NAME, encryption_key=key, **options)
        return {output["Export"]["Name"] for output in world.template(stack)["Outputs"].values()}

    return names


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Search", env=IRELAND)


def imported(stack: cdk.Stack, world: World) -> set[str]:
    """The names that a stack imports."""
    return set(re.findall(r'"Fn::ImportValue": "([^"]*)"', json.dumps(world.template(stack))))


def test_what_a_store_exports_is_its_own(world: World) -> None:
    stack = cdk.Stack(world.app(), "Artifacts", env=IRELAND)
    store = TritonArtifactStore(stack, "Store", export_prefix=NAME)

    outputs = world.template(stack)["Outputs"].values()
    named = {output["Export"]["Name"]: output["Value"] for output in outputs}
    assert {name: value for name, value in named.items() if name.startswith(NAME)} == {
        f"{NAME}:{name}": stack.resolve(value)
        for name, value in {
            "Bucket": store.bucket.bucket_name,
            "ServiceToken": store.service_token,
            "HandlerRole": store.handler_role.role_name,
            "CodeBuildRole": store.build_roles["codebuild"].role_name,
            "ProcessingRole": store.build_roles["processing"].role_name,
        }.items()
    }


def test_a_model_in_a_shared_store_brings_nothing_but_itself(
    world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
) -> None:
    store = TritonArtifactStore.from_exports(stack, "Store", NAME)
    TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform, store=store)

    kinds = {resource["Type"] for resource in world.template(stack)["Resources"].values()}
    url = world.only(stack, "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["ModelDataUrl"]
    readable = [
        flattened(statement["Resource"])
        for statement in world.statements(stack, "ModelRole")
        if statement["Action"] == "s3:GetObject"
    ]
    assert kinds == {DELIVERY, "AWS::IAM::Role", "AWS::IAM::ManagedPolicy", "AWS::SageMaker::Model"}
    assert flattened(url).startswith(f"s3://<{NAME}:Bucket>/artifacts/text/")
    assert readable == [f"arn:aws:s3:::<{NAME}:Bucket>/artifacts/text/*"]
    assert flattened(world.only(stack, DELIVERY)["Properties"]["ServiceToken"]) == f"<{NAME}:ServiceToken>"


@pytest.mark.parametrize("encrypted", [False, True])
def test_every_import_is_among_the_exports(
    encrypted: bool, world: World, stack: cdk.Stack, exported: Callable[..., set[str]]
) -> None:
    store = TritonArtifactStore.from_exports(stack, "Store", NAME, has_encryption_key=encrypted)
    recipe = TensorRTPlan("network", onnx=IN_S3)
    for platform in (OWN_IMAGE, ServingPlatform(release="25.09", instance_type="ml.g6.xlarge")):
        TritonModel(
            stack,
            platform.instance.family.upper(),
            repository=world.repository_with_plan(recipes=[recipe]),
            platform=platform,
            store=store,
        )

    assert imported(stack, world) <= exported(encrypted=encrypted)
    assert imported(stack, world) - exported(encrypted=not encrypted)
    assert ("kms:Decrypt" in json.dumps(world.policies(stack))) is encrypted


def test_a_builder_that_the_store_has_not_is_imported_in_vain(
    world: World, stack: cdk.Stack, exported: Callable[..., set[str]]
) -> None:
    store = TritonArtifactStore.from_exports(stack, "Store", NAME, builders=[CodeBuildGpuBuilder()])
    TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=OWN_IMAGE, store=store)

    missing = imported(stack, world) - exported(builders=[SageMakerProcessingBuilder()])
    assert missing == {f"{NAME}:CodeBuildRole"}


def test_the_builders_pull_any_image_of_sagemakers_for_whom_they_do_not_know(
    world: World, flattened: Callable[[Any], str]
) -> None:
    stack = cdk.Stack(world.app(), "Artifacts", env=IRELAND)
    TritonArtifactStore(stack, "Store", export_prefix=NAME)

    for role in ("StoreCodeBuildRole", "StoreProcessingRole"):
        (pulled,) = (
            [flattened(arn) for arn in statement["Resource"]]
            for statement in world.statements(stack, role)
            if "ecr:BatchGetImage" in statement["Action"]
        )
        assert pulled == [
            "arn:aws:ecr:eu-west-1:763104351884:repository/sagemaker-tritonserver",
            "arn:aws:ecr:eu-west-1:802834080501:repository/sagemaker-tritonserver",  # of releases until 23.11
        ]


def test_a_build_in_an_image_of_sagemakers_asks_for_no_permission(world: World, stack: cdk.Stack) -> None:
    store = TritonArtifactStore.from_exports(stack, "Store", NAME)
    TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=world.platform, store=store)

    assert world.resources(stack, POLICY) == {}


def test_what_a_build_needs_beside_is_allowed_before_it_begins(
    world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
) -> None:
    store = TritonArtifactStore.from_exports(stack, "Store", NAME)
    repository = world.repository_with_plan(recipes=[TensorRTPlan("network", onnx=IN_S3)])
    TritonModel(stack, "Model", repository=repository, platform=OWN_IMAGE, store=store)

    policies = world.resources(stack, POLICY)
    allowed = {
        flattened(policy["Properties"]["Roles"][0]): flattened(statement["Resource"])
        for policy in policies.values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    }
    assert allowed == {
        f"<{NAME}:CodeBuildRole>": "arn:aws:ecr:eu-west-1:111122223333:repository/mirror/triton",
        f"<{NAME}:HandlerRole>": "arn:<AWS::Partition>:s3:::models/bert/bert.onnx",
    }
    assert set(policies) <= set(world.only(stack, DELIVERY)["DependsOn"])


def test_an_image_from_elsewhere_is_the_users_to_grant(messages: Messages, world: World, stack: cdk.Stack) -> None:
    platform = ServingPlatform(
        release="25.09", instance_type="ml.g5.xlarge", image=f"registry.example.com/triton@sha256:{'a' * 64}"
    )
    store = TritonArtifactStore.from_exports(stack, "Store", NAME)
    TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=platform, store=store)

    code = "cdk-triton:BuildImagePullNotGranted"
    (warning,) = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"\[ack: {code}\]"))
    messages.record(code, str(warning.entry.data))
    assert set(store.build_roles) == {"codebuild", "processing"}


def test_the_machine_that_builds_is_chosen_as_by_the_store_itself(world: World) -> None:
    app = world.app()
    owner, other = (cdk.Stack(app, name, env=IRELAND) for name in ("Artifacts", "Search"))
    stores: dict[cdk.Stack, ITritonArtifactStore] = {
        owner: TritonArtifactStore(owner, "Store", export_prefix=NAME),
        other: TritonArtifactStore.from_exports(other, "Store", NAME),
    }
    for stack, store in stores.items():
        TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=world.platform, store=store)
    app.synth()

    plans = [world.plan(app, world.only(stack, DELIVERY)) for stack in stores]
    assert plans[0] == plans[1]
    assert plans[0]["builder"]["kind"] == "codebuild"


def test_no_builder_for_a_gpu_is_an_error_at_synth(messages: Messages, world: World, stack: cdk.Stack) -> None:
    store = TritonArtifactStore.from_exports(stack, "Shared", NAME, builders=[CodeBuildGpuBuilder()])
    with messages.raises(ConfigurationError) as caught:
        TritonModel(
            stack,
            "Model",
            repository=world.repository_with_plan(),
            platform=ServingPlatform(release="25.09", instance_type="ml.g6.xlarge"),
            store=store,
        )
    assert "SageMakerProcessingBuilder()" in str(caught.value)


def test_it_may_be_imported_in_one_stack_and_used_in_another(world: World) -> None:
    app = world.app()
    first, second = cdk.Stack(app, "First"), cdk.Stack(app, "Second")
    store = TritonArtifactStore.from_exports(first, "Store", NAME, has_encryption_key=True)
    TritonMultiModel(second, "Fleet", ensembles={"text": world.repository()}, platform=world.platform, store=store)

    template = world.template(second)
    assert second.dependencies == []
    assert imported(second, world) == {f"{NAME}:{name}" for name in ("EncryptedBucket", "KeyArn", "ServiceToken")}
    assert "Outputs" not in template


@pytest.mark.parametrize(
    "name", ["", "triton/artifacts", "a" * 201, cdk.Aws.STACK_NAME], ids=["none", "slash", "long", "token"]
)
def test_a_name_that_no_export_may_have_is_rejected(messages: Messages, name: str, stack: cdk.Stack) -> None:
    for make in (
        lambda: TritonArtifactStore(stack, "Owner", export_prefix=name),
        lambda: TritonArtifactStore.from_exports(stack, "Store", name),
    ):
        with pytest.raises(ConfigurationError, match="export_prefix") as caught:
            make()
        messages.record("ConfigurationError", re.sub(r"\$\{Token\[.*?\]\}", "<token>", str(caught.value)))


def test_a_store_that_promotes_is_not_shared(messages: Messages, stack: cdk.Stack) -> None:
    bucket = s3.Bucket.from_bucket_name(stack, "Tested", "tested")
    tested = TritonArtifactStore.from_bucket(stack, "TestedStore", bucket)
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", promotes_from=tested, export_prefix=NAME)


@pytest.mark.parametrize("pack", [AwsSolutionsChecks, NIST80053R5Checks])
def test_cdk_nag_finds_nothing_in_what_uses_it(pack: type[Any], world: World, stack: cdk.Stack) -> None:
    store = TritonArtifactStore.from_exports(stack, "Store", NAME, has_encryption_key=True)
    repository = world.repository_with_plan(recipes=[TensorRTPlan("network", onnx=IN_S3)])
    TritonModel(stack, "Model", repository=repository, platform=OWN_IMAGE, store=store)

    report = pack().validate_scope(stack)
    assert [violation.rule_name for violation in report.violations or []] == []


def test_fleets_of_different_apps_never_share_a_prefix(world: World) -> None:
    """Not even with the same path: what tells their stacks apart in CloudFormation tells them apart."""
    names = set()
    for team in ("search", "translation"):
        stack = cdk.Stack(world.app(team), "Models", stack_name=f"{team}-models")
        store = TritonArtifactStore.from_exports(stack, "Store", NAME)
        ensembles = {"text": world.repository()}
        fleet = TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform, store=store)
        names.add(fleet.name_in_store)

    assert len(names) == 2
