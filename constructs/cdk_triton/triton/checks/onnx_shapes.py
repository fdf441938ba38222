"""CT134 to CT136: whether the shapes in an ONNX file agree with its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdk_triton.triton.checks._sources import backend
from cdk_triton.triton.checks.engine import Check, Problem, rule
from cdk_triton.triton.checks.onnx_models import OnnxModel, onnx_models, pairs
from cdk_triton.triton.contents.onnx_file import OnnxTensor
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelInput, ModelOutput

_COMPARE = backend("onnxruntime_backend", "src/onnxruntime_utils.cc", 466, 540)

Shape = tuple[int | str | None, ...]


@rule("CT134", Severity.ERROR, "a tensor has another shape in the ONNX file", source=_COMPARE)
def other_shape(check: Check) -> Iterator[Problem]:
    """The configuration says other dimensions than the file.

    With `max_batch_size` above 0, the file has one dimension more, which comes first. A variable input of the file may
    have any number in the configuration; an output has to be variable where the file's is.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 1, 4 ] }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Limits:
        A variable dimension of an output whose name is none of an input's is left to CT136: ONNX Runtime may find out
        its size.
    """
    for each in onnx_models(check):
        for side, index, tensor, found in pairs(each):
            written = _written(tensor)
            if written is None or found.shape is None or _lacks_batch(each, found):
                continue
            message = _scalar(each, tensor, written, found.shape) or _difference(each, side, tensor, found.shape)
            if message:
                yield Problem(
                    each.artifact.model.config_path,
                    f"the server would not load {each.name!r}: {message}",
                    f"write the dimensions of {each.file.path}, or export the model with others",
                    f"{side}[{index}].{'reshape.shape' if tensor.HasField('reshape') else 'dims'}",
                )


@rule("CT135", Severity.ERROR, "an ONNX model that takes batches has a fixed first dimension", source=_COMPARE)
def fixed_batch(check: Check) -> Iterator[Problem]:
    """With `max_batch_size` above 0, the first dimension of every tensor has to be variable.

    Exporters fix every dimension unless they are told otherwise (`dynamic_axes` or `dynamic_shapes` of
    `torch.onnx.export`).

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[1, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }
    """
    for each in onnx_models(check):
        if each.config.max_batch_size > 0 and not (each.config.input and each.config.output):
            tensors = (*each.onnx.inputs, *each.onnx.outputs)
            names = [tensor.name for tensor in tensors if tensor.shape == () or _lacks_batch(each, tensor)]
            if names:
                yield Problem(
                    each.artifact.model.config_path,
                    f"the first dimension of {', '.join(map(repr, names))} in {each.file.path} is not variable: "
                    f"autofill failed for model '{each.name}': model does not support batching while non-zero "
                    "max_batch_size is specified",
                    "export the model with a variable first dimension, or leave max_batch_size out",
                    "max_batch_size",
                )
            continue
        for _, _, tensor, found in pairs(each):
            if _lacks_batch(each, found) and found.shape is not None and _written(tensor) is not None:
                yield Problem(
                    each.file.path,
                    f"the server would not load it: model '{each.name}', tensor '{tensor.name}': for the model "
                    "to support batching the shape should have at least 1 dimension and the first dimension must be "
                    f"-1; but shape expected by the model is {_text(found.shape)}",
                    "export the model with a variable first dimension, or set max_batch_size: 0",
                    tensor.name,
                )


@rule("CT136", Severity.WARNING, "an output that is variable in the ONNX file is fixed", source=_COMPARE)
def fixed_output(check: Check) -> Iterator[Problem]:
    """The server compares outputs exactly: what is variable in the file has to be -1 in the configuration.

    ONNX Runtime sometimes finds out the size of a dimension that the file leaves open; then the number is right.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4] IN) => (float[unknown] OUT) { OUT = Compress(IN, keep) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
    """
    for each in onnx_models(check):
        for side, index, tensor, found in pairs(each):
            written = _written(tensor)
            if side == "input" or written is None or not found.shape or _difference(each, side, tensor, found.shape):
                continue
            full = _full(each, written)
            if any(isinstance(own, str | None) and said != -1 for own, said in zip(found.shape, full, strict=True)):
                yield Problem(
                    each.artifact.model.config_path,
                    f"the shape is {_text(full)} and in {each.file.path} it is {_text(found.shape)}; unless ONNX "
                    f"Runtime finds out the size by itself, the server would not load it: model '{each.name}', tensor "
                    f"'{tensor.name}': the model expects {len(full)} dimensions",
                    "write -1 for what is variable in the file, or export the model with the number",
                    f"{side}[{index}].{'reshape.shape' if tensor.HasField('reshape') else 'dims'}",
                )


def _written(tensor: ModelInput | ModelOutput) -> tuple[int, ...] | None:
    """The dimensions that the backend compares; None where there are none, or where it asks for something else."""
    if isinstance(tensor, ModelInput) and tensor.allow_ragged_batch:
        return None
    if tensor.HasField("reshape"):
        return tuple(tensor.reshape.shape)
    return tuple(tensor.dims) or None


def _lacks_batch(each: OnnxModel, found: OnnxTensor) -> bool:
    return each.config.max_batch_size > 0 and bool(found.shape) and isinstance((found.shape or (None,))[0], int)


def _full(each: OnnxModel, written: Sequence[int]) -> tuple[int, ...]:
    return (-1, *written) if each.config.max_batch_size > 0 else tuple(written)


def _scalar(each: OnnxModel, tensor: ModelInput | ModelOutput, written: tuple[int, ...], shape: Shape) -> str:
    if shape or all(dim == 1 for dim in written):
        return ""
    return (
        f"unable to load model '{each.name}', scalar tensor '{tensor.name}', should only provide 1 in the model "
        f"configuration when the model doesn't support batching. Model configuration provided: {_text(written)}."
    )


def _difference(each: OnnxModel, side: str, tensor: ModelInput | ModelOutput, shape: Shape) -> str:
    """What the server says of shapes that differ for certain, or ""."""
    written = _written(tensor)
    if not shape or written is None or tensor.name in {output.target_name[0] for output in each.config.batch_output}:
        return ""
    full = _full(each, written)
    variable = {dim for given in (*each.onnx.inputs, *each.onnx.defaults) for dim in given.shape or ()}
    if len(shape) == len(full) and not any(
        said != own if isinstance(own, int) else side == "output" and said != -1 and own in variable - {None}
        for own, said in zip(shape, full, strict=True)
    ):
        return ""
    complete = f"(shape {_text(full)})"
    if each.config.max_batch_size > 0:
        complete = (
            "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making "
            f"complete shape {_text(full)})"
        )
    return (
        f"model '{each.name}', tensor '{tensor.name}': the model expects {len(shape)} dimensions (shape "
        f"{_text(shape)}) but the model configuration specifies {len(full)} dimensions {complete}"
    )


def _text(shape: Sequence[int | str | None]) -> str:
    """A shape as the server writes it."""
    return f"[{','.join(str(dim) if isinstance(dim, int) else '-1' for dim in shape)}]"
