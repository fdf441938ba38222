"""`cdk-triton doctor` as a whole: its report and exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


PLATFORM = ("--platform", "25.09/ml.g5.2xlarge")
CODEBUILD = "Concurrently running builds for Linux GPU Small environment"
ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"


@pytest.mark.slow
def test_an_account_that_is_fit_is_0(doctor: Any, aws: Any, here: Path) -> None:
    outcome = doctor(*PLATFORM)
    programs = here.parent / "bin"
    assert outcome.out.splitlines() == [
        f"ok       Node: v24.19.0 ({programs}/node)",
        f"ok       CDK command: 2.1148.1 (build fcf5e34) ({programs}/cdk)",
        f"ok       disk: 50.0 GB free in {here}",
        "ok       region: us-east-1",
        "ok       credentials: arn:aws:sts::123456789012:user/moto, of the local AWS",
        "ok       bootstrap: version 29 in aws://123456789012/us-east-1",
        f"ok       service-linked role: {ROLE}",
        "ok       image: 763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3",
        "ok       endpoint quota: 100 instances of ml.g5.2xlarge for all endpoints of the region; an update needs "
        "those of its endpoint once more",
        f"ok       build quota: 100 at a time: {CODEBUILD}",
        "10 checks: 10 ok",
    ]
    assert (outcome.status, outcome.err) == (0, "")


@pytest.mark.slow
def test_without_a_platform_its_checks_are_left_out_and_that_is_said(doctor: Any, aws: Any) -> None:
    outcome = doctor()
    assert outcome.status == 0
    assert outcome.out.splitlines()[-2:] == [
        "7 checks: 7 ok",
        "    skipped because no serving platform is given: image, endpoint quota, build quota; add --platform, e.g. "
        "--platform 25.09/ml.g5.xlarge",
    ]


@pytest.mark.parametrize(
    "platform",
    [
        pytest.param("25.09", id="no instance type"),
        pytest.param("25.09/ml.g5.3xlarge", id="unknown instance type"),
        pytest.param("99.01/ml.g5.xlarge", id="unknown release"),
    ],
)
def test_a_platform_that_does_not_exist_is_an_unusable_argument(messages: Messages, run: Any, platform: str) -> None:
    outcome = run("doctor", "--platform", platform)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton doctor", outcome.said)
