"""A request in a file, as KServe's Open Inference Protocol writes it in JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tritonclient.http import InferInput
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from cdk_triton._wording import quoted
from cdk_triton.client.scheduling import SequenceStep, check_sequence_id
from cdk_triton.client.tensors import DATATYPES, decode_tensor, encode_tensor
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

    from cdk_triton.client.options import GenerateRequestOptions, SingleRequestOptions

__all__ = ["Body", "read_body", "tensor"]

_KNOWN = {"id", "inputs", "outputs", "parameters"}
_FORM = '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}'


@dataclass(frozen=True)
class Body:
    """A request.

    Attributes:
        inputs: the input tensors.
        outputs: the requested outputs; empty for all.
        request_id: the identifier of the request.
        parameters: the custom parameters of the request.
        priority: its level in the queue; None for the default.
        queue_timeout_seconds: how long it may wait in the queue; None for the default.
        step: its place in a sequence; None outside of one.
        inference_id: SageMaker's identifier of the request, which a file does not have.
        custom_attributes: the text for the container, which a file does not have.
    """

    inputs: list[InferInput]
    outputs: tuple[str, ...] = ()
    request_id: str = ""
    parameters: Mapping[str, str | int | bool] = field(default_factory=dict)
    priority: int | None = None
    queue_timeout_seconds: float | None = None
    step: SequenceStep | None = None
    inference_id: str | None = None
    custom_attributes: str | None = None

    @property
    def options(self) -> SingleRequestOptions:
        """The options of `infer` that the request has."""
        return {
            "outputs": self.outputs or None,
            "request_id": self.request_id,
            "parameters": self.parameters,
            "priority": self.priority,
            "queue_timeout_seconds": self.queue_timeout_seconds,
            "inference_id": self.inference_id,
            "custom_attributes": self.custom_attributes,
        }

    @property
    def generate_options(self) -> GenerateRequestOptions:
        """The options of `stream` that the request has."""
        return {
            "request_id": self.request_id,
            "parameters": self.parameters,
            "inference_id": self.inference_id,
            "custom_attributes": self.custom_attributes,
        }

    @property
    def arrays(self) -> dict[str, Any]:
        """The input tensors as arrays by name, for Triton's generate protocol.

        Raises:
            ConfigurationError: the request names outputs, which that protocol cannot select.
        """
        if self.outputs:
            raise ConfigurationError("a stream always has all outputs: remove 'outputs' from the request")
        if self.step is not None or self.priority is not None or self.queue_timeout_seconds is not None:
            raise ConfigurationError(
                "Triton's generate protocol has no sequences, priorities and time-outs: remove them from 'parameters'"
            )
        encoded = [encode_tensor(None, each, binary=True) for each in self.inputs]
        return {entry["name"]: decode_tensor(entry, bytes(data or b""), 0) for entry, data in encoded}


def read_body(file: str) -> Body:
    """Read a request from a file, or from stdin for `-`.

    Raises:
        ConfigurationError: the file cannot be read, or is not such a request.
    """
    name = "stdin" if file == "-" else file
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be read: {error.strerror}; give another, or - for stdin") from error
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{name} is not JSON ({error}): write a KServe body, such as {_FORM}") from error
    if not isinstance(document, dict) or not isinstance(document.get("inputs"), list):
        raise ConfigurationError(f"{name} has no list 'inputs': write a KServe body, such as {_FORM}")
    if unknown := sorted(set(document) - _KNOWN):
        raise ConfigurationError(f"{name} has the member {quoted(unknown[0])}, which a KServe body does not have")
    try:
        parameters = dict(document.get("parameters", {}))
        timeout = _whole(parameters, "timeout", " of microseconds")
        return Body(
            [_input(each, name) for each in document["inputs"]],
            tuple(str(each["name"]) for each in document.get("outputs", [])),
            str(document.get("id", "")),
            priority=_whole(parameters, "priority", ", such as 1"),
            queue_timeout_seconds=None if timeout is None else timeout / 1e6,
            step=_step(parameters),
            parameters=parameters,
        )
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{name} is not a KServe body ({error!r}): write {_FORM}") from error


def _whole(parameters: dict[str, Any], name: str, form: str) -> int | None:
    """Takes a number from the parameters; the server takes 0 for none."""
    value = parameters.pop(name, None)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ConfigurationError(f"{name} in 'parameters' is {quoted(value)}: write a whole number{form}")
    return value or None


def _step(parameters: dict[str, Any]) -> SequenceStep | None:
    """Takes the parameters of a sequence from the others; the server takes the identifiers 0 and "" for none."""
    sequence_id = parameters.pop("sequence_id", None)
    ends = {name: parameters.pop(name, False) for name in ("sequence_start", "sequence_end")}
    for name, value in ends.items():
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name} in 'parameters' is {quoted(value)}: write true or false")
    if sequence_id is None or (sequence_id in (0, "") and not isinstance(sequence_id, bool)):
        if given := next((name for name, value in ends.items() if value), None):
            raise ConfigurationError(f"the request has {given} and no sequence_id: add it to 'parameters'")
        return None
    return SequenceStep(check_sequence_id(sequence_id), *ends.values())


def tensor(name: str, datatype: str, values: npt.NDArray[Any]) -> InferInput:
    """A tensor of values, which are converted to its type.

    Raises:
        ConfigurationError: a value is not one of the type.
    """
    try:
        array = values if datatype == "BYTES" else _converted(values, datatype)
        return InferInput(name, list(array.shape), datatype).set_data_from_numpy(array)
    except (ValueError, TypeError, OverflowError, InferenceServerException) as error:
        raise ConfigurationError(f"the input '{name}' cannot be {datatype}: {error}") from error


def _converted(values: npt.NDArray[Any], datatype: str) -> npt.NDArray[Any]:
    wanted = np.dtype(triton_to_np_dtype(datatype))
    if wanted.kind in "iu" and values.dtype.kind in "iuf" and values.size:
        limits = np.iinfo(wanted)
        if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
            raise ValueError("a value is not a whole number")
        if values.min() < limits.min or values.max() > limits.max:
            raise ValueError(
                f"its values are {values.min()} to {values.max()}, but the type holds {limits.min} to {limits.max}; "
                "give values that the type holds"
            )
    if values.dtype.kind not in "biuf":
        raise ValueError("it has values that are not numbers")
    return np.ascontiguousarray(values, dtype=wanted)


def _input(member: Mapping[str, Any], name: str) -> InferInput:
    if member.get("parameters"):
        raise ConfigurationError(
            f"{name} has parameters at the input {quoted(member['name'])}, such as the size of binary data: give plain "
            "JSON, or --input NAME=@FILE"
        )
    datatype, shape = member["datatype"], tuple(int(size) for size in member["shape"])
    if datatype not in DATATYPES:
        raise ConfigurationError(f"{name} has the datatype {quoted(datatype)}: write one of {', '.join(DATATYPES)}")
    if datatype == "BYTES":
        flat = np.array([str(each).encode() for each in _flat(member["data"])], dtype=object)
    else:
        flat = np.array(list(_flat(member["data"])))
    if flat.size != np.prod(shape, dtype=np.int64):
        raise ConfigurationError(
            f"{name} has {flat.size:,} value{'s' * (flat.size != 1)} for the input '{member['name']}', whose shape is "
            f"{list(shape)}: give as many values as the shape has"
        )
    return tensor(str(member["name"]), datatype, flat.reshape(shape))


def _flat(data: Any) -> list[Any]:
    if not isinstance(data, list):
        return [data]
    return [value for each in data for value in _flat(each)]
