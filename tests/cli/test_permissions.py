"""The permissions that messages about rejected calls name."""

from __future__ import annotations

import re
from pathlib import Path

import botocore.session
import pytest
from botocore.exceptions import ClientError

from cdk_triton.cli.permissions import permission_of

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["cli/artifacts.md", "cli/doctor.md", "cli/fleet.md", "cli/invoke.md", "load_tests.md", "estimate.md"]
SERVICES = (
    *("cloudformation", "cloudwatch", "ecr", "iam", "lambda", "pricing", "s3", "sagemaker", "sagemaker-runtime"),
    *("service-quotas", "ssm", "stepfunctions", "sts"),
)


def rejected(operation: str, reason: str = "Access Denied") -> ClientError:
    return ClientError({"Error": {"Code": "AccessDenied", "Message": reason}}, operation)


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


def test_every_documented_action_is_found_but_those_that_no_call_names() -> None:
    """S3 uses a key for the caller, and undoes deletions with the versions that a list of deletions contains."""
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    documented = set(re.findall(r"`([a-z0-9]+:[A-Z]\w+)`", text))
    session = botocore.session.get_session()
    operations = {name for each in SERVICES for name in session.get_service_model(each).operation_names}
    found = {permission_of(rejected(name)).removeprefix("the permission ") for name in operations}
    assert documented - found == {"kms:Decrypt", "kms:GenerateDataKey", "s3:DeleteObjectVersion"}
