"""Request and response bodies: KServe v2, with binary tensors after the JSON header or as JSON alone.

tritonclient writes and reads the bodies. What stands here is SageMaker's way of saying where the header ends (it drops
Triton's own header `Inference-Header-Content-Length`), and what tritonclient lets pass although Triton refuses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdk_triton.client.tensors import infer_input
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    import numpy.typing as npt
    from tritonclient.http import InferInput, InferRequestedOutput, InferResult

    from cdk_triton.client.tensors import Tensor

__all__ = ["InferenceResult", "decode", "decode_stored", "encode"]

# `src/sagemaker_server.cc`: the text must stand at the very start of the header, without a space.
_BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="
_JSON = "application/json"


@dataclass(frozen=True, eq=False)
class InferenceResult(Mapping[str, "npt.NDArray[Any]"]):
    """What the model answered: its output arrays by name. BYTES tensors are object arrays of `bytes`.

    Attributes:
        outputs: the arrays, in the order of the answer; read-only where they came as binary tensors.
        infer_result: tritonclient's view of the same answer, for its own methods.
        variant: the production variant that answered, or None where the service does not say.
    """

    outputs: Mapping[str, npt.NDArray[Any]]
    infer_result: InferResult
    variant: str | None = None

    @property
    def model_name(self) -> str:
        """The name of the model; on a multi-model endpoint the target model (Triton 23.09 and newer)."""
        return str(self.infer_result.get_response().get("model_name", ""))

    @property
    def model_version(self) -> str:
        """The version of the model that ran."""
        return str(self.infer_result.get_response().get("model_version", ""))

    @property
    def request_id(self) -> str:
        """The `request_id` of the call, as the server returned it."""
        return str(self.infer_result.get_response().get("id", ""))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        try:
            return self.outputs[name]
        except KeyError:
            raise KeyError(f"no output '{name}'; the model answered with {_listed(self.outputs)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)


def encode(
    inputs: Mapping[str, Tensor | InferInput] | Iterable[InferInput],
    outputs: Iterable[str | InferRequestedOutput] | None,
    *,
    binary: bool,
    request_id: str = "",
    parameters: Mapping[str, str | int | bool] | None = None,
) -> tuple[bytes, str]:
    """Return the body of a request and its content type.

    Raises:
        ConfigurationError: an input, an output or a parameter cannot be sent in this format.
    """
    from tritonclient.http import InferenceServerClient, InferRequestedOutput
    from tritonclient.utils import InferenceServerException

    try:
        tensors = _tensors(inputs, binary=binary)
        wanted = [
            InferRequestedOutput(output, binary_data=binary) if isinstance(output, str) else output
            for output in ([outputs] if isinstance(outputs, str) else outputs or [])
        ]
        _reject_twice([output.name() for output in wanted])
        body, header_size = InferenceServerClient.generate_request_body(
            tensors, outputs=wanted, request_id=request_id, parameters=dict(parameters or {})
        )
    except InferenceServerException as error:
        raise ConfigurationError(f"the request cannot be written: {error.message()}") from error
    if binary:
        # Without any binary tensor (all inputs were prepared as JSON) the whole body is the header.
        return body, _JSON if header_size is None else f"{_BINARY}{header_size}"
    if header_size is not None:
        raise ConfigurationError(
            "binary=False cannot send an InferInput that holds binary data: "
            "fill it with set_data_from_numpy(array, binary_data=False), or leave binary=True"
        )
    return body if wanted else _asking_for_json(body), _JSON


def decode(
    body: bytes, content_type: str, *, variant: str | None = None, where: str = "the endpoint"
) -> InferenceResult:
    """Return the outputs in the body of a successful response.

    Raises:
        InvocationError: the body is not an inference response of Triton.
    """
    from tritonclient.http import InferenceServerClient

    try:
        header_size = _header_size(content_type)
        if header_size is not None and header_size > len(body):
            raise ValueError(f"the header is said to have {header_size} bytes and the body has {len(body)}")
        result = InferenceServerClient.parse_response_body(body, header_length=header_size)
        arrays = {str(tensor["name"]): _array(result, tensor) for tensor in result.get_response()["outputs"]}
    # tritonclient checks nothing: a foreign or damaged body surfaces as whatever its parser stumbles over.
    except Exception as error:
        raise InvocationError(
            f"{where} answered with {len(body):,} bytes of '{content_type}' that are no inference response of Triton "
            f"({type(error).__name__}: {error}); is the container of the endpoint Triton?"
        ) from error
    return InferenceResult(arrays, result, variant)


def decode_stored(body: bytes, content_type: str, *, where: str) -> InferenceResult:
    """Return the outputs in an answer that SageMaker stored in S3.

    The object has the container's content type or another one: no page of AWS says which. Without the size of the
    header, the end of the JSON is where it ends. The tensors behind it have to be as long as the JSON says, so that a
    truncated answer is noticed.

    Raises:
        InvocationError: the body is not a whole inference response of Triton.
    """
    try:
        size = _header_size(content_type)
        head, end = _json_head(body if size is None else body[:size])
        if size not in (None, end):
            raise ValueError(f"the header is said to have {size} bytes and its JSON ends after {end}")
        sizes = [output.get("parameters", {}).get("binary_data_size", 0) for output in head["outputs"]]
        if end + sum(sizes) != len(body):
            raise ValueError(f"the JSON ends after {end} bytes and announces {sum(sizes)} bytes of tensors")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvocationError(
            f"{where} stored {len(body):,} bytes of '{content_type}' that are not a whole inference response of Triton "
            f"({type(error).__name__}: {error}); read the object again, and look at the log of the endpoint"
        ) from error
    return decode(body, f"{_BINARY}{end}" if end < len(body) else _JSON, where=where)


_FIRST_BYTES = 65_536


def _json_head(body: bytes) -> tuple[Any, int]:
    """The JSON object that a body begins with, and the number of its bytes.

    Raises:
        ValueError: there is none, or it does not end.
    """
    if not body.startswith(b"{"):
        raise ValueError("the body does not begin with a JSON object")
    size = _FIRST_BYTES
    while True:
        # Bytes of tensors, or half a character at the end, are no UTF-8: they become characters that lead back to them.
        text = body[:size].decode(errors="surrogateescape")
        try:
            head, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            if size >= len(body):
                raise
            size *= 4
            continue
        return head, len(text[:end].encode(errors="surrogateescape"))


def _tensors(inputs: Mapping[str, Tensor | InferInput] | Iterable[InferInput], *, binary: bool) -> list[InferInput]:
    if isinstance(inputs, Mapping):
        return [infer_input(name, value, binary=binary) for name, value in inputs.items()]
    return [infer_input(None, value, binary=binary) for value in inputs]


def _reject_twice(outputs: list[str]) -> None:
    """Reject an output that is named twice, as Triton does from 26.05 on (server e93e4a9)."""
    twice = next((name for number, name in enumerate(outputs) if name in outputs[:number]), None)
    if twice is not None:
        raise ConfigurationError(
            f"outputs names '{twice}' twice, and Triton from 26.05 on rejects such a request: name each output once"
        )


def _asking_for_json(body: bytes) -> bytes:
    # Where no output is named, tritonclient asks for binary ones and offers no way to say otherwise.
    request = json.loads(body)
    request["parameters"]["binary_data_output"] = False
    return json.dumps(request, separators=(",", ":")).encode()


def _header_size(content_type: str) -> int | None:
    if not content_type.startswith(_BINARY):
        return None
    digits = re.fullmatch(r"\d+", content_type[len(_BINARY) :].strip())
    if digits is None:
        raise ValueError("the content type does not say how long the header is")
    return int(digits.group())


def _array(result: InferResult, tensor: Mapping[str, Any]) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] | None = result.as_numpy(tensor["name"])
    if array is None:
        raise ValueError(f"output '{tensor['name']}' has no data")
    if tensor["datatype"] == "BYTES" and array.size and isinstance(array.flat[0], str):
        import numpy as np

        # JSON gives text where a binary tensor gives bytes; callers need not care which format they asked for.
        return np.array([text.encode() for text in array.flat], dtype=object).reshape(array.shape)
    return array


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
