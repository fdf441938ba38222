"""Tensors of requests and answers: numpy arrays on one side, KServe v2 on the other.

No element is copied here unless numpy has to: a request holds views of the arrays until its parts are joined, and the
arrays of an answer are views of its body. tritonclient's own tensor types are imported only if a caller uses them,
because importing `tritonclient.http` loads gevent.
"""

from __future__ import annotations

import json
import math
import struct
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    import numpy as np
    import numpy.typing as npt
    from tritonclient.http import InferInput

    Tensor: TypeAlias = npt.NDArray[np.generic] | Sequence[Any]
    """An array, or nested lists of text."""

    Inputs: TypeAlias = Mapping[str, Tensor | InferInput] | Iterable[InferInput]
    """The tensors of a request by name, or tritonclient's own, which contain their names."""

__all__ = [
    "BINARY_ONLY",
    "DATATYPES",
    "EncodedTensor",
    "as_array",
    "as_numbers",
    "datatype_of",
    "decode_tensor",
    "encode_tensor",
    "json_values",
    "no_tensor",
    "numpy_type",
]

DATATYPES = (
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BF16",
    "BYTES",
)
"""The types of tensors in requests (KServe's Open Inference Protocol, "Tensor Data Types", and Triton's BF16)."""

BINARY_ONLY = ("FP16", "BF16")
"""The data types that JSON cannot carry: "receiving FP16 data via JSON is not supported" (`src/http_server.cc`,
`ReadDataFromJsonHelper`)."""

_INT64_ENDS = 2.0**63

_LENGTH = struct.Struct("<I")
"""Before each element of a BYTES tensor (Triton's extension "Binary tensor data": a 4-byte little-endian length)."""


class EncodedTensor(NamedTuple):
    """One tensor of a request.

    Attributes:
        entry: the tensor's entry in the JSON header.
        data: the tensor's bytes after the header; None if its values are in the entry.
    """

    entry: dict[str, Any]
    data: bytes | memoryview | None


def encode_tensor(name: str | None, value: Tensor | InferInput, *, binary: bool) -> EncodedTensor:
    """Return a tensor of a request.

    The data type follows from the array: bool → BOOL, (u)int8 to (u)int64 → (U)INT8 to (U)INT64, float16 to float64 →
    FP16 to FP64; `ml_dtypes.bfloat16` → BF16; `str`, `bytes` and objects that are either → BYTES. Lists can contain
    only text, because a Python number could be any of eleven types.

    Raises:
        ConfigurationError: the value is neither an array nor text nor an `InferInput`, or an `InferInput` is given
            under another tensor's name; its data type has no counterpart in Triton or cannot be sent as JSON.
    """
    import numpy as np

    if name is None or not isinstance(value, (np.ndarray, list, tuple)):
        return _encoded_by_tritonclient(name, value)
    array = as_array(name, value)
    datatype = datatype_of(name, array)
    if not binary and datatype in BINARY_ONLY:
        raise ConfigurationError(
            f"input '{name}' is {datatype}, which Triton accepts only as binary data: use binary=True"
        )
    entry: dict[str, Any] = {"name": name, "shape": array.shape, "datatype": datatype}
    if not binary:
        return EncodedTensor(entry | {"data": json_values(name, array)}, None)
    data = _length_prefixed(name, array) if datatype == "BYTES" else _bytes(array)
    entry["parameters"] = {"binary_data_size": len(data)}
    return EncodedTensor(entry, data)


def as_array(name: str, value: Any) -> npt.NDArray[Any]:
    """Return an array in the byte order that Triton reads; the caller's array stays as it is.

    Raises:
        ConfigurationError: the value is neither an array nor nested lists of text.
    """
    import numpy as np

    if isinstance(value, list | tuple):
        value = _from_lists(name, value)
    if not isinstance(value, np.ndarray):
        raise ConfigurationError(
            f"input '{name}' is of type {type(value).__name__}: convert it with numpy.asarray(value, dtype=…), "
            "with the data type in the model's config.pbtxt"
        )
    # Triton reads little-endian tensors; a big-endian array usually comes from a file or the network.
    if value.dtype.isnative or value.dtype.kind in "OSU":
        return value
    return value.astype(value.dtype.newbyteorder("="))


def as_numbers(value: Any) -> npt.NDArray[Any]:
    """Return Python's numbers as `np.asarray` does, but integers as integers.

    numpy has no integer type for both 1 and 2**63: it makes FP64 of such a list, which loses digits.

    Raises:
        ValueError: the rows differ in shape.
        OverflowError: no integer type holds all integers.
    """
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind != "O" and not (array.dtype.kind == "f" and bool(np.any(np.abs(array) >= _INT64_ENDS))):
        return array
    exact = np.array(value, dtype=object)
    if not all(isinstance(each, int | np.integer) for each in exact.flat):
        return array
    low, high = min(exact.flat), max(exact.flat)
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return exact.astype(kind)
    raise OverflowError(f"its values are {low} to {high}, which neither INT64 nor UINT64 holds")


def decode_tensor(tensor: Mapping[str, Any], body: bytes, offset: int) -> npt.NDArray[Any]:
    """Return the array of an output: a view of the body if it came as binary data of a fixed size.

    Args:
        tensor: the output's entry in the JSON header.
        body: the body of the response.
        offset: the position in the body where the output's binary data begins.

    Raises:
        ValueError: the output's data is missing or too short, or has a data type that Triton does not have.
    """
    import numpy as np

    name, shape, datatype = tensor["name"], tensor["shape"], tensor["datatype"]
    kind = numpy_type(datatype)
    if kind is None:
        raise ValueError(f"output '{name}' has the unknown data type {datatype}")
    size = tensor.get("parameters", {}).get("binary_data_size")
    if size is None:
        if "data" not in tensor:
            raise ValueError(f"output '{name}' has no data")
        # JSON has text where a binary tensor has bytes; callers need not care which format they asked for.
        data = [text.encode() for text in tensor["data"]] if datatype == "BYTES" else tensor["data"]
        return np.array(data, dtype=kind).reshape(shape)
    if offset + size > len(body):
        raise ValueError(f"output '{name}' ends after {offset + size} bytes and the body has {len(body)}")
    if datatype == "BYTES":
        return np.array(_elements(name, body, offset, offset + size), dtype=object).reshape(shape)
    count, rest = divmod(size, kind.itemsize)
    if rest or count != math.prod(shape):
        raise ValueError(f"output '{name}' has {size} bytes, which is not the size of {datatype} {shape}")
    array: npt.NDArray[Any] = np.frombuffer(body, kind, count, offset) if count else np.empty(0, kind)
    return array.reshape(shape)


def _encoded_by_tritonclient(name: str | None, value: Any) -> EncodedTensor:
    from tritonclient.http import InferenceServerClient, InferInput

    if not isinstance(value, InferInput):
        if type(value).__module__.startswith("tritonclient.grpc"):
            raise ConfigurationError(
                f"an input has the type {type(value).__name__} of tritonclient.grpc, which SageMaker does not speak: "
                "use the class of that name in tritonclient.http"
            )
        if name is None:
            raise ConfigurationError(
                f"inputs without names must be tritonclient InferInputs, but one is of type {type(value).__name__}: "
                "give arrays as a mapping from tensor name to array"
            )
        as_array(name, value)
    if name is not None and value.name() != name:
        raise ConfigurationError(
            f"input '{name}' is an InferInput for the tensor '{value.name()}': use one name for both"
        )
    body, header_size = InferenceServerClient.generate_request_body([value])
    entry = json.loads(body[:header_size])["inputs"][0]
    return EncodedTensor(entry, None if header_size is None else memoryview(body)[header_size:])


@cache
def numpy_type(datatype: str) -> np.dtype[Any] | None:
    """Return numpy's type for a data type of Triton, such as FP32; None: Triton does not have it."""
    import numpy as np
    from tritonclient.utils import triton_to_np_dtype

    found = triton_to_np_dtype(datatype)
    return None if found is None else np.dtype(found)


def datatype_of(name: str, array: npt.NDArray[Any]) -> str:
    """Return Triton's data type of an array.

    Raises:
        ConfigurationError: Triton does not have its type.
    """
    datatype = _triton_type(array.dtype)
    if datatype is None:
        raise ConfigurationError(
            f"input '{name}' has the data type {array.dtype}, which Triton does not have: "
            "use bool, an integer or floating-point type of up to 64 bits, str or bytes"
        )
    return datatype


@cache
def _triton_type(kind: np.dtype[Any]) -> str | None:
    from tritonclient.utils import np_to_triton_dtype

    found: str | None = "BYTES" if kind.kind == "U" else np_to_triton_dtype(kind)
    return found


def _from_lists(name: str, value: Sequence[Any]) -> npt.NDArray[np.object_]:
    import numpy as np

    try:
        return np.array(value, dtype=object)
    except ValueError as error:
        raise no_tensor(name, value) from error


def no_tensor(name: str, rows: Any) -> ConfigurationError:
    """Return the error about rows that numpy cannot join, or that an array of objects holds.

    Args:
        name: the tensor's name.
        rows: lists or arrays.
    """
    shapes = _shapes(rows)
    if len(shapes) == 1:
        return ConfigurationError(
            f"input '{name}' is an array of objects whose elements have the shape {shapes[0]}, which is not a tensor: "
            "join the elements with numpy.stack(elements)"
        )
    return ConfigurationError(
        f"input '{name}' is not a tensor, because its rows have different shapes, such as {shapes[0]} and {shapes[1]}: "
        "pad the rows to one shape, or send a request for each"
    )


def _shapes(rows: Iterable[Any]) -> list[str]:
    """The different shapes of the rows, or of the rows in the first row that has no shape itself."""
    import numpy as np

    found: dict[str, None] = {}
    for row in rows:
        try:
            found[str(list(np.shape(row)))] = None
        except ValueError:
            return _shapes(row)
    return list(found)


def json_values(name: str, array: npt.NDArray[Any], *, for_bytes: str = "use binary=True") -> list[Any]:
    """Return the elements of an array in their order, as values of JSON.

    Args:
        name: the tensor's name, for messages.
        array: the array.
        for_bytes: what to do with bytes that are not UTF-8, for the message.

    Raises:
        ConfigurationError: an element is neither a number nor text in UTF-8.
    """
    return _json_texts(name, array, for_bytes) if array.dtype.kind in "OSU" else _flat(array)


def _flat(array: npt.NDArray[Any]) -> list[Any]:
    return array.ravel().tolist()  # type: ignore[no-any-return]  # of one dimension


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    """The elements of a numeric tensor: a view if they are contiguous, otherwise a copy."""
    import numpy as np

    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array.reshape(-1).view(np.uint8).data


def _length_prefixed(name: str, array: npt.NDArray[Any]) -> bytes:
    elements = _flat(array)
    if (ascii_only := _length_prefixed_ascii(elements)) is not None:
        return ascii_only
    parts: list[bytes] = []
    append, pack = parts.append, _LENGTH.pack
    for element in elements:
        if isinstance(element, str):
            element = _utf8(name, element)
        elif not isinstance(element, bytes):
            raise _not_text(name, element, elements)
        append(pack(len(element)))
        append(element)
    return b"".join(parts)


def _length_prefixed_ascii(elements: list[Any]) -> bytes | None:
    """The same in half the time if all elements are `str` of ASCII; otherwise None.

    An ASCII character is one byte, and Latin-1 has a character for each byte of a length.
    """
    try:
        is_ascii = "".join(elements).isascii()
    except TypeError:
        return None
    if not is_ascii:
        return None
    parts = [""] * (2 * len(elements))
    parts[::2] = map(_LengthAsText().__getitem__, map(len, elements))
    parts[1::2] = elements
    return "".join(parts).encode("latin-1")


class _LengthAsText(dict[int, str]):
    """The bytes of a length as characters, cached because many elements have the same length."""

    def __missing__(self, length: int) -> str:
        return self.setdefault(length, _LENGTH.pack(length).decode("latin-1"))


def _json_texts(name: str, array: npt.NDArray[Any], for_bytes: str) -> list[str]:
    texts = _flat(array)
    for number, element in enumerate(texts):
        if isinstance(element, str):
            _utf8(name, element)
        elif not isinstance(element, bytes):
            raise _not_text(name, element, texts)
        else:
            try:
                texts[number] = element.decode()
            except UnicodeDecodeError as error:
                raise ConfigurationError(
                    f"input '{name}' has bytes that are not UTF-8, which JSON cannot carry: {for_bytes}"
                ) from error
    return texts


def _utf8(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"input '{name}' has text that is not Unicode ({error}): send bytes, or text without half a character"
        ) from error


def _not_text(name: str, element: object, elements: list[Any]) -> ConfigurationError:
    import numpy as np

    if isinstance(element, list | tuple | np.ndarray):
        return no_tensor(name, elements)
    # tritonclient would send str(element), so that None arrives as the text "None".
    return ConfigurationError(
        f"input '{name}' has a value of type {type(element).__name__}, but a list or an array of objects may hold "
        "str and bytes only: convert the input with numpy.asarray(value, dtype=…), with the type in config.pbtxt"
    )


def _elements(name: str, body: bytes, start: int, end: int) -> list[bytes]:
    elements: list[bytes] = []
    append, unpack = elements.append, _LENGTH.unpack_from
    while start < end:
        (length,) = unpack(body, start)
        start += 4 + length
        append(body[start - length : start])
    if start != end:
        raise ValueError(f"output '{name}' ends within an element")
    return elements
