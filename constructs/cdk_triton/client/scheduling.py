"""What a request tells Triton's schedulers: its priority, how long it may wait, and its place in a sequence.

The names of the parameters are those of the schedule policy and sequence extensions of Triton's protocol. A request to
an ensemble passes all of them on to each of its steps (core, `src/ensemble_scheduler.cc`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cdk_triton._wording import quoted
from cdk_triton.client.identifiers import is_encodable
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.client.names import Target
    from cdk_triton.client.options import RequestOptions

__all__ = ["ARGUMENTS", "Course", "SequenceStep", "check_sequence_id", "scheduling_parameters"]

_MOST: Final = 2**64 - 1
_MICROSECONDS: Final = 1_000_000
_LONGEST_ID: Final = 128
"""Characters of a correlation id that is text (server, `STRING_CORRELATION_ID_MAX_LENGTH_BYTES`)."""

ARGUMENTS: Final = {
    "priority": "use the option priority",
    "timeout": "use the option queue_timeout_seconds",
    "sequence_id": "use client.sequence(…)",
    "sequence_start": "use client.sequence(…)",
    "sequence_end": "use client.sequence(…)",
    "binary_data_output": "use the option binary",
}
"""What to use instead of a parameter that the server reserves."""


class Course(Protocol):
    """How far the requests of a sequence have come."""

    @property
    def target(self) -> Target | None:
        """Where the first step was answered; all others have to go there, because the state is there."""
        ...

    def answered(self, step: SequenceStep, target: Target) -> None:
        """Note that the model has run a step."""
        ...


class SequenceStep(NamedTuple):
    """The place of a request in a sequence.

    Attributes:
        sequence_id: the sequence, Triton's correlation id.
        is_first: whether the request starts the sequence.
        is_last: whether the request ends it.
        course: the course of the sequence; None for a step that a caller places.
    """

    sequence_id: int | str
    is_first: bool
    is_last: bool
    course: Course | None = None


def scheduling_parameters(options: RequestOptions, step: SequenceStep | None) -> dict[str, Any]:
    """Return the parameters of a request.

    Raises:
        ConfigurationError: a value has another type, or is out of its range.
    """
    parameters: dict[str, Any] = {}
    if (priority := options.get("priority")) is not None:
        if isinstance(priority, bool) or not isinstance(priority, int) or not 1 <= priority <= _MOST:
            raise ConfigurationError(
                f"priority is {quoted(priority)}: give a level from 1, the highest, to the priority_levels of "
                "config.pbtxt"
            )
        parameters["priority"] = priority
    if (seconds := options.get("queue_timeout_seconds")) is not None:
        parameters["timeout"] = _microseconds(seconds)
    if step is not None:
        parameters["sequence_id"] = step.sequence_id
        parameters["sequence_start"] = step.is_first
        parameters["sequence_end"] = step.is_last
    return parameters


def check_sequence_id(sequence_id: object) -> int | str:
    """Return the identifier of a sequence.

    Raises:
        ConfigurationError: Triton does not accept it; it takes 0 and an empty text for no sequence.
    """
    if isinstance(sequence_id, int) and not isinstance(sequence_id, bool) and 1 <= sequence_id <= _MOST:
        return sequence_id
    if isinstance(sequence_id, str) and is_encodable(sequence_id) and 0 < len(sequence_id.encode()) <= _LONGEST_ID:
        return sequence_id
    raise ConfigurationError(
        f"the identifier of the sequence is {quoted(sequence_id)}: give a whole number from 1, or a text of 1 to "
        f"{_LONGEST_ID} bytes in UTF-8"
    )


def _microseconds(seconds: object) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise ConfigurationError(f"queue_timeout_seconds is {quoted(seconds)}: give a positive number of seconds")
    microseconds = max(1, round(seconds * _MICROSECONDS))
    if microseconds > _MOST:
        raise ConfigurationError(f"queue_timeout_seconds is {seconds!r}, which is longer than Triton counts: omit it")
    return microseconds
