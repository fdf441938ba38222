"""Which calls the handlers make: the list that the policies of the store have to allow, and nothing else.

`calls.json` is read by the tests of the policies. `make generate` rewrites it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.model import OperationModel
from tests.handlers.conftest import Context
from tests.recorded import assert_recorded

from artifacts import endpoint_wait
from artifacts.clients import client
from artifacts.invocation import running
from artifacts.rollback import rolls_back
from build_model import Cloud, Fault, Stack
from build_model.cloud import small_parts
from waiting_account import Account

CALLS = Path(__file__).with_name("calls.json")

ACTIONS = {
    ("cloudformation", "DescribeStackResource"): ["cloudformation:DescribeStackResource"],
    ("cloudformation", "DescribeStacks"): ["cloudformation:DescribeStacks"],
    ("codebuild", "BatchGetBuilds"): ["codebuild:BatchGetBuilds"],
    ("codebuild", "ListBuildsForProject"): ["codebuild:ListBuildsForProject"],
    ("codebuild", "StartBuild"): ["codebuild:StartBuild"],
    ("logs", "DescribeLogStreams"): ["logs:DescribeLogStreams"],
    ("logs", "GetLogEvents"): ["logs:GetLogEvents"],
    ("s3", "CompleteMultipartUpload"): ["s3:PutObject"],
    ("s3", "CreateMultipartUpload"): ["s3:PutObject"],
    ("s3", "GetBucketTagging"): ["s3:GetBucketTagging"],
    ("s3", "GetObject"): ["s3:GetObject", "s3:ListBucket"],  # ListBucket makes a missing object a 404
    ("s3", "HeadObject"): ["s3:GetObject", "s3:ListBucket"],
    ("s3", "ListMultipartUploads"): ["s3:ListBucketMultipartUploads"],
    ("s3", "ListParts"): ["s3:ListMultipartUploadParts"],
    ("s3", "PutObject"): ["s3:PutObject"],
    ("s3", "UploadPartCopy"): ["s3:GetObject", "s3:PutObject"],
    ("sagemaker", "CreateProcessingJob"): [
        "sagemaker:CreateProcessingJob",
        "sagemaker:AddTags",
        "iam:PassRole",
    ],
    ("sagemaker", "DescribeEndpoint"): ["sagemaker:DescribeEndpoint"],
    ("sagemaker", "DescribeProcessingJob"): ["sagemaker:DescribeProcessingJob"],
}
"""What IAM asks for (service authorization reference). An S3File's `version` needs s3:GetObjectVersion as well."""


def calls_of_builds() -> set[tuple[str, str]]:
    """Every call of: builds by both builders, of which one fails, a lost answer, a commit in slices, a fleet."""
    calls = set()
    for plan in (1, 4):
        cloud = Cloud()
        stack = Stack(cloud)
        stack.deploy(cloud.plans[plan])
        assert stack.operation is not None
        event = stack.operation.event
        cloud.codebuild.after_start = cloud.processing.after_start = [ReadTimeoutError(endpoint_url="service")]
        cloud.poll(event)
        cloud.tick(400)
        cloud.poll(event)
        (job,) = cloud.live_jobs()
        cloud.end(job, "FAILED", {"text": "missing"})
        for number in range(30):
            cloud.poll(event, Fault("slow", number))
        cloud.tick(30)
        stack.deploy(cloud.plans[plan])
        cloud.poll(stack.operation.event)
        (job,) = cloud.live_jobs()
        cloud.end(job, "SUCCEEDED", {})
        assert cloud.poll(stack.operation.event).done
        calls |= cloud.calls
    return calls


def calls_of_waits(account: Account) -> set[tuple[str, str]]:
    """Every call of the two waits around an endpoint that is being scaled."""
    calls = set()

    def note(model: OperationModel, **_: object) -> None:
        calls.add((model.service_model.service_name, model.name))

    for service in (endpoint_wait._sagemaker(), endpoint_wait._cloudformation()):
        service.meta.events.register("before-call", note)
    account.becomes("Updating")
    assert not account.may_change()
    assert not account.may_go()
    return calls


def calls_of_rollbacks(account: Account, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The call before a rehearsal: a stack that rolls back does not wait for one."""
    calls = set()

    def note(model: OperationModel, **_: object) -> None:
        calls.add((model.service_model.service_name, model.name))

    monkeypatch.setenv("STORE_BUCKET", "store")
    client("cloudformation", attempts=2, read_seconds=5).meta.events.register("before-call", note)
    with running(Context()) as invocation:
        assert not rolls_back(account.stack, invocation)
    return calls


def test_the_recorded_calls_are_the_listed_ones(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_parts():
        calls = calls_of_builds() | calls_of_waits(account) | calls_of_rollbacks(account, monkeypatch)
    found = [
        {"service": service, "operation": operation, "actions": ACTIONS[service, operation]}
        for service, operation in sorted(calls)
    ]
    assert_recorded(CALLS, lambda _: json.dumps(found, indent=2) + "\n")
    assert {(call["service"], call["operation"]) for call in found} == set(ACTIONS)
