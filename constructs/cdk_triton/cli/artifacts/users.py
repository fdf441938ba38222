"""The users of a store's objects in the region: SageMaker models and inference components.

Endpoint configurations and most components use them through a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.aws import Aws, in_parallel
from cdk_triton.protocol.layout import SERVED_PREFIXES

__all__ = ["ModelReference", "Users", "read_users"]

_PLAIN_S3 = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]+)(?:/(?P<path>.*))?")


@dataclass(frozen=True)
class ModelReference:
    """The objects that a model reads: all that begin with `path`, as S3 prefixes do.

    Attributes:
        user: the name of the user, for a person.
        bucket: the objects' bucket; None if the address does not contain the bucket's name (an access point, https).
        path: an object key or a prefix.
        multi_model: whether `path` is the prefix of a multi-model endpoint, which loads only the archives that callers
            invoke.
    """

    user: str
    bucket: str | None
    path: str
    multi_model: bool = False

    def covers(self, bucket: str, key: str) -> bool:
        """Whether the reference includes an object."""
        return self.bucket in (None, bucket) and key.startswith(self.path)


@dataclass(frozen=True)
class Users:
    """The objects that models and inference components of the region refer to.

    Attributes:
        references: one or more for each model or component that has its data in S3.
        unknown: sentences about live endpoints and components whose model or configuration is deleted, so that their
            objects cannot be found.
        endpoints: the endpoints that run on a model, by the model's name.
    """

    references: tuple[ModelReference, ...]
    unknown: tuple[str, ...]
    endpoints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def endpoints_of(self, bucket: str, key: str) -> tuple[str, ...]:
        """The endpoints that serve an object, by what their models refer to."""
        users = {each.user for each in self.references if each.covers(bucket, key)}
        models = [user.removeprefix("model ") for user in sorted(users)]
        return tuple(dict.fromkeys(name for model in models for name in self.endpoints.get(model, ())))


def read_users(aws: Aws) -> Users:
    """List the region.

    Raises:
        ClientError, BotoCoreError: a listing failed. There is no partial answer.
    """
    names = [each["ModelName"] for each in aws.pages("sagemaker", "list_models", "Models")]
    sagemaker = aws.client("sagemaker")
    described = in_parallel(lambda name: _unless_gone(lambda: sagemaker.describe_model(ModelName=name)), names)
    models = {model["ModelName"]: model for model in described if model is not None}
    components = _components(aws)
    references = [
        *(reference for model in models.values() for reference in _references(aws, model)),
        *(reference for component in components for reference in _component_references(component)),
    ]
    endpoints = list(_endpoints(aws))
    unknown = [*_unknown(endpoints, frozenset(models)), *_unknown_components(components, frozenset(models))]
    ordered = tuple(sorted(references, key=lambda each: each.user))
    return Users(ordered, tuple(unknown), _by_model(endpoints))


def _by_model(endpoints: Sequence[_Endpoint]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for endpoint in endpoints:
        for model in endpoint.models or ():
            found.setdefault(model, []).append(endpoint.name)
    return {model: tuple(sorted(names)) for model, names in found.items()}


def _references(aws: Aws, model: Mapping[str, Any]) -> Iterator[ModelReference]:
    containers = [model[name] for name in ("PrimaryContainer",) if model.get(name)] + list(model.get("Containers", []))
    for container in containers:
        packaged = [] if "ModelPackageName" not in container else _package(aws, container["ModelPackageName"])
        for each in (container, *packaged):
            multi_model = container.get("Mode") == "MultiModel"
            for url in _urls(each):
                yield from addressed(f"model {model['ModelName']}", url, multi_model=multi_model)


def _package(aws: Aws, name: str) -> list[Mapping[str, Any]]:
    """The containers of a model package, by which a model may name its data."""
    package = aws.client("sagemaker").describe_model_package(ModelPackageName=name)
    return list(package.get("InferenceSpecification", {}).get("Containers", []))


def _urls(container: Mapping[str, Any]) -> Iterator[str]:
    if url := container.get("ModelDataUrl"):
        yield url
    sources = [container.get("ModelDataSource") or {}, *container.get("AdditionalModelDataSources", [])]
    for source in sources:
        place = source.get("S3DataSource") or {}
        yield from (place[name] for name in ("S3Uri", "ManifestS3Uri") if place.get(name))


def addressed(user: str, url: str, *, multi_model: bool = False) -> Iterator[ModelReference]:
    """The objects of an address; one without the name of a bucket counts for every store."""
    plain = _PLAIN_S3.fullmatch(url)
    if plain is not None and not plain["bucket"].endswith("-s3alias"):
        yield ModelReference(user, plain["bucket"], plain["path"] or "", multi_model)
        return
    tails = [url[match.start() :] for top in SERVED_PREFIXES for match in re.finditer(re.escape(top), url)]
    # Nothing of a store's layout in it: then it names a whole bucket or something else altogether, and only a bucket
    # without any path can hold what is ours.
    for tail in tails or ([""] if url.rstrip("/").count("/") <= len("//") else []):
        yield ModelReference(user, None, tail)


class _Endpoint(NamedTuple):
    """A live endpoint, its configuration, and the models of that; None where the configuration is deleted."""

    name: str
    configuration: str
    models: frozenset[str] | None


def _endpoints(aws: Aws) -> Iterator[_Endpoint]:
    names = [each["EndpointConfigName"] for each in aws.pages("sagemaker", "list_endpoint_configs", "EndpointConfigs")]
    named = dict(zip(names, in_parallel(lambda name: _models_of(aws, name), names), strict=True))
    live = [each["EndpointName"] for each in aws.pages("sagemaker", "list_endpoints", "Endpoints")]
    for endpoint, configuration in zip(live, in_parallel(lambda name: _configuration_of(aws, name), live), strict=True):
        if configuration is None:
            continue
        used = named.get(configuration)
        if used is None:  # deleted, or made since they were listed
            used = _models_of(aws, configuration)
        yield _Endpoint(endpoint, configuration, used)


def _unknown(endpoints: Sequence[_Endpoint], models: frozenset[str]) -> Iterator[str]:
    """Endpoints that run on deleted models or a deleted configuration: SageMaker allows that, and they still read."""
    for endpoint in endpoints:
        if endpoint.models is None:
            runs_on = f"the configuration {endpoint.configuration!r}, which was deleted"
        elif gone := endpoint.models - models:
            runs_on = f"the model {', '.join(map(repr, sorted(gone)))}, which was deleted"
        else:
            continue
        yield (
            f"the endpoint {endpoint.name!r} runs on {runs_on}, so the archives of the endpoint are not known: deploy "
            "or delete the endpoint"
        )


def _components(aws: Aws) -> list[Mapping[str, Any]]:
    """The inference components of the region, as DescribeInferenceComponent answers."""
    pages = aws.pages("sagemaker", "list_inference_components", "InferenceComponents")
    names = [each["InferenceComponentName"] for each in pages]
    describe = aws.client("sagemaker").describe_inference_component
    found = in_parallel(lambda name: _unless_gone(lambda: describe(InferenceComponentName=name)), names)
    return [each for each in found if each is not None]


def _component_references(component: Mapping[str, Any]) -> Iterator[ModelReference]:
    """The archive that a component names itself, in place of a model."""
    if url := component.get("Specification", {}).get("Container", {}).get("ArtifactUrl"):
        yield from addressed(f"component {component['InferenceComponentName']}", url)


def _unknown_components(components: Sequence[Mapping[str, Any]], models: frozenset[str]) -> Iterator[str]:
    for component in components:
        model = component.get("Specification", {}).get("ModelName")
        if model is not None and model not in models:
            name = component["InferenceComponentName"]
            yield (
                f"the inference component {name!r} runs on the model {model!r}, which was deleted, so the archives of "
                "the component are not known: deploy or delete the component"
            )


def _configuration_of(aws: Aws, endpoint: str) -> str | None:
    """The name of its configuration; None where the endpoint was deleted since it was listed."""
    found = _unless_gone(lambda: aws.client("sagemaker").describe_endpoint(EndpointName=endpoint))
    return None if found is None else str(found["EndpointConfigName"])


def _models_of(aws: Aws, configuration: str) -> frozenset[str] | None:
    """The models of its variants; None where there is no such configuration any more."""
    found = _unless_gone(lambda: aws.client("sagemaker").describe_endpoint_config(EndpointConfigName=configuration))
    if found is None:
        return None
    variants = [*found.get("ProductionVariants", []), *found.get("ShadowProductionVariants", [])]
    # A variant of inference components names no model, and an instance pool names one of its own.
    names = [each.get("ModelName") for each in variants]
    names += [pool.get("ModelNameOverride") for each in variants for pool in each.get("InstancePools", [])]
    return frozenset(name for name in names if name)


def _unless_gone(describe: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
    try:
        return describe()
    except ClientError as error:
        if "Could not find" in str(error):  # the code is that of every faulty argument
            return None
        raise
