"""Requests and answers of Triton's generate protocol, for `/invocations` of a container that generates.

A request is one flat JSON object: each input is a scalar or a list, and the server derives the shape from the number of
elements. An answer is such an object, or a text of server-sent events with one object each. Rules and messages are
those of `src/http_server.cc` (`HandleGenerate`, `GenerateRequestClass`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from cdk_triton._wording import quoted
from cdk_triton.client import payload
from cdk_triton.client.identifiers import request_id_of
from cdk_triton.client.payload import InferenceResult, custom_parameters, given_parameters
from cdk_triton.client.runtime import model_error
from cdk_triton.client.scheduling import ARGUMENTS
from cdk_triton.client.tensors import BINARY_ONLY, as_array, as_numbers, datatype_of, json_values, no_tensor, numpy_type
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cdk_triton.client.contract import Contract
    from cdk_triton.client.options import GenerateRequestOptions

__all__ = ["CONTENT_TYPE", "AnswerReader", "encode", "flattened", "one_result"]

CONTENT_TYPE: Final = "application/json"

_EVENTS: Final = "text/event-stream"
_END_OF_EVENT: Final = b"\n\n"
_DATA: Final = b"data:"
_NOT_OUTPUTS: Final = ("id", "model_name", "model_version")
_OF_ENSEMBLES: Final = ("sequence_id", "sequence_start", "sequence_end")
"""The parameters of each response of an ensemble, also of one without sequences."""
_PARAMETERS: Final = "parameters"
_TEXT: Final = json.JSONEncoder(separators=(",", ":"))


def encode(inputs: Mapping[str, Any], options: GenerateRequestOptions) -> bytes:
    """Return the body of a request.

    Raises:
        ConfigurationError: an input or a parameter cannot be sent in this protocol.
    """
    if not isinstance(inputs, Mapping):
        raise ConfigurationError(
            f"the inputs are {quoted(inputs)}, of type {type(inputs).__name__}: give a mapping from the names of the "
            "inputs to arrays"
        )
    request = {name: _value(name, value) for name, value in inputs.items()}
    reserved = ARGUMENTS.keys() & given_parameters(options.get("parameters")).keys()
    if reserved:
        raise ConfigurationError(
            f"the parameter {min(reserved)!r} has no meaning in Triton's generate protocol: omit it"
        )
    parameters = custom_parameters(options.get("parameters"))
    request_id = request_id_of(options)
    if "id" in request:
        if request_id:
            raise ConfigurationError(
                "the server takes the request_id for another value of the input 'id', and rejects the request: omit "
                "request_id, or rename the input of the model"
            )
        if "id" in parameters:
            raise ConfigurationError(
                f"parameters has 'id': {quoted(parameters['id'])}, but the input 'id' is sent under this name among "
                "the parameters: omit the parameter, or rename it or the input in the model"
            )
        # The server looks for inputs among the parameters, too. Beside them, `id` has to be a text.
        parameters["id"] = request.pop("id")
    elif request_id:
        request["id"] = request_id
    if parameters:
        request[_PARAMETERS] = parameters
    try:
        return _TEXT.encode(request).encode()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the request cannot be written: {error}; use text, numbers and bool") from error


def flattened(contract: Contract, inputs: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the inputs of a model as one-dimensional arrays, from which the server makes the same tensors again.

    Raises:
        ConfigurationError: an input does not fit the model's configuration, or the server would give it another shape.
    """
    if isinstance(inputs, Mapping):
        inputs = {name: _shaped(contract, name, value) for name, value in inputs.items()}
    flat = {}
    for name, array in contract.complete(inputs).items():
        declared = contract.inputs[name].dims
        made = _shape_in_server(_dims(contract, name), array.size)
        if made != array.shape:
            raise ConfigurationError(
                f"input '{name}' has the shape {list(array.shape)}, but the generate protocol has no shapes, and from "
                f"{array.size} elements and dims: {list(declared)} the server makes {list(made)}: send fewer rows, or "
                "declare the other dimensions with fixed sizes"
            )
        flat[name] = array.ravel()
    return flat


def _shaped(contract: Contract, name: str, value: Any) -> Any:
    """A value without dimensions, or with one, in the shape that the server gives it if its own does not fit."""
    if name not in contract.inputs:
        return value  # which the contract rejects
    array = contract.inputs[name].typed(value)
    made = _shape_in_server(_dims(contract, name), array.size)
    is_flat = array.ndim < 2 and contract.inputs[name].completed(array.shape, contract.max_batch_size) is None
    return array.reshape(made) if is_flat and math.prod(made) == array.size else array


def _dims(contract: Contract, name: str) -> tuple[int, ...]:
    declared = contract.inputs[name].dims
    return (-1, *declared) if contract.max_batch_size else declared


def _shape_in_server(dims: Sequence[int], count: int) -> tuple[int, ...]:
    """The innermost -1 takes the elements that the fixed dimensions leave; every other -1 becomes 1."""
    left = count // math.prod(dim for dim in dims if dim != -1)
    shape = []
    for dim in reversed(dims):
        if dim == -1:
            dim, left = left, 1
        shape.append(dim)
    return tuple(reversed(shape))


def _value(name: str, value: Any) -> Any:
    if name == _PARAMETERS:
        raise ConfigurationError(
            f"the input '{name}' cannot be sent, because the generate protocol has a member '{name}' of its own: "
            "rename the input of the model"
        )
    array = _array(name, value)
    if (datatype := datatype_of(name, array)) in BINARY_ONLY:
        raise ConfigurationError(
            f"input '{name}' is {datatype}, which the generate protocol cannot carry, because it is JSON: declare the "
            "input of the model as FP32, and send float32"
        )
    if sum(size != 1 for size in array.shape) > 1:
        raise ConfigurationError(
            f"input '{name}' has the shape {list(array.shape)}, but the generate protocol takes a scalar or one "
            "dimension: send array.ravel() if all dims of the input but one are fixed in config.pbtxt"
        )
    values = json_values(name, array, for_bytes="send them as BASE64, if the model decodes that")
    return values if array.shape else values[0]


def _array(name: str, value: Any) -> npt.NDArray[Any]:
    """Also from Python's numbers, texts and lists of them: JSON does not tell one integer type from another."""
    import numpy as np

    if isinstance(value, str | bytes):
        return np.array(value, dtype=object)
    if isinstance(value, bool | int | float | np.generic) or (
        isinstance(value, list | tuple) and not any(isinstance(each, str | bytes) for each in value)
    ):
        try:
            array = as_numbers(value)
        except OverflowError as error:
            raise ConfigurationError(f"input '{name}' cannot be sent: {error}; give values of one type") from error
        except ValueError as error:
            raise no_tensor(name, value) from error
        if array.dtype.kind in "biuf":
            return array
    return as_array(name, value)


class AnswerReader:
    """Turns the bytes of an answer into results, whatever pieces the bytes arrive in.

    The answer may be a text of events, one object of the generate protocol, or a response of the infer protocol.

    Args:
        where: endpoint and target, for messages.
        content_type: that of the answer.
        variant: the production variant that answers.
        contract: the model's outputs, which determine the types of their arrays. JSON determines those of the others:
            outputs that the server completes, and custom parameters of the response, which JSON does not tell apart.
    """

    def __init__(self, where: str, content_type: str, variant: str | None, contract: Contract | None = None) -> None:
        self._where, self._content_type, self._variant = where, content_type, variant
        self._contract = contract
        self._has_events = content_type.startswith(_EVENTS)
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[InferenceResult]:
        """Return the results that these bytes complete.

        Raises:
            ModelError: the next answer of the model is an error.
            InvocationError: the bytes are not an answer of Triton.
        """
        # Only here can an event end: a large one comes in many parts, and is not to be searched again for each.
        searched = max(0, len(self._rest) - len(_END_OF_EVENT) + 1)
        self._rest += data
        if not self._has_events or (last := self._rest.rfind(_END_OF_EVENT, searched)) < 0:
            return
        events = bytes(self._rest[:last]).split(_END_OF_EVENT)
        del self._rest[: last + len(_END_OF_EVENT)]
        for event in events:
            if (text := _data(event)) is not None:
                yield self._result(text)

    def end(self) -> Iterator[InferenceResult]:
        """Return what is complete only when no more bytes come.

        Raises:
            ModelError: the answer is an error.
            InvocationError: the answer is not complete, or not one of Triton.
        """
        if not self._has_events:
            yield self._whole()
        elif self._rest.strip():
            raise InvocationError(
                f"{self._where}: the answer ends within an event, after {bytes(self._rest[-40:])!r}: look at the log "
                "of the endpoint, and decide whether to call again, because the model has run"
            )

    def _whole(self) -> InferenceResult:
        whole = bytes(self._rest)
        if self._content_type.startswith(CONTENT_TYPE) and not _is_of_infer(whole):
            return self._result(whole)
        return payload.decode(whole, self._content_type, variant=self._variant, where=self._where)

    def _result(self, text: bytes) -> InferenceResult:
        try:
            fields = json.loads(text)
            if fields.keys() == {"error"}:
                raise model_error(self._where, 200, str(fields["error"]))
            outputs = {name: self._output(name, value) for name, value in fields.items() if self._is_output(name)}
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise InvocationError(
                f"{self._where} answered with {text[:80]!r}, which is not an answer of Triton's generate protocol "
                f"({type(error).__name__}: {error}); does the endpoint's container run Triton?"
            ) from error
        head: dict[str, Any] = {name: fields[name] for name in _NOT_OUTPUTS if name in fields}
        head["outputs"] = [{"name": name, "datatype": datatype_of(name, array)} for name, array in outputs.items()]
        return InferenceResult(outputs, self._variant, head)

    def _is_output(self, name: str) -> bool:
        """Custom parameters of the response count as outputs, because a server can complete the outputs of a model."""
        is_known = self._contract is not None and name in self._contract.outputs
        return name not in _NOT_OUTPUTS and (is_known or self._contract is None or name not in _OF_ENSEMBLES)

    def _output(self, name: str, value: Any) -> npt.NDArray[Any]:
        import numpy as np

        values = value if isinstance(value, list) else [value]
        if values and isinstance(values[0], str):
            return np.array([text.encode() for text in values], dtype=object)
        tensor = None if self._contract is None else self._contract.outputs.get(name)
        kind = None if tensor is None else numpy_type(tensor.datatype)
        given = as_numbers(values)
        if given.dtype.kind not in "biuf" or given.ndim != 1:
            raise ValueError(f"output '{name}' is not a list of numbers or texts")
        if kind is None or not values:
            return given if kind is None else given.astype(kind)
        array: npt.NDArray[Any] = np.array(values, dtype=kind)
        if array.dtype.kind in "biu" and array.tolist() != values:
            raise ValueError(f"output '{name}' has values that {kind} of config.pbtxt cannot hold")
        return array


def one_result(where: str, results: Iterator[InferenceResult]) -> InferenceResult:
    """Return the only result of an answer.

    Raises:
        InvocationError: there is none, or more than one.
    """
    found = list(results)
    if len(found) != 1:
        raise InvocationError(
            f"{where}: the model answered with {len(found)} results, but generate() returns one: call stream(), which "
            "returns each"
        )
    return found[0]


def _is_of_infer(text: bytes) -> bool:
    """Whether the member `outputs` lists objects; an output of that name is one value or a list of values."""
    if b'"outputs"' not in text:
        return False
    try:
        fields = json.loads(text)
    except ValueError:
        return False
    outputs = fields.get("outputs") if isinstance(fields, dict) else None
    return isinstance(outputs, list) and bool(outputs) and all(isinstance(each, dict) for each in outputs)


def _data(event: bytes) -> bytes | None:
    """The data of an event; None for an event without data, such as a comment."""
    lines = [line[len(_DATA) :].strip() for line in event.splitlines() if line.startswith(_DATA)]
    return b"\n".join(lines) if lines else None
