"""Who calls what: each call of a service is reported with its principal, its operation and its parameters."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from cdk_triton_local.aws import LocalAws
from cdk_triton_local.process import CALLER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cdk_triton_local.process import Call

FUNCTION = """
import boto3
def handler(event, context):
    boto3.client("s3").put_object(Bucket="objects", Key="a key/ü", Body=b"content", IfNoneMatch="*")
"""


@pytest.fixture(name="calls")
def _calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    found: list[Call] = []
    monkeypatch.setattr(LocalAws, "on_call", lambda _, call: found.append(call))
    return found


@pytest.fixture(name="aws")
def _aws(calls: list[Call], tmp_path: Path) -> Iterator[LocalAws]:
    with LocalAws(tmp_path, host_factory=lambda _: Mock()) as aws:
        yield aws


def roles(aws: LocalAws) -> dict[str, str]:
    iam = aws.client("iam")
    made = (iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}") for name in ("function", "machine"))
    return {each["Role"]["RoleName"]: each["Role"]["Arn"] for each in made}


@pytest.mark.slow
def test_a_function_and_a_state_machine_call_with_their_roles(aws: LocalAws, calls: list[Call]) -> None:
    role, code = roles(aws), io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", FUNCTION)
    settings: Any = {"Runtime": "python3.13", "Handler": "index.handler", "Code": {"ZipFile": code.getvalue()}}
    function = aws.client("lambda").create_function(FunctionName="f", Role=role["function"], **settings)
    aws.client("s3").create_bucket(Bucket="objects")
    definition = {
        "StartAt": "Call",
        "States": {"Call": {"Type": "Task", "Resource": function["FunctionArn"], "End": 1}},
    }
    machine = aws.client("stepfunctions").create_state_machine(
        name="m", definition=json.dumps(definition), roleArn=role["machine"]
    )
    calls.clear()

    aws.client("stepfunctions").start_execution(stateMachineArn=machine["stateMachineArn"], name="e")
    aws.client("s3").get_waiter("object_exists").wait(Bucket="objects", Key="a key/ü")
    aws.client("lambda").invoke(FunctionName="f")

    found = {(call.principal, call.service, call.operation) for call in calls}
    assert {
        ("caller", "stepfunctions", "StartExecution"),
        (role["machine"], "lambda", "Invoke"),
        ("caller", "lambda", "Invoke"),
        (role["function"], "s3", "PutObject"),
    } <= found
    (put, *_) = (call for call in calls if call.operation == "PutObject")
    assert {name: put.parameters[name] for name in ("Bucket", "Key", "IfNoneMatch")} == {
        "Bucket": "objects",
        "Key": "a key/ü",
        "IfNoneMatch": "*",
    }
    assert not put.parameters.get("Body")


def test_a_request_has_the_parameters_of_its_operation(aws: LocalAws, calls: list[Call]) -> None:
    policy = {"Version": "2012-10-17", "Statement": []}
    aws.client("s3").create_bucket(Bucket="objects")
    aws.client("s3").put_bucket_policy(Bucket="objects", Policy=json.dumps(policy))
    aws.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}", Path="/p/")
    aws.client("sns").create_topic(Name="t", Attributes={"KmsMasterKeyId": "key"})

    mine = [each for each in calls if each.principal == CALLER]  # the local AWS itself looks at alarms now and then
    assert [(each.service, each.operation) for each in mine] == [
        ("s3", "CreateBucket"),
        ("s3", "PutBucketPolicy"),
        ("iam", "CreateRole"),
        ("sns", "CreateTopic"),
    ]
    bucket, role, topic = (each.parameters for each in mine[1:])
    assert json.loads(bucket["Policy"]) == policy
    assert (role["RoleName"], role["Path"]) == ("r", "/p/")
    assert topic == {"Name": "t", "Attributes": {"KmsMasterKeyId": "key"}}
