"""Whether the account's quotas have room for the endpoints of an app, and for an update of any of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cdk_triton.cli.artifacts.assembly import read_templates
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.endpoints import Endpoint, endpoints
from cdk_triton.cli.doctor.quotas import Quota, endpoint_usage, quotas, request_of, unlisted

__all__ = ["SUBJECT", "instances"]

SUBJECT = "instances of the app"


def instances(account: Account, app: Path) -> Iterator[Answer]:
    """Compare the instances of all endpoints of the app with the quota of each type.

    An update runs the instances of its endpoint twice for a while ("SageMaker creates a new fleet during the deployment
    while maintaining the old fleet", DeploymentConfig), and a rolling one runs a batch more. Numbers that only a
    deployment knows, such as a parameter, are left out, and so are nested stacks.

    Args:
        account: where it would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError: AWS rejects a call.
    """
    templates = read_templates(app, account.id, account.region)
    found = [each for _, template in templates for id, it in endpoints(template).items() for each in _needs(id, it)]
    types = sorted({each.instance_type for each in found})
    values = quotas(account, "sagemaker", [endpoint_usage(each) for each in types]) if types else {}
    for each in types:
        name = endpoint_usage(each)
        of_type = [need for need in found if need.instance_type == each]
        yield _answer(of_type, values[name], account) if name in values else unlisted(SUBJECT, name, account)


class _Need(NamedTuple):
    """The instances of one type that one endpoint needs, at first and scaled out to its limit.

    Each is a number of instances, and how many more an update runs.
    """

    endpoint: str
    instance_type: str
    first: tuple[int, int]
    most: tuple[int, int]


def _needs(id: str, endpoint: Endpoint) -> Iterator[_Need]:
    first, most = Counter[str](), Counter[str]()
    for name, variant in endpoint.variants.items():
        kind, count, limit = variant.get("InstanceType"), variant.get("InitialInstanceCount"), endpoint.most.get(name)
        if isinstance(kind, str) and isinstance(count, int):
            first[kind] += count
            most[kind] += limit if isinstance(limit, int) else count
    for kind, count in first.items():
        fleets = ((each, _added_by_update(each, endpoint.policy)) for each in (count, most[kind]))
        yield _Need(f"{id}{endpoint.text}", kind, *fleets)


def _added_by_update(count: int, policy: Mapping[str, Any]) -> int:
    """How many instances more an update runs (`RollingUpdatePolicy`, `MaximumBatchSize`)."""
    match policy.get("RollingUpdatePolicy"):
        case {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": int(value)}}:
            return min(count, value)
        case {"MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": int(value)}}:
            return math.ceil(count * value / 100)
    return count


def _answer(needs: list[_Need], quota: Quota, account: Account) -> Answer:
    kind = needs[0].instance_type
    at_first, with_update = _totals([each.first for each in needs])
    at_most, most_with_update = _totals([each.most for each in needs])
    begin = f"the app's endpoints begin with {at_first} {kind}"
    last = f"the quota '{quota.name}' is {quota.value}"
    if quota.value >= most_with_update:
        return Answer(subject=SUBJECT, state=State.OK, found=f"{most_with_update} {kind} at most, and {last}")
    if quota.value < at_first:
        state, found = State.ERROR, f"{begin}, and {last}"
    elif quota.value < with_update:
        state, found = State.WARNING, f"{begin}, an update needs {with_update} for a while, and {last}"
    else:
        state = State.WARNING
        found = f"{begin}, may have {at_most} scaled out, and {most_with_update} with an update, and {last}"
    return Answer(subject=SUBJECT, state=state, found=found, fix=request_of(quota, account, most_with_update))


def _totals(fleets: list[tuple[int, int]]) -> tuple[int, int]:
    """How many instances there are, and how many while the endpoint is updated whose update adds most."""
    count = sum(count for count, _ in fleets)
    return count, count + max(added for _, added in fleets)
