"""An app with a model server, and the effects of a change of it on the resources of its templates."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from tests.hosting.conftest import World

from cdk_triton import (
    DataCapture,
    ITritonModel,
    ServingPlatform,
    TritonArtifactStore,
    TritonComponents,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton_local.cloudformation.resource_types import find

Options = Callable[[cdk.Stack], dict[str, Any]]
Effects = dict[str, str]
"""Resource type to "new", "gone", "replaced" or "in place"."""


def options(**values: object) -> Options:
    """Arguments that need no stack."""
    return lambda _: values


ENV, NOTHING = cdk.Environment(account="111122223333", region="eu-west-1"), options()


def captured(prefix: str) -> Options:
    def made(stack: cdk.Stack) -> dict[str, Any]:
        bucket = s3.Bucket.from_bucket_name(stack, "Captured", "captured")
        return {"data_capture": DataCapture(bucket=bucket, prefix=prefix, sampling_percentage=5)}

    return made


def network(used: bool) -> Options:
    def made(stack: cdk.Stack) -> dict[str, Any]:
        vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
        return {"vpc": vpc} if used else {}

    return made


def role(used: bool) -> Options:
    def made(stack: cdk.Stack) -> dict[str, Any]:
        own = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        return {"role": own} if used else {}

    return made


def keys(used: str) -> Options:
    def made(stack: cdk.Stack) -> dict[str, Any]:
        return {"encryption_key": {name: kms.Key(stack, name) for name in ("Old", "New")}[used]}

    return made


def shadow(used: bool) -> Options:
    def made(stack: cdk.Stack) -> dict[str, Any]:
        model = stack.node.find_child("Model")
        assert isinstance(model, TritonModel)
        return {"shadow": TritonVariant(model=model, variant_name="Shadow")} if used else {}

    return made


def scaled(policy: str, *, max_capacity: int = 4) -> Callable[[TritonEndpoint], object]:
    return lambda endpoint: endpoint.auto_scale_instance_count(
        min_capacity=1, max_capacity=max_capacity
    ).scale_on_invocations(policy, max_requests_per_second=3)


def caller(granted: bool) -> Callable[[TritonEndpoint], object]:
    def made(endpoint: TritonEndpoint) -> None:
        service = iam.Role(endpoint.stack, "Service", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        if granted:
            endpoint.grant_invoke(service)

    return made


@dataclass(frozen=True, kw_only=True)
class App:
    """A store, and a stack with an endpoint of one model, of a component, or of a multi-model with these ensembles."""

    has_env: bool = True
    directory: str = "text"
    weights: str = "1"
    litter: str = ""
    touched: bool = False
    platform: ServingPlatform = World.platform
    ensembles: tuple[str, ...] = ()
    publisher: dict[str, Any] | None = None
    model_id: str = "Model"
    model: Options = NOTHING
    variant: Options = NOTHING
    endpoint_id: str = "Endpoint"
    endpoint: Options = NOTHING
    component: dict[str, Any] | None = None
    scales_copies: bool = False
    store: Options = NOTHING
    then: Callable[[TritonEndpoint], object] = lambda _: None

    def resources(self, world: World) -> dict[str, Any]:
        """Stack and logical id, to resource."""
        app, env = world.app(), ENV if self.has_env else None
        artifacts, stack = (cdk.Stack(app, name, env=env) for name in ("Artifacts", "Serving"))
        common = {
            "store": TritonArtifactStore(artifacts, "Store", **self.store(artifacts)),
            "platform": self.platform,
            **self.model(stack),
        }
        model = self._multi_model(world, stack, common) if self.ensembles else self._single(world, stack, common)
        if self.component is None:
            variant = TritonVariant(model=model, **self.variant(stack))
            self.then(TritonEndpoint(stack, self.endpoint_id, variants=[variant], **self.endpoint(stack)))
        else:
            components = TritonComponents(stack, "Components", platform=self.platform, max_instance_count=2)
            component = components.add_component("Text", model=model, **self.component)
            if self.scales_copies:
                copies = component.auto_scale_copies(min_capacity=1, max_capacity=2)
                copies.scale_on_invocations("Load", max_requests_per_second=10)
        return {
            f"{each.stack_name}.{name}": resource
            for each in (artifacts, stack)
            for name, resource in world.template(each)["Resources"].items()
        }

    def _multi_model(self, world: World, stack: cdk.Stack, common: dict[str, Any]) -> ITritonModel:
        ensembles = {name: world.repository(name, weights=self.weights) for name in self.ensembles}
        model = TritonMultiModel(stack, self.model_id, ensembles=ensembles, **common)
        if self.publisher is not None:
            model.add_publisher(**self.publisher)
        return model

    def _single(self, world: World, stack: cdk.Stack, common: dict[str, Any]) -> ITritonModel:
        repository = world.repository(self.directory, weights=self.weights)
        if self.litter:
            (repository.root / self.litter).write_text("")
            repository = world.repository_again(self.directory)
        if self.touched:
            for path in repository.root.rglob("*"):
                path.chmod(0o700)
                os.utime(path, (1e9, 1e9))
            repository = world.repository_again(self.directory)
        return TritonModel(stack, self.model_id, repository=repository, **common)


def effects(before: Mapping[str, Any], after: Mapping[str, Any]) -> Effects:
    """The work of CloudFormation, by the type of resource."""
    found: dict[str, set[str]] = defaultdict(set)
    for effect, names in (("gone", before.keys() - after.keys()), ("new", after.keys() - before.keys())):
        for name in names:
            found[{**before, **after}[name]["Type"]].add(effect)
    replaced: set[str] = set()
    while True:  # the properties of a resource also change if it refers to one that is replaced
        changed = {name: changes(before[name], after[name], replaced) for name in before.keys() & after.keys()}
        now = {name for name, properties in changed.items() if find(after[name]["Type"]).replacing(properties)}
        if now == replaced:
            break
        replaced = now
    for name, properties in changed.items():
        if properties:
            found[after[name]["Type"]].add("replaced" if name in replaced else "in place")
    return {
        kind.removeprefix("AWS::"): "replaced" if each == {"gone", "new"} else " and ".join(sorted(each))
        for kind, each in found.items()
    }


def changes(before: Any, after: Any, replaced: set[str]) -> set[str]:
    old, new = before.get("Properties", {}), after.get("Properties", {})
    return {
        name
        for name in old.keys() | new.keys()
        if old.get(name) != new.get(name) or replaced & {f"Serving.{each}" for each in references(new.get(name))}
    }


def references(value: Any) -> Iterator[str]:
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case dict():
            for each in value.values():
                yield from references(each)
        case list():
            for each in value:
                yield from references(each)
