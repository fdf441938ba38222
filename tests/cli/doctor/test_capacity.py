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


def test_an_image_that_is_not_in_the_registry(doctor: Any, aws: Any) -> None:
    failure = {"imageId": {"imageTag": "25.09-py3"}, "failureCode": "ImageNotFound", "failureReason": "no"}
    aws.answers("BatchGetImage", {"images": [], "failures": [failure]})
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.said("image") == (
        "error    image: 763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3 does not exist\n"
        "    use another release or region, or build an image of your own and give the serving platform its digest"
    )


def test_a_registry_without_the_repository(doctor: Any, aws: Any) -> None:
    aws.refuses("BatchGetImage", "RepositoryNotFoundException", "no such repository")
    assert doctor(*PLATFORM).said("image").startswith("error    image: 763104351884")


def test_a_region_without_the_image(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-gov-west-1")
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    found, fix = outcome.said("image").splitlines()
    assert found.startswith("error    image: SageMaker has no image of Triton 25.09 in the region 'us-gov-west-1'")
    assert fix.startswith("    use one of ")


def _listing(values: Mapping[str, float]) -> dict[str, Any]:
    """An answer of Service Quotas."""
    quotas = [{"QuotaName": name, "QuotaCode": "L-12345678", "Value": value} for name, value in values.items()]
    return {"Quotas": quotas}


REQUEST = (
    "which may take days: aws service-quotas request-service-quota-increase --service-code {} --quota-code L-12345678 "
    "--desired-value {} --region us-east-1"
)


def test_no_instance_for_endpoints(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 0.0, CODEBUILD: 1.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.said("endpoint quota") == (
        f"error    endpoint quota: no endpoint may have an ml.g5.2xlarge: the quota '{ENDPOINT}' is 0\n"
        f"    ask for at least 2, {REQUEST.format('sagemaker', 2)}"
    )
    assert outcome.said("build quota") == f"ok       build quota: 1 at a time: {CODEBUILD}"


def test_one_instance_is_too_few_for_an_update(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 1.0, CODEBUILD: 1.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 0
    assert outcome.said("endpoint quota") == (
        f"warning  endpoint quota: the quota '{ENDPOINT}' is 1: enough for the first deployment of one instance, but "
        "an update of the endpoint runs the old and the new one for a while\n"
        f"    ask for at least 2, {REQUEST.format('sagemaker', 2)}"
    )


def test_no_gpu_of_codebuild(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 4.0, CODEBUILD: 0.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.said("build quota") == (
        f"error    build quota: nothing can be built on an NVIDIA A10G: the quota '{CODEBUILD}' of CodeBuild is 0\n"
        f"    ask for at least 1, {REQUEST.format('codebuild', 1)}; a repository without recipes builds nothing; or "
        f"give the store builders=[SageMakerProcessingBuilder()], which has a quota of its own: '{PROCESSING}'"
    )


def test_elsewhere_processing_builds(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "sa-east-1")  # CodeBuild has no GPUs there
    aws.answers("ListServiceQuotas", _listing({ENDPOINT: 4.0, PROCESSING: 0.0}))
    outcome = doctor(*PLATFORM)
    found, fix = outcome.said("build quota").splitlines()
    assert found.endswith(f"the quota '{PROCESSING}' of SageMaker is 0")
    assert fix.endswith("--region sa-east-1; a repository without recipes builds nothing")


def test_another_gpu_is_built_on_by_processing(doctor: Any, aws: Any) -> None:
    outcome = doctor("--platform", "25.09/ml.g6.2xlarge")
    assert outcome.said("build quota") == "ok       build quota: 100 at a time: ml.g6.2xlarge for processing job usage"


def test_a_gpu_that_nobody_builds_on(doctor: Any, aws: Any) -> None:
    outcome = doctor("--platform", "25.09/ml.p4de.24xlarge")
    assert outcome.status == 0
    assert outcome.said("build quota").startswith(
        "warning  build quota: neither CodeBuild nor SageMaker Processing has the NVIDIA A100"
    )


def test_a_quota_that_was_never_changed_has_its_default(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({"another quota": 7.0}))
    aws.answers("ListAWSDefaultServiceQuotas", _listing({ENDPOINT: 3.0, CODEBUILD: 2.0}))
    outcome = doctor(*PLATFORM)
    assert outcome.said("endpoint quota").startswith("ok       endpoint quota: 3 instances")
    assert outcome.said("build quota") == f"ok       build quota: 2 at a time: {CODEBUILD}"


def test_a_quota_without_a_value_is_unknown(doctor: Any, aws: Any) -> None:
    reason = {"ErrorCode": "SERVICE_QUOTA_NOT_AVAILABLE_ERROR", "ErrorMessage": "ask later"}
    listing = {"Quotas": [{"QuotaName": ENDPOINT, "QuotaCode": "L-12345678", "ErrorReason": reason}]}
    aws.answers("ListServiceQuotas", listing)
    aws.answers("ListAWSDefaultServiceQuotas", listing)
    assert doctor(*PLATFORM).said("endpoint quota").startswith("unknown  endpoint quota: Service Quotas lists no")


def test_a_quota_that_no_list_has_is_unknown(doctor: Any, aws: Any) -> None:
    aws.answers("ListServiceQuotas", _listing({}))
    aws.answers("ListAWSDefaultServiceQuotas", _listing({}))
    outcome = doctor(*PLATFORM)
    assert outcome.status == 0
    assert outcome.said("endpoint quota") == (
        f"unknown  endpoint quota: Service Quotas lists no '{ENDPOINT}' in us-east-1\n"
        "    look whether the region offers it at all, and use another region or instance type if it does not"
    )


@pytest.mark.parametrize("instance", ["ml.g4dn.xlarge", "ml.p5.48xlarge"])
def test_the_local_aws_lists_more_quotas_than_one_page_holds(doctor: Any, aws: Any, instance: str) -> None:
    assert len(gpu_instances()) > 50  # two quotas each, and 100 on a page
    assert f"ok       endpoint quota: 100 instances of {instance}" in doctor("--platform", f"25.09/{instance}").out
