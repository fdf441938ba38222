"""What is recorded of calls on the local AWS, and how the judge decides about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from tests.permissions.account import Account
from tests.permissions.judging import judge
from tests.permissions.recording import Recording

from cdk_triton_local.aws import LocalAws
from cdk_triton_local.process import CLOUDFORMATION, ITSELF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

READS = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::assets/*"}


class Recorded:
    """A local AWS whose calls are recorded."""

    def __init__(self, aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
        self.aws = aws
        self.recording = Recording()
        monkeypatch.setattr(LocalAws, "on_call", lambda aws, call: self.recording.add(call, Account(aws)))

    def role(self, *statements: Mapping[str, object]) -> str:
        """The ARN of a new role with these permissions."""
        iam = self.aws.client("iam")
        arn: str = iam.create_role(RoleName="role", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        iam.put_role_policy(RoleName="role", PolicyName="policy", PolicyDocument=policy)
        return arn

    def verdicts(self) -> dict[str, bool]:
        """Whether each recorded action is allowed."""
        decisions = list(self.recording.decisions.values())
        verdicts = judge(decisions, self.aws.account)
        assert not any(verdict.ignored for verdict in verdicts)
        return {each.request.action: verdict.allowed for each, verdict in zip(decisions, verdicts, strict=True)}


@pytest.fixture(name="recorded")
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    aws = LocalAws(tmp_path, host_factory=lambda _: Mock())
    recorded = Recorded(aws, monkeypatch)
    with aws:
        yield recorded


def test_an_object_that_is_encrypted_with_a_key_needs_the_key(recorded: Recorded) -> None:
    """As the assets in a bootstrap bucket with a key of its own, which the store's handler reads."""
    key = recorded.aws.client("kms").create_key()["KeyMetadata"]["KeyId"]
    s3 = recorded.aws.client("s3")
    s3.create_bucket(Bucket="assets")
    default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    s3.put_bucket_encryption(Bucket="assets", ServerSideEncryptionConfiguration={"Rules": [default]})
    s3.put_object(Bucket="assets", Key="plan.json", Body=b"{}")

    recorded.aws.client("s3", recorded.role(READS)).get_object(Bucket="assets", Key="plan.json")

    assert recorded.verdicts() == {"s3:GetObject": True, "kms:Decrypt": False}


def test_a_bucket_without_a_key_needs_none(recorded: Recorded) -> None:
    recorded.aws.client("s3").create_bucket(Bucket="assets")
    recorded.aws.client("s3").put_object(Bucket="assets", Key="plan.json", Body=b"{}")

    recorded.aws.client("s3", recorded.role(READS)).get_object(Bucket="assets", Key="plan.json")

    assert recorded.verdicts() == {"s3:GetObject": True}


def test_a_service_that_gets_a_role_has_to_be_trusted_by_it(recorded: Recorded) -> None:
    trusted = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [trusted]})
    role = recorded.aws.client("iam").create_role(RoleName="builds", AssumeRolePolicyDocument=trust)["Role"]["Arn"]

    model = {"Image": "image", "ModelDataUrl": "s3://models/model.tar.gz"}
    sagemaker = recorded.aws.client("sagemaker", CLOUDFORMATION)
    sagemaker.create_model(ModelName="model", ExecutionRoleArn=role, PrimaryContainer=model)

    assert recorded.verdicts() == {"sagemaker:CreateModel": True, "iam:PassRole": True, "sts:AssumeRole": False}


def test_a_call_of_cloudformation_needs_the_permissions_of_a_deployment(recorded: Recorded) -> None:
    recorded.aws.client("s3", CLOUDFORMATION).create_bucket(Bucket="store")
    recorded.aws.client("iam", CLOUDFORMATION).create_user(UserName="user")

    assert recorded.verdicts() == {"s3:CreateBucket": True, "iam:CreateUser": False}


def test_a_call_without_a_principal_is_a_fault(recorded: Recorded) -> None:
    recorded.aws.client("iam", ITSELF).list_users()

    assert [*recorded.recording.faults] == [
        "iam:ListUsers has no principal: give the client the principal on whose behalf it is called"
    ]
