"""What `cdk-triton doctor` says of image and quotas of a platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cdk_triton.sagemaker import gpu_instances

PLATFORM = ("--platform", "25.09/ml.g5.2xlarge")
ENDPOINT = "ml.g5.2xlarge for endpoint usage"
PROCESSING = "ml.g5.2xlarge for processing job usage"
CODEBUILD = "Concurrently running builds for Linux GPU Small environment"


@pytest.mark.slow
def test_an_image_that_is_not_in_the_registry(doctor: Any, aws: Any) -> None:
    failure = {"imageId": {"imageTag": "25.09-py3"}, "failureCode": "ImageNotFound", "failureReason": "no"}
    aws.answers("BatchGetImage", {"images": [], "failures": [failure]})
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.graded("image") == "error"


def test_a_registry_without_the_repository(doctor: Any, aws: Any) -> None:
    aws.rejects("BatchGetImage", "RepositoryNotFoundException", "no such repository")
    assert doctor(*PLATFORM).graded("image") == "error"


@pytest.mark.slow
def test_a_region_without_the_image(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-gov-west-1")
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.graded("image") == "error"


def _listing(values: Mapping[str, float]) -> dict[str, Any]:
    """An answer of Service Quotas."""
    quotas = [{"QuotaName": name, "QuotaCode": "L-12345678", "Value": value} for name, value in values.items()]
    return {"Quotas": quotas}


def test_no_instance_for_endpoints(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 0.0, CODEBUILD: 1.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.graded("endpoint quota") == "error"
    assert outcome.graded("build quota") == "ok"


def test_one_instance_is_too_few_for_an_update(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 1.0, CODEBUILD: 1.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 0
    assert outcome.graded("endpoint quota") == "warning"


def test_no_gpu_of_codebuild(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 4.0, CODEBUILD: 0.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.graded("build quota") == "error"


def test_elsewhere_processing_builds(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "sa-east-1")  # CodeBuild has no GPUs there
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 4.0, PROCESSING: 0.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.graded("build quota") == "error"
    assert f"'{PROCESSING}'" in outcome.said("build quota")


def test_another_gpu_is_built_on_by_processing(doctor: Any, aws: Any) -> None:
    outcome = doctor("--platform", "25.09/ml.g6.2xlarge")
    assert outcome.graded("build quota") == "ok"


def test_a_gpu_that_nobody_builds_on(doctor: Any, aws: Any) -> None:
    outcome = doctor("--platform", "25.09/ml.p4de.24xlarge")
    assert outcome.status == 0
    assert outcome.graded("build quota") == "warning"


def test_a_quota_that_was_never_changed_has_its_default(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({"another quota": 7.0}))
    aws.answers("ListAWSDefaultServiceQuotas", _listing({ENDPOINT: 3.0, CODEBUILD: 2.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.graded("endpoint quota") == "ok"
    assert outcome.graded("build quota") == "ok"


def test_a_quota_without_a_value_is_unknown(doctor: Any, aws: Any) -> None:
    reason = {"ErrorCode": "SERVICE_QUOTA_NOT_AVAILABLE_ERROR", "ErrorMessage": "ask later"}
    listing = {"Quotas": [{"QuotaName": ENDPOINT, "QuotaCode": "L-12345678", "ErrorReason": reason}]}
    aws.answers("ListServiceQuotas", listing)
    aws.answers("ListAWSDefaultServiceQuotas", listing)
    assert doctor(*PLATFORM).graded("endpoint quota") == "unknown"


def test_a_quota_that_no_list_has_is_unknown(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({}))
    aws.answers("ListAWSDefaultServiceQuotas", _listing({}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 0
    assert outcome.graded("endpoint quota") == "unknown"


@pytest.mark.parametrize("instance", ["ml.g4dn.xlarge", "ml.p5.48xlarge"])
def test_the_local_aws_lists_more_quotas_than_one_page_holds(doctor: Any, aws: Any, instance: str) -> None:
    assert len(gpu_instances()) > 50  # two quotas each, and 100 on a page
    assert doctor("--platform", f"25.09/{instance}").graded("endpoint quota") == "ok"
