"""Stores that take over what a store of another account has built and tested."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_nag import AwsSolutionsChecks

from cdk_triton import CodeBuildGpuBuilder, TritonArtifactStore, TritonModel, TritonMultiModel, add_vpc_endpoints
from cdk_triton.artifacts import artifact_key
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import ImportedArtifactStore

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

TESTED = cdk.Environment(account="111122223333", region="us-east-1")
LIVE = cdk.Environment(account="444455556666", region="eu-west-1")
KEY_ARN = f"arn:aws:kms:us-east-1:{TESTED.account}:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def imported(stack: cdk.Stack, *, key: bool = True) -> ImportedArtifactStore:
    bucket = s3.Bucket.from_bucket_attributes(
        stack,
        "Tested",
        bucket_name="tested-artifacts",
        encryption_key=kms.Key.from_key_arn(stack, "TestedKey", KEY_ARN) if key else None,
    )
    return TritonArtifactStore.from_bucket(stack, "TestedStore", bucket)


@pytest.fixture(name="app")
def _app(world: World) -> cdk.App:
    return world.app()


@pytest.fixture(name="live")
def _live(app: cdk.App) -> cdk.Stack:
    return cdk.Stack(app, "Live", env=LIVE)


@pytest.fixture(name="store")
def _store(live: cdk.Stack) -> TritonArtifactStore:
    return TritonArtifactStore(live, "Store", promotes_from=imported(live))


def allowed(statements: list[dict[str, Any]], flattened: Callable[[Any], str]) -> set[tuple[str, str]]:
    return {
        (action, flattened(resource))
        for statement in statements
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        for resource in (statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]])
    }


@pytest.mark.parametrize("subnets", ["PRIVATE_ISOLATED", "PRIVATE_WITH_EGRESS"])
def test_a_store_without_a_route_to_another_region_is_warned(messages: Messages, live: cdk.Stack, subnets: str) -> None:
    kind = getattr(ec2.SubnetType, subnets)
    nat = int(kind is ec2.SubnetType.PRIVATE_WITH_EGRESS)
    vpc = ec2.Vpc(live, "Vpc", max_azs=2, nat_gateways=nat)
    add_vpc_endpoints(vpc, store_functions=True)
    where = ec2.SubnetSelection(subnet_type=kind)
    TritonArtifactStore(live, "Store", promotes_from=imported(live), vpc=vpc, vpc_subnets=where)

    pattern = Match.string_like_regexp("NoRouteToSourceStore")
    found = [str(each.entry.data) for each in Annotations.from_stack(live).find_warning("*", pattern)]

    assert len(found) == 1 - nat
    for sentence in found:
        messages.record("cdk-triton:NoRouteToSourceStore", sentence)


def test_a_model_is_promoted_without_an_archive_among_the_assets(
    app: cdk.App, world: World, live: cdk.Stack, store: TritonArtifactStore
) -> None:
    repository = world.repository()
    TritonModel(live, "Model", repository=repository, platform=world.platform, store=store)
    app.synth()

    plan = world.plan(app, world.only(live, "Custom::TritonArtifacts"))
    (commit,) = plan["commits"]
    assert commit["asset"] is None
    assert commit["artifact_key"] == artifact_key(repository, world.platform)
    assert list(Path(app.outdir).glob("asset.*.tar.gz")) == []


def test_a_build_is_promoted_under_the_key_that_the_other_store_has_built(
    app: cdk.App, world: World, live: cdk.Stack, store: TritonArtifactStore
) -> None:
    """Of a store that builds and of one that promotes, in other accounts and regions."""
    keys = []
    tested = cdk.Stack(app, "Test", env=TESTED)
    builds = TritonArtifactStore(tested, "Store", builders=[CodeBuildGpuBuilder()])
    for stack, home in ((tested, builds), (live, store)):
        repository = world.repository_with_plan()
        TritonModel(stack, "Model", repository=repository, platform=world.platform, store=home)
    for stack in (tested, live):
        plan = world.plan(app, world.only(stack, "Custom::TritonArtifacts"))
        keys.append([(commit["artifact_key"], commit["archive"], commit["manifest"]) for commit in plan["commits"]])

    assert keys[0] == keys[1]
    assert plan["builder"] is None
    assert plan["commits"][0]["build"] is None
    assert "BuildImage" not in world.only(live, "Custom::TritonArtifacts")["Properties"]


def test_a_fleet_is_promoted_into_a_prefix_of_the_stores_own(
    app: cdk.App, world: World, live: cdk.Stack, store: TritonArtifactStore
) -> None:
    fleet = TritonMultiModel(
        live, "Fleet", ensembles={"text": world.repository()}, platform=world.platform, store=store
    )

    plan = world.plan(app, world.only(live, "Custom::TritonArtifacts"))
    assert [commit["asset"] for commit in plan["commits"]] == [None]
    (copy,) = plan["fleet"]["copies"]
    assert copy["target"].endswith(fleet.target_models["text"])
    url = world.only(live, "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["ModelDataUrl"]
    assert "tested-artifacts" not in json.dumps(url)


def test_nothing_builds_where_everything_is_promoted(live: cdk.Stack, store: TritonArtifactStore, world: World) -> None:
    assert store.build_roles == {}
    assert world.resources(live, "AWS::CodeBuild::Project") == {}


def test_the_handler_may_read_what_the_other_store_has_committed(
    app: cdk.App, live: cdk.Stack, world: World, flattened: Callable[[Any], str]
) -> None:
    before = cdk.Stack(app, "Before", env=LIVE)
    TritonArtifactStore(before, "Store", builders=[])
    TritonArtifactStore(live, "Store", promotes_from=imported(live))
    role = "StoreIsCompleteRole"
    ours, plain = (allowed(world.statements(stack, role), flattened) for stack in (live, before))

    assert ours - plain == {
        ("s3:GetObject", "arn:aws:s3:::tested-artifacts/artifacts/*"),
        ("s3:ListBucket", "arn:aws:s3:::tested-artifacts"),
        ("kms:Decrypt", KEY_ARN),
    }
    assert plain - ours == set()


def test_without_a_key_of_its_own_the_other_bucket_needs_none(live: cdk.Stack, world: World) -> None:
    TritonArtifactStore(live, "Store", promotes_from=imported(live, key=False))

    assert "kms:Decrypt" not in json.dumps(world.policies(live))


def test_only_the_function_that_copies_knows_the_other_bucket(
    live: cdk.Stack, store: TritonArtifactStore, world: World
) -> None:
    functions = world.resources(live, "AWS::Lambda::Function").values()
    found = {
        each["Properties"]["Handler"]: each["Properties"]["Environment"]["Variables"]["PROMOTES_FROM"]
        for each in functions
        if "PROMOTES_FROM" in json.dumps(each)
    }

    assert found == {"artifacts.is_complete": "tested-artifacts"}


def test_a_store_lets_another_account_read_what_is_committed_and_nothing_else(
    world: World, flattened: Callable[[Any], str]
) -> None:
    stack = cdk.Stack(world.app(), "Test", env=TESTED)
    store = TritonArtifactStore(stack, "Store", encryption_key=kms.Key(stack, "Key"))
    grant = store.grant_read(iam.AccountPrincipal(LIVE.account))
    bucket = next(iter(world.resources(stack, "AWS::S3::Bucket")))

    def of_live(kind: str, document: str) -> set[tuple[str, str]]:
        statements = world.only(stack, kind)["Properties"][document]["Statement"]
        theirs = f"arn:aws:iam::{LIVE.account}:root"
        return allowed([s for s in statements if flattened(s["Principal"].get("AWS")) == theirs], flattened)

    assert grant.success
    assert of_live("AWS::S3::BucketPolicy", "PolicyDocument") == {
        ("s3:GetObject", f"<{bucket}.Arn>/artifacts/*"),
        ("s3:ListBucket", f"<{bucket}.Arn>"),
    }
    assert of_live("AWS::KMS::Key", "KeyPolicy") == {("kms:Decrypt", "*")}


def test_a_role_of_the_same_account_reads_by_its_own_policy(world: World, flattened: Callable[[Any], str]) -> None:
    stack = cdk.Stack(world.app(), "Test", env=TESTED)
    store = TritonArtifactStore(stack, "Store")
    role = iam.Role(stack, "Auditor", assumed_by=iam.AccountRootPrincipal())

    assert store.grant_read(role).success
    assert {action for action, _ in allowed(world.statements(stack, "Auditor"), flattened)} == {
        "s3:GetObject",
        "s3:ListBucket",
    }


def test_builders_in_a_store_that_promotes_are_rejected(messages: Messages, live: cdk.Stack) -> None:
    with messages.raises(ConfigurationError):
        TritonArtifactStore(live, "Store", promotes_from=imported(live), builders=[CodeBuildGpuBuilder()])


def test_a_model_is_not_served_from_an_imported_store(messages: Messages, world: World, live: cdk.Stack) -> None:
    store: Any = imported(live)

    with messages.raises(ConfigurationError):
        TritonModel(live, "Model", repository=world.repository(), platform=world.platform, store=store)


def test_cdk_nag_finds_nothing_in_a_store_that_promotes(live: cdk.Stack, store: TritonArtifactStore) -> None:
    report = AwsSolutionsChecks().validate_scope(live)

    rules = [str(violation.rule_name) for violation in report.violations or []]
    assert [rule for rule in rules if not rule.startswith("AwsSolutions-S1")] == []  # there is no log of accesses here
