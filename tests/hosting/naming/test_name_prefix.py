"""Names in IAM: with a prefix, or by an aspect of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from cdk_triton import NamePrefix, TritonArtifactStore, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
ROLE, POLICY = "AWS::IAM::Role", "AWS::IAM::ManagedPolicy"


@jsii.implements(cdk.IAspect)
class UniqueNames:
    """Names policies as the CDK proposes it to authors of aspects."""

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, iam.CfnManagedPolicy):
            node.managed_policy_name = cdk.Names.unique_resource_name(node, max_length=100)


def named(world: World, directory: str, aspect: cdk.IAspect, repository: str = "text", **env: Any) -> cdk.Stack:
    stack = cdk.Stack(world.app(directory), "Search", env=cdk.Environment(**env) if env else IRELAND)
    store = TritonArtifactStore(stack, "Store", builders=[])
    TritonModel(stack, "Model", repository=world.repository(repository), platform=world.platform, store=store)
    iam.Role(stack, "Mine", role_name="mine", assumed_by=iam.AccountRootPrincipal())
    cdk.Aspects.of(stack).add(aspect)
    return stack


def names(world: World, stack: cdk.Stack, kind: str) -> set[str]:
    name = {ROLE: "RoleName", POLICY: "ManagedPolicyName"}[kind]
    return {str(each["Properties"].get(name)) for each in world.resources(stack, kind).values()}


def test_every_role_and_policy_begins_with_the_prefix_and_fits(world: World) -> None:
    stack = named(world, "out", NamePrefix("bank-"))
    roles, policies = names(world, stack, ROLE), names(world, stack, POLICY)

    assert {name for name in roles | policies if not name.startswith("bank-")} == {"mine"}
    assert max(map(len, roles)) <= 64
    assert max(map(len, policies)) <= 128
    assert len(roles) == len(world.resources(stack, ROLE))
    assert len(policies) == len(world.resources(stack, POLICY))


def test_names_are_the_same_at_each_synthesis_and_differ_by_region(world: World) -> None:
    first, again = (named(world, name, NamePrefix("bank-")) for name in ("first", "again"))
    elsewhere = named(world, "elsewhere", NamePrefix("bank-"), account="111122223333", region="us-east-1")

    assert names(world, first, POLICY) == names(world, again, POLICY)
    assert not names(world, first, POLICY) & names(world, elsewhere, POLICY)


@pytest.mark.parametrize("aspect", [NamePrefix("bank-"), UniqueNames()], ids=["prefix", "unique names"])
def test_a_policy_that_is_replaced_has_another_name(aspect: cdk.IAspect, world: World) -> None:
    before, after = named(world, "before", aspect, "text"), named(world, "after", aspect, "sentences")

    gone = names(world, before, POLICY) - names(world, after, POLICY)
    assert len(gone) == 1  # that of the model


def test_without_an_aspect_nothing_has_a_name(world: World) -> None:
    stack = cdk.Stack(world.app(), "Search", env=IRELAND)
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    assert names(world, stack, ROLE) == names(world, stack, POLICY) == {"None"}


@pytest.mark.parametrize("prefix", ["", "with space", "x" * 21])
def test_what_cannot_begin_a_name_is_rejected(prefix: str, messages: Messages) -> None:
    with messages.raises(ConfigurationError):
        NamePrefix(prefix)


def test_logical_ids_stay_as_they_are_but_for_replaced_policies(world: World) -> None:
    """Logical ids are a contract: another one would replace or orphan what is deployed."""
    app = world.app()
    stack = cdk.Stack(app, "Search", env=IRELAND)
    store = TritonArtifactStore(stack, "Store", builders=[])
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)

    template = world.template(stack)["Resources"]
    replaced = {id for id, each in template.items() if each["Type"] == POLICY and id.startswith("Model")}
    assert len(replaced) == 1
    assert set(template) - replaced == IDS


IDS = {
    "Model0301700E",
    "ModelArtifacts03E077CE7dc52b5",
    "ModelRole3E65CE92",
    "StoreBucket4FBDE984",
    "StoreBucketPolicy972662E6",
    "StoreIsComplete2988A74C",
    "StoreIsCompleteRoleF2649CE4",
    "StoreIsCompleteRolePermissions74045C5C",
    "StoreLogs6BDA8041",
    "StoreProvideE0239BB7",
    "StoreProvideRoleF5162DD1",
    "StoreProvideRolePermissionsFB7904DA",
    "StoreWaiter95A7338C",
    "StoreWaiterRole0F674996",
    "StoreWaiterRolePermissions43653F84",
}
