"""CT147 to CT149: whether an ONNX file has what sequences, states and ragged batches require of it."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.onnx_models.reader.file import OnnxTensor
from cdk_triton.onnx_models.rules.models import OnnxModelFile, onnx_rule
from cdk_triton.triton.findings import Severity

_SOURCE = "src/onnxruntime.cc"


@onnx_rule(
    "CT147",
    Severity.ERROR,
    "a control of a sequence does not match an input of the ONNX file",
    source=backend("onnxruntime_backend", _SOURCE, 1532, 1587),
)
def control_not_in_file(each: OnnxModelFile) -> Iterator[Problem]:
    """For each control of `sequence_batching`, the file needs an input of the same name with the dims [1].

    With `max_batch_size` above 0, the batch dimension comes before these dims. Without such an input, the server does
    not load the model.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { control_input {
          name: "START"
          control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }
        } }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN, float[N, 1] BEGIN) => (float[N, 4] OUT) { OUT = Add(IN, BEGIN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN, float[N, 1] START) => (float[N, 4] OUT) { OUT = Add(IN, START) }
    """
    inputs = {tensor.name: tensor for tensor in each.onnx.inputs}
    for index, control in enumerate(each.config.sequence_batching.control_input):
        words = _control_fault(each, control.name, inputs.get(control.name)) if control.control else ""
        if words:
            what = "does not have the dims [1] in" if control.name in inputs else "is not an input of"
            yield each.owner.unloadable(
                f"sequence_batching.control_input[{index}].name",
                f"the sequence control {control.name!r} {what} {each.file.path}",
                words,
                f"name one of the file's inputs ({', '.join(map(repr, sorted(inputs))) or 'the file has none'}), "
                "or export the model with an input of the dims [1] for the control",
            )


def _control_fault(each: OnnxModelFile, name: str, found: OnnxTensor | None) -> str:
    if found is None:
        return f"configuration specified sequence control '{name}', but model does not provide that input"
    if found.shape is None:
        return ""
    own = found.shape[1:] if each.config.max_batch_size > 0 else found.shape
    if own == (1,):
        return ""
    return (
        f"unable to load model '{each.name}', sequence control '{name}' in model has dims {_text(own)} but dims [1] "
        "is expected"
    )


@onnx_rule(
    "CT148",
    Severity.ERROR,
    "a ragged input has another shape in the ONNX file",
    source=backend("onnxruntime_backend", _SOURCE, 1752, 1766),
)
def ragged_input(each: OnnxModelFile) -> Iterator[Problem]:
    """With `allow_ragged_batch`, the input in the file needs exactly one dimension, which is variable.

    The backend concatenates the requests of a batch along this dimension. If the input has another shape, the server
    does not load the model. Export the model with one variable dimension, or remove `allow_ragged_batch`.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, T] IN) => (float[N, T] OUT) { OUT = Identity(IN) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
    """
    found = {tensor.name: tensor for tensor in (*each.onnx.inputs, *each.onnx.defaults)}
    for index, tensor in enumerate(each.config.input):
        shape = found[tensor.name].shape if tensor.name in found else None
        if not tensor.allow_ragged_batch or shape is None or (len(shape) == 1 and not isinstance(shape[0], int)):
            continue
        yield each.owner.unloadable(
            f"input[{index}].allow_ragged_batch",
            f"the input {tensor.name!r} is ragged, but its shape in {each.file.path} is not one variable dimension",
            f"unable to load model '{each.name}', configuration expects model provides input with shape [-1]  for "
            f"ragged input '{tensor.name}', model provides {_text(shape)}",
            "remove allow_ragged_batch, or export the model with one variable dimension",
            joint="; ",
        )


@onnx_rule(
    "CT149",
    Severity.ERROR,
    "the ONNX file lacks the input or output of a sequence's state",
    source=backend("onnxruntime_backend", _SOURCE, 2061, 2120),
)
def state_not_in_file(each: OnnxModelFile) -> Iterator[Problem]:
    """The model receives a state of `sequence_batching` as the input `input_name`, and returns it as `output_name`.

    The file needs both tensors. If one of them is missing, the server loads the model but returns an error for every
    request.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { state {
          input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: 4
        } }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN, float[N, 4] STATE_IN) => (float[N, 4] OUT) { OUT = Add(IN, STATE_IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN, float[N, 4] STATE_IN) => (float[N, 4] OUT, float[N, 4] STATE_OUT)
        { OUT = Add(IN, STATE_IN) STATE_OUT = Identity(OUT) }
    """
    sides = {
        "input": {tensor.name for tensor in (*each.onnx.inputs, *each.onnx.defaults)},
        "output": {tensor.name for tensor in each.onnx.outputs},
    }
    for index, state in enumerate(each.config.sequence_batching.state):
        for side, name in (("input", state.input_name), ("output", state.output_name)):
            if name and name not in sides[side]:
                yield each.owner.problem(
                    f"sequence_batching.state[{index}].{side}_name",
                    f"{each.file.path} has no {side} {name!r} for the state; the server would load {each.name!r}, and "
                    "answer every request with an error",
                    f"name one of the file's {side}s, or export the model with the state",
                )


def _text(shape: tuple[int | str | None, ...]) -> str:
    """A shape as the server writes it."""
    return f"[{','.join(str(dim) if isinstance(dim, int) else '-1' for dim in shape)}]"
