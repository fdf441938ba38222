"""The permissions that messages about rejected calls name."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.aws import sentences
from cdk_triton.cli.doctor.account import rejected_call
from cdk_triton.cli.permissions import _ACTIONS, fix_of, permission_of
from cdk_triton.errors import StoreError

RENAMED = {
    "CompleteMultipartUpload": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "DeleteObjects": "s3:DeleteObject",
    "Invoke": "lambda:InvokeFunction",
    "ListObjectsV2": "s3:ListBucket",
    "UploadPart": "s3:PutObject",
}
"""The operations whose action has another name (Service Authorization Reference: the actions of S3 and Lambda)."""


def rejected(operation: str, reason: str = "Access Denied", code: str = "AccessDenied") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": reason}}, operation)


@pytest.mark.parametrize(
    ("operation", "reason", "permission"),
    [
        pytest.param("GetParameter", "Access Denied", "the permission ssm:GetParameter", id="of the operation"),
        pytest.param("ListObjectsV2", "Access Denied", "the permission s3:ListBucket", id="of another name"),
        pytest.param(
            "GetObject",
            "User: arn:aws:iam::1:user/x is not authorized to perform: kms:Decrypt on resource: key because …",
            "the permission kms:Decrypt",
            id="in the reason",
        ),
        pytest.param("TagUser", "Access Denied", "the permission for TagUser", id="of an operation not in the table"),
    ],
)
def test_the_permission(operation: str, reason: str, permission: str) -> None:
    assert permission_of(rejected(operation, reason)) == permission


def test_the_actions_of_another_name() -> None:
    assert {name: action for name, action in _ACTIONS.items() if action.partition(":")[2] != name} == RENAMED


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        *((code, "get the permission sts:GetCallerIdentity") for code in ("AccessDenied", "AccessDeniedException")),
        *((code, "sign in ") for code in ("InvalidClientTokenId", "InvalidAccessKeyId", "ExpiredTokenException")),
        ("RequestTimeTooSkewed", "set the clock of this machine"),
    ],
)
def test_the_fix_is_that_of_the_code(code: str, fix: str) -> None:
    found = fix_of(rejected("GetCallerIdentity", code=code))
    assert found is not None
    assert found.startswith(fix)


def test_the_commands_and_doctor_name_the_fix() -> None:
    error = rejected("GetCallerIdentity", "The security token is invalid", "InvalidClientTokenId")
    fix = fix_of(error)
    assert rejected_call("quota", error).fix == fix
    with pytest.raises(StoreError, match="rejected GetCallerIdentity") as found, sentences():
        raise error
    assert str(found.value).endswith(f": The security token is invalid; {fix}")


def test_doctor_names_no_permission_for_a_throttled_call() -> None:
    error = rejected("ListServiceQuotas", "Rate exceeded", "ThrottlingException")
    assert rejected_call("quota", error).fix == "run the command again in a few minutes"


@pytest.mark.parametrize("code", ["ThrottlingException", "InvalidObjectState", "NoSuchBucket"])
def test_other_codes_are_no_fault_of_the_caller(code: str) -> None:
    assert fix_of(rejected("GetObject", code=code)) is None


def test_a_rejected_head_request_may_be_for_a_missing_object() -> None:
    fix = fix_of(rejected("HeadObject", "Forbidden", "403"))
    assert fix is not None
    assert "s3:GetObject" in fix
    assert "s3:ListBucket" in fix
