"""Images of the user's own: where they are, who may pull them, and whose stack says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk.assertions import Annotations, Match, Template

from cdk_triton import SageMakerProcessingBuilder, ServingPlatform, TritonArtifactStore, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

MODEL, DELIVERY = "AWS::SageMaker::Model", "Custom::TritonArtifacts"
POLICIES = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
DIGEST = f"sha256:{'a' * 64}"


def own(repository: ecr.IRepository) -> ServingPlatform:
    """The platform of an image in a repository."""
    uri = repository.repository_uri_for_digest(DIGEST)
    return ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge", image=uri)


def pulls(world: World, stack: cdk.Stack) -> dict[str, Any]:
    """Logical id of a policy to the resource that it lets pull an image from."""
    return {
        name: statement["Resource"]
        for kind in POLICIES
        for name, policy in world.resources(stack, kind).items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "ecr:BatchGetImage" in statement["Action"]
    }


@pytest.fixture(name="stacks")
def _stacks(world: World) -> tuple[TritonArtifactStore, cdk.Stack]:
    app = world.app()
    builders = [SageMakerProcessingBuilder()]
    return TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store", builders=builders), cdk.Stack(app, "Stack")


class TestARepositoryInTheModelsOwnStack:
    def test_makes_no_cycle_with_the_store_that_builds_in_its_image(
        self, world: World, stacks: tuple[TritonArtifactStore, cdk.Stack]
    ) -> None:
        store, stack = stacks
        repository = ecr.Repository(stack, "Mirror")
        TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=own(repository), store=store)

        template = Template.from_stack(stack)  # CDK says here that stacks depend on each other
        template.resource_count_is(MODEL, 1)
        assert pulls(world, cdk.Stack.of(store)) == {}

    def test_lets_the_role_of_builds_pull_before_anything_is_built(
        self, world: World, stacks: tuple[TritonArtifactStore, cdk.Stack], flattened: Callable[[Any], str]
    ) -> None:
        store, stack = stacks
        repository = ecr.Repository(stack, "Mirror")
        TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=own(repository), store=store)

        (mirror,) = world.resources(stack, "AWS::ECR::Repository")
        found = pulls(world, stack)
        assert len(found) == 2  # of the model's role and of that of builds
        for resource in found.values():
            assert flattened(resource).endswith(f":repository/<{mirror}>")
        (build,) = (name for name in found if name.startswith("ModelBuildImagePull"))
        assert "ProcessingRole" in str(world.template(stack)["Resources"][build]["Properties"]["Roles"])
        assert build in world.only(stack, DELIVERY)["DependsOn"]

    def test_is_pulled_by_its_digest(self, world: World, stack: cdk.Stack, flattened: Callable[[Any], str]) -> None:
        TritonModel(stack, "Model", repository=world.repository(), platform=own(ecr.Repository(stack, "Mirror")))

        (mirror,) = world.resources(stack, "AWS::ECR::Repository")
        image = flattened(world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Image"])
        assert image.endswith(f"/<{mirror}>@{DIGEST}")
        assert "Mappings" not in world.template(stack)
        assert not Annotations.from_stack(stack).find_warning(
            "*", Match.string_like_regexp("cdk-triton:ImagePullNotGranted")
        )


def test_a_repository_of_no_stack_is_the_stores_to_pull_from(
    world: World, stacks: tuple[TritonArtifactStore, cdk.Stack], flattened: Callable[[Any], str]
) -> None:
    store, stack = stacks
    repository = ecr.Repository.from_repository_name(stack, "Mirror", "mirror/triton")
    TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=own(repository), store=store)

    assert not [name for name in pulls(world, stack) if name.startswith("ModelBuild")]
    (resource,) = (flattened(arn) for arn in pulls(world, cdk.Stack.of(store)).values())
    assert resource == "arn:<AWS::Partition>:ecr:<AWS::Region>:<AWS::AccountId>:repository/mirror/triton"


def test_a_repository_in_another_account_is_named_by_its_account(world: World, stack: cdk.Stack) -> None:
    arn = "arn:aws:ecr:eu-west-1:444455556666:repository/mirror/triton"
    repository = ecr.Repository.from_repository_attributes(
        stack, "Mirror", repository_arn=arn, repository_name="mirror/triton"
    )
    TritonModel(stack, "Model", repository=world.repository(), platform=own(repository))

    (resource,) = pulls(world, stack).values()
    assert "444455556666:repository/mirror/triton" in str(resource)


def test_a_pull_that_the_user_grants_comes_before_the_model(world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    ecr.Repository.from_repository_name(stack, "Other", "other").grant_pull(model.role)

    (granted,) = (name for name in pulls(world, stack) if name.startswith("ModelRoleDefaultPolicy"))
    assert granted in world.only(stack, MODEL)["DependsOn"]
