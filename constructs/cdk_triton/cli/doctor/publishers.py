"""Compares the functions that the publishers of an app run at once with the account's concurrent executions."""

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

__all__ = ["SUBJECT", "publisher_descriptions", "publishers"]

SUBJECT = "publishers"


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


def publisher_descriptions(template: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The descriptions of the publishers of a template."""
    for resource in template.get("Resources", {}).values():
        if (description := resource.get("Metadata", {}).get(PUBLISHER_METADATA)) is not None:
            yield description
