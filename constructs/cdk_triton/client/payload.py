"""Request and response bodies: KServe v2, with binary tensors after the JSON header or as JSON alone.

The bytes are those that tritonclient writes. SageMaker drops Triton's header `Inference-Header-Content-Length`, so the
content type contains the size of the JSON header.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cdk_triton._wording import quoted
from cdk_triton.client.identifiers import request_id_of
from cdk_triton.client.options import listed
from cdk_triton.client.scheduling import ARGUMENTS, scheduling_parameters
from cdk_triton.client.tensors import decode_tensor, encode_tensor, json_values
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    import numpy.typing as npt
    from tritonclient.http import InferInput, InferRequestedOutput, InferResult

    from cdk_triton.client.options import SingleRequestOptions
    from cdk_triton.client.scheduling import SequenceStep
    from cdk_triton.client.tensors import Inputs

__all__ = ["InferenceResult", "custom_parameters", "decode", "decode_stored", "encode", "given_parameters"]

# `src/sagemaker_server.cc`: the text must stand at the very start of the header, without a space.
_BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="
_JSON = "application/json"

_TEXT = json.JSONEncoder(separators=(",", ":"))
_HEAD = json.JSONDecoder()


@dataclass(frozen=True, eq=False)
class InferenceResult(Mapping[str, "npt.NDArray[Any]"]):
    """The response of a model: its output arrays by name. BYTES tensors are object arrays of `bytes`.

    Attributes:
        outputs: the arrays, in the order of the response. If a binary tensor has elements of a fixed size, its array is
            a read-only view of the response, which may be unaligned and keeps the whole response in memory.
            `array.copy()` has none of these limits.
        variant: the production variant that responded, or None if the service does not return it.
    """

    outputs: Mapping[str, npt.NDArray[Any]]
    variant: str | None = None
    _response: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _body: bytes = field(default=b"", repr=False)
    _header_size: int | None = field(default=None, repr=False)

    @cached_property
    def infer_result(self) -> InferResult:
        """The same response as an `InferResult` of tritonclient, created at the first use.

        If `infer_many` sent the request together with other requests, the `InferResult` contains the rows of all of
        them.
        """
        from tritonclient.http import InferenceServerClient

        body = self._body or _TEXT.encode(self._as_json()).encode()
        return InferenceServerClient.parse_response_body(body, header_length=self._header_size)

    def _as_json(self) -> dict[str, Any]:
        """The response that Triton's infer protocol would have for a result of another protocol."""
        outputs = [
            {"name": name, "datatype": self.datatypes[name], "shape": array.shape, "data": json_values(name, array)}
            for name, array in self.outputs.items()
        ]
        return {**self._response, "outputs": outputs}

    @property
    def model_name(self) -> str:
        """The name of the model; on a multi-model endpoint, the name of the target model (Triton 23.09 and newer)."""
        return str(self._response.get("model_name", ""))

    @property
    def model_version(self) -> str:
        """The version of the model that ran."""
        return str(self._response.get("model_version", ""))

    @property
    def request_id(self) -> str:
        """The `request_id` of the call, as the server returned it."""
        return str(self._response.get("id", ""))

    @property
    def datatypes(self) -> Mapping[str, str]:
        """Triton's data type of each output, such as FP32 or BYTES."""
        return {tensor["name"]: tensor["datatype"] for tensor in self._response.get("outputs", ())}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        try:
            return self.outputs[name]
        except KeyError:
            raise KeyError(f"no output '{name}'; the model answered with {_listed(self.outputs)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)


def encode(inputs: Inputs, options: SingleRequestOptions, step: SequenceStep | None = None) -> tuple[bytes, str]:
    """Return the body of a request and its content type; `step` is its place in a sequence.

    Raises:
        ConfigurationError: an input, an output or a parameter cannot be sent in this format.
    """
    binary, request_id = options.get("binary", True), request_id_of(options)
    if not isinstance(binary, bool):
        raise ConfigurationError(f"binary is {binary!r}: use True for binary tensors, or False for JSON")
    named = inputs.items() if isinstance(inputs, Mapping) else [(None, value) for value in _listed_inputs(inputs)]
    tensors = [encode_tensor(name, value, binary=binary) for name, value in named]
    wanted = [_requested(each, binary=binary) for each in listed(options.get("outputs")) or ()]
    request: dict[str, Any] = {"id": request_id} if request_id else {}
    request["inputs"] = [tensor.entry for tensor in tensors]
    if wanted:
        _reject_twice([output["name"] for output in wanted])
        request["outputs"] = wanted
    # Triton gives outputs that are not named as JSON, unless the request says otherwise.
    more = {} if wanted else {"binary_data_output": binary}
    more |= custom_parameters(options.get("parameters")) | scheduling_parameters(options, step)
    if more:
        request["parameters"] = more
    try:
        header = _TEXT.encode(request).encode()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the request cannot be written: {error}; use text, numbers and bool") from error
    data = [tensor.data for tensor in tensors if tensor.data is not None]
    if not data:  # all inputs were prepared as JSON: the whole body is the header
        return header, _JSON
    if not binary:
        raise ConfigurationError(
            "binary=False cannot send an InferInput that holds binary data: "
            "fill it with set_data_from_numpy(array, binary_data=False), or use binary=True"
        )
    return b"".join([header, *data]), f"{_BINARY}{len(header)}"


def _listed_inputs(inputs: Iterable[InferInput]) -> Iterable[InferInput]:
    if isinstance(inputs, Iterable):
        return inputs
    raise ConfigurationError(
        f"the inputs are {quoted(inputs)}, of type {type(inputs).__name__}: give a mapping from the names of the "
        "inputs to arrays, or a list of InferInput"
    )


def decode(
    body: bytes, content_type: str, *, variant: str | None = None, where: str = "the endpoint"
) -> InferenceResult:
    """Return the outputs in the body of a successful response.

    Raises:
        InvocationError: the body is not an inference response of Triton.
    """
    try:
        header_size = _header_size(content_type)
        if header_size is not None and header_size > len(body):
            raise ValueError(f"the content type gives the header {header_size} bytes, but the body has {len(body)}")
        response = _whole_json(body[:header_size])
        arrays, offset = {}, len(body) if header_size is None else header_size
        for tensor in response["outputs"]:
            arrays[str(tensor["name"])] = decode_tensor(tensor, body, offset)
            offset += tensor.get("parameters", {}).get("binary_data_size", 0)
    # A foreign or damaged body surfaces as whatever its parser stumbles over.
    except Exception as error:
        raise InvocationError(
            f"{where} answered with {len(body):,} bytes of '{content_type}', which are not an inference response of "
            f"Triton ({type(error).__name__}: {error}); does the endpoint's container run Triton?"
        ) from error
    return InferenceResult(arrays, variant, response, body, header_size)


def decode_stored(body: bytes, content_type: str, *, where: str) -> InferenceResult:
    """Return the outputs in an answer that SageMaker stored in S3.

    The object has the container's content type or another one: AWS does not document which. If the content type does
    not contain the size of the header, the end of the JSON is found by parsing it. The rest has to have the length of
    the tensors in the JSON, so that a truncated answer is an error.

    Raises:
        InvocationError: the body is not a whole inference response of Triton.
    """
    try:
        size = _header_size(content_type)
        head, end = _json_head(body if size is None else body[:size])
        if size not in (None, end):
            raise ValueError(f"the content type gives the header {size} bytes, but the JSON ends after {end}")
        sizes = [output.get("parameters", {}).get("binary_data_size", 0) for output in head["outputs"]]
        if end + sum(sizes) != len(body):
            raise ValueError(f"the JSON ends after {end} bytes and announces {sum(sizes)} bytes of tensors")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvocationError(
            f"{where} stored {len(body):,} bytes of '{content_type}' that are not a whole inference response of Triton "
            f"({type(error).__name__}: {error}); read the object again, and look at the log of the endpoint"
        ) from error
    return decode(body, f"{_BINARY}{end}" if end < len(body) else _JSON, where=where)


def _whole_json(text: bytes) -> Any:
    """`json.loads`, but twice as fast for text as Triton writes it: in UTF-8 and without spaces around it."""
    if text.startswith(b"{"):
        characters = text.decode()
        head, end = _HEAD.raw_decode(characters)
        if end == len(characters):
            return head
    return json.loads(text)


_FIRST_BYTES = 65_536


def _json_head(body: bytes) -> tuple[Any, int]:
    """The JSON object that a body begins with, and the number of its bytes.

    Raises:
        ValueError: the body does not begin with JSON, or the JSON does not end.
    """
    if not body.startswith(b"{"):
        raise ValueError("the body does not begin with a JSON object")
    size = _FIRST_BYTES
    while True:
        # Bytes of tensors, or half a character at the end, are no UTF-8: they become characters that lead back to them.
        text = body[:size].decode(errors="surrogateescape")
        try:
            head, end = _HEAD.raw_decode(text)
        except ValueError:
            if size >= len(body):
                raise
            size *= 4
            continue
        return head, len(text[:end].encode(errors="surrogateescape"))


def _requested(output: str | InferRequestedOutput, *, binary: bool) -> dict[str, Any]:
    if isinstance(output, str):
        return {"name": output, "parameters": {"binary_data": binary}}
    from tritonclient.http import InferenceServerClient, InferRequestedOutput

    if not isinstance(output, InferRequestedOutput):
        raise ConfigurationError(
            f"outputs has a value of type {type(output).__name__}: give names or tritonclient InferRequestedOutputs"
        )
    body, _ = InferenceServerClient.generate_request_body([], outputs=[output])
    entry: dict[str, Any] = json.loads(body)["outputs"][0]
    return entry


def given_parameters(parameters: object) -> dict[str, Any]:
    """Return the parameters of a request as the caller gave them.

    Raises:
        ConfigurationError: they are not a mapping from names.
    """
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise ConfigurationError(
            f"parameters is {quoted(parameters)}, of type {type(parameters).__name__}: give a mapping from names to "
            "texts, whole numbers or bool"
        )
    return dict(parameters)


def custom_parameters(given: Mapping[str, str | int | bool] | None) -> dict[str, Any]:
    """Return the parameters of a request that the caller gave.

    Raises:
        ConfigurationError: they are not a mapping, or the server gives a name a meaning of its own.
    """
    if not (parameters := given_parameters(given)):
        return {}
    from tritonclient.utils import TRITON_RESERVED_REQUEST_PARAMS, TRITON_RESERVED_REQUEST_PARAMS_PREFIX

    for name in parameters:
        if name in TRITON_RESERVED_REQUEST_PARAMS or name.startswith(TRITON_RESERVED_REQUEST_PARAMS_PREFIX):
            raise ConfigurationError(
                f"the parameter {name!r} has a meaning of its own in Triton: "
                f"{ARGUMENTS.get(name, 'choose another name')}"
            )
    return parameters


def _reject_twice(outputs: list[str]) -> None:
    """Reject an output that is named twice, as Triton does from 26.05 on (server e93e4a9)."""
    twice = next((name for number, name in enumerate(outputs) if name in outputs[:number]), None)
    if twice is not None:
        raise ConfigurationError(
            f"outputs names '{twice}' twice, but Triton from 26.05 on rejects such a request: name each output once"
        )


def _header_size(content_type: str) -> int | None:
    if not content_type.startswith(_BINARY):
        return None
    digits = content_type[len(_BINARY) :].strip()
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError("the content type does not contain the length of the header")
    return int(digits)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
