"""The command `invoke`: sends a request to an endpoint, and prints the answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdk_triton.cli.given import given, require_unused
from cdk_triton.cli.requests.options import (
    ComponentOption,
    DataOption,
    EndpointArgument,
    InputOption,
    RandomOption,
    RepositoryOption,
    TargetOption,
    VariantOption,
    check_sources,
    check_target,
    known_contract,
    request_body,
)
from cdk_triton.cli.requests.scheduling import (
    CustomAttributesOption,
    FirstOption,
    InferenceIdOption,
    LastOption,
    PriorityOption,
    QueueTimeoutOption,
    RequestIdOption,
    SequenceOption,
    check_sequence,
    in_queue,
    in_sequence,
)
from cdk_triton.errors import ConfigurationError, InvocationError, RepositoryError

if TYPE_CHECKING:
    from cdk_triton.cli.artifacts.aws import Aws
    from cdk_triton.cli.endpoints.reading import ReadEndpoint
    from cdk_triton.client import InferenceResult
    from cdk_triton.client.contract import Contract
    from cdk_triton.client.kserve import Body
    from cdk_triton.client.options import GenerateOptions

__all__ = ["AnswerFormat", "invoke", "usage_errors"]


class AnswerFormat(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[AnswerFormat, typer.Option("--format", help="How to print the answer.")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write each output into a file: .npy, .txt or .bin, by its type."),
]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="For an endpoint that generates: print each result as it arrives.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="With --out, overwrite existing files.")]


_OF_INFER = ("sequence", "first", "last", "priority", "queue_timeout", "out", "force")
"""The parameters that a stream does not use: Triton's generate protocol has no schedulers."""

_OF_A_REQUEST = (
    *("target_model", "component", "variant", "data", "inputs", "random", "repository", "stream"),
    *("request_id", "inference_id", "custom_attributes"),
    *_OF_INFER,
)
"""The parameters that a list of endpoints does not use."""


def invoke(
    context: typer.Context,
    endpoint: EndpointArgument = None,
    target_model: TargetOption = None,
    component: ComponentOption = None,
    variant: VariantOption = None,
    data: DataOption = None,
    inputs: InputOption = None,
    random: RandomOption = False,
    repository: RepositoryOption = None,
    sequence: SequenceOption = None,
    first: FirstOption = False,
    last: LastOption = False,
    priority: PriorityOption = None,
    queue_timeout: QueueTimeoutOption = None,
    request_id: RequestIdOption = None,
    inference_id: InferenceIdOption = None,
    custom_attributes: CustomAttributesOption = None,
    stream: StreamOption = False,
    out: OutOption = None,
    force: ForceOption = False,
    output: FormatOption = AnswerFormat.TEXT,
) -> None:
    """Send a request to an endpoint, on AWS or on the local AWS, and print the answer.

    Example: cdk-triton invoke my-endpoint --target-model image --input IMAGE=@dog.jpg

    Without an endpoint, list the endpoints with their target models, variants and components.
    """
    from cdk_triton.cli.artifacts.aws import Aws, sentences

    with usage_errors(), sentences(InvocationError):
        aws = Aws()
        if endpoint is None:
            _list_endpoints(aws, output, is_request=bool(given(context, *_OF_A_REQUEST)))
            return
        _check_files(context, out, stream=stream)
        check_sequence(context, sequence)
        check_sources(context, data, inputs or (), random=random)
        found = _described(aws, endpoint)
        asked = check_target(found, target_model, component)
        _check_request(found, asked[1], variant, stream=stream)
        body, signature = request_body(
            aws, found, asked, data=data, inputs=inputs or (), random=random, repository=repository
        )
        body = in_queue(in_sequence(body, sequence, first=first, last=last), priority, queue_timeout)
        body = replace(body, request_id=request_id or body.request_id)
        body = replace(body, inference_id=inference_id, custom_attributes=custom_attributes)
        contract = known_contract(aws, found, asked, signature) if stream or body.step is not None else None
        if stream:
            _stream(aws, endpoint, asked, variant, body, contract, output)
            return
        if body.step is not None and contract is not None:
            contract.check_sequence_id(body.step.sequence_id)
        started = time.perf_counter()
        result = _answer(aws, endpoint, found, asked, variant, body)
        seconds = time.perf_counter() - started
    files: Sequence[Path] = []
    try:
        if out is not None:
            files = _written(result, out, force=force)
    finally:
        _print(output, endpoint, asked, result, seconds, files)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn an argument that cannot be used, or what it names, into a usage error."""
    try:
        yield
    except (ConfigurationError, RepositoryError) as error:
        raise typer.BadParameter(str(error)) from error


def _list_endpoints(aws: Aws, output: AnswerFormat, *, is_request: bool) -> None:
    """If a request was to be sent, on stderr and as a usage error."""
    from cdk_triton.cli.endpoints.reading import read_endpoints
    from cdk_triton.cli.endpoints.text import as_json, as_text

    endpoints = read_endpoints(aws)
    if output is AnswerFormat.JSON and not is_request:
        typer.echo(json.dumps({"endpoints": as_json(endpoints)}, indent=2, ensure_ascii=False))
    elif endpoints:
        for line in as_text(endpoints):
            typer.echo(line, err=is_request)
    else:
        typer.echo(f"there is no endpoint in {aws.region}: deploy one first", err=True)
    if is_request:
        raise typer.BadParameter("no endpoint is named: add one of those that are listed above")


def _described(aws: Aws, name: str) -> ReadEndpoint | None:
    from cdk_triton.cli.endpoints.reading import read_endpoint

    found = read_endpoint(aws, name)
    if found is None:
        return None
    if found.status in ("Updating", "SystemUpdating", "RollingBack"):
        typer.echo(f"the endpoint '{name}' is {found.status}: its old or its new instances answer", err=True)
    elif found.status != "InService":
        raise InvocationError(
            f"the endpoint '{name}' is {found.status} and answers no request: wait until it is InService, or deploy it"
        )
    return found


def _answer(
    aws: Aws,
    name: str,
    endpoint: ReadEndpoint | None,
    asked: tuple[str | None, str | None],
    variant: str | None,
    body: Body,
) -> InferenceResult:
    from cdk_triton.cli.endpoints.reading import Kind
    from cdk_triton.cli.progress import working
    from cdk_triton.client import TritonClient
    from cdk_triton.client.runtime import default_runtime
    from cdk_triton.sagemaker.limits import ASYNC_SECONDS

    uploads = None if endpoint is None else endpoint.uploads
    client = TritonClient(name, default_runtime(aws.session), input_location=uploads, s3=aws.client("s3"))
    with working(f"waiting for {name}"):
        if endpoint is not None and endpoint.kind is Kind.ASYNC:
            if body.step is not None:
                raise ConfigurationError(
                    "an asynchronous endpoint has no sequences: omit --sequence, and sequence_id in the request"
                )
            return client.submit(body.inputs, **body.options).result(timeout=ASYNC_SECONDS)
        return client._infer(
            body.inputs,
            body.step,
            target_model=asked[0],
            inference_component=asked[1],
            target_variant=variant,
            **body.options,
        )


def _stream(
    aws: Aws,
    name: str,
    asked: tuple[str | None, str | None],
    variant: str | None,
    body: Body,
    contract: Contract | None,
    output: AnswerFormat,
) -> None:
    from cdk_triton.cli.invoke.streaming import print_results
    from cdk_triton.client import TritonClient
    from cdk_triton.client.runtime import default_runtime

    target_model, component = asked
    if target_model is not None:
        raise ConfigurationError("a multi-model endpoint cannot stream: omit --target-model or --stream")
    client = TritonClient(name, default_runtime(aws.session))
    options: GenerateOptions = {"inference_component": component, "target_variant": variant}
    print_results(client, body, contract, options, as_json=output is AnswerFormat.JSON)


def _check_files(context: typer.Context, out: Path | None, *, stream: bool) -> None:
    if stream:
        require_unused(context, "--stream", *_OF_INFER)
    if out is None:
        require_unused(context, "an answer without --out DIR", "force")
    _require_directory(out)


def _check_request(endpoint: ReadEndpoint | None, component: str | None, variant: str | None, *, stream: bool) -> None:
    """`InvokeEndpointAsync` does not have `TargetVariant` (API reference)."""
    from cdk_triton.cli.endpoints.reading import Kind
    from cdk_triton.cli.invoke.streaming import check_protocol

    check_protocol(endpoint, component, stream=stream)
    if variant is not None and endpoint is not None and endpoint.kind is Kind.ASYNC:
        raise ConfigurationError(
            f"the endpoint '{endpoint.name}' is asynchronous, so SageMaker chooses the variant: omit --variant"
        )


def _require_directory(out: Path | None) -> None:
    """Before the request, so that its answer is not lost."""
    if out is None:
        return
    taken = next((each for each in (out, *out.parents) if each.exists() or each.is_symlink()), None)
    if taken is not None and not taken.is_dir():
        raise ConfigurationError(f"--out is '{out}', but '{taken}' is not a directory: give another directory")


def _written(result: InferenceResult, out: Path, *, force: bool) -> Sequence[Path]:
    from cdk_triton.cli.invoke.answer import write_files

    with usage_errors():
        return write_files(result.outputs, out, force=force)


def _print(
    output: AnswerFormat,
    endpoint: str,
    asked: tuple[str | None, str | None],
    result: InferenceResult,
    seconds: float,
    files: Sequence[Path],
) -> None:
    from cdk_triton.cli.invoke import answer

    if output is AnswerFormat.JSON:
        document: Mapping[str, Any] = {
            "endpoint": endpoint,
            "target_model": asked[0],
            "component": asked[1],
            "variant": result.variant,
            "seconds": round(seconds, 6),
            "outputs": [] if files else answer.as_json(result.outputs),
            "files": [str(file) for file in files],
        }
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for line in answer.as_text(result.outputs):
        typer.echo(line)
    for file in files:
        typer.echo(f"wrote {file}", err=True)
    served = "" if result.variant is None else f" by {result.variant}"
    typer.echo(f"answered in {seconds * 1000:.0f} ms{served}", err=True)
