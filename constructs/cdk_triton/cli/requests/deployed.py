"""Reads the signature of a deployed model from the configurations in its archive.

An archive has no index, so it is read from its beginning until the configuration of the ensemble has come.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import PurePosixPath
from typing import IO
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.aws import Aws, code_of
from cdk_triton.cli.endpoints.reading import ReadEndpoint, ServedModel
from cdk_triton.cli.requests.signature import Signature, of_config
from cdk_triton.client.contract import Contract
from cdk_triton.errors import ConfigurationError, ModelConfigError
from cdk_triton.triton import ModelConfig, parse_model_config

__all__ = ["of_endpoint"]

_CONFIG = "config.pbtxt"
_MOST_BYTES = 4 << 20
"""The largest configuration that is read. Real configurations have some kilobytes."""
_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_GIVE = "give --repository DIR, or write the types, as in --input NAME:FP32=@x.npy"


def of_endpoint(
    aws: Aws, endpoint: ReadEndpoint, *, target: str | None, component: str | None, most_bytes: int | None = None
) -> Signature:
    """The signature of the model that a request names.

    Args:
        aws: the account.
        endpoint: the endpoint.
        target: the target model.
        component: the component.
        most_bytes: the size of the largest archive that is read; any by default.

    Raises:
        ConfigurationError: the caller has no permission to read the archive; or the archive cannot be read, is too
            large, or leaves open which of its models callers invoke.
        ClientError, BotoCoreError: AWS did not answer as expected.
    """
    served = _served(endpoint, component)
    if served is None or served.data is None:
        raise ConfigurationError(
            f"you do not have the permission to describe the model of the endpoint '{endpoint.name}', so the types of "
            f"its inputs are not known: {_GIVE}"
        )
    uri = f"{served.data}{target}" if target is not None else served.data
    try:
        configurations = dict(_configurations(aws, uri, served.environment.get(_DEFAULT_MODEL), most_bytes))
    except ClientError as error:
        raise ConfigurationError(f"S3 rejected the request to read {uri} ({code_of(error)}): {_GIVE}") from error
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ConfigurationError(f"{uri} is not a readable archive ({error}): {_GIVE}") from error
    except ModelConfigError as error:
        raise ConfigurationError(f"{uri} has a configuration that cannot be read ({error}): {_GIVE}") from error
    return _chosen(configurations, uri, served.environment)


def _served(endpoint: ReadEndpoint, component: str | None) -> ServedModel | None:
    if component is not None:
        return next((each for each in endpoint.components if each.name == component), None)
    return next(iter(endpoint.variants), None)


def _configurations(
    aws: Aws, uri: str, wanted: str | None, most_bytes: int | None
) -> Iterator[tuple[str, ModelConfig]]:
    """Model name and configuration, up to the wanted model or the first ensemble."""
    for name, text in _texts(aws, uri, most_bytes):
        config = parse_model_config(text, path=f"{name}/{_CONFIG}", allow_unknown_fields=True)
        yield name, config
        if name == wanted or (wanted is None and config.platform == "ensemble"):
            return


def _texts(aws: Aws, uri: str, most_bytes: int | None) -> Iterator[tuple[str, bytes]]:
    place = urlsplit(uri)
    bucket, key = place.netloc, place.path.lstrip("/")
    if not key.endswith("/"):
        found = aws.client("s3").get_object(Bucket=bucket, Key=key)
        with closing(found["Body"]) as body:
            if most_bytes is not None and found["ContentLength"] > most_bytes:
                raise ConfigurationError(f"{uri} has {found['ContentLength']:,} bytes: {_GIVE}")
            yield from _of_archive(body)
        return
    for each in aws.pages("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=key):
        path = PurePosixPath(each["Key"].removeprefix(key))
        if path.name == _CONFIG and len(path.parts) <= 2 and each["Size"] <= _MOST_BYTES:
            yield path.parent.name, aws.client("s3").get_object(Bucket=bucket, Key=each["Key"])["Body"].read()


def _of_archive(body: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=body, mode="r|gz") as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            is_config = path.name == _CONFIG and len(path.parts) <= 2 and member.isfile()
            if is_config and member.size <= _MOST_BYTES and (file := archive.extractfile(member)) is not None:
                yield path.parent.name, file.read()


def _chosen(configurations: Mapping[str, ModelConfig], uri: str, environment: Mapping[str, str]) -> Signature:
    wanted = environment.get(_DEFAULT_MODEL, "")
    ensembles = [name for name, config in configurations.items() if config.platform == "ensemble"]
    candidates = [wanted] if wanted in configurations else ensembles or list(configurations)
    if len(candidates) != 1:
        found = f"{len(candidates)} models" if candidates else "no configuration"
        raise ConfigurationError(f"{uri} has {found}, so the inputs are not known: {_GIVE}")
    name, config = candidates[0], configurations[candidates[0]]
    signature = of_config(config, f"{name}/{_CONFIG} in {uri}")
    # Without the steps of an ensemble, whose configurations may come after gigabytes of weights.
    return replace(signature, contract=Contract.of_config(name, config, [config]))
