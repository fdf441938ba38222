"""Reads the endpoints of a region from SageMaker, and their target models from S3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from cdk_triton._wording import did_you_mean, listed
from cdk_triton.cli.artifacts.aws import Aws, code_of, in_parallel
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Entry
from cdk_triton.protocol.documents import DocumentError
from cdk_triton.protocol.index import Index

__all__ = ["Kind", "ReadEndpoint", "ServedModel", "TargetModel", "read_endpoint", "read_endpoints"]

_DENIED = ("AccessDenied", "AccessDeniedException", "403")
_SUFFIX = ".tar.gz"
_ASYNC_INPUT, _ASYNC_OUTPUT = "/async/input", "/async/output"


class Kind(StrEnum):
    """How callers invoke an endpoint."""

    SINGLE = "single model"
    MULTI = "multi-model"
    COMPONENTS = "components"
    ASYNC = "asynchronous"


@dataclass(frozen=True)
class TargetModel:
    """An archive that callers of a multi-model endpoint name.

    Attributes:
        name: the target model.
        ensemble: the ensemble whose current version it is; None if no index lists it.
    """

    name: str
    ensemble: str | None


@dataclass(frozen=True)
class ServedModel:
    """The model that a variant or a component serves.

    Attributes:
        name: the name of the variant or of the component.
        model: the name of the SageMaker Model; None if it does not exist, or the caller has no permission to describe
            it.
        data: the S3 URI of the model's archive, files or target models; None where it is not known.
        environment: the variables of the model's container.
        instance_type: the instance type of a variant.
        instances: the current number of instances of a variant, or of copies of a component.
        image: the URI of the container's image; "" where it is not known.
    """

    name: str
    model: str | None
    data: str | None
    environment: Mapping[str, str]
    instance_type: str | None = None
    instances: int | None = None
    image: str = ""


@dataclass(frozen=True)
class ReadEndpoint:
    """An endpoint, as far as the caller has permission to describe it.

    Attributes:
        name: the endpoint's name.
        status: the status as SageMaker names it, such as `InService`.
        kind: how callers invoke the endpoint.
        variants: the production variants.
        targets: the target models of a multi-model endpoint, the target models of the indexes first.
        components: the inference components.
        hidden: a sentence about what could not be read; "" if everything was read.
        uploads: the S3 URI below which callers of an asynchronous endpoint upload large requests, by the library's
            default prefixes; None for another endpoint, or with other prefixes.
    """

    name: str
    status: str
    kind: Kind
    variants: tuple[ServedModel, ...] = ()
    targets: tuple[TargetModel, ...] = ()
    components: tuple[ServedModel, ...] = ()
    hidden: str = ""
    uploads: str | None = None

    @property
    def current(self) -> tuple[TargetModel, ...]:
        """The target models that an index lists as current; all of them where no index can be read."""
        return tuple(each for each in self.targets if each.ensemble is not None) or self.targets

    @property
    def names(self) -> list[str]:
        """The shortest names by which `target` finds the current target models."""
        ensembles = Counter(each.ensemble for each in self.targets)
        return [
            each.ensemble if each.ensemble is not None and ensembles[each.ensemble] == 1 else each.name
            for each in self.current
        ]

    def target(self, name: str) -> str:
        """The target model of this name, or of the ensemble of this name.

        Raises:
            ConfigurationError: the endpoint does not have it.
        """
        if not self.targets:
            return name
        if name in (each.name for each in self.targets):
            return name
        found = [each.name for each in self.targets if each.ensemble == name]
        if len(found) == 1:
            return found[0]
        known = self.names
        raise ConfigurationError(
            f"the endpoint '{self.name}' has no target model '{name}'{did_you_mean(name, known)}: it has "
            f"{listed(known)}"
        )

    def component(self, name: str) -> str:
        """The component of a name.

        Raises:
            ConfigurationError: the endpoint does not have it.
        """
        known = [each.name for each in self.components]
        if not known or name in known:
            return name
        raise ConfigurationError(
            f"the endpoint '{self.name}' has no component '{name}'{did_you_mean(name, known)}: it has {listed(known)}"
        )


def read_endpoints(aws: Aws) -> list[ReadEndpoint]:
    """Every endpoint of the region, by name.

    Raises:
        ClientError, BotoCoreError: SageMaker did not list them.
    """
    names = sorted(each["EndpointName"] for each in aws.pages("sagemaker", "list_endpoints", "Endpoints"))
    found = in_parallel(lambda name: _unless_gone(aws, name), names)
    return [each for each in found if each is not None]


def read_endpoint(aws: Aws, name: str) -> ReadEndpoint | None:
    """One endpoint; None if the caller has no permission to describe it, but perhaps permission to invoke it.

    Raises:
        ConfigurationError: there is no endpoint of this name.
        ClientError, BotoCoreError: AWS did not answer as expected.
    """
    try:
        found = _unless_gone(aws, name)
    except ClientError as error:
        if code_of(error) in _DENIED:
            return None
        raise
    if found is not None:
        return found
    names = sorted(each["EndpointName"] for each in aws.pages("sagemaker", "list_endpoints", "Endpoints"))
    known = f"the region has {listed(names)}" if names else "the region has no endpoint: deploy one first"
    raise ConfigurationError(f"there is no endpoint '{name}' in {aws.region}{did_you_mean(name, names)}; {known}")


def _unless_gone(aws: Aws, name: str) -> ReadEndpoint | None:
    try:
        described = aws.client("sagemaker").describe_endpoint(EndpointName=name)
    except ClientError as error:
        if "Could not find" in str(error):  # the code is that of every faulty argument
            return None
        raise
    return _read(aws, described)


def _read(aws: Aws, described: Mapping[str, Any]) -> ReadEndpoint:
    name, status = described["EndpointName"], described["EndpointStatus"]
    sagemaker = aws.client("sagemaker")
    try:
        configuration = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
        counts = {each["VariantName"]: each.get("CurrentInstanceCount") for each in described["ProductionVariants"]}
        variants = tuple(
            _served(aws, each["VariantName"], each.get("ModelName"), each, counts.get(each["VariantName"]))
            for each in configuration["ProductionVariants"]
        )
        if all(each.model is None for each in variants):
            return ReadEndpoint(name, status, Kind.COMPONENTS, variants, components=_components(aws, name))
        if "AsyncInferenceConfig" in configuration:
            output = configuration["AsyncInferenceConfig"]["OutputConfig"].get("S3OutputPath", "")
            return ReadEndpoint(name, status, Kind.ASYNC, variants, uploads=_input_prefix(output))
        prefixes = [each.data for each in variants if each.data is not None and each.data.endswith("/")]
        if not prefixes or not _is_multi_model(aws, variants):
            return ReadEndpoint(name, status, Kind.SINGLE, variants)
        return _multi_model(aws, name, status, variants, prefixes)
    except (ClientError, KeyError) as error:
        if isinstance(error, ClientError) and code_of(error) not in _DENIED:
            raise
        hidden = "you do not have the permission to describe its configuration or model"
        return ReadEndpoint(name, status, Kind.SINGLE, hidden=hidden)


def _input_prefix(output: str) -> str | None:
    """`AsyncInference` puts `input_prefix` beside `output_prefix`."""
    directory = output.rstrip("/").removesuffix(_ASYNC_OUTPUT)
    return f"{directory}{_ASYNC_INPUT}" if output.rstrip("/").endswith(_ASYNC_OUTPUT) else None


def _served(
    aws: Aws, name: str, model: str | None, variant: Mapping[str, Any], instances: int | None = None
) -> ServedModel:
    if model is None:
        return ServedModel(name, None, None, {}, variant.get("InstanceType"), instances)
    container = _container(aws, model)
    source = (container.get("ModelDataSource") or {}).get("S3DataSource") or {}
    data = container.get("ModelDataUrl") or source.get("S3Uri")
    variables, image = container.get("Environment", {}), container.get("Image", "")
    return ServedModel(name, model, data, variables, variant.get("InstanceType"), instances, image)


def _container(aws: Aws, model: str) -> Mapping[str, Any]:
    described = aws.client("sagemaker").describe_model(ModelName=model)
    containers: Sequence[Mapping[str, Any]] = described.get("Containers") or [described["PrimaryContainer"]]
    return containers[0]


def _is_multi_model(aws: Aws, variants: Sequence[ServedModel]) -> bool:
    models = {each.model for each in variants if each.model is not None}
    return any(_container(aws, model).get("Mode") == "MultiModel" for model in models)


def _multi_model(
    aws: Aws, name: str, status: str, variants: tuple[ServedModel, ...], prefixes: Sequence[str]
) -> ReadEndpoint:
    try:
        targets = {each.name: each for prefix in prefixes for each in _targets(aws, prefix)}
    except ClientError as error:
        if code_of(error) not in _DENIED:
            raise
        hidden = f"you do not have the permission to list {prefixes[0]}"
        return ReadEndpoint(name, status, Kind.MULTI, variants, hidden=hidden)
    ordered = sorted(targets.values(), key=lambda each: (each.ensemble is None, each.name))
    return ReadEndpoint(name, status, Kind.MULTI, variants, tuple(ordered))


def _targets(aws: Aws, prefix: str) -> Iterator[TargetModel]:
    place = urlsplit(prefix)
    bucket, directory = place.netloc, place.path.lstrip("/")
    ensembles = {target: ensemble for ensemble, target in _current_targets(aws, bucket, directory)}
    for each in aws.pages("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=directory):
        if (target := each["Key"].removeprefix(directory)).endswith(_SUFFIX):
            yield TargetModel(target, ensembles.get(target))


def _current_targets(aws: Aws, bucket: str, directory: str) -> Iterator[tuple[str, str]]:
    """Ensemble and target model: those of the index, and the published ones."""
    try:
        index = Index.parse(_text(aws, bucket, f"{directory}{layout.INDEX}"))
    except DocumentError:  # another program's: the listing has the names all the same
        return
    yield from index.current.items()
    if index.has_catalogue:
        yield from _published(aws, bucket, directory.replace(layout.FLEETS_PREFIX, layout.CATALOGUE_PREFIX, 1))


def _published(aws: Aws, bucket: str, prefix: str) -> Iterator[tuple[str, str]]:
    try:
        keys = [each["Key"] for each in aws.pages("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix)]
    except ClientError as error:
        if code_of(error) not in _DENIED:
            raise
        return
    for text in in_parallel(lambda key: _text(aws, bucket, key), keys):
        with suppress(DocumentError):
            entry = Entry.parse(text)
            if entry.current is not None:
                yield entry.ensemble, entry.current


def _text(aws: Aws, bucket: str, key: str) -> bytes:
    """The content of an object; nothing if it is gone, or the caller has no permission to read it."""
    try:
        text: bytes = aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        if code_of(error) not in ("NoSuchKey", *_DENIED):
            raise
        return b""
    return text


def _components(aws: Aws, endpoint: str) -> tuple[ServedModel, ...]:
    pages = aws.pages("sagemaker", "list_inference_components", "InferenceComponents", EndpointNameEquals=endpoint)
    names = [each["InferenceComponentName"] for each in pages]
    describe = aws.client("sagemaker").describe_inference_component
    described = in_parallel(lambda name: describe(InferenceComponentName=name), names)
    return tuple(
        _served(
            aws,
            name,
            each.get("Specification", {}).get("ModelName"),
            {},
            each.get("RuntimeConfig", {}).get("CurrentCopyCount"),
        )
        for name, each in zip(names, described, strict=True)
    )
