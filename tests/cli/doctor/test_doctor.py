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
def test_an_account_that_is_fit_is_0(messages: Messages, doctor: Any, aws: Any, here: Path) -> None:
    outcome = doctor(*PLATFORM)
    # The local AWS has ten executions of functions, as a new account.
    grades = [line.split()[0] for line in outcome.out.splitlines() if not line.startswith(" ")]
    assert grades == [*["ok"] * 7, "warning", *["ok"] * 3, "11"]
    assert ROLE in outcome.said("service-linked role")
    assert CODEBUILD in outcome.said("build quota")
    messages.record("cdk-triton doctor", outcome.out.replace(str(here.parent), "TMP").rstrip("\n"))
    assert (outcome.status, outcome.err) == (0, "")


@pytest.mark.slow
def test_without_a_platform_its_checks_are_left_out_and_that_is_said(messages: Messages, doctor: Any, aws: Any) -> None:
    outcome = doctor()
    assert outcome.status == 0
    summary = outcome.out.splitlines()[-2:]
    assert "image, endpoint quota, build quota" in summary[-1]
    messages.record("cdk-triton doctor", "\n".join(summary))


@pytest.mark.parametrize(
    "platform",
    [
        pytest.param("25.09", id="no instance type"),
        pytest.param("25.09/ml.g5.3xlarge", id="unknown instance type"),
        pytest.param("99.01/ml.g5.xlarge", id="unknown release"),
        pytest.param("25.05/ml.g5.xlarge", id="a release without an image"),
        pytest.param("25.09/ml.p6e-gb200.36xlarge", id="an instance type without an image"),
    ],
)
def test_a_platform_that_does_not_exist_is_an_unusable_argument(messages: Messages, run: Any, platform: str) -> None:
    outcome = run("doctor", "--platform", platform)
    assert (outcome.status, outcome.out) == (2, "")
    assert "image of your own" not in outcome.said  # the command does not take one
    messages.record("cdk-triton doctor", outcome.said)
