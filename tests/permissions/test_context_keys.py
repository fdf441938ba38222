"""The condition keys of policies: whether AWS is known to send each, and what its absence would change."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.permissions.demands import decisions_of, demands
from tests.permissions.judging import Decision, Policies, Request, document, judge
from tests.permissions.templates import ACCOUNT, REGION, Templates
from tools.verify.claims import claims

pytestmark = pytest.mark.slow

OTHER = "444455556666"
"""Another account."""


@dataclass(frozen=True)
class Key:
    """A row of context_keys.toml, whose first lines explain the fields."""

    where: str
    name: str
    services: tuple[str, ...] = ()
    documented: str = ""
    claim: str = ""


ROWS = [
    Key(**{**row, "services": tuple(row.get("services", ()))})
    for row in tomllib.loads(Path(__file__).with_name("context_keys.toml").read_text(encoding="utf-8"))["key"]
]


def used(templates: Templates) -> Iterator[tuple[str, str, str]]:
    """Where each condition key is used, its name, and the service that sends it; "" for other principals."""
    policies = [("identity", policy) for role in templates.roles.values() for policy in role.policies]
    policies += [("trust", role.trust) for role in templates.roles.values()]
    policies += [(arn.split(":")[2], policy) for arn, policy in templates.resource_policies.items()]
    for where, policy in policies:
        for statement in policy["Statement"]:
            for keys in statement.get("Condition", {}).values():
                for name in keys:
                    yield where, name, service_of(statement.get("Principal"))


def service_of(principal: str | Mapping[str, Any] | None) -> str:
    return str(principal.get("Service", "")) if isinstance(principal, Mapping) else ""


def test_each_key_is_documented_or_a_claim_that_only_aws_confirms(everything: Templates) -> None:
    assert set(used(everything)) == {
        (row.where, row.name, service) for row in ROWS for service in row.services or ("",)
    }
    assert all(bool(row.documented) != bool(row.claim) for row in ROWS)
    assert {row.claim for row in ROWS if row.claim} <= {each.claim for each in claims()}


def test_without_a_key_that_may_not_be_sent_calls_are_denied(everything: Templates) -> None:
    """So the claims matter; a key whose absence changes nothing needs no claim."""
    calls = [*identities(everything), *trusts(everything)]
    for row in ROWS:
        if row.claim:
            asked = [each for each in calls if concerns(each, row)]
            assert asked, row
            without = [replace(each, request=lacking(each.request, row.name)) for each in asked]
            assert all(verdict.allowed for verdict in judge(asked, ACCOUNT)), row
            assert not any(verdict.allowed for verdict in judge(without, ACCOUNT)), row


def test_each_condition_of_a_trust_policy_refuses_another_account(everything: Templates) -> None:
    asked = [
        replace(each, request=replace(each.request, context={**each.request.context, name: value}))
        for each in trusts(everything)
        for name, value in {
            "aws:SourceAccount": OTHER,
            "aws:SourceArn": f"arn:aws:sagemaker:{REGION}:{OTHER}:any",
        }.items()
        if f'"{name}"' in (each.policies.resource or "")
    ]
    assert asked
    assert [each for each, verdict in zip(asked, judge(asked, ACCOUNT), strict=True) if verdict.allowed] == []


def identities(templates: Templates) -> Iterator[Decision]:
    """What the tables of demands allow."""
    for demand in demands():
        if not demand.denied:
            yield from decisions_of(demand, templates)


def trusts(templates: Templates) -> Iterator[Decision]:
    """That each service may assume its roles."""
    for name, role in templates.roles.items():
        for statement in role.trust["Statement"]:
            service = service_of(statement["Principal"])
            source = f"arn:aws:{service.partition('.')[0]}:{REGION}:{ACCOUNT}:processing-job/any"
            context = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": source}
            request = Request("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/{name}", context)
            yield Decision(service, request, Policies(resource=document(role.trust)), name)


def concerns(decision: Decision, row: Key) -> bool:
    """Whether a condition with the key decides about a call."""
    policies = decision.policies.identity if row.where == "identity" else (decision.policies.resource or "",)
    service = decision.request.action.partition(":")[0].replace("sts", "trust")
    return (
        row.name in decision.request.context
        and any(f'"{row.name}"' in each for each in policies)
        and (row.where in ("identity", service))
        and (not row.services or decision.principal in row.services)
    )


def lacking(request: Request, name: str) -> Request:
    return replace(request, context={key: value for key, value in request.context.items() if key != name})
