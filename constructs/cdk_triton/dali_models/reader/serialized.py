"""Reads a serialised DALI pipeline, `model.dali`: a message `PipelineDef` of protobuf.

Source: dali/pipeline/dali.proto of NVIDIA/DALI. Its fields 1 and 2 (threads and batch size) are required, 5 has the
operators and 7 the outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cdk_triton._dali_signature import DATA_TYPES, PipelineSignature, PipelineTensor
from cdk_triton.onnx_models.reader.protobuf_wire import WireError, fields, varint
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["MAX_BYTES", "serialized_outputs_on_gpu", "serialized_pipeline"]

MAX_BYTES: Final = 64 * 2**20
"""A larger file is not read; usual ones have a few kilobytes."""

_THREADS, _BATCH_SIZE, _OPERATOR, _OUTPUT = 1, 2, 5, 7
_NAME, _OUTPUTS, _ARGUMENT = 1, 3, 4  # of an operator
_INTEGER, _STRING = 4, 5  # of an argument
_DEVICE, _TYPE, _NDIM = 2, 5, 6  # of an output
_INPUTS = frozenset({"ExternalSource", "_ExternalSource"})


def serialized_pipeline(path: Path) -> PipelineSignature | Unreadable | None:
    """The inputs and outputs of a pipeline, or why DALI cannot load it.

    Returns:
        None if the file is too large, or if it has inputs or outputs that the reader does not know.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        content = path.read_bytes()
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror}")
    if not content:
        return Unreadable("is empty")
    try:
        return _Message(content).signature()
    except (WireError, UnicodeDecodeError):
        return Unreadable("is not a serialised DALI pipeline")


def serialized_outputs_on_gpu(path: Path) -> tuple[int, ...]:
    """The outputs of a pipeline that are in the memory of the GPU, each with its place from 0; none if not known."""
    try:
        content = path.read_bytes() if path.stat().st_size <= MAX_BYTES else b""
        return _Message(content).outputs_on_gpu()
    except (OSError, WireError, UnicodeDecodeError):
        return ()


class _Message:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def signature(self) -> PipelineSignature | Unreadable | None:
        found = list(fields(self._content, 0, len(self._content)))
        if {_THREADS, _BATCH_SIZE} - {each.number for each in found}:
            return Unreadable("is not a serialised DALI pipeline")
        inputs: list[PipelineTensor] = []
        for each in found:
            if each.number == _OPERATOR:
                name, tensors = self._operator(each.content, each.end)
                if name.startswith(("inputs__", "experimental__inputs__")):
                    return None
                inputs += tensors if name in _INPUTS else []
        outputs = [self._output(each.content, each.end) for each in found if each.number == _OUTPUT]
        return PipelineSignature(inputs, outputs) if outputs else None

    def outputs_on_gpu(self) -> tuple[int, ...]:
        outputs = [each for each in fields(self._content, 0, len(self._content)) if each.number == _OUTPUT]
        devices = [
            [part for part in fields(self._content, each.content, each.end) if part.number == _DEVICE]
            for each in outputs
        ]
        texts = [[self._text(part.content, part.end) for part in parts] for parts in devices]
        return tuple(index for index, text in enumerate(texts) if text == ["gpu"])

    def _operator(self, start: int, end: int) -> tuple[str, list[PipelineTensor]]:
        """The name of an operator, and its outputs with the type and dimensions that its arguments declare."""
        name = ""
        outputs: list[str] = []
        arguments: dict[str, int | str] = {}
        for each in fields(self._content, start, end):
            if each.number == _NAME:
                name = self._text(each.content, each.end)
            elif each.number == _OUTPUTS:
                outputs.append(self._first_text(each.content, each.end))
            elif each.number == _ARGUMENT:
                arguments.update(self._argument(each.content, each.end))
        numbers = {key: value for key, value in arguments.items() if isinstance(value, int)}
        # Without ndim, it is that of the layout, as in a definition.
        ndim = numbers.get("ndim", len(str(arguments.get("layout", ""))) or None)
        return name, [_tensor(output, numbers.get("dtype"), ndim) for output in outputs]

    def _argument(self, start: int, end: int) -> Mapping[str, int | str]:
        parts = {each.number: each for each in fields(self._content, start, end)}
        if _NAME not in parts:
            return {}
        name = self._text(parts[_NAME].content, parts[_NAME].end)
        if _INTEGER in parts:
            return {name: self._number(parts[_INTEGER].content)}
        return {name: self._text(parts[_STRING].content, parts[_STRING].end)} if _STRING in parts else {}

    def _output(self, start: int, end: int) -> PipelineTensor:
        parts = {each.number: each for each in fields(self._content, start, end)}
        declared = {number: self._number(parts[number].content) for number in (_TYPE, _NDIM) if number in parts}
        return _tensor(self._first_text(start, end), declared.get(_TYPE), declared.get(_NDIM))

    def _first_text(self, start: int, end: int) -> str:
        found = (each for each in fields(self._content, start, end) if each.number == _NAME)
        first = next(found, None)
        return "" if first is None else self._text(first.content, first.end)

    def _text(self, start: int, end: int) -> str:
        return self._content[start:end].decode("utf-8")

    def _number(self, start: int) -> int:
        value = varint(self._content, start, len(self._content))[0]
        return value - 2**64 if value >= 2**63 else value


def _tensor(name: str, data_type: int | None, ndim: int | None) -> PipelineTensor:
    is_known = data_type is not None and 0 <= data_type < len(DATA_TYPES)
    declared = DATA_TYPES[data_type] if is_known and data_type is not None else None
    return PipelineTensor(name, declared, ndim if ndim is not None and ndim >= 0 else None)
