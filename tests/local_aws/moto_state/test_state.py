"""moto's state: stacks that are deployed at once share it, and others in the process find it as they expect it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from cdk_triton_local import Clock
from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local_aws.conftest import EndpointDouble


def test_moto_loads_the_policies_of_aws_only_for_a_local_aws(
    tmp_path: Path, endpoint_double: EndpointDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalAws(tmp_path, host_factory=lambda _: endpoint_double) as aws:
        assert aws.client("iam").list_policies(Scope="AWS")["Policies"]

    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        assert boto3.client("iam").list_policies(Scope="AWS")["Policies"] == []


@pytest.fixture
def _many_switches() -> Iterator[None]:
    """Let threads of Python interrupt each other as often as on a busy machine."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_many_switches")
def test_policies_of_several_stacks_come_and_go_at_once(tmp_path: Path, endpoint_double: EndpointDouble) -> None:
    allowed = json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    )

    def replace_policies(iam: Any, stack: str) -> None:
        iam.create_role(RoleName=stack, AssumeRolePolicyDocument=allowed)
        for number in range(10):
            arn = iam.create_policy(PolicyName=f"{stack}{number}", PolicyDocument=allowed)["Policy"]["Arn"]
            iam.attach_role_policy(RoleName=stack, PolicyArn=arn)
            iam.detach_role_policy(RoleName=stack, PolicyArn=arn)
            iam.delete_policy(PolicyArn=arn)

    with LocalAws(tmp_path, host_factory=lambda _: endpoint_double) as aws, ThreadPoolExecutor() as stacks:
        iam = aws.client("iam")
        list(stacks.map(replace_policies, [iam] * 3, ("Search", "Payments", "Speech")))
        assert iam.list_policies(Scope="Local")["Policies"] == []


@pytest.mark.slow
def test_a_metric_is_forgotten_after_a_day(tmp_path: Path, endpoint_double: EndpointDouble) -> None:
    clock = Clock(only_moved=True)
    with LocalAws(tmp_path, host_factory=lambda _: endpoint_double, clock=clock) as aws:
        cloudwatch, now = aws.client("cloudwatch"), datetime.fromtimestamp(clock.now, UTC)
        for hours in (25, 23):
            datum: Any = {"MetricName": "m", "Value": hours, "Timestamp": now - timedelta(hours=hours)}
            cloudwatch.put_metric_data(Namespace="Test", MetricData=[datum])

        clock.advance(10)

        found = cloudwatch.get_metric_statistics(
            Namespace="Test",
            MetricName="m",
            StartTime=now - timedelta(days=3),
            EndTime=now,
            Period=60,
            Statistics=["Sum"],
        )
    assert [each["Sum"] for each in found["Datapoints"]] == [23]
