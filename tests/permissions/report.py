"""Prints who gets each role of the constructs, what it may do, and what needs it: `python -m tests.permissions.report`.

The roles are those of `tests/security/everything.py`. The reasons are the rows of demands.toml whose requests a
statement allows, as the judge decides. The policies of resources follow.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk.assertions import Template
from tests.hosting.conftest import World
from tests.permissions.demands import decisions_of, demands
from tests.permissions.judging import document, judge
from tests.permissions.templates import ACCOUNT, Templates
from tests.security.everything import add_everything

__all__ = ["report"]


def report(templates: Templates) -> tuple[list[str], int]:
    """The lines of the report in Markdown, and the number of statements that nothing needs."""
    rows = [each for each in demands() if not each.denied and not each.service and not each.is_of_callers]
    asked = [decision for row in rows for decision in decisions_of(row, templates)]
    reasons: dict[tuple[str, str, int], dict[str, None]] = defaultdict(dict)
    for decision, verdict in zip(asked, judge(asked, ACCOUNT), strict=True):
        for grant in verdict.grants:
            reasons[decision.principal.rpartition("/")[2], grant.policy, grant.statement][decision.reason] = None
    lines: list[str] = []
    explained = total = 0
    for name, role in templates.roles.items():
        if name.startswith(("Calls", "Publishes", "Reads")):  # of callers.py
            continue
        trusted = [f"{_principal(each)}{_condition(each, ' if ')}" for each in role.trust["Statement"]]
        lines += [f"## {name}", "", f"Trusts {', '.join(trusted)}.", ""]
        lines += ["| actions | on | if | needed because |", "|---|---|---|---|"]
        for policy in role.policies:
            for number, statement in enumerate(policy["Statement"]):
                allows = statement["Effect"] == "Allow"
                found = reasons[name, document(policy), number] if allows else {"denied, whatever else allows it": None}
                total, explained = total + 1, explained + bool(found)
                cells = [_lines(statement["Action"]), _lines(statement["Resource"]), _condition(statement)]
                lines.append(f"| {' | '.join([*cells, _lines([*found])])} |")
        lines.append("")
    lines += ["## Policies of resources", "", "| resource | principal | actions | if |", "|---|---|---|---|"]
    for arn, policy in templates.resource_policies.items():
        for statement in policy["Statement"]:
            actions = f"{'denied: ' if statement['Effect'] == 'Deny' else ''}{_lines(statement['Action'])}"
            lines.append(f"| {arn} | {_principal(statement)} | {actions} | {_condition(statement)} |")
    return [*lines, "", f"{explained} of {total} statements of roles are explained."], total - explained


def _principal(statement: Mapping[str, Any]) -> str:
    principal = statement["Principal"]
    return principal if isinstance(principal, str) else ", ".join(map(str, principal.values()))


def _condition(statement: Mapping[str, Any], before: str = "") -> str:
    return f"{before}{json.dumps(statement['Condition'])}" if "Condition" in statement else ""


def _lines(values: Any) -> str:
    return "<br>".join([values] if isinstance(values, str) else values)


def main() -> int:
    """Print the report; returns 1 if a statement is not explained."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-permissions-") as directory:
        world = World(Path(directory))
        stacks = add_everything(world, world.app())
        lines, unexplained = report(Templates([Template.from_stack(each).to_json() for each in stacks]))
    sys.stdout.write("\n".join([*lines, ""]))
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
