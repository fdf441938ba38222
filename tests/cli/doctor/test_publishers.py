"""What `cdk-triton doctor --app` says of the publishers of an app."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA
from cdk_triton.cli.doctor.publishers import LOG_POLICY, LOG_SUBJECT

SUBJECT = "publishers"


def _template(*counts: int) -> dict[str, Any]:
    """A template with a publisher for each concurrency, and a machine that is not a publisher."""
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {}}
    publishers = {
        f"Publisher{number}": {
            **machine,
            "Metadata": {PUBLISHER_METADATA: {"multi_model": f"Fleet{number}", "max_concurrency": count}},
        }
        for number, count in enumerate(counts)
    }
    return {"Resources": {"Waiter": machine, **publishers}}


@pytest.mark.parametrize(
    ("counts", "quota", "grade"),
    [
        pytest.param([8], 1000, "ok", id="enough"),
        pytest.param([8], 10, "ok", id="enough in a new account"),
        pytest.param([8, 10], 10, "warning", id="one of two takes all"),
        pytest.param([], 1, None, id="none"),
    ],
)
def test_the_concurrency(
    counts: list[int], quota: int, grade: str | None, doctor: Any, aws: Any, assembly: Any
) -> None:
    aws.answers(
        "ListServiceQuotas",
        {"Quotas": [{"QuotaName": "Concurrent executions", "QuotaCode": "L-B99A9384", "Value": float(quota)}]},
    )
    found = doctor("--app", assembly("Serving", _template(*counts), []))
    if grade is None:
        assert SUBJECT not in found.out
    else:
        assert found.graded(SUBJECT) == grade
        assert ("Serving/Fleet1" in found.out) is (len(counts) > 1)


def test_a_region_without_the_quota(doctor: Any, aws: Any, assembly: Any) -> None:
    for operation in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"):
        aws.answers(operation, {"Quotas": []})
    assert doctor("--app", assembly("Serving", _template(8), [])).graded(SUBJECT) == "unknown"


@pytest.mark.parametrize(
    ("names", "grade"),
    [
        pytest.param(["own"], "ok", id="space for one"),
        pytest.param([f"own{number}" for number in range(10)], "error", id="full"),
        pytest.param([*(f"own{number}" for number in range(9)), LOG_POLICY], "ok", id="the policy is there"),
    ],
)
def test_the_policy_by_which_a_publisher_writes_its_log(
    names: list[str], grade: str, doctor: Any, aws: Any, assembly: Any
) -> None:
    aws.answers("DescribeResourcePolicies", {"resourcePolicies": [{"policyName": name} for name in names]})
    found = doctor("--app", assembly("Serving", _template(8), []))
    assert found.graded(LOG_SUBJECT) == grade
