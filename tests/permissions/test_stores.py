"""Stores that share files with other stores, accounts and services, whose policies decide together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from tests.permissions.judging import Decision, Policies, Request, document, judge
from tests.permissions.templates import ACCOUNT, REGION, Templates
from tests.security.everything import IRELAND

from cdk_triton import (
    CodeBuildGpuBuilder,
    DataCapture,
    S3File,
    SageMakerProcessingBuilder,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
)

if TYPE_CHECKING:
    from tests.hosting.conftest import World

OLD = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
NEW = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/66666666-7777-8888-9999-000000000000"
OF_S3 = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"

OTHER = "444455556666"


def policy(principal: str, action: str, resource: str, **more: object) -> dict[str, object]:
    """A policy that allows one principal one action."""
    statement = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": action, "Resource": resource, **more}
    return {"Version": "2012-10-17", "Statement": [statement]}


KEY_OF_AN_ACCOUNT = policy(f"arn:aws:iam::{ACCOUNT}:root", "kms:*", "*")
"""The default key policy ("Default key policy" in KMS's developer guide)."""

VIA_S3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com", "kms:CallerAccount": ACCOUNT}

KEY_OF_S3 = policy("*", "kms:Decrypt", "*", Condition={"StringEquals": VIA_S3})
"""AWS's own key for S3: "Allow access through S3 for all principals in the account that are authorized to use
S3", of which reading needs this part."""


@pytest.fixture(name="stack")
def _ireland(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Serving", env=IRELAND)


def allowed(stack: cdk.Stack, role: str, request: Request, resource_policy: dict[str, object] | None = None) -> bool:
    """Whether a role of a stack may do this."""
    found = Templates([Template.from_stack(stack).to_json()]).roles[role]
    policies = Policies(
        tuple(document(policy) for policy in found.policies),
        resource=None if resource_policy is None else document(resource_policy),
    )
    (verdict,) = judge([Decision(f"arn:aws:iam::{ACCOUNT}:role/{role}", request, policies, "")], ACCOUNT)
    assert not verdict.error
    return verdict.allowed


@pytest.mark.slow
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_model_reads_archives_under_a_former_key(world: World, stack: cdk.Stack, is_listed: bool) -> None:
    old, new = (kms.Key.from_key_arn(stack, name, arn) for name, arn in (("Old", OLD), ("New", NEW)))
    store = TritonArtifactStore(stack, "Store", encryption_key=new, former_keys=[old] if is_listed else [])
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)

    assert allowed(stack, "ModelRole", Request("kms:Decrypt", OLD, VIA_S3), KEY_OF_AN_ACCOUNT) == is_listed


@pytest.mark.slow
def test_a_store_promotes_from_another_region_without_a_policy_of_the_bucket(stack: cdk.Stack) -> None:
    tested = s3.Bucket.from_bucket_name(stack, "Tested", "tested-in-virginia")
    origin = TritonArtifactStore.from_bucket(stack, "TestedStore", tested)
    TritonArtifactStore(stack, "Store", promotes_from=origin)

    reads = Request("s3:GetObject", "arn:aws:s3:::tested-in-virginia/artifacts/text/key/model.tar.gz")
    assert allowed(stack, "StoreIsCompleteRole", reads)
    assert not allowed(stack, "StoreIsCompleteRole", Request("s3:PutObject", reads.resource))


@pytest.mark.slow
def test_another_account_reads_the_archives_that_it_may_promote(stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store", encryption_key=kms.Key(stack, "Key"))
    store.grant_read(iam.AccountPrincipal(OTHER))

    templates = Templates([Template.from_stack(stack).to_json()])
    bucket, key = f"arn:aws:s3:::{templates.names['StoreBucket']}", templates.names["KeyArn"]
    everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    requests = {
        Request("s3:GetObject", f"{bucket}/artifacts/text/key/model.tar.gz", owner=ACCOUNT): True,
        Request("s3:ListBucket", bucket, owner=ACCOUNT): True,
        Request("kms:Decrypt", key, VIA_S3, owner=ACCOUNT): True,
        Request("s3:GetObject", f"{bucket}/staging/build/in/plan.json", owner=ACCOUNT): False,
        Request("s3:PutObject", f"{bucket}/artifacts/text/key/model.tar.gz", owner=ACCOUNT): False,
        Request("kms:GenerateDataKey", key, VIA_S3, owner=ACCOUNT): False,
    }
    role = f"arn:aws:iam::{OTHER}:role/their-store"
    decisions = [
        Decision(role, each, Policies((document(everything),), resource=templates.resource_policy(each)), "")
        for each in requests
    ]
    assert [verdict.allowed for verdict in judge(decisions, OTHER)] == [*requests.values()]


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False])
def test_a_store_promotes_from_a_store_with_a_key(stack: cdk.Stack, is_known: bool) -> None:
    """The imported bucket has to name its key: the key policy of the other account alone is not enough."""
    arn = f"arn:aws:kms:{REGION}:{OTHER}:key/11111111-2222-3333-4444-555555555555"
    key = kms.Key.from_key_arn(stack, "TestedKey", arn) if is_known else None
    tested = s3.Bucket.from_bucket_attributes(stack, "Tested", bucket_name="tested", encryption_key=key)
    TritonArtifactStore(stack, "Store", promotes_from=TritonArtifactStore.from_bucket(stack, "TestedStore", tested))

    theirs = policy(f"arn:aws:iam::{ACCOUNT}:root", "kms:Decrypt", "*")
    assert allowed(stack, "StoreIsCompleteRole", Request("kms:Decrypt", arn, VIA_S3, owner=OTHER), theirs) == is_known


@pytest.mark.slow
def test_the_handler_reads_what_is_encrypted_with_the_key_of_s3(stack: cdk.Stack) -> None:
    TritonArtifactStore(stack, "Store")

    role, otherwise = "StoreIsCompleteRole", {"kms:CallerAccount": ACCOUNT}
    assert allowed(stack, role, Request("kms:Decrypt", OF_S3, VIA_S3), KEY_OF_S3)
    assert not allowed(stack, role, Request("kms:Decrypt", OF_S3, otherwise), KEY_OF_S3)


@pytest.mark.slow
@pytest.mark.parametrize("has_permission", [True, False])
def test_a_build_reads_an_encrypted_file_of_another_account_with_both_permissions(
    world: World, stack: cdk.Stack, has_permission: bool
) -> None:
    """As "Allowing users in other accounts to use a KMS key" in KMS's guide: the key policy alone is not enough."""
    key = f"arn:aws:kms:{REGION}:{OTHER}:key/11111111-2222-3333-4444-555555555555"
    store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder()])
    store._builder_for(stack, world.platform, [S3File("weights", "bert.onnx", "0" * 64)])
    if has_permission:
        store.handler_role.add_to_principal_policy(iam.PolicyStatement(actions=["kms:Decrypt"], resources=[key]))
    role = "StoreIsCompleteRole"
    principal, file = f"arn:aws:iam::{ACCOUNT}:role/{role}", "arn:aws:s3:::weights/bert.onnx"
    reads, decrypts = Request("s3:GetObject", file, owner=OTHER), Request("kms:Decrypt", key, VIA_S3, owner=OTHER)

    assert not allowed(stack, role, reads)
    assert allowed(stack, role, reads, policy(principal, "s3:GetObject", file))
    assert allowed(stack, role, decrypts, policy(principal, "kms:Decrypt", "*")) == has_permission


@pytest.mark.slow
def test_a_processing_job_uses_the_key_of_its_builder(stack: cdk.Stack) -> None:
    builder = SageMakerProcessingBuilder(encryption_key=kms.Key.from_key_arn(stack, "New", NEW))
    TritonArtifactStore(stack, "Store", builders=[builder])

    for action in ("kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey"):
        assert allowed(stack, "StoreProcessingRole", Request(action, NEW), KEY_OF_AN_ACCOUNT)
    for is_service in ("true", "false"):
        grants = Request("kms:CreateGrant", NEW, {"kms:GrantIsForAWSResource": is_service})
        assert allowed(stack, "StoreProcessingRole", grants, KEY_OF_AN_ACCOUNT) == (is_service == "true")
    assert allowed(stack, "StoreIsCompleteRole", Request("kms:Decrypt", NEW, VIA_S3), KEY_OF_AN_ACCOUNT)


@pytest.mark.slow
def test_captured_data_is_encrypted_with_the_key_of_an_alias(world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    capture = DataCapture(
        bucket=s3.Bucket.from_bucket_name(stack, "Captured", "captured"),
        sampling_percentage=10,
        encryption_key=kms.Alias.from_alias_name(stack, "Alias", "alias/captured"),
    )
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)

    for alias in ("alias/captured", "alias/other"):
        encrypts = Request("kms:GenerateDataKey", NEW, {"kms:ResourceAliases": (alias,)})
        assert allowed(stack, "ModelRole", encrypts, KEY_OF_AN_ACCOUNT) == (alias == "alias/captured")
