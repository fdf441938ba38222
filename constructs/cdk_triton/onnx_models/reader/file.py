"""An ONNX file's inputs, outputs and what it needs, read without its weights.

The file is mapped, not loaded. `wire` steps over the tensors' data, and the messages that the `onnx` distribution ships
read the rest. As with Triton's own schema, they are loaded by their path: importing the package takes a quarter of a
second, for code that is not needed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import ModuleType
from typing import Any

from google.protobuf.message import DecodeError

from cdk_triton.errors import ConfigurationError
from cdk_triton.onnx_models.reader.protobuf_wire import Field, WireError, fields
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["ExternalData", "OnnxFile", "OnnxTensor", "onnx_data_types", "onnx_file"]

# Numbers of fields in onnx.proto.
_MODEL_IR_VERSION, _MODEL_GRAPH, _MODEL_OPSET_IMPORT = 1, 7, 8
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_SPARSE = 1, 5, 11, 12, 15
_NODE_ATTRIBUTE = 5
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = (5, 10), (6, 11)
_TENSOR_DIMS, _TENSOR_DATA_TYPE, _TENSOR_NAME, _TENSOR_RAW_DATA = 1, 2, 8, 9
_TENSOR_EXTERNAL_DATA, _TENSOR_DATA_LOCATION = 13, 14
_TENSOR_KEPT = (_TENSOR_DIMS, _TENSOR_DATA_TYPE, _TENSOR_NAME, _TENSOR_EXTERNAL_DATA, _TENSOR_DATA_LOCATION)
_SPARSE_VALUES = 1

# Less than this is looked at in one piece.
_SMALL = 4096

# protobuf rejects a larger message, which is why ONNX has external data.
_LARGEST = 2**31 - 1
_READ_WHOLE = 2**16  # reading so few bytes is faster than mapping them

# Bytes of an element; types of less than a byte are not in it.
_BYTES = {
    **dict.fromkeys(("INT8", "UINT8", "BOOL"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FLOAT16", "BFLOAT16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FLOAT"), 4),
    **dict.fromkeys(("INT64", "UINT64", "DOUBLE", "COMPLEX64"), 8),
    "COMPLEX128": 16,
}

_DATA_TYPES = {
    "FLOAT": "FP32",
    "FLOAT16": "FP16",
    "DOUBLE": "FP64",
    "BFLOAT16": "BF16",
    "STRING": "STRING",
    "BOOL": "BOOL",
    **{f"{sign}INT{bits}": f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class OnnxTensor:
    """An input or output.

    Attributes:
        name: its name.
        kind: `tensor`, `sequence`, `map`, `optional` or `sparse_tensor`; Triton serves tensors only.
        data_type: the type as a configuration names it, without `TYPE_`; None where Triton has none for it.
        shape: its dimensions: a number, the name of a variable one, or None for a variable one without a name. None
            if the file has nothing about it.
    """

    name: str
    kind: str
    data_type: str | None
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class ExternalData:
    """Weights in a file of their own.

    Attributes:
        tensor: the tensor's name.
        location: the path of that file as the ONNX file has it, relative to the directory of the ONNX file.
        end: the least number of bytes that it must have.
    """

    tensor: str
    location: str
    end: int


@dataclass(frozen=True)
class OnnxFile:
    """The description of a network that its ONNX file contains.

    Attributes:
        ir_version: the version of the format.
        opsets: domain → version of its operators; the domain of ONNX's own is "".
        inputs: what a caller gives; inputs with a default are not among them.
        defaults: the inputs that have a default, which callers may give.
        outputs: what a caller gets.
        external_data: the weights in other files.
    """

    ir_version: int
    opsets: Mapping[str, int]
    inputs: tuple[OnnxTensor, ...]
    defaults: tuple[OnnxTensor, ...]
    outputs: tuple[OnnxTensor, ...]
    external_data: tuple[ExternalData, ...]


class _WrongSizeError(Exception):
    """The data of a tensor are not as many bytes as its dims and its type require."""

    def __init__(self, tensor: str, size: int, wanted: int) -> None:
        self.tensor = tensor
        self.size = size
        self.wanted = wanted


def onnx_file(path: Path) -> OnnxFile | Unreadable:
    """Read an ONNX file."""
    try:
        size = path.stat().st_size
        if size == 0:
            return Unreadable("is empty")
        if size > _LARGEST:
            return Unreadable("is larger than 2 GiB, which protobuf cannot read: keep its weights as external data")
        if size < _READ_WHOLE:
            return _read_small(path.read_bytes())
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as buffer:
            return _read(buffer)
    except _WrongSizeError as error:
        return Unreadable(
            f"is incomplete: Initializer '{error.tensor}': raw_data size ({error.size} bytes) does not match expected "
            f"size from shape and data type ({error.wanted} bytes)"
        )
    except (WireError, DecodeError, UnicodeDecodeError):
        return Unreadable("is not an ONNX file: Protobuf parsing failed")
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror}")


@lru_cache(maxsize=64)  # ensembles often have the same small networks around their own
def _read_small(content: bytes) -> OnnxFile | Unreadable:
    return _read(content)


def _read(buffer: bytes | mmap) -> OnnxFile | Unreadable:
    onnx = _messages()
    top = list(fields(buffer, 0, len(buffer)))
    kept = [buffer[each.start : each.end] for each in top if each.number in (_MODEL_IR_VERSION, _MODEL_OPSET_IMPORT)]
    graph = next((each for each in reversed(top) if each.number == _MODEL_GRAPH), None)
    if graph is None:
        return Unreadable("is not an ONNX file: No graph was found in the protobuf")
    model = onnx.ModelProto.FromString(b"".join(kept))

    kept = []
    tensors: dict[str, list[ExternalData]] = {}
    for field in fields(buffer, graph.content, graph.end):
        if field.number in (_GRAPH_INPUT, _GRAPH_OUTPUT):
            kept.append(buffer[field.start : field.end])
        else:
            for name, external in _tensors_of(buffer, field):
                own = tensors.setdefault(name if field.number != _GRAPH_NODE else "", [])
                own.extend([external] if external is not None else [])
    faces = onnx.GraphProto.FromString(b"".join(kept))
    open_inputs = [each for each in faces.input if each.type.WhichOneof("value") is None and each.name not in tensors]
    if open_inputs:
        return Unreadable(f"is incomplete: Model input ({open_inputs[0].name}) does not have type information")
    if not model.opset_import:
        return Unreadable("is incomplete: Missing opset in the model")
    given = [_tensor(value) for value in faces.input]
    # Before version 4 of the format, every initializer is an input, and a constant.
    is_constant = model.ir_version < 4
    return OnnxFile(
        model.ir_version,
        {"" if opset.domain == "ai.onnx" else opset.domain: opset.version for opset in model.opset_import},
        tuple(tensor for tensor in given if tensor.name not in tensors),
        () if is_constant else tuple(tensor for tensor in given if tensor.name in tensors),
        tuple(_tensor(value) for value in faces.output),
        tuple(external for found in tensors.values() for external in found),
    )


def _tensors_of(buffer: bytes | mmap, field: Field) -> Iterator[tuple[str, ExternalData | None]]:
    """The tensors with data in one field of a graph: each with its name, and where its data is if it is elsewhere."""
    if field.number == _GRAPH_INITIALIZER:
        yield _initializer(buffer, field)
    elif field.number == _GRAPH_SPARSE:
        for below in fields(buffer, field.content, field.end):
            if below.number == _SPARSE_VALUES:
                yield _initializer(buffer, below)
    elif field.number == _GRAPH_NODE:
        # What a node has is nearly always small and without data of its own.
        if field.end - field.content < _SMALL and buffer.find(b"location", field.content, field.end) < 0:
            return
        for attribute in fields(buffer, field.content, field.end):
            if attribute.number == _NODE_ATTRIBUTE:
                yield from _tensors_of_attribute(buffer, attribute)


def _tensors_of_attribute(buffer: bytes | mmap, attribute: Field) -> Iterator[tuple[str, ExternalData | None]]:
    for field in fields(buffer, attribute.content, attribute.end):
        if field.number in _ATTRIBUTE_TENSORS:
            yield _initializer(buffer, field)
        elif field.number in _ATTRIBUTE_GRAPHS:
            for below in fields(buffer, field.content, field.end):
                yield from _tensors_of(buffer, below)


def _initializer(buffer: bytes | mmap, tensor: Field) -> tuple[str, ExternalData | None]:
    kept: list[bytes] = []
    size: int | None = None
    for field in fields(buffer, tensor.content, tensor.end):
        if field.number == _TENSOR_RAW_DATA:
            size = field.end - field.content
        elif field.number in _TENSOR_KEPT:
            kept.append(buffer[field.start : field.end])
    read = _messages().TensorProto.FromString(b"".join(kept))
    if read.data_location != read.EXTERNAL:
        wanted = math.prod(read.dims) * _bytes_of_types().get(read.data_type, 0)
        if size and wanted and size != wanted:
            raise _WrongSizeError(read.name, size, wanted)
        return read.name, None
    entries = {entry.key: entry.value for entry in read.external_data}
    end = sum(int(entries[key]) for key in ("offset", "length") if entries.get(key, "").isdecimal())
    return read.name, ExternalData(read.name, entries.get("location", ""), end)


def _tensor(value: Any) -> OnnxTensor:
    """An input or output, from its `ValueInfoProto`."""
    name, given = value.name, value.type
    kind = (given.WhichOneof("value") or "").removesuffix("_type")
    if kind != "tensor":
        return OnnxTensor(name, kind, None, None)
    data_type = onnx_data_types().get(given.tensor_type.elem_type)
    if not given.tensor_type.HasField("shape"):
        return OnnxTensor(name, kind, data_type, None)
    return OnnxTensor(name, kind, data_type, tuple(_dimension(each) for each in given.tensor_type.shape.dim))


@cache
def onnx_data_types() -> Mapping[int, str]:
    """The types as a configuration names them, without `TYPE_`, by their numbers in ONNX."""
    numbers = dict(_messages().TensorProto.DataType.items())
    return {numbers[name]: data_type for name, data_type in _DATA_TYPES.items()}


@cache
def _bytes_of_types() -> Mapping[int, int]:
    """The bytes of an element by the type's number in ONNX."""
    numbers = dict(_messages().TensorProto.DataType.items())
    return {numbers[name]: size for name, size in _BYTES.items()}


def _dimension(given: Any) -> int | str | None:
    if given.WhichOneof("value") == "dim_value":
        value = int(given.dim_value)
        return value if value >= 0 else None  # ONNX Runtime takes a negative one for a variable one
    return str(given.dim_param) or None


@cache
def _messages() -> ModuleType:
    """The compiled messages of the `onnx` distribution."""
    package = find_spec("onnx")
    for location in (package.submodule_search_locations or ()) if package else ():
        spec = spec_from_file_location("cdk_triton.onnx_models.reader._onnx_ml_pb2", Path(location, "onnx_ml_pb2.py"))
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ConfigurationError("the distribution onnx is not installed; install it with: pip install 'onnx>=1.19.1'")
