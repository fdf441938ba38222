"""Gives decisions to the judge, a program of its own; see `judge/README.md`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["USER_ID", "Decision", "Document", "Grant", "Policies", "Request", "Verdict", "denials", "document", "judge"]

JUDGE = Path(__file__).with_name("judge")

USER_ID = "AKIAIOSFODNN7EXAMPLE"
"""The `aws:userid` of every role, as moto says it (`GetCallerIdentity`)."""

Document = str
"""A policy as JSON, so that equal policies are equal texts."""


def document(policy: Mapping[str, Any]) -> Document:
    """A policy as JSON."""
    return json.dumps(policy, sort_keys=True)


@dataclass(frozen=True)
class Request:
    """What a principal asks for.

    Attributes:
        action: the action.
        resource: the ARN, `*` for an action without resources, or None for any resource of the action.
        context: the condition keys that the service sends, beyond those of every request.
        owner: the account that owns the resource; None for the account of the principal.
    """

    action: str
    resource: str | None
    context: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict, hash=False)
    owner: str | None = None


@dataclass(frozen=True)
class Policies:
    """What decides about a request.

    Attributes:
        identity: the policies of the principal.
        boundary: the permissions boundary of the principal, if there is one.
        resource: the policy of the resource, if it has one.
    """

    identity: tuple[Document, ...] = ()
    boundary: Document | None = None
    resource: Document | None = None


@dataclass(frozen=True)
class Decision:
    """A question for the judge.

    Attributes:
        principal: who calls: the ARN of a role, or a service.
        request: what the principal asks for.
        policies: the policies that decide.
        reason: the call or the demand that it is for, for messages.
    """

    principal: str
    request: Request
    policies: Policies
    reason: str

    def __str__(self) -> str:
        request = self.request
        with_context = f" with {dict(request.context)}" if request.context else ""
        return f"{self.principal}: {request.action} on {request.resource}{with_context} ({self.reason})"


@dataclass(frozen=True)
class Grant:
    """A statement of an identity policy that allows a request, with those of its actions and resources that match."""

    policy: Document
    statement: int
    actions: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """An answer of the judge.

    Attributes:
        allowed: whether IAM allows the request.
        error: why the request is none, such as an action that IAM does not have; None for a valid one.
        ignored: the condition keys that the action does not have.
        grants: the statements that allow the request.
    """

    allowed: bool
    error: str | None
    ignored: tuple[str, ...]
    grants: tuple[Grant, ...]


def judge(decisions: Iterable[Decision], account: str) -> list[Verdict]:
    """The verdicts, in the order of the decisions."""
    numbers: dict[Document, int] = {}

    def number(policy: Document | None) -> int | None:
        return None if policy is None else numbers.setdefault(policy, len(numbers))

    requests: list[dict[str, Any]] = [
        {
            "principal": each.principal,
            "action": each.request.action,
            "resource": each.request.resource,
            "account": account,
            "owner": each.request.owner or account,
            "context": {**_of_every_request(each.principal, account), **each.request.context},
            "identity": [number(policy) for policy in each.policies.identity],
            "boundary": number(each.policies.boundary),
            "resourcePolicy": number(each.policies.resource),
        }
        for each in decisions
    ]
    documents = list(numbers)
    asked = json.dumps({"policies": [json.loads(policy) for policy in documents], "requests": requests})
    assert (JUDGE / "node_modules").exists(), f"install the judge of the permissions: npm ci --prefix {JUDGE}"
    done = subprocess.run(["node", JUDGE / "judge.mjs"], input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [_verdict(answer, documents) for answer in json.loads(done.stdout)]


def denials(decisions: Sequence[Decision], account: str) -> list[str]:
    """The decisions that IAM denies, or that no policy can decide, each in a sentence."""
    return [
        f"{decision}: {verdict.error or verdict.ignored or 'denied'}"
        for decision, verdict in zip(decisions, judge(decisions, account), strict=True)
        if not verdict.allowed or verdict.ignored
    ]


def _verdict(answer: Mapping[str, Any], documents: Sequence[Document]) -> Verdict:
    grants = (
        Grant(documents[each["policy"]], each["statement"], tuple(each["actions"]), tuple(each["resources"]))
        for each in answer["grants"]
    )
    return Verdict(answer["allowed"], answer["error"], tuple(answer["ignored"]), tuple(grants))


def _of_every_request(principal: str, account: str) -> dict[str, str]:
    """The condition keys of each request ("AWS global condition context keys"), as far as policies here have them."""
    found = {"aws:SecureTransport": "true", "aws:PrincipalIsAWSService": "false"}
    if principal.startswith("arn:"):
        return {**found, "aws:PrincipalAccount": account, "aws:PrincipalArn": principal, "aws:userid": USER_ID}
    return {**found, "aws:PrincipalIsAWSService": "true", "aws:PrincipalServiceName": principal}
