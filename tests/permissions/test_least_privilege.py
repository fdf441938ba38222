"""The policies of every role allow what AWS or this project demands of them, and nothing else.

`demands.toml` has the demands, and a judge that nobody here wrote decides (`judge/README.md`).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple

import pytest
from tests.hosting.conftest import ROOT
from tests.permissions.bootstrap import of_the_bootstrap
from tests.permissions.demands import decisions_of, demands
from tests.permissions.judging import Decision, Document, Verdict, document, judge
from tests.permissions.pages import actions_in
from tests.permissions.report import report
from tests.permissions.templates import ACCOUNT, Templates

HANDLER = "tests/handlers/calls.json"


class Judged(NamedTuple):
    """The requests of the table that get the wrong answer, and the parts of policies that no request needs."""

    unmet: list[str]
    needless: list[str]


def judged(templates: Templates) -> Judged:
    """Judge the policies by the table, then each part of a policy by the requests that need it."""
    wanted = [(demand.denied, decision) for demand in demands() for decision in decisions_of(demand, templates)]
    verdicts = judge([decision for _, decision in wanted], ACCOUNT)
    unmet = [
        f"{decision}{f': {verdict.error}' if verdict.error else ''}"
        for (denied, decision), verdict in zip(wanted, verdicts, strict=True)
        if verdict.allowed == denied or verdict.error or verdict.ignored
    ]
    decisive = _decisive(wanted, verdicts)
    needless = [
        f"{name}: {part} of {json.dumps(statement)}"
        for name, role in templates.roles.items()
        for policy in role.policies
        for number, statement in enumerate(policy["Statement"])
        if statement["Effect"] == "Allow"
        for part in (*several(statement["Action"]), *several(statement["Resource"]))
        if (name, document(policy), number, part) not in decisive
    ]
    return Judged(unmet, needless + _without_effect(templates, wanted))


def _decisive(wanted: list[tuple[bool, Decision]], verdicts: list[Verdict]) -> set[tuple[str, str, int, str]]:
    """The actions and resources without which a request is denied.

    These are the action and the resource of the only statement that allows a request, if only they match.
    """
    found = set()
    for (_, decision), verdict in zip(wanted, verdicts, strict=True):
        if len(verdict.grants) == 1:
            (grant,) = verdict.grants
            place = (decision.principal.rpartition("/")[2], grant.policy, grant.statement)
            found |= {(*place, *parts) for parts in (grant.actions, grant.resources) if len(parts) == 1}
    return found


def _without_effect(templates: Templates, wanted: list[tuple[bool, Decision]]) -> list[str]:
    """The conditions, their values, and the denied actions that can be taken away while every answer stays the same."""
    changed: list[tuple[str, list[tuple[bool, Decision]]]] = []
    for name, role in templates.roles.items():
        mine = [each for each in wanted if each[1].principal.endswith(f"/{name}")]
        for policy in role.policies:
            for part, actions, other in _taken_away(policy):
                identity = tuple(document(other if each is policy else each) for each in role.policies)
                asked = [
                    (denied, replace(each, policies=replace(each.policies, identity=identity)))
                    for denied, each in mine
                    if each.request.action in actions
                ]
                changed.append((f"{name}: {part}", asked))
    verdicts = iter(judge([decision for _, asked in changed for _, decision in asked], ACCOUNT))
    answers = [(part, asked, list(islice(verdicts, len(asked)))) for part, asked in changed]
    return [
        part
        for part, asked, given in answers
        if all(verdict.allowed != denied for (denied, _), verdict in zip(asked, given, strict=True))
    ]


def _taken_away(policy: dict[str, Any]) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """The policy without each of its denied actions, each condition, and each of several values of one.

    A condition without which a statement allows more needs a request that it denies.
    """
    for number, statement in enumerate(policy["Statement"]):
        places = [["Action"]] if statement["Effect"] == "Deny" else []
        conditions = statement.get("Condition", {})
        places += [["Condition", operator, key] for operator, keys in conditions.items() for key in keys]
        for *outer, last in places:
            values = reduce(lambda part, key: part[key], outer, statement)[last]
            parts = values if isinstance(values, list) else []
            for value in [*parts, *([None] if outer else [])]:
                copied = copy.deepcopy(policy)
                holder = reduce(lambda part, key: part[key], outer, copied["Statement"][number])
                if value is None:
                    del holder[last]
                else:
                    holder[last].remove(value)
                yield f"{value or last} of {json.dumps(statement)}", several(statement["Action"]), copied


def several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_the_handler_needs_what_its_calls_need() -> None:
    recorded = json.loads((ROOT / HANDLER).read_text(encoding="utf-8"))

    demanded = {action for demand in demands() if demand.made_by == HANDLER for action in demand.actions}
    assert demanded == {action for call in recorded for action in call["actions"]}


def test_a_publisher_needs_what_the_commands_of_a_fleet_call() -> None:
    called = actions_in("fleet")

    rows = [demand for demand in demands() if re.fullmatch(demand.roles, "PublishesAll") and not demand.denied]
    demanded = {action for demand in rows for action in demand.actions}
    assert demanded - called == {
        "kms:Decrypt",  # by S3 and Step Functions, for the caller
        "kms:GenerateDataKey",
        "s3:AbortMultipartUpload",  # by an upload in parts
    }
    assert called <= demanded


@pytest.fixture(name="result", scope="module")
def _result(everything: Templates) -> Judged:
    return judged(everything)


@pytest.mark.slow
def test_the_roles_may_do_what_is_demanded(result: Judged) -> None:
    assert result.unmet == []


def test_the_roles_may_do_nothing_else(result: Judged) -> None:
    assert result.needless == []


@pytest.mark.slow
def test_the_report_for_reviewers_explains_every_statement(everything: Templates) -> None:
    lines, unexplained = report(everything)

    assert unexplained == 0
    assert "## StoreIsCompleteRole" in lines


def statement_of(templates: Templates, role: str, action: str) -> dict[str, Any]:
    """The first statement of a role with an action."""
    policies = templates.roles[role].policies
    found: dict[str, Any] = next(
        each for policy in policies for each in policy["Statement"] if action in several(each["Action"])
    )
    return found


def scoped_network(templates: Templates) -> None:
    """The guide forbids resources in the policy of a Processing job in a VPC."""
    statement = statement_of(templates, "StoreProcessingRole", "ec2:CreateNetworkInterface")
    statement["Resource"] = "arn:aws:ec2:eu-west-1:111122223333:network-interface/eni-1"


def no_encryption(templates: Templates) -> None:
    """The guide demands this of a Processing job whose output has a key."""
    statement_of(templates, "StoreProcessingRole", "kms:Encrypt")["Action"].remove("kms:Encrypt")


def other_executions(templates: Templates) -> None:
    """The guide to distributed maps has another form of these ARNs."""
    statement = statement_of(templates, "FleetPublisherStateMachineRole", "states:RedriveExecution")
    statement["Resource"] = [each for each in statement["Resource"] if each.endswith("/*")]


def grants_of_the_key(templates: Templates) -> None:
    """With this permission, the code of a build could let anybody use the key."""
    statement_of(templates, "StoreProcessingRole", "kms:Encrypt")["Action"].append("kms:CreateGrant")


def directory_of_everybody(templates: Templates) -> None:
    """With this permission, a caller could publish what another caller has uploaded, in the name of the other one."""
    statement = statement_of(templates, "Publishes", "s3:PutObject")
    statement["Resource"] = statement["Resource"].replace("${aws:userid}", "*")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "unmet", "needless"),
    [
        (scoped_network, "ec2:CreateNetworkInterface", "network-interface/eni-1"),
        (no_encryption, "kms:Encrypt", None),
        (other_executions, "states:RedriveExecution", None),
        (grants_of_the_key, None, "kms:CreateGrant"),
        (directory_of_everybody, "AROAEXAMPLE:bob", None),
    ],
)
def test_a_fault_of_a_policy_is_found(
    everything: Templates, change: Callable[[Templates], None], unmet: str | None, needless: str | None
) -> None:
    changed = copy.deepcopy(everything)
    change(changed)

    found = judged(changed)
    for sentences, part in zip(found, (unmet, needless), strict=True):
        assert any(part in each for each in sentences) if part else sentences == []


@pytest.fixture(name="needed", scope="module")
def _needed(everything: Templates) -> list[Decision]:
    """What the roles of the constructs need, and neither callers nor services."""
    rows = [each for each in demands() if not each.denied and not each.service and not each.is_of_callers]
    return [decision for row in rows for decision in decisions_of(row, everything)]


def denied_by(boundary: Document, needed: list[Decision]) -> list[Decision]:
    """What a permissions boundary denies."""
    asked = [replace(each, policies=replace(each.policies, boundary=boundary)) for each in needed]
    return [each for each, verdict in zip(asked, judge(asked, ACCOUNT), strict=True) if not verdict.allowed]


@pytest.mark.slow
def test_the_boundary_of_the_bootstrap_denies_the_roles_nothing(needed: list[Decision]) -> None:
    assert denied_by(of_the_bootstrap(), needed) == []


@pytest.mark.slow
def test_a_boundary_has_to_allow_the_services_of_the_page(needed: list[Decision]) -> None:
    page = (ROOT / "docs" / "platform_teams.md").read_text(encoding="utf-8").partition("### A permissions boundary")[2]
    services = set(re.findall(r"`([a-z0-9]+)`", page.partition("The roles use")[0]))

    allow = {"Effect": "Allow", "Action": [f"{each}:*" for each in sorted(services)], "Resource": "*"}
    assert denied_by(document({"Version": "2012-10-17", "Statement": [allow]}), needed) == []
    assert services == {each.request.action.partition(":")[0] for each in needed}
    assert {each.request.action for each in needed if each.request.action.startswith("iam:")} == {"iam:PassRole"}
