"""`invoke --stream`: prints each result of an endpoint that generates as it arrives."""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

import typer

from cdk_triton.cli.endpoints.reading import Kind
from cdk_triton.cli.invoke import answer
from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import image_release
from cdk_triton.triton.inference_type import VARIABLE, inference_type, reads_inference_type
from cdk_triton.triton.server_options import variable_since

if TYPE_CHECKING:
    from cdk_triton.cli.endpoints.reading import ReadEndpoint
    from cdk_triton.client import InferenceResult, TritonClient
    from cdk_triton.client.contract import Contract
    from cdk_triton.client.kserve import Body
    from cdk_triton.client.options import GenerateOptions

__all__ = ["check_protocol", "print_results"]


def check_protocol(endpoint: ReadEndpoint | None, component: str | None, *, stream: bool) -> None:
    """Reject a request that the container of a described endpoint does not read.

    Raises:
        ConfigurationError: the request streams and the container cannot, or the other way around.
    """
    if endpoint is None:
        return
    if stream and endpoint.kind in (Kind.MULTI, Kind.ASYNC):
        raise ConfigurationError(
            f"the endpoint '{endpoint.name}' is {endpoint.kind.value} and cannot stream: omit --stream"
        )
    served = [each for each in endpoint.components if each.name == component] or list(endpoint.variants)
    described = [each for each in served if each.model is not None]
    types = {inference_type(each.environment.get(VARIABLE), image_release(each.image)) for each in described}
    if stream and types == {"infer"}:
        old = [release for each in described if not reads_inference_type(release := image_release(each.image))]
        reason = f"release {old[0]} does not read {VARIABLE}" if old else f"{VARIABLE} is not set"
        newer = f"a platform with release {variable_since(VARIABLE)} or newer and " if old else ""
        raise ConfigurationError(
            f"the container of the endpoint '{endpoint.name}' does not generate, because {reason}: omit --stream, or "
            f"give the model {newer}inference_type='generate_stream' in its ContainerEnvironment"
        )
    if not stream and types in ({"generate"}, {"generate_stream"}) and endpoint.kind is not Kind.MULTI:
        raise ConfigurationError(
            f"the container of the endpoint '{endpoint.name}' has {VARIABLE}={types.pop()}, so it does not read "
            "requests of the infer protocol: add --stream"
        )


def print_results(
    client: TritonClient, body: Body, contract: Contract | None, options: GenerateOptions, *, as_json: bool
) -> None:
    """Send a request, and print each result when it arrives: a table, or a line of JSON.

    Args:
        client: the client of the endpoint.
        body: the request.
        contract: the outputs of the model, if they are known.
        options: the options that select the model.
        as_json: whether each result is a line of JSON.

    Raises:
        ConfigurationError: the request cannot be sent in the generate protocol.
        InvocationError: the endpoint did not answer, or its answer breaks off.
    """
    started, count = time.perf_counter(), 0
    # The generate protocol has no types: FP32 and FP64, or INT32 and INT64, look the same in its JSON.
    typed = () if contract is None else contract.outputs
    with client._stream(body.arrays, contract, {**options, **body.generate_options}) as results:
        for count, result in enumerate(results, 1):
            seconds = time.perf_counter() - started
            for line in _lines(result, count, seconds, typed=typed, as_json=as_json):
                typer.echo(line)
        seconds, first, variant = time.perf_counter() - started, results.first_result_seconds, results.variant
    after = "" if first is None else f", the first after {first * 1000:.0f} ms"
    served = "" if variant is None else f", by {variant}"
    typer.echo(f"{count} result{'' if count == 1 else 's'} in {seconds * 1000:.0f} ms{after}{served}", err=True)


def _lines(
    result: InferenceResult, number: int, seconds: float, *, typed: Container[str], as_json: bool
) -> Iterator[str]:
    if as_json:
        outputs = answer.as_json(result.outputs, typed=typed)
        yield json.dumps({"seconds": round(seconds, 6), "outputs": outputs}, ensure_ascii=False)
        return
    yield f"result {number} after {seconds * 1000:.0f} ms"
    yield from answer.as_text(result.outputs, typed=typed)
