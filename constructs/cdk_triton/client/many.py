"""Many small requests as few large ones: which go together, and how an answer is divided among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from cdk_triton.client.payload import InferenceResult
from cdk_triton.client.tensors import as_array
from cdk_triton.errors import CdkTritonError, ConfigurationError, InvocationError, ModelError, PayloadTooLargeError
from cdk_triton.sagemaker.limits import MAX_INVOCATION_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

__all__ = ["Answer", "Batch", "Batches", "arrays_of", "can_be_halved", "check_bounds"]

Answer: TypeAlias = InferenceResult | CdkTritonError
"""The result of one request, or why it does not have any."""

_ROOM_FOR_HEADERS = 65_536


@dataclass(frozen=True)
class Batch:
    """Requests that are sent as one.

    Attributes:
        numbers: the position of each request in the caller's order.
        requests: the inputs of each request.
        rows: how many rows each request has; 0 for a single request whose inputs have no batch dimension.
    """

    numbers: tuple[int, ...]
    requests: tuple[Arrays, ...]
    rows: tuple[int, ...]

    def inputs(self) -> Arrays:
        """The inputs of the one request."""
        import numpy as np

        if len(self.requests) == 1:
            return self.requests[0]
        return {name: np.concatenate([each[name] for each in self.requests]) for name in self.requests[0]}

    def halves(self) -> tuple[Batch, Batch]:
        """The first and the second half of the requests."""
        middle = len(self.numbers) // 2
        return (
            Batch(self.numbers[:middle], self.requests[:middle], self.rows[:middle]),
            Batch(self.numbers[middle:], self.requests[middle:], self.rows[middle:]),
        )

    def divide(self, result: InferenceResult) -> list[Answer]:
        """The rows of each request, as views.

        Raises:
            InvocationError: an output does not have a row for each row of the inputs.
        """
        if len(self.requests) == 1:
            return [result]
        total = sum(self.rows)
        for name, array in result.items():
            if array.shape[:1] != (total,):
                raise InvocationError(
                    f"output '{name}' has the shape {list(array.shape)} for {total} rows that were sent together, so "
                    "the output cannot be divided among the requests: use max_batch_size=1"
                )
        answers: list[Answer] = []
        end = 0
        for rows in self.rows:
            start, end = end, end + rows
            answers.append(replace(result, outputs={name: array[start:end] for name, array in result.items()}))
        return answers


@dataclass(frozen=True)
class Batches:
    """All requests of a caller.

    Attributes:
        batches: what is to be sent.
        faults: the requests that cannot be sent, by their place in the caller's order.
    """

    batches: Sequence[Batch]
    faults: Mapping[int, CdkTritonError]

    @classmethod
    def of(
        cls, requests: Iterable[Mapping[str, Any]], max_batch_size: int, arrays: Callable[[Mapping[str, Any]], Arrays]
    ) -> Batches:
        """Put requests with the same names, types and shapes together, in their order.

        Args:
            requests: the inputs of each request.
            max_batch_size: how many rows are sent together.
            arrays: makes arrays of the inputs of a request.
        """
        done: list[Batch] = []
        open_ones: dict[Any, Batch] = {}
        faults: dict[int, CdkTritonError] = {}
        for number, request in enumerate(requests):
            try:
                inputs = arrays(request)
                rows = _rows(inputs) if max_batch_size > 1 else 0
            except CdkTritonError as error:
                faults[number] = error
                continue
            kind = _kind(inputs) if max_batch_size > 1 else number
            before = open_ones.pop(kind, None)
            if before is not None and not _fits(before, inputs, rows, max_batch_size):
                done.append(before)
                before = None
            alone = Batch((number,), (inputs,), (rows,))
            open_ones[kind] = alone if before is None else _together(before, alone)
        return cls([*done, *open_ones.values()], faults)

    def in_order(self, answers: Iterable[Sequence[Answer]]) -> list[Answer]:
        """Return one answer for each request, in the order of the requests.

        Args:
            answers: the answers of each batch.
        """
        found: dict[int, Answer] = dict(self.faults)
        for batch, given in zip(self.batches, answers, strict=True):
            found.update(zip(batch.numbers, given, strict=True))
        return [found[number] for number in range(len(found))]


def arrays_of(request: Mapping[str, Any]) -> Arrays:
    """Return the inputs of a request as arrays that can be put together.

    Raises:
        ConfigurationError: the request is not a mapping of arrays or of nested lists of text.
    """
    if not isinstance(request, Mapping):
        raise ConfigurationError(
            f"a request of infer_many is of type {type(request).__name__}: give a mapping from tensor name to array"
        )
    # Texts of unequal length have unequal types, and as objects the same.
    arrays = {name: as_array(name, value) for name, value in request.items()}
    return {name: array.astype(object) if array.dtype.kind in "US" else array for name, array in arrays.items()}


def can_be_halved(error: CdkTritonError, batch: Batch) -> bool:
    """Whether the requests of a batch could succeed if they were sent separately.

    One bad row fails the whole request in Triton. A container that did not answer (status 0) may have run the model.
    """
    divides = isinstance(error, PayloadTooLargeError) or (isinstance(error, ModelError) and error.status != 0)
    return divides and len(batch.requests) > 1


def check_bounds(max_batch_size: int, concurrency: int) -> None:
    """Reject numbers that cannot be bounds.

    Raises:
        ConfigurationError: a number is not a whole number of at least 1.
    """
    for name, value in {"max_batch_size": max_batch_size, "concurrency": concurrency}.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigurationError(f"{name} is {value!r}: give a whole number, at least 1")


def _rows(inputs: Arrays) -> int:
    if not inputs:
        raise ConfigurationError("a request has no inputs: give at least one input, or use max_batch_size=1")
    rows = {array.shape[0] if array.ndim else None for array in inputs.values()}
    first = next(iter(rows), None)
    if len(rows) != 1 or not first:
        shapes = ", ".join(f"'{name}' {list(array.shape)}" for name, array in inputs.items())
        raise ConfigurationError(
            f"the inputs of a request have the shapes {shapes}: give each input the same first dimension of at least "
            "1, the batch size, or use max_batch_size=1"
        )
    return first


def _kind(inputs: Arrays) -> Any:
    return tuple(sorted((name, array.dtype.str, array.shape[1:]) for name, array in inputs.items()))


def _fits(batch: Batch, inputs: Arrays, rows: int, max_batch_size: int) -> bool:
    # Elements of text are counted as pointers: a batch with long ones is halved when its size is known.
    row_bytes = sum(array.nbytes for array in inputs.values()) // rows
    total = sum(batch.rows) + rows
    return total <= max_batch_size and total * row_bytes <= MAX_INVOCATION_BYTES - _ROOM_FOR_HEADERS


def _together(batch: Batch, other: Batch) -> Batch:
    return Batch(batch.numbers + other.numbers, batch.requests + other.requests, batch.rows + other.rows)
