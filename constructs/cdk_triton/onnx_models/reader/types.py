"""The types that an ONNX network computes with, read without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

from cdk_triton.onnx_models.reader.protobuf_wire import WireError, fields
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["NetworkTypes", "network_types"]

# Numbers of fields in onnx.proto.
_MODEL_GRAPH, _GRAPH_NODE, _GRAPH_INITIALIZER, _NODE_OP_TYPE, _TENSOR_DATA_TYPE = 7, 1, 5, 4, 2
_FLOATS: Final = {1: "FP32", 10: "FP16", 16: "BF16", 11: "FP64"}
_QUANTIZING: Final = {"QuantizeLinear", "DequantizeLinear"}


@dataclass(frozen=True)
class NetworkTypes:
    """The types at the top level of a network's graph.

    Attributes:
        floats: the floating-point types of its weights, as a configuration names them, without `TYPE_`.
        is_quantized: whether it has operators that quantise or dequantise.
    """

    floats: frozenset[str]
    is_quantized: bool


def network_types(path: Path) -> NetworkTypes | Unreadable:
    """Read the types of an ONNX file."""
    floats: set[str] = set()
    operators: set[str] = set()
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as buffer:
            for graph in fields(buffer, 0, len(buffer)):
                if graph.number != _MODEL_GRAPH:
                    continue
                for field in fields(buffer, graph.content, graph.end):
                    if field.number == _GRAPH_INITIALIZER:
                        floats |= _float_type(buffer, field.content, field.end)
                    elif field.number == _GRAPH_NODE:
                        operators |= _operator(buffer, field.content, field.end)
    except (WireError, ValueError):  # mmap rejects an empty file with a ValueError
        return Unreadable("is not an ONNX file: Protobuf parsing failed")
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror}")
    return NetworkTypes(frozenset(floats), bool(operators & _QUANTIZING))


def _float_type(buffer: mmap, start: int, end: int) -> set[str]:
    for field in fields(buffer, start, end):
        if field.number == _TENSOR_DATA_TYPE:
            number = buffer[field.content]  # the types' numbers are below 128: one byte
            return {_FLOATS[number]} if number in _FLOATS else set()
    return set()


def _operator(buffer: mmap, start: int, end: int) -> set[str]:
    for field in fields(buffer, start, end):
        if field.number == _NODE_OP_TYPE:
            return {buffer[field.content : field.end].decode("utf-8", "replace")}
    return set()
