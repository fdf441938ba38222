"""The local AWS leaves moto as others in the process expect it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

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
