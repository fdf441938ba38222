"""What `cdk-triton doctor` says of region, credentials and account."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


PLATFORM = ("--platform", "25.09/ml.g5.2xlarge")
ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
VERSION = "/cdk-bootstrap/hnb659fds/version"


@pytest.mark.slow
def test_the_region_is_the_one_that_the_cdk_command_takes(
    doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    outcome = doctor()
    assert outcome.graded("region") == "ok"
    # The local AWS has a state for each region.
    assert "cdk bootstrap aws://123456789012/eu-west-1" in outcome.said("bootstrap")


@pytest.mark.slow
def test_without_a_region_aws_is_not_asked(
    messages: Messages, doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    aws.rejects("GetCallerIdentity", "Asked", "it was")
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.graded("region") == "error"
    summary = outcome.out.splitlines()[5:]
    assert "bootstrap, service-linked role, Lambda concurrency, image, endpoint quota, build quota" in summary[-1]
    messages.record("cdk-triton doctor", "\n".join(summary))


def test_without_region_and_credentials_both_are_said(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    aws.rejects("GetCallerIdentity", "Asked", "it was")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    outcome = doctor(*PLATFORM)
    assert outcome.status == 1
    assert outcome.graded("region") == "error"
    assert outcome.graded("credentials") == "error"


def test_without_credentials(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("credentials") == "error"


def test_credentials_that_aws_rejects(doctor: Any, aws: Any) -> None:
    aws.rejects("GetCallerIdentity", "ExpiredToken", "The security token included in the request is expired")
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("credentials") == "error"


def test_a_profile_that_does_not_exist(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("credentials") == "error"


def test_a_configuration_that_cannot_be_read(
    doctor: Any, aws: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "config").write_text("region = nowhere\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(here / "config"))
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("credentials") == "error"


def test_a_region_with_a_name_that_none_has(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "US East")
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("region") == "error"


def test_a_local_aws_that_is_down(doctor: Any, aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", lambda _: None)  # between attempts
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("credentials") == "error"


def test_an_account_that_is_not_bootstrapped(doctor: Any, aws: Any) -> None:
    aws.rejects("GetParameter", "ParameterNotFound", "")
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("bootstrap") == "error"


def test_a_bootstrap_that_is_too_old(doctor: Any, aws: Any) -> None:
    aws.answers("GetParameter", {"Parameter": {"Name": VERSION, "Value": "5"}})
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("bootstrap") == "error"


def test_the_bootstrap_is_that_of_the_app(doctor: Any, aws: Any, here: Path) -> None:
    (here / "cdk.json").write_text('{"context": {"@aws-cdk/core:bootstrapQualifier": "corp"}}')
    outcome = doctor()
    assert outcome.graded("bootstrap") == "error"
    assert "/cdk-bootstrap/corp/version" in outcome.said("bootstrap")
    assert "--qualifier corp" in outcome.said("bootstrap")


@pytest.mark.parametrize("text", ["", "[]", '{"context": []}', '{"app": "python app.py"}'])
def test_a_cdk_json_that_says_nothing_of_it(doctor: Any, aws: Any, here: Path, text: str) -> None:
    (here / "cdk.json").write_text(text)
    assert doctor().graded("bootstrap") == "ok"


def test_a_role_that_nothing_has_needed_yet_is_a_warning(doctor: Any, aws: Any) -> None:
    aws.rejects("GetRole", "NoSuchEntity", "")
    outcome = doctor()
    assert outcome.status == 0
    assert outcome.graded("service-linked role") == "warning"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "subject"),
    [
        ("GetParameter", "bootstrap"),
        ("GetRole", "service-linked role"),
        ("BatchGetImage", "image"),
        ("ListServiceQuotas", "endpoint quota"),
    ],
)
def test_what_may_not_be_looked_at_is_unknown_and_no_error(doctor: Any, aws: Any, operation: str, subject: str) -> None:
    aws.rejects(operation, "AccessDeniedException", "you may not")
    outcome = doctor(*PLATFORM)
    assert outcome.status == 0
    assert outcome.graded(subject) == "unknown"


@pytest.mark.parametrize(("executions", "grade"), [(10.0, "warning"), (1000.0, "ok")])
def test_how_many_functions_may_run_at_once(doctor: Any, aws: Any, executions: float, grade: str) -> None:
    quota = {"QuotaName": "Concurrent executions", "QuotaCode": "L-B99A9384", "Value": executions}
    aws.answers("ListServiceQuotas", {"Quotas": [quota]})

    outcome = doctor()

    assert outcome.graded("Lambda concurrency") == grade
