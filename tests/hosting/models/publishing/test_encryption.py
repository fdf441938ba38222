"""The key of a publisher's state machine, and who may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match

from cdk_triton import ServingPlatform, TritonArtifactStore, TritonMultiModel, TritonPublisher

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hosting.conftest import World

    from golden_messages import Messages

KEY = {"Fn::GetAtt": ["Key961B73FD", "Arn"]}
NEXT = ServingPlatform(release="26.05", instance_type="ml.g6.xlarge")


def published(
    world: World, stack: cdk.Stack, key: kms.IKey | None, next_platform: ServingPlatform | None = None
) -> TritonPublisher:
    store = TritonArtifactStore(stack, "Store", encryption_key=key)
    model = TritonMultiModel(stack, "Fleet", platform=world.platform, store=store)
    return model.add_publisher(next_platform=next_platform)


def of_key(statements: list[dict[str, Any]], key: Any) -> list[tuple[set[str], Any]]:
    """The actions and conditions of what is allowed on a key."""
    found = [each for each in statements if each["Resource"] == key]
    return [
        ({each["Action"]} if isinstance(each["Action"], str) else set(each["Action"]), each.get("Condition"))
        for each in found
    ]


def encryptions(world: World, stack: cdk.Stack) -> list[Any]:
    """The encryption of each machine of a publisher; the store has a machine too, which waits for its function."""
    machines = world.resources(stack, "AWS::StepFunctions::StateMachine")
    return [each["Properties"]["EncryptionConfiguration"] for name, each in machines.items() if "Publisher" in name]


def test_both_machines_encrypt_with_the_key_of_the_store(world: World, stack: cdk.Stack) -> None:
    published(world, stack, kms.Key(stack, "Key"), NEXT)

    assert encryptions(world, stack) == [{"KmsKeyId": KEY, "Type": "CUSTOMER_MANAGED_KMS_KEY"}] * 2


def test_the_delivery_of_logs_decrypts_what_it_delivers_and_no_more(
    world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
) -> None:
    published(world, stack, kms.Key(stack, "Key"), NEXT)

    statements = world.only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]
    (delivery,) = (each for each in statements if each["Principal"].get("Service") == "delivery.logs.amazonaws.com")
    assert delivery["Action"] == "kms:Decrypt"
    assert flattened(delivery["Condition"]["StringLike"]["kms:EncryptionContext:SourceArn"]) == (
        "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:*"
    )


def test_the_machine_encrypts_and_decrypts_for_objects_executions_and_logs(world: World, stack: cdk.Stack) -> None:
    published(world, stack, kms.Key(stack, "Key"))

    # A condition such as kms:ViaService would make executions fail.
    statements = world.statements(stack, "FleetPublisherStateMachineRole")
    assert of_key(statements, KEY) == [({"kms:Decrypt", "kms:GenerateDataKey"}, None)]


def test_a_caller_reads_the_executions_that_it_starts(world: World, stack: cdk.Stack) -> None:
    role = iam.Role(stack, "Ci", assumed_by=iam.AccountPrincipal("111122223333"))
    published(world, stack, kms.Key(stack, "Key")).grant_publish(role)

    assert of_key(world.statements(stack, "Ci"), KEY) == [({"kms:Decrypt", "kms:GenerateDataKey"}, None)]


def test_a_machine_of_a_store_without_a_key_gets_the_key_of_aws_back(world: World, stack: cdk.Stack) -> None:
    published(world, stack, None)

    assert encryptions(world, stack) == [{"Type": "AWS_OWNED_KEY"}]


@pytest.mark.parametrize("imported", [True, False])
def test_a_key_whose_policy_the_app_cannot_change_is_warned_of(
    messages: Messages, world: World, stack: cdk.Stack, imported: bool
) -> None:
    arn = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    published(world, stack, kms.Key.from_key_arn(stack, "Key", arn) if imported else kms.Key(stack, "Key"))

    pattern = Match.string_like_regexp(r"\[ack: cdk-triton:KeyNotGranted\]")
    found = Annotations.from_stack(stack).find_warning("/Stack/Fleet/Publisher", pattern)
    assert len(found) == imported
    for each in found:
        messages.record("cdk-triton:KeyNotGranted", str(each.entry.data))
