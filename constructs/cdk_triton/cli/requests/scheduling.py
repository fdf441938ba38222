"""The options by which `invoke` and `bench` tell Triton's schedulers about a request, and name it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.given import finite, require_unused
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.client.kserve import Body

__all__ = [
    "CustomAttributesOption",
    "FirstOption",
    "InferenceIdOption",
    "LastOption",
    "PriorityOption",
    "QueueTimeoutOption",
    "RequestIdOption",
    "SequenceOption",
    "check_sequence",
    "in_queue",
    "in_sequence",
    "require_no_sequence",
]

_NUMBER = r"0|[1-9][0-9]{0,19}"  # Triton's correlation ID is a number of 64 bits, or a text

SequenceOption = Annotated[
    str | None,
    typer.Option(
        "--sequence",
        metavar="ID",
        help="The sequence that the request is a part of: 7 is a number, 007 a text.",
    ),
]
FirstOption = Annotated[bool, typer.Option("--first", help="With --sequence, start the sequence.")]
LastOption = Annotated[bool, typer.Option("--last", help="With --sequence, end the sequence.")]
PriorityOption = Annotated[
    int | None, typer.Option("--priority", min=1, help="The level in the queue of the model; 1 is the highest.")
]
QueueTimeoutOption = Annotated[
    float | None,
    typer.Option("--queue-timeout", callback=finite, metavar="SECONDS", help="The longest time in a model's queue."),
]
RequestIdOption = Annotated[
    str | None, typer.Option("--request-id", metavar="ID", help="Your identifier, for Triton's trace and verbose log.")
]
InferenceIdOption = Annotated[
    str | None, typer.Option("--inference-id", metavar="ID", help="SageMaker's identifier, for captured data.")
]
CustomAttributesOption = Annotated[
    str | None, typer.Option("--custom-attributes", metavar="TEXT", help="Text that the container gets in a header.")
]


def check_sequence(context: typer.Context, sequence: str | None) -> None:
    """Reject `--first` and `--last` without `--sequence`.

    Raises:
        BadParameter: the command line has one of them.
    """
    if sequence is None:
        require_unused(context, "a request without --sequence", "first", "last")


def in_queue(body: Body, priority: int | None, queue_timeout: float | None) -> Body:
    """The request with these options; what `--data` has stays without them."""
    body = body if priority is None else replace(body, priority=priority)
    return body if queue_timeout is None else replace(body, queue_timeout_seconds=queue_timeout)


def require_no_sequence(body: Body) -> None:
    """Reject a part of a sequence as the request of a measurement, which sends it more than once.

    Raises:
        ConfigurationError: the request is one.
    """
    if body.step is not None:
        raise ConfigurationError(
            "bench sends its request again and again, so it cannot be a part of one sequence: remove sequence_id, "
            "sequence_start and sequence_end from the request; a load makes sequences of its own with "
            "--sequence-length and --sequence-interval"
        )


def in_sequence(body: Body, sequence: str | None, *, first: bool, last: bool) -> Body:
    """The request at this place of a sequence; what `--data` has stays without one.

    Raises:
        ConfigurationError: Triton does not accept the identifier.
    """
    from cdk_triton.client.scheduling import SequenceStep, check_sequence_id

    if sequence is None:
        return body
    is_number = re.fullmatch(_NUMBER, sequence) is not None
    return replace(body, step=SequenceStep(check_sequence_id(int(sequence) if is_number else sequence), first, last))
