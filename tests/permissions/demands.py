"""The tables of what the roles are needed for, as questions for the judge."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from tests.permissions.judging import USER_ID, Decision, Document, Policies, Request, document
from tests.permissions.templates import ACCOUNT, REGION

if TYPE_CHECKING:
    from tests.permissions.templates import Templates

__all__ = ["Demand", "decisions_of", "demands"]

PLACES = {
    "account": ACCOUNT,
    "fleet": "serving-fleet-f2e036da",
    "place": f"{REGION}:{ACCOUNT}",
    "platform": "25.09-a10g",
    "region": REGION,
    "repository": "text",
    "stack": "stack/stack/id",
    "userid": USER_ID,
}


@dataclass(frozen=True)
class Demand:
    """A row of demands.toml or callers.toml; the first lines of demands.toml explain the fields."""

    actions: list[str]
    roles: str = ""
    service: str = ""
    resources: list[str] = field(default_factory=lambda: ["*"])
    context: Mapping[str, str | list[str]] = field(default_factory=dict)
    denied: bool = False
    made_by: str = ""
    guide: str = ""
    why: str = ""

    @property
    def is_of_callers(self) -> bool:
        """Whether the principals are those of callers.py."""
        return self.roles.startswith(("Calls", "Publishes", "Reads"))

    def unseen(self, decisions: Iterable[Decision]) -> list[str]:
        """The actions and resources of the row that are in none of the recorded decisions."""
        seen = {(each.request.action, each.request.resource or "*") for each in decisions}
        patterns = [re.sub(r"\{\w+\}", "*", resource) for resource in self.resources]
        return [
            f"{action} on {pattern}"
            for action, pattern in product(self.actions, patterns)
            if not any(action == each and fnmatchcase(resource, pattern) for each, resource in seen)
        ]

    def __str__(self) -> str:
        return f"made by {self.made_by}" if self.made_by else f"{self.why}: {self.guide}"


def demands() -> list[Demand]:
    """The rows."""
    texts = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("demands.toml", "callers.toml")]
    return [Demand(**row) for text in texts for row in tomllib.loads(text)["demand"]]


def decisions_of(demand: Demand, templates: Templates) -> Iterator[Decision]:
    """Ask each principal of a row for each action on each resource, with each value of the condition keys."""

    def filled(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: {**PLACES, **templates.names}[found[1]], text).replace("*", "any")

    values = [[each] if isinstance(each, str) else each for each in demand.context.values()]
    for principal, policies in _principals(demand, templates):
        for action, resource, sent in product(demand.actions, demand.resources, product(*values)):
            context = {key: filled(value) for key, value in zip(demand.context, sent, strict=True)}
            arn = None if resource == "*" else filled(resource)  # any resource that the action has
            request = Request(action, arn, context)
            of_resource = templates.resource_policy(request)
            yield Decision(principal, request, Policies(policies, resource=of_resource), str(demand))


def _principals(demand: Demand, templates: Templates) -> Iterator[tuple[str, tuple[Document, ...]]]:
    """The principals of a row, with their policies."""
    if demand.service:
        yield demand.service, ()
    for name, role in templates.roles.items():
        if re.fullmatch(demand.roles, name):
            yield f"arn:aws:iam::{ACCOUNT}:role/{name}", tuple(document(policy) for policy in role.policies)
