"""An ONNX file without its weights: the graph, its operators and the small constants that decide shapes.

The skeleton of a model of gigabytes has some hundred kilobytes. Two exports of one architecture with other weights have
the same skeleton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

from cdk_triton.onnx_models.reader.protobuf_wire import Field, WireError, fields

__all__ = ["onnx_skeleton"]

# Numbers of fields in onnx.proto.
_MODEL_IR_VERSION, _MODEL_GRAPH, _MODEL_OPSET_IMPORT, _MODEL_FUNCTIONS = 1, 7, 8, 25
_FUNCTION_NODE, _FUNCTION_DOC, _FUNCTION_VALUE_INFO = 7, 8, 12
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE = 1, 5, 15
_GRAPH_VALUES = (11, 12, 13)  # input, output, value_info
_NODE_ATTRIBUTE, _NODE_DOC, _NODE_METADATA = 5, 6, 9
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSE = (5, 10), (6, 11), (22, 23)
_TENSOR_DIMS, _TENSOR_DATA_TYPE, _TENSOR_NAME = 1, 2, 8
_SPARSE_TENSORS = (1, 2)

_SMALL: Final = 1024
"""A tensor with fewer bytes is kept: it may be a shape, and shapes decide what fits."""

_EXTERNAL = bytes([14 << 3, 1])  # TensorProto.data_location = EXTERNAL
_DEEPEST = 60  # graphs within graphs; protobuf stops at 100 messages

_Rewrite = Callable[["bytes | mmap", Field, int], bytes]


def onnx_skeleton(path: Path) -> bytes:
    """Return the `ModelProto` of a file without weights; a large tensor is marked as external data.

    Raises:
        OSError: the file cannot be read.
        WireError: the file does not contain a protobuf message, or its graphs are nested too deeply.
    """
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as buffer:
        return b"".join(_model(buffer))


def _model(buffer: mmap) -> Iterator[bytes]:
    for field in fields(buffer, 0, len(buffer)):
        if field.number in (_MODEL_IR_VERSION, _MODEL_OPSET_IMPORT):
            yield buffer[field.start : field.end]
        elif field.number == _MODEL_GRAPH:
            yield _rewritten(buffer, field, _graph, 0)
        elif field.number == _MODEL_FUNCTIONS:
            yield _rewritten(buffer, field, _function, 0)


def _graph(buffer: bytes | mmap, field: Field, depth: int) -> bytes:
    if field.number == _GRAPH_NODE:
        return _rewritten(buffer, field, _node, depth)
    if field.number == _GRAPH_INITIALIZER:
        return _tensor(buffer, field)
    if field.number == _GRAPH_SPARSE:
        return _rewritten(buffer, field, _sparse, depth)
    return bytes(buffer[field.start : field.end]) if field.number in _GRAPH_VALUES else b""


def _function(buffer: bytes | mmap, field: Field, depth: int) -> bytes:
    if field.number == _FUNCTION_NODE:
        return _rewritten(buffer, field, _node, depth)
    is_text = field.number in (_FUNCTION_DOC, _FUNCTION_VALUE_INFO)
    return b"" if is_text else bytes(buffer[field.start : field.end])


def _node(buffer: bytes | mmap, field: Field, depth: int) -> bytes:
    if field.number == _NODE_ATTRIBUTE:
        return _rewritten(buffer, field, _attribute, depth)
    is_text = field.number in (_NODE_DOC, _NODE_METADATA)
    return b"" if is_text else bytes(buffer[field.start : field.end])


def _attribute(buffer: bytes | mmap, field: Field, depth: int) -> bytes:
    if field.number in _ATTRIBUTE_TENSORS:
        return _tensor(buffer, field)
    if field.number in _ATTRIBUTE_GRAPHS:
        return _rewritten(buffer, field, _graph, depth + 1)
    if field.number in _ATTRIBUTE_SPARSE:
        return _rewritten(buffer, field, _sparse, depth)
    return bytes(buffer[field.start : field.end])


def _sparse(buffer: bytes | mmap, field: Field, depth: int) -> bytes:
    if field.number in _SPARSE_TENSORS:
        return _tensor(buffer, field)
    return bytes(buffer[field.start : field.end])


def _rewritten(buffer: bytes | mmap, field: Field, rewrite: _Rewrite, depth: int) -> bytes:
    """A message with each of its fields rewritten; a small node or attribute stays as it is."""
    if depth > _DEEPEST:
        raise WireError
    if rewrite in (_node, _attribute) and field.end - field.start < _SMALL:
        return bytes(buffer[field.start : field.end])
    return _message(field.number, b"".join(rewrite(buffer, each, depth) for each in fields(buffer, *field[2:])))


def _tensor(buffer: bytes | mmap, field: Field) -> bytes:
    if field.end - field.start < _SMALL:
        return bytes(buffer[field.start : field.end])
    kept = [
        buffer[each.start : each.end]
        for each in fields(buffer, *field[2:])
        if each.number in (_TENSOR_DIMS, _TENSOR_DATA_TYPE, _TENSOR_NAME)
    ]
    return _message(field.number, b"".join([*kept, _EXTERNAL]))


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
