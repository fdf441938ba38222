"""A request in a file, as KServe's Open Inference Protocol writes it in JSON."""

from __future__ import annotations

import json
import math
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
from cdk_triton.client.tensors import DATATYPES, as_numbers, decode_tensor, encode_tensor
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

    from cdk_triton.client.options import GenerateRequestOptions, SingleRequestOptions

__all__ = ["Body", "read_body", "tensor"]

_KNOWN = {"id", "inputs", "outputs", "parameters"}
_TENSOR = '{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}'
# What JSON has for a datatype; the server compares the types too (http_server.cc, ReadDataFromJsonHelper).
_NUMBERS = ((int, float), "numbers")
_VALUES: Mapping[str, tuple[tuple[type, ...], str]] = {"BOOL": ((bool,), "true or false"), "BYTES": ((str,), "text")}
_OUTPUT = '{"name": "y"}'
_FORM = f'{{"inputs": [{_TENSOR}]}}'


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
        raise ConfigurationError(_no_json(name, content, error)) from error
    if isinstance(document, dict) and "instances" in document:
        raise ConfigurationError(
            f"{name} has the member 'instances', as a request to TensorFlow Serving has: write a KServe body, such as "
            f"{_FORM}"
        )
    if not isinstance(document, dict) or not isinstance(document.get("inputs"), list):
        raise ConfigurationError(f"{name} has no list 'inputs': write a KServe body, such as {_FORM}")
    if unknown := sorted(set(document) - _KNOWN):
        raise ConfigurationError(f"{name} has the member {quoted(unknown[0])}, which a KServe body does not have")
    parameters = document.get("parameters", {})
    if not isinstance(parameters, dict):
        raise ConfigurationError(f"{name} has the 'parameters' {quoted(parameters)}: write an object, such as {{}}")
    parameters = dict(parameters)
    timeout = _whole(parameters, "timeout", " of microseconds")
    return Body(
        [_input(each, name) for each in document["inputs"]],
        _outputs(document.get("outputs", []), name),
        str(document.get("id", "")),
        priority=_whole(parameters, "priority", ", such as 1"),
        queue_timeout_seconds=None if timeout is None else timeout / 1e6,
        step=_step(parameters),
        parameters=parameters,
    )


def _no_json(name: str, content: bytes, error: Exception) -> str:
    """What a file is instead."""
    text = content.decode(errors="surrogateescape")
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        end = 0
    if "binary_data_size" in text[:end]:
        size = len(text[:end].encode(errors="surrogateescape"))
        return (
            f"{name} is a request with binary tensors after {size:,} bytes of JSON, but only JSON can be read here: "
            "give each tensor as --input NAME=@FILE, or send the file with boto3 and a content type that has "
            f"json-header-size={size}"
        )
    if isinstance(error, UnicodeDecodeError):
        return f"{name} is not text in UTF-8, so it is not JSON: give the file as --input NAME=@FILE, or write {_FORM}"
    return f"{name} is not JSON ({error}): write a KServe body, such as {_FORM}"


def _outputs(members: Any, name: str) -> tuple[str, ...]:
    if not isinstance(members, list):
        raise ConfigurationError(f"{name} has the 'outputs' {quoted(members)}: write a list of objects with a name")
    for each in members:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise ConfigurationError(f"{name} has the output {quoted(each)}: write an object, such as {_OUTPUT}")
    return tuple(each["name"] for each in members)


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
        if int(values.min()) < limits.min or int(values.max()) > limits.max:  # numpy compares UINT64 as FP64
            raise ValueError(
                f"its values are {values.min()} to {values.max()}, but the type holds {limits.min} to {limits.max}; "
                "give values that the type holds"
            )
    if values.dtype.kind not in "biuf":
        raise ValueError("it has values that are not numbers")
    return np.ascontiguousarray(values, dtype=wanted)


def _input(member: Any, file: str) -> InferInput:
    if not isinstance(member, dict) or not isinstance(member.get("name"), str):
        raise ConfigurationError(
            f"{file} has the input {quoted(member)}: write an object with a name, such as {_TENSOR}"
        )
    name = member["name"]
    if member.get("parameters"):
        raise ConfigurationError(
            f"{file} has parameters at the input {quoted(name)}, such as the size of binary data: give plain JSON, or "
            "--input NAME=@FILE"
        )
    if missing := [each for each in ("datatype", "shape", "data") if each not in member]:
        raise ConfigurationError(f"{file} has no '{missing[0]}' of the input {quoted(name)}: write {_TENSOR}")
    datatype, shape = member["datatype"], member["shape"]
    if datatype not in DATATYPES:
        raise ConfigurationError(f"{file} has the datatype {quoted(datatype)}: write one of {', '.join(DATATYPES)}")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ConfigurationError(
            f"{file} has the shape {quoted(shape)} of the input {quoted(name)}: write a list of whole numbers, such as "
            "[1, 4], without -1"
        )
    values = _flat(member["data"])
    if len(values) != math.prod(shape):
        raise ConfigurationError(
            f"{file} has {len(values):,} value{'s' * (len(values) != 1)} for the input {quoted(name)}, whose shape is "
            f"{shape}: give as many values as the shape has"
        )
    kinds, form = _VALUES.get(datatype, _NUMBERS)
    for value in values:
        if type(value) not in kinds:
            if isinstance(value, dict) and "b64" in value:
                form = f"text, or give the bytes as --input {name}=@FILE, because Triton does not decode b64"
            raise ConfigurationError(
                f"{file} has the value {quoted(value)} of the input {quoted(name)}, whose datatype is {datatype}: "
                f"write {form}"
            )
    return tensor(name, datatype, _array(values, member, file))


def _array(values: list[Any], member: Mapping[str, Any], file: str) -> npt.NDArray[Any]:
    try:
        flat = np.array(values, dtype=object) if member["datatype"] == "BYTES" else as_numbers(values)
        return flat.reshape(member["shape"])
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(
            f"{file} has the input {quoted(member['name'])}, which is no tensor: {error}"
        ) from error


def _flat(data: Any) -> list[Any]:
    values = [data]
    while any(isinstance(each, list) for each in values):
        values = [value for each in values for value in (each if isinstance(each, list) else [each])]
    return values
