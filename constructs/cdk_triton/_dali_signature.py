"""The inputs and outputs of a serialised DALI pipeline, compared with `config.pbtxt` as Triton's DALI backend does it.

The program of a GPU build has this file too, by a link, and DALI's own Python runs it, so it is written for Python 3.8.

Source: `ValidateConfig` in src/config_tools/config_tools.cc of dali_backend. With Triton's auto-completion, which
SageMaker leaves on, the backend adds inputs and outputs that `config.pbtxt` lacks. Here they are faults if
`config.pbtxt` has others, because ensembles, callers and the checks of this library know only what it has.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "DATA_TYPES",
    "PipelineSignature",
    "PipelineTensor",
    "SignatureFault",
    "signature_fault",
    "signature_faults",
    "signature_of",
]

DATA_TYPES = (
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
_ARGUMENTS = {"data_type": "dtype", "dims": "ndim"}
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


class SignatureFault(NamedTuple):
    """A difference between a pipeline and `config.pbtxt`.

    Attributes:
        field: the field of `config.pbtxt`, such as `input[0].dims`.
        name: the name of the input or output; "" where their number differs.
        found: the difference, as a sentence.
        fix: what to do.
        is_completed: whether Triton's auto-completion adds what `config.pbtxt` lacks.
        missing: the field of an input that neither the pipeline nor `config.pbtxt` has, which the server requires.
    """

    field: str
    name: str
    found: str
    fix: str
    is_completed: bool = False
    missing: str = ""


def signature_fault(
    found: PipelineSignature,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    max_batch_size: int,
) -> str | None:
    """The first of `signature_faults`, with the fix; None if the pipeline fits `config.pbtxt`."""
    fault = next(signature_faults(found, inputs, outputs, max_batch_size), None)
    return None if fault is None else f"{fault.found}: {fault.fix}"


def signature_faults(
    found: PipelineSignature,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    max_batch_size: int,
) -> Iterator[SignatureFault]:
    """What does not fit.

    Args:
        found: the inputs and outputs of the pipeline.
        inputs: `name`, `data_type` and `dims` of the inputs in `config.pbtxt`. If there are none, Triton adds those of
            the pipeline.
        outputs: the same for outputs.
        max_batch_size: that of `config.pbtxt`; 0 also if it has none.
    """
    names = {tensor.name: tensor for tensor in found.inputs}
    unlisted = [name for name in names if name not in {entry["name"] for entry in inputs}]
    for index, entry in enumerate(inputs):
        if entry["name"] not in names:
            there = ", ".join(map(repr, names)) or "none"
            yield SignatureFault(
                f"input[{index}].name",
                entry["name"],
                f"config.pbtxt has the input {entry['name']!r}, but the pipeline does not (its inputs: {there})",
                _fix_of_name(entry["name"], unlisted),
            )
    for name in sorted(set(names) - {entry["name"] for entry in inputs}) if inputs else ():
        missing = _missing(names[name])
        yield SignatureFault(
            "input",
            name,
            f"the pipeline has the input {name!r}, but config.pbtxt does not"
            + (f", and its external_source has no {_ARGUMENTS[missing]}" if missing else ""),
            f"add it to config.pbtxt{_unnamed([name])}",
            is_completed=not missing,
            missing=missing,
        )
    is_as_many = len(outputs) == len(found.outputs)
    if outputs and not is_as_many:
        yield SignatureFault(
            "output",
            "",
            f"the number of outputs is {len(found.outputs)} in the pipeline, but {len(outputs)} in config.pbtxt",
            "list each output in config.pbtxt, in the order in which the pipeline returns them",
            is_completed=len(outputs) < len(found.outputs),
        )
    for index, entry in enumerate(inputs):
        if entry["name"] in names:
            yield from _tensor_faults("input", index, names[entry["name"]], entry, max_batch_size)
    for index, entry in enumerate(outputs if is_as_many else ()):
        yield from _tensor_faults("output", index, found.outputs[index], entry, max_batch_size)


def _missing(tensor: PipelineTensor, data_type: str = _NO_TYPE, dims: Sequence[int] = ()) -> str:
    """The first field that an input lacks, in the order in which the server asks for them; "" if it is complete."""
    if tensor.data_type is None and data_type == _NO_TYPE:
        return "data_type"
    return "dims" if tensor.ndim is None and not dims else ""


def _fix_of_name(name: str, unlisted: Sequence[str]) -> str:
    """What to do about an input of `config.pbtxt` that the pipeline lacks.

    Args:
        name: the input.
        unlisted: the inputs of the pipeline that `config.pbtxt` lacks, one of which is probably meant.
    """
    if not unlisted:
        return (
            "use the external_source of this name for an output, because DALI drops one that no output needs, or "
            "remove the input from config.pbtxt"
        )
    named = [each for each in unlisted if not _unnamed([each])]
    renamed = f"write the name {' or '.join(map(repr, named))} in config.pbtxt, or " if named else ""
    without = "" if len(named) == len(unlisted) else ", and omit source=… there"
    return f"{renamed}write name={name!r} in the external_source that is meant{without}"


def _unnamed(names: Iterable[str]) -> str:
    """DALI names an `external_source` by itself if the user does not; Triton never calls what `source=` names."""
    own = next((name for name in names if name.startswith("__")), None)
    return (
        f"; the external_source {own!r} has no name, so write name=… and omit source=…, or write a constant"
        if own
        else ""
    )


def _tensor_faults(
    side: str, index: int, tensor: PipelineTensor, entry: Mapping[str, Any], max_batch_size: int
) -> Iterator[SignatureFault]:
    what, kind, dims = f"the {side} {entry['name']!r}", entry["data_type"], list(entry["dims"])
    if tensor.data_type is not None and kind not in (_NO_TYPE, tensor.data_type):
        yield SignatureFault(
            f"{side}[{index}].data_type",
            entry["name"],
            f"{what} is {tensor.data_type} in the pipeline, but {kind} in config.pbtxt",
            "correct the data_type in config.pbtxt, or the dtype in the pipeline",
        )
    missing = _missing(tensor, kind, dims) if side == "input" else ""
    if missing:
        yield SignatureFault(
            f"input[{index}].{missing}",
            entry["name"],
            f"{what} has no {missing} in config.pbtxt, and its external_source has no {_ARGUMENTS[missing]}",
            f"write the {missing} in config.pbtxt",
            missing=missing,
        )
    # Without batches, `dims` has one more: the dimension of the batch that DALI then gets.
    if tensor.ndim is None or not dims or len(dims) - tensor.ndim in ((0,) if max_batch_size else (0, 1)):
        return
    yield SignatureFault(
        f"{side}[{index}].dims",
        entry["name"],
        f"{what} is {tensor.ndim}-dimensional in the pipeline, but has the dims {dims} in config.pbtxt",
        "write a size for each dimension in config.pbtxt, or correct the pipeline: "
        + ("ndim or layout of the external_source" if side == "input" else "output_ndim of @pipeline_def"),
    )


def _tensor(name: bytes, kind: int, ndim: int) -> PipelineTensor:
    # A type that Triton does not have is no type of a model's tensor.
    word = None if kind < 0 else DATA_TYPES[kind] if kind < len(DATA_TYPES) else _NO_TYPE
    return PipelineTensor(name.decode("utf-8"), word, ndim if ndim >= 0 else None)
