"""Finds dangerous changes between a deployed template and the new one: the table "If you change X" of the guide.

Everything here is a pure rule over two templates; nothing calls AWS.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from cdk_triton._wording import listed, listed_in_quotes
from cdk_triton.cli.artifacts.assembly import STORE_HANDLER
from cdk_triton.cli.doctor.answers import State
from cdk_triton.cli.doctor.endpoints import Endpoint, Template, endpoints, flat, of_type, referred
from cdk_triton.cli.doctor.instances import instance_types
from cdk_triton.cli.doctor.publishers import publisher_descriptions

__all__ = ["Change", "dangerous_changes"]

_STEPWISE = ("CANARY", "LINEAR")
_COMPONENT = "AWS::SageMaker::InferenceComponent"
_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"


class Change(NamedTuple):
    """One dangerous change.

    Attributes:
        state: an error if the update fails; a warning if it succeeds and does harm.
        found: what changes, and the consequence.
        fix: what to do.
    """

    state: State
    found: str
    fix: str


def dangerous_changes(old: Template, new: Template, is_taken: Callable[[str], bool]) -> Iterator[Change]:
    """Compare two templates of one stack.

    Args:
        old: the deployed template.
        new: the template that would be deployed.
        is_taken: whether an endpoint of that name exists in the account and region.
    """
    before, after = endpoints(old), endpoints(new)
    for name in before.keys() & after.keys():
        yield from _changed(name, before[name], after[name])
    yield from _added({k: v for k, v in before.items() if k not in after}, after, before.keys(), is_taken)
    yield from _store_changes(old, new)
    yield from _removed_publishers(old, new)
    yield from _unscaled_components(old, new)


def _changed(id: str, old: Endpoint, new: Endpoint) -> Iterator[Change]:
    if old.name != new.name:
        yield Change(
            State.WARNING,
            f"the endpoint {id!r} gets another name, so CloudFormation creates a new endpoint and deletes the old one"
            f"{old.text}: callers of the old name fail, and the deployment fails if another stack imports a value of "
            "the old endpoint",
            "keep endpoint_name, or add a second endpoint, move the callers, and then remove the first endpoint",
        )
        return  # a new endpoint: nothing of the old one is updated
    yield from _changed_kind(id, old, new)
    gone, come = sorted(old.variants.keys() - new.variants.keys()), sorted(new.variants.keys() - old.variants.keys())
    if _moves_stepwise(new) and (gone or come):
        parts = {"removes the variant": gone, "adds the variant": come}
        what = " and ".join(f"{verb} {listed_in_quotes(names)}" for verb, names in parts.items() if names)
        yield Change(
            State.ERROR,
            f"the update of the endpoint {id!r}{new.text} {what}, but SageMaker moves requests step by step only "
            "between configurations with the same variants",
            "deploy this change once without deployment_policy, then put the policy back",
        )
    for name in sorted(old.variants.keys() & new.variants.keys()):
        yield from _changed_variant(id, name, old, new)


def _changed_kind(id: str, old: Endpoint, new: Endpoint) -> Iterator[Change]:
    """Requests are asynchronous, or no longer; SageMaker's words are in aws/sagemaker-python-sdk#3124."""
    fix = "create a second endpoint, move the callers, and then remove the first endpoint"
    if old.is_asynchronous and not new.is_asynchronous:
        yield Change(
            State.ERROR,
            f"the endpoint {id!r}{new.text} is asynchronous and becomes a real-time endpoint, but SageMaker rejects "
            "such an update: 'The AsyncInferenceConfig parameter cannot be removed from this endpoint'",
            fix,
        )
    elif new.is_asynchronous and not old.is_asynchronous:
        yield Change(
            State.WARNING,
            f"the real-time endpoint {id!r}{new.text} becomes asynchronous, so callers need the other API, and AWS "
            "does not document whether SageMaker accepts the update",
            f"to be safe, {fix}",
        )


def _moves_stepwise(endpoint: Endpoint) -> bool:
    routing = endpoint.policy.get("BlueGreenUpdatePolicy", {}).get("TrafficRoutingConfiguration", {})
    return routing.get("Type") in _STEPWISE or "RollingUpdatePolicy" in endpoint.policy


def _changed_variant(id: str, name: str, old: Endpoint, new: Endpoint) -> Iterator[Change]:
    first, second = old.variants[name], new.variants[name]
    types = _types(first), _types(second)
    if types[0] != types[1] and name in old.most:
        changes = f"the variant {name!r} of the endpoint {id!r} changes from {types[0]} to {types[1]}; "
        fix = "deploy twice: first without auto_scale_instance_count, then with the new type and scaling again"
        if "InstancePools" in first or "InstancePools" in second:
            reason = "AWS does not document whether SageMaker accepts other instance pools while the variant is scaled"
            yield Change(State.WARNING, changes + reason, f"to be safe, {fix}")
        else:
            reason = "SageMaker rejects another instance type while the variant is scaled"
            yield Change(State.ERROR, changes + reason, fix)
    counts = first.get("InitialInstanceCount"), second.get("InitialInstanceCount")
    if counts[0] != counts[1] and new.keeps_counts:
        yield Change(
            State.WARNING,
            f"initial_instance_count of the variant {name!r} of the endpoint {id!r} changes from {counts[0]} to "
            f"{counts[1]}, which has no effect, because an update of a scaled endpoint keeps the instance counts",
            "change min_capacity or max_capacity of auto_scale_instance_count",
        )


def _types(variant: Mapping[str, Any]) -> str:
    types = ", ".join(instance_types(variant))
    return f"pools of {types}" if "InstancePools" in variant else types


def _added(
    gone: Mapping[str, Endpoint],
    after: Mapping[str, Endpoint],
    known: Any,
    is_taken: Callable[[str], bool],
) -> Iterator[Change]:
    added = {id: endpoint for id, endpoint in after.items() if id not in known}
    for id, endpoint in added.items():
        if isinstance(endpoint.name, str) and is_taken(endpoint.name):
            yield Change(
                State.ERROR,
                f"the endpoint {id!r} is new in this stack, but another endpoint already has the name "
                f"{endpoint.name!r}: CloudFormation creates the new endpoint before it deletes an old one, so the "
                "deployment fails",
                "keep the construct id and the stack of the endpoint, or give the new endpoint another endpoint_name",
            )
    if added and gone:
        names = [f"{id!r}{endpoint.text}" for id, endpoint in gone.items()]
        yield Change(
            State.WARNING,
            f"CloudFormation deletes the endpoint {listed(names)} and creates {listed_in_quotes(sorted(added))}, as if "
            "a construct id had changed: callers of the old endpoint fail",
            "keep the construct id; or deploy the new endpoint beside the old endpoint, move the callers, and remove "
            "the old endpoint",
        )


def _store_changes(old: Template, new: Template) -> Iterator[Change]:
    before, after = _store_keys(old), _store_keys(new)
    if (gone := sorted(before.keys() - after.keys())) and (come := sorted(after.keys() - before.keys())):
        found = (
            f"the artifact store with the bucket {listed_in_quotes(come)} replaces the store with the bucket "
            f"{listed_in_quotes(gone)}"
        )
        yield _replaced_store(old, gone, found, "keep the construct id of the store")
    was, becomes = (of_type(template, "AWS::S3::Bucket") for template in (old, new))
    for bucket in sorted(before.keys() & after.keys()):
        if was[bucket].get("BucketName") != becomes[bucket].get("BucketName"):
            found = f"the artifact store with the bucket {bucket!r} gets another bucket_name, and so a new bucket"
            yield _replaced_store(old, [bucket], found, "keep the bucket_name of the store")
        key = before[bucket]
        if key is not None and key != after[bucket] and json.dumps(key) not in json.dumps(new):
            yield Change(
                State.WARNING,
                f"the artifact store with the bucket {bucket!r} gets another key, and the stack does not grant the "
                "use of the old key any more: running endpoints cannot read their archives when an instance starts",
                "list the old key in former_keys of the store",
            )


def _removed_publishers(old: Template, new: Template) -> Iterator[Change]:
    before, after = ({each["multi_model"] for each in publisher_descriptions(template)} for template in (old, new))
    if (gone := sorted(before - after)) and (come := sorted(after - before)):
        yield Change(
            State.WARNING,
            f"the publisher of {listed_in_quotes(come)} replaces that of {listed_in_quotes(gone)}, as if a construct "
            "id had changed: it has no published ensembles, so callers no longer find those of the old one",
            "keep the construct id; or, directly after the deployment, run `cdk-triton fleet publish` with the new "
            "--fleet for every ensemble",
        )
        return
    for name in gone:
        yield Change(
            State.WARNING,
            f"the publisher of {name!r} is removed: callers that read names from parameters no longer find ensembles "
            "that are still published, and nobody can unpublish these, so `artifacts gc` keeps their archives",
            f"before the deployment, run `cdk-triton fleet list --fleet STACK/{name}`, and `cdk-triton fleet unpublish "
            "ENSEMBLE --forget` for each ensemble that it lists",
        )


def _unscaled_components(old: Template, new: Template) -> Iterator[Change]:
    """CloudFormation does not set the copies again, because `copies` does not change."""
    before, after = _least_copies(old), _least_copies(new)
    first, second = of_type(old, _COMPONENT), of_type(new, _COMPONENT)
    for name in sorted((before.keys() - after.keys()) & second.keys()):
        least = before[name]
        if isinstance(least, int) and least > 0:
            continue
        if first[name].get("RuntimeConfig") != second[name].get("RuntimeConfig"):
            continue
        yield Change(
            State.WARNING,
            f"the component {name!r} is not scaled any more, so it keeps the copies that it has then: if it has scaled "
            "to zero, nothing starts a copy, and every request fails",
            "deploy it once with auto_scale_copies(min_capacity=1, …) before, or afterwards run `aws sagemaker "
            "update-inference-component-runtime-config` with CopyCount=1",
        )


def _least_copies(template: Template) -> dict[str, Any]:
    """Logical id of a component that is scaled → the minimum of its copies."""
    targets = of_type(template, _TARGET).values()
    least = {flat(each.get("ResourceId")): each.get("MinCapacity") for each in targets}
    components = of_type(template, _COMPONENT).items()
    names = {id: (f"<{id}>", flat(each.get("InferenceComponentName"))) for id, each in components}
    ids = {f"inference-component/{name}": id for id, either in names.items() for name in either}
    return {ids[target]: number for target, number in least.items() if target in ids}


def _replaced_store(old: Template, buckets: list[str], found: str, fix: str) -> Change:
    """The change if a store gets another bucket.

    An export is there because another stack imports it: "After another stack imports an output value, you can't […]
    modify the exported output value" (CloudFormation's template reference, `Fn::ImportValue`).
    """
    exported = [each.get("Value") for each in old.get("Outputs", {}).values() if "Export" in each]
    if any(json.dumps(bucket) in json.dumps(exported) for bucket in buckets):
        return Change(
            State.ERROR,
            f"{found}; CloudFormation rejects this change while another stack imports values of the old store",
            f"{fix}; or create the new store in another stack, and deploy the models' stacks before you remove the old "
            "store",
        )
    return Change(
        State.WARNING, f"{found}: every archive is stored or built again, and the old bucket and its key stay", fix
    )


def _store_keys(template: Template) -> dict[str, Any]:
    """Logical id of a store's bucket → its KMS key as the template has it; None for S3's own key."""
    buckets = of_type(template, "AWS::S3::Bucket")
    handlers = [each for each in of_type(template, "AWS::Lambda::Function").values() if _is_of_store(each)]
    names = [referred(each.get("Environment", {}).get("Variables", {}).get("STORE_BUCKET")) for each in handlers]
    return {name: _key(buckets[name]) for name in names if name in buckets}


def _is_of_store(function: Mapping[str, Any]) -> bool:
    return function.get("Handler") == STORE_HANDLER


def _key(bucket: Mapping[str, Any]) -> Any:
    rules = bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [{}])
    return rules[0].get("ServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")
