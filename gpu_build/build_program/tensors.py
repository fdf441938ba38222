"""Writes random tensors to files, with which a TensorRT plan is run; standard library only."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Iterator, NamedTuple, Sequence

from .step import BuildError
from .stop import Stop

__all__ = ["Tensor", "write_random", "write_shape"]

_FORMATS = {
    "TYPE_BOOL": "B",
    "TYPE_UINT8": "B",
    "TYPE_UINT16": "H",
    "TYPE_UINT32": "I",
    "TYPE_UINT64": "Q",
    "TYPE_INT8": "b",
    "TYPE_INT16": "h",
    "TYPE_INT32": "i",
    "TYPE_INT64": "q",
    "TYPE_FP16": "e",
    "TYPE_FP32": "f",
    "TYPE_FP64": "d",
    "TYPE_BF16": "f",  # its upper half
}
_FLOATS = ("TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_BF16")
_ZEROS_AND_ONES = (0, 1)
_BLOCK = 1 << 16


class Tensor(NamedTuple):
    """A tensor in a file: row by row, little-endian.

    Attributes:
        name: its name.
        data_type: Triton's word: TYPE_FP32.
        dims: its dimensions.
        file: where it is.
        shape_values: the values of a shape tensor, which `trtexec --shapes` gets; None: it is an ordinary one.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    file: Path
    shape_values: tuple[int, ...] | None = None


def write_random(tensor: Tensor, stop: Stop, *, seed: str, bounds: Sequence[int] | None) -> None:
    """Fill a tensor's file: standard normal numbers for floats; for integers the bounds, both included, or 0 and 1.

    The same seed gives the same file with every version of Python.

    Raises:
        BuildError: nothing random can be made for its type.
    """
    code = _FORMATS.get(tensor.data_type)
    if code is None:
        raise BuildError(
            f"the input {tensor.name!r} has the type {tensor.data_type}, but a TensorRT plan takes only numbers: write "
            "the type of the network's input in config.pbtxt, such as TYPE_INT32"
        )
    count = 1
    for size in tensor.dims:
        count *= size
    numbers = random.Random(seed)  # noqa: S311 - inputs to compare with, not secrets
    with tensor.file.open("wb") as stream:
        for start in range(0, count, _BLOCK):
            stop.check()
            block = list(_numbers(numbers, min(_BLOCK, count - start), tensor.data_type, bounds))
            stream.write(_packed(block, tensor.data_type, code))


def write_shape(tensor: Tensor) -> None:
    """Fill the file of a shape tensor."""
    values = list(tensor.shape_values or ())
    tensor.file.write_bytes(_packed(values, tensor.data_type, _FORMATS[tensor.data_type]))


def _numbers(
    numbers: random.Random, count: int, data_type: str, bounds: Sequence[int] | None
) -> Iterator[float] | Iterator[int]:
    if data_type in _FLOATS:
        return (numbers.gauss(0.0, 1.0) for _ in range(count))
    low, high = bounds or _ZEROS_AND_ONES
    return (low + int(numbers.random() * (high - low + 1)) for _ in range(count))


def _packed(values: Sequence[float], data_type: str, code: str) -> bytes:
    packed = struct.pack(f"<{len(values)}{code}", *values)
    if data_type == "TYPE_BF16":
        return b"".join(packed[start + 2 : start + 4] for start in range(0, len(packed), 4))
    return packed
