"""Compares the instances of an app's endpoints, including those during an update, with the account's quotas.

A quota for endpoints counts instances, whatever they serve: no list of SageMaker's quotas has one of asynchronous
endpoints, of instance pools or of inference components (1,618 adjustable quotas of January 2026 in
gruntwork-io/terraform-aws-utilities, modules/request-quota-increase/variables.tf at 55f0c2d).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cdk_triton.cli.artifacts.assembly import read_templates
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.endpoints import Endpoint, endpoints
from cdk_triton.cli.doctor.quotas import Quota, endpoint_usage, quotas, request_of, unlisted

__all__ = ["SUBJECT", "SUBJECT_OF_ALL", "instance_types", "instances"]

SUBJECT = "instances of the app"
SUBJECT_OF_ALL = "all instances of the app"

ACROSS_ENDPOINTS: Final = "Number of instances across active endpoints"
"""L-7A3DF611, in the list above."""


def instances(account: Account, app: Path) -> Iterator[Answer]:
    """Compare the instances of all endpoints of the app with the quota of each type, and with the quota of all types.

    For a while, an update runs twice the instances of its endpoint ("SageMaker creates a new fleet during the
    deployment while maintaining the old fleet", DeploymentConfig). A rolling update runs one more batch. CloudFormation
    updates the endpoints of a stack side by side, and the command `cdk` deploys one stack after the other. A variant
    with instance pools may get all its instances from any of them. Numbers without a value before the deployment, such
    as a parameter, are skipped, and so are nested stacks.

    Args:
        account: the account that the app would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError: AWS rejects a call.
    """
    templates = read_templates(app, account.id, account.region)
    found = [(stack, list(_variants(each))) for stack, template in templates for each in endpoints(template).values()]
    needs = [need for stack, variants in found for need in _needs_by_type(stack, variants)]
    if not needs:
        return
    types = sorted({each.instance_type for each in needs})
    names = [*map(endpoint_usage, types), ACROSS_ENDPOINTS]
    values = quotas(account, "sagemaker", names)
    for kind, name in zip(types, names, strict=False):
        of_type = [need for need in needs if need.instance_type == kind]
        yield _answer(SUBJECT, of_type, values[name], account) if name in values else unlisted(SUBJECT, name, account)
    if ACROSS_ENDPOINTS in values:
        of_all = [_need(stack, "instances", variants, variants) for stack, variants in found if variants]
        yield _answer(SUBJECT_OF_ALL, of_all, values[ACROSS_ENDPOINTS], account)


class _Variant(NamedTuple):
    """The instances of one variant.

    Attributes:
        types: the possible instance types; the preferred one is first.
        initial: how many it begins with.
        most: how many it may be scaled to.
        policy: how its endpoint is updated.
    """

    types: Sequence[str]
    initial: int
    most: int
    policy: Mapping[str, Any]


class _Need(NamedTuple):
    """The instances that one endpoint needs, each with the number that an update adds.

    Attributes:
        stack: the stack of the endpoint.
        instance_type: the type of the instances, or "instances" for the instances of all types.
        first: the numbers at the beginning, if every variant gets its preferred type.
        fallen: the numbers at the beginning, if every variant that may have this type gets it.
        most: the same numbers after scaling out.
    """

    stack: str
    instance_type: str
    first: tuple[int, int]
    fallen: tuple[int, int]
    most: tuple[int, int]


def _variants(endpoint: Endpoint) -> Iterator[_Variant]:
    for name, variant in {**endpoint.variants, **endpoint.shadows}.items():
        types, count = instance_types(variant), variant.get("InitialInstanceCount")
        if types and isinstance(count, int):
            limits = [count, endpoint.most.get(name), _managed_most(variant)]
            yield _Variant(types, count, max(each for each in limits if isinstance(each, int)), endpoint.policy)


def instance_types(variant: Mapping[str, Any]) -> list[str]:
    """The instance types of a variant, beginning with the preferred one (InstancePool, `Priority`)."""
    pools = variant.get("InstancePools")
    listed = [each for each in pools if isinstance(each, Mapping)] if isinstance(pools, list) else [variant]
    ordered = sorted(listed, key=lambda each: each["Priority"] if isinstance(each.get("Priority"), int) else math.inf)
    return [each["InstanceType"] for each in ordered if isinstance(each.get("InstanceType"), str)]


def _managed_most(variant: Mapping[str, Any]) -> Any:
    """With `ManagedInstanceScaling`, the number of instances follows the inference components."""
    match variant.get("ManagedInstanceScaling"):
        case {"Status": "DISABLED"}:
            return None
        case {"MaxInstanceCount": most}:
            return most
    return None


def _needs_by_type(stack: str, variants: Sequence[_Variant]) -> Iterator[_Need]:
    for kind in Counter(kind for variant in variants for kind in variant.types):
        certain = [variant for variant in variants if variant.types[0] == kind]
        yield _need(stack, kind, certain, [variant for variant in variants if kind in variant.types])


def _need(stack: str, kind: str, certain: Sequence[_Variant], possible: Sequence[_Variant]) -> _Need:
    """`certain` variants prefer the type, `possible` ones may get it."""
    policy = possible[0].policy
    counts = (
        sum(variant.initial for variant in certain),
        sum(variant.initial for variant in possible),
        sum(variant.most for variant in possible),
    )
    first, fallen, most = ((each, _added_by_update(each, policy)) for each in counts)
    return _Need(stack, kind, first, fallen, most)


def _added_by_update(count: int, policy: Mapping[str, Any]) -> int:
    """How many instances an update adds (`RollingUpdatePolicy`, `MaximumBatchSize`)."""
    match policy.get("RollingUpdatePolicy"):
        case {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": int(value)}}:
            return min(count, value)
        case {"MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": int(value)}}:
            return math.ceil(count * value / 100)
    return count


def _answer(subject: str, needs: Sequence[_Need], quota: Quota, account: Account) -> Answer:
    kind = needs[0].instance_type
    at_first, _ = _totals([(each.stack, each.first) for each in needs])
    fallen, with_update = _totals([(each.stack, each.fallen) for each in needs])
    at_most, most_with_update = _totals([(each.stack, each.most) for each in needs])
    begin = f"the app's endpoints start with {at_first if at_first or not fallen else f'up to {fallen}'} {kind}"
    if fallen > at_first:
        or_more = f", or with up to {fallen}" if at_first else ""
        begin += f"{or_more} if instance pools fall back to this type"
    last = f"the quota '{quota.name}' is {quota.value}"
    if quota.value >= most_with_update:
        update = f", {most_with_update} while an update runs" if most_with_update > at_most else ""
        return Answer(subject=subject, state=State.OK, found=f"{at_most} {kind} at most{update}, and {last}")
    if quota.value < at_first:
        state, found = State.ERROR, f"{begin}, but {last}"
    elif quota.value < with_update:
        state, found = State.WARNING, f"{begin}, and an update needs {with_update} for a while, but {last}"
    else:
        state = State.WARNING
        found = f"{begin}, and may scale out to {at_most}, or to {most_with_update} with an update, but {last}"
    return Answer(subject=subject, state=state, found=found, fix=request_of(quota, account, most_with_update))


def _totals(counts: Sequence[tuple[str, tuple[int, int]]]) -> tuple[int, int]:
    """The number of all instances, and the highest number while one of the stacks is updated."""
    added = Counter[str]()
    for stack, (_, more) in counts:
        added[stack] += more
    count = sum(count for _, (count, _) in counts)
    return count, count + max(added.values())
