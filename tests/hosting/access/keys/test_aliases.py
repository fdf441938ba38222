"""An alias where a key is expected: its key is used, or the condition that KMS looks at, or it is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from cdk_triton import (
    CodeBuildGpuBuilder,
    DataCapture,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
NAMED = "arn:aws:kms:eu-west-1:111122223333:alias/bank"


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Search", env=IRELAND)


def named(stack: cdk.Stack) -> kms.IAlias:
    return kms.Alias.from_alias_name(stack, "Named", "alias/bank")


def of_the_app(stack: cdk.Stack) -> kms.IAlias:
    return kms.Key(stack, "Key").add_alias("alias/own")


def with_a_key(stack: cdk.Stack) -> kms.IAlias:
    key = kms.Key(stack, "Key")
    return kms.Alias.from_alias_attributes(stack, "Attributes", alias_name="alias/own", alias_target_key=key)


def text(world: World, stack: cdk.Stack) -> str:
    return json.dumps(world.template(stack))


@pytest.mark.parametrize("make", [of_the_app, with_a_key])
def test_an_alias_of_the_app_stands_for_its_key(make: Any, world: World, stack: cdk.Stack) -> None:
    alias = make(stack)
    bucket = s3.Bucket(stack, "Captured")
    store = TritonArtifactStore(
        stack, "Store", encryption_key=alias, builders=[CodeBuildGpuBuilder(encryption_key=alias)]
    )
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    capture = DataCapture(bucket=bucket, sampling_percentage=5, encryption_key=alias)
    TritonEndpoint(stack, "Endpoint", model=model, encryption_key=alias, data_capture=capture)

    template = world.template(stack)
    used = json.dumps({id: each for id, each in template["Resources"].items() if each["Type"] != "AWS::KMS::Alias"})
    assert "alias/own" not in used
    assert "kms:ResourceAliases" not in used
    (key,) = world.resources(stack, "AWS::KMS::Key")
    arn = {"Fn::GetAtt": [key, "Arn"]}
    config = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]
    assert config["KmsKeyId"] == config["DataCaptureConfig"]["KmsKeyId"] == arn
    assert world.only(stack, "AWS::CodeBuild::Project")["Properties"]["EncryptionKey"] == arn


def test_capture_is_allowed_by_what_the_cdk_grants_on_an_alias(world: World, stack: cdk.Stack) -> None:
    cdk.Validations.of(stack).add_plugins(AwsSolutionsChecks())
    logs = s3.Bucket.from_bucket_name(stack, "Logs", "access-logs")
    store = TritonArtifactStore(stack, "Store", builders=[], access_logs_bucket=logs)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    bucket = s3.Bucket.from_bucket_name(stack, "Captured", "captured")
    capture = DataCapture(bucket=bucket, sampling_percentage=5, encryption_key=named(stack))
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)

    (policy,) = [each for id, each in world.policies(stack).items() if id.startswith("EndpointDataCapture")]
    assert policy["Properties"]["PolicyDocument"]["Statement"][1] == {
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Resource": "arn:aws:kms:eu-west-1:111122223333:key/*",
        "Condition": {"ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/bank"}},
    }
    config = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]
    assert config["DataCaptureConfig"]["KmsKeyId"] == NAMED


def test_a_bucket_with_an_alias_is_written_to_by_the_same_permission(world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    bucket = s3.Bucket.from_bucket_attributes(stack, "Captured", bucket_name="captured", encryption_key=named(stack))
    TritonEndpoint(stack, "Endpoint", model=model, data_capture=DataCapture(bucket=bucket, sampling_percentage=5))

    assert "kms:ResourceAliases" in text(world, stack)


def test_volumes_take_an_alias(world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=model, encryption_key=named(stack))

    assert world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["KmsKeyId"] == NAMED


def test_what_keeps_or_reads_archives_rejects_the_name_of_an_alias(stack: cdk.Stack, messages: Messages) -> None:
    alias = named(stack)
    bucket = s3.Bucket.from_bucket_attributes(stack, "Tested", bucket_name="tested", encryption_key=alias)
    plain = s3.Bucket.from_bucket_name(stack, "Plain", "plain")

    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", encryption_key=alias)
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Former", former_keys=[alias])
    with messages.raises(ConfigurationError):
        TritonArtifactStore.from_bucket(stack, "OfAnAlias", bucket)
    with messages.raises(ConfigurationError):
        TritonArtifactStore.from_bucket(stack, "OfKeys", plain, former_keys=[alias])
    with messages.raises(ConfigurationError):
        TritonArtifactStore.from_exports(stack, "Shared", "triton", encryption_keys=[alias])
    with messages.raises(ConfigurationError):
        CodeBuildGpuBuilder(encryption_key=alias)
