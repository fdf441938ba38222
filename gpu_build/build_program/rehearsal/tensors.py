"""Reads bodies: KServe v2 in JSON, with or without binary tensors after the header."""

from __future__ import annotations

import array
import json
import struct
import sys
from typing import Any, Mapping, NamedTuple, Sequence

__all__ = ["BINARY", "AnswerError", "Tensor", "read_tensors", "requested_outputs"]

BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="
"""The content type of a body with binary tensors begins so, and ends with the size of the header in bytes."""

_TYPECODES = {
    "BOOL": "B",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP32": "f",
    "FP64": "d",
}


_FLOATS = ("FP16", "BF16", "FP32", "FP64")
_LARGEST = 2**64 - 1


class AnswerError(Exception):
    """A body that is not an answer of Triton."""


class Tensor(NamedTuple):
    """A tensor of an answer.

    Attributes:
        datatype: KServe's word: FP32, BYTES.
        shape: its dimensions.
        values: its values, row by row; those of BYTES are `bytes`.
    """

    datatype: str
    shape: list[int]
    values: Sequence[Any]


def read_tensors(body: bytes, content_type: str, side: str = "outputs") -> dict[str, Tensor]:
    """The tensors in a body, by their names, in its order.

    Args:
        body: the body.
        content_type: its content type.
        side: `outputs` of an answer, or `inputs` of a request.

    Raises:
        AnswerError: the body is not an inference answer.
    """
    try:
        size = _header_size(body, content_type)
        header = json.loads(body[:size].decode("utf-8"))
        tensors = {}
        for entry in header[side]:
            length = entry.get("parameters", {}).get("binary_data_size")
            if length is None:
                values = _of_json(entry)
            else:
                values = _of_bytes(entry["datatype"], body[size : size + length])
                size += length
            tensors[entry["name"]] = Tensor(entry["datatype"], entry["shape"], values)
            if len(values) != _count(entry["shape"]):
                raise ValueError(f"{len(values)} values for the shape {entry['shape']}")
        return tensors
    except (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise AnswerError(
            f"{len(body)} bytes of {content_type!r} are not an inference answer ({error!s:.200})"
        ) from error


def requested_outputs(body: bytes, content_type: str) -> list[str]:
    """The names of the outputs that a request asks for; empty where it leaves them to the server."""
    header = json.loads(body[: _header_size(body, content_type)].decode("utf-8"))
    return [each["name"] for each in header.get("outputs", ())]


def _header_size(body: bytes, content_type: str) -> int:
    return int(content_type[len(BINARY) :]) if content_type.startswith(BINARY) else len(body)


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        if type(size) is not int or not 0 <= size <= _LARGEST:
            raise ValueError(f"the shape {shape!r:.100}")
        count *= size
    return count


def _of_json(entry: Mapping[str, Any]) -> Sequence[Any]:
    values = entry["data"]
    if entry["datatype"] == "BYTES":
        return [each.encode("utf-8") for each in values]
    if not all(isinstance(each, (int, float)) for each in values):
        raise ValueError("a value is not a number")
    if entry["datatype"] in _FLOATS:
        return [float(each) for each in values]
    numbers = [float(each) if isinstance(each, float) else int(each) for each in values]
    if any(abs(each) > _LARGEST for each in numbers):
        raise ValueError("a number of more than 64 bits")
    return numbers


def _of_bytes(datatype: str, data: bytes) -> Sequence[Any]:
    if datatype == "BYTES":
        return _texts(data)
    if datatype == "FP16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    if datatype == "BF16":  # the upper half of an FP32
        halves = struct.unpack(f"<{len(data) // 2}H", data)
        return struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(each << 16 for each in halves)))
    values = array.array(_TYPECODES[datatype])
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _texts(data: bytes) -> list[bytes]:
    """Each element after its length in 4 bytes (Triton's extension "Binary tensor data")."""
    texts, start = [], 0
    while start < len(data):
        (length,) = struct.unpack_from("<I", data, start)
        start += 4 + length
        texts.append(data[start - length : start])
    if start != len(data):
        raise ValueError("a text ends after the data")
    return texts
