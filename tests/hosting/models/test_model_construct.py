"""`TritonModel`: what a stack with a single-model endpoint's Model says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match
from cdk_nag import AwsSolutionsChecks

from cdk_triton import ContainerEnvironment, ServingPlatform, TritonArtifactStore, TritonModel
from cdk_triton.artifacts import artifact_key
from cdk_triton.errors import ConfigurationError, RepositoryError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

MODEL, ROLE, POLICY = "AWS::SageMaker::Model", "AWS::IAM::Role", "AWS::IAM::Policy"
DELIVERY = "Custom::TritonArtifacts"
NOT_GRANTED = Match.string_like_regexp(r"\[ack: cdk-triton:ImagePullNotGranted\]")


@pytest.fixture(name="stacks")
def _stacks(world: World) -> tuple[TritonArtifactStore, cdk.Stack]:
    app = world.app()
    return TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store"), cdk.Stack(app, "Stack")


def test_the_archives_key_is_in_the_models_url(world: World, stack: cdk.Stack, flattened: Callable[[Any], str]) -> None:
    repository = world.repository("text")
    TritonModel(stack, "Model", repository=repository, platform=world.platform)

    container = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]
    (bucket,) = world.resources(stack, "AWS::S3::Bucket")
    key = artifact_key(repository, world.platform)
    assert flattened(container["ModelDataUrl"]) == f"s3://<{bucket}>/artifacts/text/{key}/model.tar.gz"
    assert container["Mode"] == "SingleModel"
    assert "ModelName" not in world.only(stack, MODEL)["Properties"]


@pytest.mark.parametrize("kind", [str, Path], ids=["text", "path"])
def test_a_directory_and_the_short_form_of_a_platform_are_enough(
    world: World, stack: cdk.Stack, kind: Callable[[Path], str | Path]
) -> None:
    repository = world.repository("text")
    model = TritonModel(stack, "Model", repository=kind(repository.root), platform="25.09/ml.g5.2xlarge")

    assert (model.platform, model.repository.name) == (world.platform, "text")
    url = json.dumps(world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["ModelDataUrl"])
    assert artifact_key(repository, world.platform) in url


def test_a_directory_that_does_not_exist_is_a_sentence(messages: Messages, world: World, stack: cdk.Stack) -> None:
    with messages.raises(RepositoryError):
        TritonModel(stack, "Model", repository="nowhere", platform=world.platform)


def test_the_container_starts_the_ensemble_quietly(world: World, stack: cdk.Stack) -> None:
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)

    assert world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Environment"] == {
        "PYTHONUNBUFFERED": "1",
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_PING_MODE": "ready",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "1048576",
    }


def test_the_container_is_told_the_only_model_beside_a_directory_that_is_none(world: World, stack: cdk.Stack) -> None:
    root = world.repository().root
    for name in ("ensemble", "preprocess"):
        shutil.rmtree(root / name)
    (root / "scripts").mkdir()
    (root / "scripts" / "export.sh").write_text("make\n")
    TritonModel(stack, "Model", repository=ModelRepository.from_directory(root), platform=world.platform)

    variables = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Environment"]
    assert variables["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "network"


def test_the_users_environment_wins(world: World, stack: cdk.Stack) -> None:
    environment = ContainerEnvironment(default_model_name="network", log_verbose=True, variables={"MODE": "x"})
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, environment=environment)

    variables = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Environment"]
    assert variables["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "network"
    assert variables["SAGEMAKER_TRITON_LOG_VERBOSE"] == "true"
    assert variables["MODE"] == "x"


def test_the_model_waits_for_its_archive_and_its_policy(world: World, stack: cdk.Stack) -> None:
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)

    (policy,) = (name for name in world.policies(stack) if name.startswith("ModelPermissions"))
    (delivery,) = world.resources(stack, DELIVERY)
    (role,) = (name for name in world.resources(stack, ROLE) if name.startswith("ModelRole"))
    assert set(world.only(stack, MODEL)["DependsOn"]) == {policy, delivery, role}


def test_the_execution_role_may_do_exactly_this(
    world: World, stacks: tuple[TritonArtifactStore, cdk.Stack], flattened: Callable[[Any], str]
) -> None:
    store, stack = stacks
    TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform, store=store)

    (role,) = world.resources(stack, ROLE).values()
    (trusted,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert (trusted["Action"], trusted["Principal"]) == ("sts:AssumeRole", {"Service": "sagemaker.amazonaws.com"})
    source = flattened(trusted["Condition"]["ArnLike"]["aws:SourceArn"])
    assert source == "arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:*"
    assert "ManagedPolicyArns" not in role["Properties"]
    (policy,) = world.policies(stack).values()
    assert policy["Type"] == "AWS::IAM::ManagedPolicy"
    statements = {
        (
            " ".join(sorted([s["Action"]] if isinstance(s["Action"], str) else s["Action"])),
            flattened(s["Resource"]),
            json.dumps(s.get("Condition")),
        )
        for s in policy["Properties"]["PolicyDocument"]["Statement"]
    }
    imported = "<Artifacts:ExportsOutputFnGetAttStoreBucket4FBDE984Arn1CDEC431>"
    account = "<TritonImages2509.<AWS::Region>.account>"
    assert statements == {
        ("s3:GetObject", f"{imported}/artifacts/text/*", "null"),
        ("s3:ListBucket", imported, '{"StringLike": {"s3:prefix": "artifacts/text/*"}}'),
        (
            "ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:GetDownloadUrlForLayer",
            f"arn:<AWS::Partition>:ecr:<AWS::Region>:{account}:repository/sagemaker-tritonserver",
            "null",
        ),
        ("ecr:GetAuthorizationToken", "*", "null"),
        (
            "logs:CreateLogGroup logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents",
            "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:/aws/sagemaker/Endpoints/*",
            "null",
        ),
        (
            "cloudwatch:PutMetricData",
            "*",
            '{"StringEquals": {"cloudwatch:namespace": ["/aws/sagemaker/Endpoints", "AWS/SageMaker"]}}',
        ),
    }


class TestARoleOfTheUsersOwn:
    @staticmethod
    def role(stack: cdk.Stack) -> iam.Role:
        role = iam.Role(stack, "Mine", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        role.add_to_policy(iam.PolicyStatement(actions=["sns:Publish"], resources=["*"]))
        return role

    def test_gets_the_permissions_before_the_model_exists(self, world: World, stack: cdk.Stack) -> None:
        role = self.role(stack)
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)

        (policy,) = (name for name in world.resources(stack, POLICY) if name.startswith("ModelPolicy"))
        (mine,) = (name for name in world.resources(stack, ROLE) if name.startswith("Mine"))
        assert model.role is role
        assert world.resources(stack, POLICY)[policy]["Properties"]["Roles"] == [{"Ref": mine}]
        assert policy in world.only(stack, MODEL)["DependsOn"]

    def test_is_excused_for_nothing_that_the_user_allows(self, world: World, stack: cdk.Stack) -> None:
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=self.role(stack))

        report = AwsSolutionsChecks().validate_scope(stack)

        found = [(v.rule_name, c.construct_path) for v in report.violations or [] for c in v.violating_resources]
        found = [(rule, path) for rule, path in found if "IAM" in rule]
        assert found == [("AwsSolutions-IAM5[Resource::*]", "Stack/Mine/DefaultPolicy/Resource")]

    def test_that_nobody_may_change_is_left_alone(self, world: World, stack: cdk.Stack) -> None:
        role = self.role(stack).without_policy_updates()
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)

        assert not [name for name in world.resources(stack, POLICY) if name.startswith("ModelPolicy")]
        assert not [name for name in world.only(stack, MODEL)["DependsOn"] if name.startswith("ModelPolicy")]


def test_the_custom_resource_names_the_plan_and_nothing_that_grows(world: World, stack: cdk.Stack) -> None:
    TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform)

    properties = world.only(stack, DELIVERY)["Properties"]
    assert set(properties) == {"ServiceToken", "ServiceTimeout", "PlanBucket", "PlanKey", "PlanSha256"}
    assert properties["ServiceTimeout"] == str(58 * 60)
    assert properties["PlanKey"] == f"triton-plan-{properties['PlanSha256']}.json"


def test_the_plan_commits_the_archive(world: World) -> None:
    app = world.app()
    stack = cdk.Stack(app, "Stack")
    repository = world.repository("text")
    TritonModel(stack, "Model", repository=repository, platform=world.platform)

    key = artifact_key(repository, world.platform)
    assert world.plan(app, world.only(stack, DELIVERY)) == {
        "schema": 2,
        "rehearsals": [],
        "commits": [
            {
                "repository": "text",
                "artifact_key": key,
                "platform": "25.09-a10g",
                "asset": f"triton-{key}.gz",
                "archive": f"artifacts/text/{key}/model.tar.gz",
                "manifest": f"artifacts/text/{key}/manifest.json",
                "build": None,
                "files": None,
                "metadata": {},
            }
        ],
        "fleet": None,
        "builder": None,
    }


def test_another_content_is_another_url_and_plan_and_nothing_else(world: World) -> None:
    def synthesised(name: str, weights: str) -> dict[str, Any]:
        stack = cdk.Stack(world.app(name), "Stack")
        TritonModel(stack, "Model", repository=world.repository(weights=weights), platform=world.platform)
        return {
            f"{k}.{p}": v for k, r in world.template(stack)["Resources"].items() for p, v in r["Properties"].items()
        }

    before, after = synthesised("before", "1"), synthesised("after", "2")

    changed = {name.split(".", 1)[1] for name in before if before[name] != after[name]}
    assert changed == {"PrimaryContainer", "PlanKey", "PlanSha256"}


def test_two_models_in_one_stack_share_its_store_and_image_table(world: World, stack: cdk.Stack) -> None:
    for name in ("First", "Second"):
        TritonModel(stack, name, repository=world.repository(name), platform=world.platform)

    template = world.template(stack)
    assert list(template["Mappings"]) == ["TritonImages2509"]
    assert len(world.resources(stack, MODEL)) == 2
    assert len(world.resources(stack, "AWS::S3::Bucket")) == 1


class TestRegions:
    @staticmethod
    def image(world: World, region: str | None, platform: ServingPlatform) -> Any:
        stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region=region))
        TritonModel(stack, "Model", repository=world.repository(), platform=platform)
        return world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Image"]

    def test_a_known_region_needs_no_mapping(self, world: World) -> None:
        image = self.image(world, "eu-south-1", world.platform)

        assert image == "692866216735.dkr.ecr.eu-south-1.amazonaws.com/sagemaker-tritonserver:25.09-py3"

    def test_china_has_its_own_suffix_and_partition(self, world: World) -> None:
        stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="cn-north-1"))
        platform = ServingPlatform(release="25.04", instance_type="ml.g5.2xlarge")
        TritonModel(stack, "Model", repository=world.repository(), platform=platform)

        image = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Image"]
        assert image == "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-tritonserver:25.04-py3"
        arn = "arn:aws-cn:ecr:cn-north-1:727897471807:repository/sagemaker-tritonserver"
        assert arn in json.dumps(world.policies(stack))

    def test_an_unknown_region_looks_its_account_up_while_it_is_deployed(
        self, world: World, flattened: Callable[[Any], str]
    ) -> None:
        image = flattened(self.image(world, None, world.platform))

        assert image == (
            "<TritonImages2509.<AWS::Region>.account>.dkr.ecr.<AWS::Region>.<AWS::URLSuffix>"
            "/sagemaker-tritonserver:25.09-py3"
        )

    def test_a_region_without_the_image_is_rejected_with_those_that_have_it(
        self, messages: Messages, world: World
    ) -> None:
        with messages.raises(ConfigurationError) as caught:
            self.image(world, "cn-north-1", world.platform)
        assert "eu-west-1" in str(caught.value)


class TestAnImageOfOnesOwn:
    @staticmethod
    def served(world: World, stack: cdk.Stack, registry_and_repository: str) -> str:
        uri = f"{registry_and_repository}@sha256:{'a' * 64}"
        platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge", image=uri)
        TritonModel(stack, "Model", repository=world.repository(), platform=platform)
        return uri

    @staticmethod
    def pull(world: World, stack: cdk.Stack) -> list[Any]:
        statements = world.statements(stack, "ModelRole")
        return [s["Resource"] for s in statements if "ecr:BatchGetImage" in s["Action"]]

    @pytest.mark.parametrize(
        "registry",
        [
            "111122223333.dkr.ecr.eu-west-1.amazonaws.com",
            "111122223333.dkr.ecr-fips.eu-west-1.amazonaws.com",
            "111122223333.dkr-ecr.eu-west-1.on.aws",
            "111122223333.dkr-ecr-fips.eu-west-1.on.aws",
        ],
    )
    def test_is_pulled_from_its_one_repository(
        self, world: World, stack: cdk.Stack, registry: str, flattened: Callable[[Any], str]
    ) -> None:
        uri = self.served(world, stack, f"{registry}/mirror/triton")

        assert world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Image"] == uri
        (arn,) = self.pull(world, stack)
        assert flattened(arn) == "arn:<AWS::Partition>:ecr:eu-west-1:111122223333:repository/mirror/triton"
        assert "Mappings" not in world.template(stack)
        assert not Annotations.from_stack(stack).find_warning("*", NOT_GRANTED)

    def test_is_pulled_from_a_repository_of_the_same_account(
        self, world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
    ) -> None:
        repository = ecr.Repository.from_repository_name(stack, "Mirror", "mirror/triton")
        self.served(world, stack, repository.repository_uri)

        (arn,) = self.pull(world, stack)
        assert flattened(arn) == "arn:<AWS::Partition>:ecr:<AWS::Region>:<AWS::AccountId>:repository/mirror/triton"

    def test_from_elsewhere_is_the_users_to_grant(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        self.served(world, stack, "registry.example.com/triton")

        assert self.pull(world, stack) == []
        (warning,) = Annotations.from_stack(stack).find_warning("*", NOT_GRANTED)
        assert warning.id == "/Stack/Model"
        messages.record("cdk-triton:ImagePullNotGranted", str(warning.entry.data))


def test_a_directory_that_cannot_name_an_object_is_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=world.repository("my models"), platform=world.platform)


def test_the_construct_paths_are_a_contract(world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)

    paths = {node.node.path for node in model.node.find_all()}
    policy = model.node.find_child("Permissions").node.children[0].node.id  # a hash of its content
    assert paths == {
        "Stack/Model",
        "Stack/Model/Artifacts",
        "Stack/Model/Artifacts/Default",
        "Stack/Model/Role",
        "Stack/Model/Permissions",
        f"Stack/Model/Permissions/{policy}",
        f"Stack/Model/Permissions/{policy}/Resource",
        "Stack/Model/Role/Resource",
        "Stack/Model/Resource",
    }
    assert [child.node.id for child in stack.node.children] == ["Model", "TritonImages2509", "TritonArtifacts"]
