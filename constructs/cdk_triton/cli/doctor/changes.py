"""The dangerous changes between a deployed template and the new one: the table "If you change X" of the guide.

Everything here is a pure rule over two templates; nothing calls AWS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from cdk_triton._wording import listed
from cdk_triton.cli.doctor.answers import State

__all__ = ["Change", "dangerous_changes"]

Template = Mapping[str, Any]

_STEPWISE = ("CANARY", "LINEAR")
_STORE_HANDLER = "artifacts.is_complete"


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


class _Endpoint(NamedTuple):
    name: Any  # None, a text or an intrinsic function
    variants: Mapping[str, Mapping[str, Any]]
    scaled: frozenset[str]
    is_stepwise: bool
    keeps_counts: bool

    @property
    def text(self) -> str:
        return f" ({self.name})" if isinstance(self.name, str) else ""


def dangerous_changes(old: Template, new: Template, is_taken: Callable[[str], bool]) -> Iterator[Change]:
    """Compare two templates of one stack.

    Args:
        old: the deployed one.
        new: what would be deployed.
        is_taken: whether an endpoint of that name exists in the account and region.
    """
    before, after = _endpoints(old), _endpoints(new)
    for name in before.keys() & after.keys():
        yield from _changed(name, before[name], after[name])
    yield from _added({k: v for k, v in before.items() if k not in after}, after, before.keys(), is_taken)
    yield from _store_changes(old, new)


def _changed(id: str, old: _Endpoint, new: _Endpoint) -> Iterator[Change]:
    if old.name != new.name:
        yield Change(
            State.WARNING,
            f"the endpoint {id} gets another name, so CloudFormation creates a new endpoint and deletes the old one"
            f"{old.text}: callers of the old name fail, and an export in use stops the deployment",
            "keep endpoint_name, or add a second endpoint, move the callers, and then remove the first",
        )
        return  # a new endpoint: nothing of the old one is updated
    gone, come = sorted(old.variants.keys() - new.variants.keys()), sorted(new.variants.keys() - old.variants.keys())
    if new.is_stepwise and (gone or come):
        parts = {"removes the variant": gone, "adds the variant": come}
        what = " and ".join(f"{verb} {listed(names)}" for verb, names in parts.items() if names)
        yield Change(
            State.ERROR,
            f"the update of the endpoint {id}{new.text} {what}, and SageMaker moves requests step by step only between "
            "configurations with the same variants",
            "deploy this change once without deployment_policy, then put the policy back",
        )
    for name in sorted(old.variants.keys() & new.variants.keys()):
        yield from _changed_variant(id, name, old, new)


def _changed_variant(id: str, name: str, old: _Endpoint, new: _Endpoint) -> Iterator[Change]:
    first, second = old.variants[name], new.variants[name]
    types = first.get("InstanceType"), second.get("InstanceType")
    if types[0] != types[1] and name in old.scaled:
        yield Change(
            State.ERROR,
            f"the variant {name} of the endpoint {id} changes from {types[0]} to {types[1]}, and SageMaker rejects "
            "another instance type while the variant is scaled",
            "deploy twice: first without auto_scale_instance_count, then with the new type and scaling again",
        )
    counts = first.get("InitialInstanceCount"), second.get("InitialInstanceCount")
    if counts[0] != counts[1] and new.keeps_counts:
        yield Change(
            State.WARNING,
            f"initial_instance_count of the variant {name} of the endpoint {id} changes from {counts[0]} to "
            f"{counts[1]}, which does nothing, because updates of a scaled endpoint keep the instance counts",
            "change min_capacity or max_capacity of auto_scale_instance_count",
        )


def _added(
    gone: Mapping[str, _Endpoint],
    after: Mapping[str, _Endpoint],
    known: Any,
    is_taken: Callable[[str], bool],
) -> Iterator[Change]:
    added = {id: endpoint for id, endpoint in after.items() if id not in known}
    for id, endpoint in added.items():
        if isinstance(endpoint.name, str) and is_taken(endpoint.name):
            yield Change(
                State.ERROR,
                f"the endpoint {id} is new in this stack, and its name {endpoint.name} is taken by an endpoint that "
                "exists: CloudFormation creates the new one before it deletes an old one, so the deployment fails",
                "keep the construct id and the stack of the endpoint, or give the new one another endpoint_name",
            )
    if added and gone:
        names = [f"{id}{endpoint.text}" for id, endpoint in gone.items()]
        yield Change(
            State.WARNING,
            f"{listed(names)} is deleted and {listed(sorted(added))} is created, as after a change of a construct id: "
            "callers of the old endpoint fail",
            "keep the construct id; or deploy the new endpoint beside the old one, move callers, and remove the old",
        )


def _store_changes(old: Template, new: Template) -> Iterator[Change]:
    before, after = _stores(old), _stores(new)
    if (gone := sorted(before.keys() - after.keys())) and (come := sorted(after.keys() - before.keys())):
        yield Change(
            State.WARNING,
            f"the artifact store of the bucket {listed(gone)} is replaced by that of {listed(come)}: every archive is "
            "stored or built again, and the old bucket and its key stay",
            "keep the construct id of the store",
        )
    for bucket in sorted(before.keys() & after.keys()):
        key = before[bucket]
        if key is not None and key != after[bucket] and json.dumps(key) not in json.dumps(new):
            yield Change(
                State.WARNING,
                f"the artifact store of the bucket {bucket} gets another key, and nothing may use the old one any "
                "more: running endpoints cannot read their archives when an instance starts",
                "list the old key in former_keys of the store",
            )


def _of_type(template: Template, kind: str) -> dict[str, Mapping[str, Any]]:
    resources = template.get("Resources", {}).items()
    return {id: each.get("Properties", {}) for id, each in resources if each.get("Type") == kind}


def _endpoints(template: Template) -> dict[str, _Endpoint]:
    configurations = _of_type(template, "AWS::SageMaker::EndpointConfig")
    targets = _of_type(template, "AWS::ApplicationAutoScaling::ScalableTarget").values()
    resource_ids = [_flat(each.get("ResourceId")) for each in targets]
    found = {}
    for id, properties in _of_type(template, "AWS::SageMaker::Endpoint").items():
        configuration = configurations.get(_referred(properties.get("EndpointConfigName")) or "", {})
        name = properties.get("EndpointName")
        owners = "|".join(re.escape(each) for each in (f"<{id}>", name) if isinstance(each, str))
        scaled = [re.fullmatch(rf"endpoint/(?:{owners})/variant/(.+)", each) for each in resource_ids]
        policy = properties.get("DeploymentConfig", {})
        routing = policy.get("BlueGreenUpdatePolicy", {}).get("TrafficRoutingConfiguration", {})
        found[id] = _Endpoint(
            name=name,
            variants={str(each.get("VariantName")): each for each in configuration.get("ProductionVariants", ())},
            scaled=frozenset(each[1] for each in scaled if each),
            is_stepwise=routing.get("Type") in _STEPWISE or "RollingUpdatePolicy" in policy,
            keeps_counts=properties.get("RetainAllVariantProperties") is True,
        )
    return found


def _stores(template: Template) -> dict[str, Any]:
    """The key by the logical id of the bucket, as the template has it; None for S3's own key."""
    buckets = _of_type(template, "AWS::S3::Bucket")
    handlers = [each for each in _of_type(template, "AWS::Lambda::Function").values() if _is_of_store(each)]
    names = [_referred(each.get("Environment", {}).get("Variables", {}).get("STORE_BUCKET")) for each in handlers]
    return {name: _key(buckets[name]) for name in names if name in buckets}


def _is_of_store(function: Mapping[str, Any]) -> bool:
    return function.get("Handler") == _STORE_HANDLER


def _key(bucket: Mapping[str, Any]) -> Any:
    rules = bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [{}])
    return rules[0].get("ServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")


def _referred(value: Any) -> str | None:
    """The logical id that a `Ref` or `Fn::GetAtt` names."""
    if isinstance(value, Mapping) and len(value) == 1:
        ((function, argument),) = value.items()
        if function == "Ref":
            return str(argument)
        if function == "Fn::GetAtt":
            return str(argument[0] if isinstance(argument, list) else argument.partition(".")[0])
    return None


def _flat(value: Any) -> str:
    """A text with `<logical id>` for each reference."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(map(_flat, parts)) if isinstance(parts, list) else ""
    return f"<{_referred(value)}>"
