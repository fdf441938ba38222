"""The options by which `invoke` and `bench` take a request, and the request that they make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.given import require_unused
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.cli.artifacts.aws import Aws
    from cdk_triton.cli.endpoints.reading import ReadEndpoint
    from cdk_triton.cli.requests.signature import Signature
    from cdk_triton.client.contract import Contract
    from cdk_triton.client.kserve import Body

__all__ = [
    "ComponentOption",
    "DataOption",
    "EndpointArgument",
    "InputOption",
    "RandomOption",
    "RepositoryOption",
    "TargetOption",
    "VariantOption",
    "check_sources",
    "check_target",
    "known_contract",
    "request_body",
]

_QUICK_BYTES = 16 << 20
"""The largest archive that is read only to check the types of a request and to add the batch dimension.

This takes about a second.
"""

EndpointArgument = Annotated[
    str | None,
    typer.Argument(metavar="ENDPOINT", help="The endpoint's name; without it, all are listed.", show_default=False),
]
TargetOption = Annotated[
    str | None,
    typer.Option("--target-model", metavar="NAME", help="The target model of a multi-model endpoint, or its ensemble."),
]
ComponentOption = Annotated[
    str | None,
    typer.Option("--component", metavar="NAME", help="The inference component of an endpoint that has components."),
]
VariantOption = Annotated[
    str | None, typer.Option("--variant", metavar="NAME", help="The production variant to call, if there are several.")
]
DataOption = Annotated[str | None, typer.Option("--data", metavar="FILE", help="A KServe body in JSON; - reads stdin.")]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME[:TYPE]=VALUE",
        help="An input: JSON, a text, or @FILE (.npy; .txt, a string per line; others as bytes); may be repeated.",
    ),
]
RandomOption = Annotated[bool, typer.Option("--random", help="Send random values for the inputs that are not given.")]
RepositoryOption = Annotated[
    Path | None,
    typer.Option(
        "--repository", metavar="DIR", help="The model repository that has the types, instead of the deployed archive."
    ),
]


def check_sources(context: typer.Context, data: str | None, inputs: Sequence[str], *, random: bool) -> None:
    """Reject a request without a source or with two, and `--repository` for a request that has its types.

    Raises:
        BadParameter: nothing is to be sent, or `--data` is combined with the others or with `--repository`.
    """
    if data is None and not inputs and not random:
        raise typer.BadParameter("there is nothing to send: add --random, --input NAME=@FILE or --data FILE")
    if data is not None and (inputs or random):
        raise typer.BadParameter("--data is a whole request: omit --input and --random", param_hint="--data")
    if data is not None:
        require_unused(context, "--data", "repository")


def check_target(
    endpoint: ReadEndpoint | None, target: str | None, component: str | None
) -> tuple[str | None, str | None]:
    """The target model and the component in full.

    Raises:
        ConfigurationError: the endpoint needs one, does not take one, or does not have it.
    """
    from cdk_triton._wording import listed
    from cdk_triton.cli.endpoints.reading import Kind

    if endpoint is None or endpoint.hidden:
        return target, component
    if target is not None and endpoint.kind is not Kind.MULTI:
        raise ConfigurationError(
            f"the endpoint '{endpoint.name}' is not a multi-model endpoint ({endpoint.kind.value}): omit --target-model"
        )
    if component is not None and endpoint.kind is not Kind.COMPONENTS:
        raise ConfigurationError(f"the endpoint '{endpoint.name}' does not have components: omit --component")
    if endpoint.kind is Kind.MULTI and target is None:
        raise ConfigurationError(
            f"the endpoint '{endpoint.name}' serves several models: add --target-model and one of "
            f"{listed(endpoint.names)}"
        )
    if endpoint.kind is Kind.COMPONENTS and component is None:
        names = [each.name for each in endpoint.components]
        raise ConfigurationError(
            f"the endpoint '{endpoint.name}' has components: add --component and one of {listed(names)}"
        )
    return (
        None if target is None else endpoint.target(target),
        None if component is None else endpoint.component(component),
    )


def request_body(
    aws: Aws,
    endpoint: ReadEndpoint | None,
    asked: tuple[str | None, str | None],
    *,
    data: str | None,
    inputs: Sequence[str],
    random: bool,
    repository: Path | None,
) -> tuple[Body, Signature | None]:
    """The request that the options describe, and the signature of the model if it was read for that.

    Args:
        aws: the account.
        endpoint: the endpoint; None if the caller has no permission to describe it.
        asked: the target model and the component.
        data: a file with the whole request.
        inputs: single inputs.
        random: whether the other inputs get random values.
        repository: a directory that has the types.

    Raises:
        ConfigurationError: an input cannot be read or does not fit.
        RepositoryError: the repository cannot be read.
    """
    from cdk_triton.cli.requests.inputs import given_input, require_types, tensors
    from cdk_triton.client.kserve import Body, read_body

    if data is not None:
        return read_body(data), None
    given = [given_input(each) for each in inputs]
    signature = deployed = None
    dims: dict[str, tuple[int, ...] | None] = {}
    if random or repository is not None or any(each.datatype is None for each in given):
        signature = _signature(aws, endpoint, asked, repository)
    elif endpoint is not None and (deployed := _quick_signature(aws, endpoint, asked)) is not None:
        require_types(given, deployed)
        dims = {each.name: each.dims for each in deployed.inputs}
    return Body(tensors(given, signature, random=random, dims=dims)), signature or deployed


def known_contract(
    aws: Aws, endpoint: ReadEndpoint | None, asked: tuple[str | None, str | None], signature: Signature | None
) -> Contract | None:
    """What the model that answers says about requests and answers.

    Args:
        aws: the account.
        endpoint: the endpoint; None if the caller has no permission to describe it.
        asked: the target model and the component.
        signature: the signature if it is known.

    Returns:
        None if it is not known, not known in a moment, or depends on the variant or, during an update, on the instance
        that answers.
    """
    if endpoint is not None and (endpoint.status != "InService" or len({each.data for each in endpoint.variants}) > 1):
        return None
    if signature is None and endpoint is not None:
        signature = _quick_signature(aws, endpoint, asked)
    return None if signature is None else signature.contract


def _quick_signature(aws: Aws, endpoint: ReadEndpoint, asked: tuple[str | None, str | None]) -> Signature | None:
    """For a request that has its types. None if it cannot be read, or not in a moment."""
    from botocore.exceptions import BotoCoreError, ClientError

    from cdk_triton.cli.requests.deployed import of_endpoint

    try:
        return of_endpoint(aws, endpoint, target=asked[0], component=asked[1], most_bytes=_QUICK_BYTES)
    except (ConfigurationError, BotoCoreError, ClientError):
        return None


def _signature(
    aws: Aws, endpoint: ReadEndpoint | None, asked: tuple[str | None, str | None], repository: Path | None
) -> Signature:
    from cdk_triton.cli.requests.signature import of_repository

    if repository is not None:
        return of_repository(repository)
    if endpoint is None:
        raise ConfigurationError(
            "you do not have the permission to describe the endpoint, so the types of its inputs are not known: add "
            "--repository DIR, or write the types, as in --input NAME:FP32=@x.npy"
        )
    from cdk_triton.cli.progress import working
    from cdk_triton.cli.requests.deployed import of_endpoint

    with working("reading the types from the deployed archive; --repository DIR is faster"):
        return of_endpoint(aws, endpoint, target=asked[0], component=asked[1])
