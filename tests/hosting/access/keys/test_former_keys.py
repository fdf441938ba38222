"""Another key of a store: whatever reads archives may still decrypt with the keys that the store had before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from cdk_triton import TritonArtifactStore, TritonModel, TritonMultiModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
OLD, NEW = (f"arn:aws:kms:eu-west-1:111122223333:key/{letter * 8}" for letter in "ab")


def imported(stack: cdk.Stack, arn: str) -> kms.IKey:
    return kms.Key.from_key_arn(stack, f"Key{arn[-1]}", arn)


def own(stack: cdk.Stack, arn: str) -> kms.IKey:
    return kms.Key(stack, f"Key{arn[-1]}")


MakeKey = Callable[[cdk.Stack, str], kms.IKey]


def decrypting(template: dict[str, Any]) -> dict[str, set[str]]:
    """Which keys the roles whose logical ids begin so may decrypt with."""
    found: dict[str, set[str]] = {}
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        for statement in properties.get("PolicyDocument", {}).get("Statement", []):
            actions = statement["Action"]
            if "kms:Decrypt" in ([actions] if isinstance(actions, str) else actions):
                resources = statement["Resource"]
                for role in properties.get("Roles", []):
                    keys = resources if isinstance(resources, list) else [resources]
                    found.setdefault(role["Ref"], set()).update(map(json.dumps, keys))
    return found


@pytest.mark.parametrize("make", [imported, own])
@pytest.mark.parametrize(
    ("current", "former"), [(NEW, [OLD]), (None, [OLD]), (NEW, [])], ids=["A to B", "A to none", "none to A"]
)
def test_all_who_read_archives_may_decrypt_with_former_keys(
    current: str | None, former: Sequence[str], make: MakeKey, world: World
) -> None:
    app = world.app()
    artifacts, serving = (cdk.Stack(app, name, env=IRELAND) for name in ("Artifacts", "Serving"))
    keys = {arn: make(artifacts, arn) for arn in (current, *former) if arn is not None}
    store = TritonArtifactStore(
        artifacts,
        "Store",
        encryption_key=None if current is None else keys[current],
        former_keys=[keys[arn] for arn in former],
    )
    TritonModel(serving, "Model", repository=world.repository(), platform=world.platform, store=store)
    TritonMultiModel(serving, "Fleet", ensembles={"a": world.repository()}, platform=world.platform, store=store)

    readers = decrypting(world.template(artifacts)) | decrypting(world.template(serving))
    roles = {role for role in readers if not role.startswith("StoreWaiterRole")}
    assert {role[: role.index("Role")] for role in roles} == {
        "StoreIsComplete",
        "StoreBuilderCodeBuild"
        if any(role.startswith("StoreBuilderCodeBuild") for role in roles)
        else "StoreCodeBuild",
        "StoreProcessing" if any(role.startswith("StoreProcessing") for role in roles) else "StoreBuilderProcessing",
        "Model",
        "Fleet",
    }
    assert {len(readers[role]) for role in roles} == {len(keys)}


def test_a_former_key_of_the_app_stays_open_to_logs(world: World) -> None:
    stack = cdk.Stack(world.app(), "Artifacts", env=IRELAND)
    old, new = own(stack, OLD), own(stack, NEW)
    TritonArtifactStore(stack, "Store", encryption_key=new, former_keys=[old])

    for key in world.resources(stack, "AWS::KMS::Key").values():
        assert "logs.eu-west-1" in json.dumps(key["Properties"]["KeyPolicy"])


def test_another_key_replaces_the_policies_of_models_and_nothing_else_of_theirs(world: World) -> None:
    def serving(name: str, **options: Any) -> dict[str, str]:
        app = world.app(name)
        artifacts, stack = (cdk.Stack(app, each, env=IRELAND) for each in ("Artifacts", "Serving"))
        keys = {arn: imported(artifacts, arn) for arn in (OLD, NEW)}
        store = TritonArtifactStore(
            artifacts,
            "Store",
            encryption_key=keys[options["key"]],
            former_keys=[keys[arn] for arn in options.get("former", ())],
        )
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
        return {resource["Type"]: id for id, resource in world.template(stack)["Resources"].items()}

    before, after = serving("a", key=OLD), serving("b", key=NEW, former=[OLD])
    assert {kind for kind in before if before[kind] != after[kind]} == {"AWS::IAM::ManagedPolicy"}


def test_a_store_that_promotes_reads_with_former_keys_of_the_other_store(world: World) -> None:
    stack = cdk.Stack(world.app(), "Live", env=IRELAND)
    there = s3.Bucket.from_bucket_attributes(
        stack, "Tested", bucket_name="tested", encryption_key=kms.Key.from_key_arn(stack, "New", NEW)
    )
    old = kms.Key.from_key_arn(stack, "Old", OLD)
    origin = TritonArtifactStore.from_bucket(stack, "TestedStore", there, former_keys=[old])
    TritonArtifactStore(stack, "Store", promotes_from=origin)

    (keys,) = decrypting(world.template(stack)).values()
    assert keys == {json.dumps(OLD), json.dumps(NEW)}


def test_grant_read_covers_former_keys(world: World) -> None:
    stack = cdk.Stack(world.app(), "Test", env=IRELAND)
    store = TritonArtifactStore(stack, "Store", encryption_key=own(stack, NEW), former_keys=[own(stack, OLD)])
    store.grant_read(iam.AccountPrincipal("333333333333"))

    for key in world.resources(stack, "AWS::KMS::Key").values():
        assert "333333333333" in json.dumps(key["Properties"]["KeyPolicy"])


def test_a_shared_store_whose_key_changes_names_its_keys(world: World) -> None:
    stack = cdk.Stack(world.app(), "Search", env=IRELAND)
    keys = [imported(stack, arn) for arn in (NEW, OLD)]
    store = TritonArtifactStore.from_exports(stack, "Store", "triton-artifacts", encryption_keys=keys)
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)

    template = world.template(stack)
    (readable,) = decrypting(template).values()
    assert readable == {json.dumps(OLD), json.dumps(NEW)}
    assert "triton-artifacts:EncryptedBucket" in json.dumps(template)
    assert "triton-artifacts:KeyArn" not in json.dumps(template)  # so that CloudFormation lets the owner change it


def test_a_shared_store_that_gives_its_key_up_keeps_its_export(world: World) -> None:
    stack = cdk.Stack(world.app(), "Artifacts", env=IRELAND)
    TritonArtifactStore(stack, "Store", export_prefix="triton", former_keys=[imported(stack, OLD)])

    names = {output["Export"]["Name"] for output in world.template(stack)["Outputs"].values()}
    assert "triton:EncryptedBucket" in names
    assert not names & {"triton:Bucket", "triton:KeyArn"}


def test_keys_that_contradict_each_other_are_rejected(world: World, messages: Messages) -> None:
    stack = cdk.Stack(world.app(), "Artifacts", env=IRELAND)
    key = imported(stack, OLD)
    far = kms.Key.from_key_arn(stack, "Far", "arn:aws:kms:us-east-1:111122223333:key/cccc")

    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Twice", encryption_key=key, former_keys=[key])
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Elsewhere", former_keys=[far])
    with messages.raises(ConfigurationError):
        TritonArtifactStore.from_exports(stack, "Both", "triton", has_encryption_key=True, encryption_keys=[key])
