"""The artifact store with a key and an access log of the user's: who may use the key, and what is encrypted with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from cdk_triton import CodeBuildGpuBuilder, SageMakerProcessingBuilder, TritonArtifactStore, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

KEY = {"Fn::GetAtt": ["Key961B73FD", "Arn"]}


@pytest.fixture(name="key")
def _key(stack: cdk.Stack) -> kms.Key:
    return kms.Key(stack, "Key", enable_key_rotation=True)


def on_the_key(statements: list[dict[str, Any]]) -> set[str]:
    """The actions that are allowed on the key."""
    allowed = [s["Action"] for s in statements if s["Resource"] == KEY]
    return {action for each in allowed for action in ([each] if isinstance(each, str) else each)}


class TestAKey:
    def test_encrypts_the_bucket_with_few_calls(self, world: World, stack: cdk.Stack, key: kms.Key) -> None:
        TritonArtifactStore(stack, "Store", encryption_key=key)

        (rule,) = world.only(stack, "AWS::S3::Bucket")["Properties"]["BucketEncryption"][
            "ServerSideEncryptionConfiguration"
        ]
        assert rule == {
            "BucketKeyEnabled": True,
            "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
        }

    def test_encrypts_every_log_and_what_codebuild_writes(self, world: World, stack: cdk.Stack, key: kms.Key) -> None:
        TritonArtifactStore(stack, "Store", encryption_key=key, builders=[CodeBuildGpuBuilder()])

        groups = world.resources(stack, "AWS::Logs::LogGroup").values()
        assert len(groups) == 2
        assert [group["Properties"]["KmsKeyId"] for group in groups] == [KEY, KEY]
        assert world.only(stack, "AWS::CodeBuild::Project")["Properties"]["EncryptionKey"] == KEY

    def test_of_a_builder_comes_before_that_of_the_store(self, world: World, stack: cdk.Stack, key: kms.Key) -> None:
        other = kms.Key(stack, "Other")
        TritonArtifactStore(stack, "Store", encryption_key=key, builders=[CodeBuildGpuBuilder(encryption_key=other)])

        project = world.only(stack, "AWS::CodeBuild::Project")["Properties"]
        assert project["EncryptionKey"] == stack.resolve(other.key_arn)

    def test_is_used_by_cloudwatch_logs_for_groups_of_this_account_only(
        self, world: World, stack: cdk.Stack, key: kms.Key, flattened: Callable[[Any], str]
    ) -> None:
        TritonArtifactStore(stack, "Store", encryption_key=key)

        statements = world.only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]
        (of_logs,) = (s for s in statements if "Service" in s["Principal"])
        assert flattened(of_logs["Principal"]["Service"]) == "logs.<AWS::Region>.<AWS::URLSuffix>"
        assert flattened(of_logs["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]) == (
            "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:*"
        )

    @pytest.mark.parametrize(
        ("role", "actions"),
        [
            ("StoreIsCompleteRole", {"kms:Decrypt", "kms:GenerateDataKey"}),
            ("StoreCodeBuildRole", {"kms:Decrypt", "kms:GenerateDataKey"}),
            ("StoreProcessingRole", {"kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey"}),
            ("ModelRole", {"kms:Decrypt"}),
            ("StoreProvideRole", set()),
        ],
    )
    def test_may_be_used_by_who_reads_or_writes_the_bucket(
        self, world: World, stack: cdk.Stack, key: kms.Key, role: str, actions: set[str]
    ) -> None:
        store = TritonArtifactStore(
            stack, "Store", encryption_key=key, builders=[CodeBuildGpuBuilder(), SageMakerProcessingBuilder()]
        )
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)

        assert on_the_key(world.statements(stack, role)) == actions

    def test_of_another_stack_is_used_by_its_arn(self, world: World) -> None:
        app = world.app()
        key = kms.Key(cdk.Stack(app, "Keys"), "Key")
        store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store", encryption_key=key)
        stack = cdk.Stack(app, "Stack")
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
        app.synth()

        (of_key,) = (s for s in world.statements(stack, "ModelRole") if s["Action"] == "kms:Decrypt")
        assert "Keys:ExportsOutputFnGetAttKey" in json.dumps(of_key["Resource"])


class TestAnAccessLog:
    def test_goes_below_the_path_of_the_store(self, world: World, stack: cdk.Stack) -> None:
        access_logs = s3.Bucket.from_bucket_name(stack, "AccessLogs", "access-logs")
        TritonArtifactStore(stack, "Store", access_logs_bucket=access_logs)

        assert world.only(stack, "AWS::S3::Bucket")["Properties"]["LoggingConfiguration"] == {
            "DestinationBucketName": "access-logs",
            "LogFilePrefix": "Stack/Store/",
        }

    def test_is_not_kept_unless_asked_for(self, world: World, stack: cdk.Stack) -> None:
        TritonArtifactStore(stack, "Store")

        assert "LoggingConfiguration" not in world.only(stack, "AWS::S3::Bucket")["Properties"]

    def test_may_be_kept_in_a_bucket_of_another_stack(self, world: World) -> None:
        app = world.app()
        access_logs = s3.Bucket(cdk.Stack(app, "Logs"), "AccessLogs")
        TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store", access_logs_bucket=access_logs)

        assert app.synth().get_stack_by_name("Artifacts").dependencies
