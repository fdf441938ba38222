"""Finds service quotas by name: SageMaker has some thousands, whose codes this library does not contain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cdk_triton.cli.doctor.answers import Answer, State

if TYPE_CHECKING:
    from cdk_triton.cli.doctor.account import Account

__all__ = ["CODEBUILD_GPU", "Quota", "endpoint_usage", "processing_usage", "quotas", "request_of", "unlisted"]

CODEBUILD_GPU: Final = "Concurrently running builds for Linux GPU Small environment"
"""L-F1FE1B52, as listings of accounts show it; it is 0 in some new accounts and 300 in others."""


@dataclass(frozen=True)
class Quota:
    """A quota of the account in its region.

    Attributes:
        service: the code of the service, such as "sagemaker".
        code: such as "L-F1FE1B52".
        name: such as "ml.g5.2xlarge for endpoint usage".
        value: how many.
    """

    service: str
    code: str
    name: str
    value: int


def quotas(account: Account, service: str, names: Sequence[str]) -> dict[str, Quota]:
    """The quotas of a service that have these names.

    The value applied to the account takes precedence. A quota without one has the service's default, which another
    operation lists (ListServiceQuotas: "If the applied quota value is not available for a quota, the quota is not
    retrieved").

    Raises:
        ClientError, BotoCoreError: AWS rejected a call, or could not be reached.
    """
    found: dict[str, Quota] = {}
    for operation in ("list_service_quotas", "list_aws_default_service_quotas"):
        for each in _listed(account, operation, service):
            if len(found) == len(names):
                return found
            name = each["QuotaName"]
            if name in names and name not in found and "Value" in each:  # otherwise each tells an ErrorReason
                found[name] = Quota(service, each["QuotaCode"], name, int(each["Value"]))
    return found


def _listed(account: Account, operation: str, service: str) -> Iterator[Any]:
    pages = account.client("service-quotas").get_paginator(operation)
    for page in pages.paginate(ServiceCode=service, PaginationConfig={"PageSize": 100}):
        yield from page["Quotas"]


def endpoint_usage(instance_type: str) -> str:
    """The name of the quota of a type's instances for all endpoints of the region."""
    return f"{instance_type} for endpoint usage"


def processing_usage(instance_type: str) -> str:
    """The name of the quota of a type's instances for all Processing jobs of the region."""
    return f"{instance_type} for processing job usage"


def unlisted(subject: str, name: str, account: Account) -> Answer:
    """The answer for a quota that no list has."""
    return Answer(
        subject=subject,
        state=State.UNKNOWN,
        found=f"Service Quotas does not list the quota '{name}' in {account.region}",
        fix="check whether AWS offers the service or instance type of this quota in the region; if not, use another "
        "region or instance type",
    )


def request_of(quota: Quota, account: Account, least: int) -> str:
    """How to ask for more."""
    return (
        f"ask for at least {least}, which may take days: aws service-quotas request-service-quota-increase "
        f"--service-code {quota.service} --quota-code {quota.code} --desired-value {least} --region {account.region}"
    )
