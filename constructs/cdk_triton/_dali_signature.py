"""The inputs and outputs of a serialised DALI pipeline, compared with `config.pbtxt` as Triton's DALI backend does it.

The program of a GPU build has this file too, by a link, and DALI's own Python runs it, so it is written for Python 3.8.

Source: `ValidateConfig` in src/config_tools/config_tools.cc of dali_backend. With Triton's auto-completion, which
SageMaker leaves on, the backend adds inputs and outputs that `config.pbtxt` lacks. Here they are faults if
`config.pbtxt` has others, because ensembles, callers and the checks of this library know only what it has.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["PipelineSignature", "PipelineTensor", "signature_fault", "signature_of"]

_TYPES = (
    "TYPE_UINT8",
    "TYPE_UINT16",
    "TYPE_UINT32",
    "TYPE_UINT64",
    "TYPE_INT8",
    "TYPE_INT16",
    "TYPE_INT32",
    "TYPE_INT64",
    "TYPE_FP16",
    "TYPE_FP32",
    "TYPE_FP64",
    "TYPE_BOOL",
)
"""Triton's names of DALI's types, by their numbers (dali_data_type_t, include/dali/c_api.h)."""

_NO_TYPE = "TYPE_INVALID"
_CPU_ONLY = -99999  # CPU_ONLY_DEVICE_ID, include/dali/core/common.h
_HANDLE_BYTES = 64  # a pointer; in old versions a structure of three


class PipelineTensor(NamedTuple):
    """An input or output of a pipeline.

    Attributes:
        name: its name.
        data_type: Triton's name of its type; None if the pipeline does not declare it.
        ndim: the number of its dimensions without the batch; None if the pipeline does not declare it.
    """

    name: str
    data_type: str | None
    ndim: int | None


class PipelineSignature(NamedTuple):
    """The inputs of a pipeline, and its outputs in their order."""

    inputs: list[PipelineTensor]
    outputs: list[PipelineTensor]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> PipelineSignature:
        """The signature from JSON, which `_asdict` gave."""
        return cls(*([PipelineTensor(*each) for each in document[side]] for side in ("inputs", "outputs")))


def signature_of(package: Path, serialized: bytes, max_batch_size: int, *, on_gpu: bool) -> PipelineSignature | None:
    """Load a serialised pipeline with DALI's C interface, as the backend does, and read its signature.

    The Python package can say the outputs of such a pipeline, but not its inputs.

    Args:
        package: the directory of the Python package `nvidia.dali`, which has the library.
        serialized: the pipeline.
        max_batch_size: that of `config.pbtxt`; 0 leaves the pipeline's own.
        on_gpu: whether to load it on the first GPU; otherwise it can have operators for the CPU only.

    Returns:
        The signature; None if this DALI cannot say it, which is before the backend compared anything (22.12).
    """
    dali = ctypes.CDLL(str(package / "libdali.so"))
    if not hasattr(dali, "daliGetDeclaredOutputNdim"):
        return None
    for function in (dali.daliGetExternalInputName, dali.daliGetOutputName):
        function.restype = ctypes.c_char_p
    handle = ctypes.create_string_buffer(_HANDLE_BYTES)
    device = 0 if on_gpu else _CPU_ONLY
    dali.daliInitialize()
    # The values of the backend: dali_pipeline.h, CreatePipeline.
    dali.daliCreatePipeline(handle, serialized, len(serialized), max_batch_size or -1, 1, device, 0, 1, 0, 0, 0)
    inputs = []
    for index in range(dali.daliGetNumExternalInput(handle)):
        name = dali.daliGetExternalInputName(handle, index)
        kind, ndim = dali.daliGetExternalInputType(handle, name), dali.daliGetExternalInputNdim(handle, name)
        inputs.append(_tensor(name, kind, ndim))
    outputs = []
    for index in range(dali.daliGetNumOutput(handle)):
        name = dali.daliGetOutputName(handle, index)
        kind, ndim = dali.daliGetDeclaredOutputDtype(handle, index), dali.daliGetDeclaredOutputNdim(handle, index)
        outputs.append(_tensor(name, kind, ndim))
    dali.daliDeletePipeline(handle)
    return PipelineSignature(inputs, outputs)


def signature_fault(
    found: PipelineSignature,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    max_batch_size: int,
) -> str | None:
    """What does not fit, with the fix; None if the pipeline fits `config.pbtxt`.

    Args:
        found: the inputs and outputs of the pipeline.
        inputs: `name`, `data_type` and `dims` of the inputs in `config.pbtxt`. If there are none, Triton adds those of
            the pipeline.
        outputs: the same for outputs.
        max_batch_size: that of `config.pbtxt`; 0 also if it has none.
    """
    names = {tensor.name: tensor for tensor in found.inputs}
    for entry in inputs:
        if entry["name"] not in names:
            there = ", ".join(map(repr, names)) or "none"
            return (
                f"config.pbtxt has the input {entry['name']!r}, but the pipeline does not (its inputs: {there}): use "
                "the external_source of this name for an output, because DALI drops one that no output needs, or "
                f"remove the input from config.pbtxt{_unnamed(names)}"
            )
    missing = sorted(set(names) - {entry["name"] for entry in inputs})
    if inputs and missing:
        return (
            f"the pipeline has the input {missing[0]!r}, but config.pbtxt does not: add it to config.pbtxt"
            f"{_unnamed(missing[:1])}"
        )
    if outputs and len(outputs) != len(found.outputs):
        return (
            f"the number of outputs is {len(found.outputs)} in the pipeline, but {len(outputs)} in config.pbtxt: list "
            "each output in config.pbtxt, in the order in which the pipeline returns them"
        )
    pairs = [("input", names[entry["name"]], entry) for entry in inputs]
    pairs += [("output", found.outputs[index], entry) for index, entry in enumerate(outputs)]
    faults = (_tensor_fault(side, tensor, entry, max_batch_size) for side, tensor, entry in pairs)
    return next(filter(None, faults), None)


def _unnamed(names: Iterable[str]) -> str:
    """DALI names an `external_source` by itself if the user does not; Triton never calls what `source=` names."""
    own = next((name for name in names if name.startswith("__")), None)
    return f"; the external_source {own!r} has no name, so write name=… and omit source=…" if own else ""


def _tensor_fault(side: str, tensor: PipelineTensor, entry: Mapping[str, Any], max_batch_size: int) -> str | None:
    what, kind, dims = f"the {side} {entry['name']!r}", entry["data_type"], list(entry["dims"])
    if tensor.data_type is not None and kind not in (_NO_TYPE, tensor.data_type):
        return (
            f"{what} is {tensor.data_type} in the pipeline, but {kind} in config.pbtxt: correct the data_type in "
            "config.pbtxt, or the dtype in the pipeline"
        )
    if tensor.ndim is None or not dims:
        return None
    # Without batches, `dims` has one more: the dimension of the batch that DALI then gets.
    fitting = (tensor.ndim,) if max_batch_size else (tensor.ndim, tensor.ndim + 1)
    if len(dims) in fitting:
        return None
    return (
        f"{what} has ndim {tensor.ndim} in the pipeline, but the dims {dims} in config.pbtxt: write a size for each "
        "dimension in config.pbtxt, or correct the ndim in the pipeline"
    )


def _tensor(name: bytes, kind: int, ndim: int) -> PipelineTensor:
    # A type that Triton does not have is no type of a model's tensor.
    word = None if kind < 0 else _TYPES[kind] if kind < len(_TYPES) else _NO_TYPE
    return PipelineTensor(name.decode("utf-8"), word, ndim if ndim >= 0 else None)
