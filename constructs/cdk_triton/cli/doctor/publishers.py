"""Compares what the publishers of an app need with the quotas of the account: executions, and policies of logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdk_triton._wording import listed
from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA
from cdk_triton.cli.artifacts.assembly import read_templates
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.capacity import LAMBDA_QUOTA
from cdk_triton.cli.doctor.quotas import quotas, request_of, unlisted

__all__ = ["LOG_POLICY", "LOG_SUBJECT", "SUBJECT", "publisher_descriptions", "publishers"]

SUBJECT = "publishers"
LOG_SUBJECT = "logs of publishers"

LOG_POLICY = "AWSLogDeliveryWrite20150319"
_MAX_LOG_POLICIES = 10


def publishers(account: Account, app: Path) -> Iterator[Answer]:
    """Compare the functions that a publisher runs at once with the concurrency of the account.

    A publisher may run `max_concurrency` functions. Step Functions retries a function that Lambda throttles, so a quota
    that is too small only slows publishing down. Meanwhile, Lambda also throttles other functions of the region.

    Args:
        account: the account that the app would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError: AWS rejects a call.
    """
    found = {
        f"{stack}/{each['multi_model']}": int(each["max_concurrency"])
        for stack, template in read_templates(app, account.id, account.region)
        for each in publisher_descriptions(template)
    }
    if not found:
        return
    yield _log_policy(account)
    quota = quotas(account, "lambda", [LAMBDA_QUOTA]).get(LAMBDA_QUOTA)
    if quota is None:
        yield unlisted(SUBJECT, LAMBDA_QUOTA, account)
        return
    limit = f"the quota '{LAMBDA_QUOTA}' is {quota.value}"
    greedy = sorted(name for name, count in found.items() if count >= quota.value)
    if not greedy:
        yield Answer(subject=SUBJECT, state=State.OK, found=f"{listed(sorted(found))}: {limit}")
        return
    most = max(found.values())
    yield Answer(
        subject=SUBJECT,
        state=State.WARNING,
        found=f"max_concurrency of {listed(greedy)} is up to {most}, but {limit}, so other functions of the region are "
        "throttled while ensembles are published",
        fix=f"choose a smaller max_concurrency, or {request_of(quota, account, 2 * most)}",
    )


def _log_policy(account: Account) -> Answer:
    """Whether Step Functions can let the state machine of a publisher write its log.

    It changes this resource policy of the account, or creates it. The log group of a publisher is below
    `/aws/vendedlogs/states/`, which takes no space in it ("Logging using CloudWatch Logs" in the guide of Step
    Functions; "Resource policies" in "CloudWatch Logs quotas").
    """
    pages = account.client("logs").get_paginator("describe_resource_policies").paginate()
    names = [policy["policyName"] for page in pages for policy in page["resourcePolicies"]]
    found = f"the region has {len(names)} of {_MAX_LOG_POLICIES} resource policies of CloudWatch Logs"
    if LOG_POLICY in names or len(names) < _MAX_LOG_POLICIES:
        return Answer(subject=LOG_SUBJECT, state=State.OK, found=found)
    return Answer(
        subject=LOG_SUBJECT,
        state=State.ERROR,
        found=f"{found}, but not {LOG_POLICY}, which Step Functions creates for the log of a publisher",
        fix=f"delete one that nothing uses, such as `aws logs delete-resource-policy --policy-name {names[0]}`",
    )


def publisher_descriptions(template: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The descriptions of the publishers of a template."""
    for resource in template.get("Resources", {}).values():
        if (description := resource.get("Metadata", {}).get(PUBLISHER_METADATA)) is not None:
            yield description
