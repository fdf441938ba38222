"""CT194, CT198 and CT199: whether the tensors of a request fit the model that a Python model calls."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.derived.completion import completes_batch_size, completes_tensors, known_backend
from cdk_triton.checks.derived.composition import fits
from cdk_triton.checks.derived.configured import ConfiguredModel
from cdk_triton.checks.derived.places import is_on_gpu
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, core
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.model_requests import ModelRequest, request_rule
from cdk_triton.python_models.rules.tensors import of_type
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelInput, enum_name


@request_rule(
    "CT194",
    Severity.WARNING,
    "a Python model calls another model with inputs or outputs that this model does not have",
    source=core("src/model.cc", 40, 66),
)
def unknown_tensors(each: ModelRequest) -> Iterator[Problem]:
    """A request for another model (BLS) names an input or output that this model lacks, or omits an input.

    The server rejects the request. A tensor that comes from another request keeps its name: create a new `Tensor` with
    the other name, or rename the input.

    A response contains only the outputs that the request asks for. For any other name, `get_output_tensor_by_name`
    returns `None`, so the rule reports a call of `as_numpy()` on the result.

    Example:
        $ cdk-triton validate . --default-model pipeline --additional-model classifier
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "CLASS" data_type: TYPE_FP32 dims: 1 }
        # pipeline/config.pbtxt
        backend: "python"
        input { name: "PICTURE" data_type: TYPE_FP32 dims: 4 }
        output { name: "CLASS" data_type: TYPE_FP32 dims: 1 }
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                picture = pb_utils.get_input_tensor_by_name(request, "PICTURE")
                call = pb_utils.InferenceRequest(
                    model_name="classifier", inputs=[picture], requested_output_names=["CLASS"]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Instead:
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                picture = pb_utils.get_input_tensor_by_name(request, "PICTURE")
                image = pb_utils.Tensor("IMAGE", picture.as_numpy())
                call = pb_utils.InferenceRequest(
                    model_name="classifier", inputs=[image], requested_output_names=["CLASS"]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Limits:
        The rule knows names that are written in the call, or in a variable that the function sets once. It skips the
        inputs or outputs of a model whose backend may add others to the configuration.
    """
    callee, suggestions = each.callee, Suggestions()
    if not completes_tensors(callee, "input"):
        yield from _input_problems(each, suggestions)
    outputs = [tensor.name for tensor in callee.config.output]
    for name in dict.fromkeys(each.call.outputs) if not completes_tensors(callee, "output") else ():
        if name not in outputs:
            yield each.problem(
                each.call.line,
                f"requests the output {name!r} of {callee.name!r}, which does not have it",
                f"unexpected inference output '{name}' for model '{callee.name}'",
                _name_of(name, outputs, "output", suggestions),
            )
    for line, name in each.call.unrequested:
        close = suggestions.closest(name, sorted(each.call.outputs))
        yield each.problem(
            line,
            f"reads the output {name!r} of {callee.name!r}, but the request asks only for "
            f"{listed_in_quotes(sorted(set(each.call.outputs)))}",
            "AttributeError: 'NoneType' object has no attribute 'as_numpy'",
            f"did you mean {close!r}?" if close is not None else f"add {name!r} to requested_output_names",
        )


def _input_problems(each: ModelRequest, suggestions: Suggestions) -> Iterator[Problem]:
    call, name_of_callee = each.call, each.callee.name
    known = [tensor.name for tensor in each.callee.config.input]
    required = [tensor.name for tensor in each.callee.config.input if not tensor.optional]
    count = f"{len(known)} inputs"
    if len(required) < len(known):
        count = f"number of inputs between {len(required)} and {len(known)}"
    counted = f"expected {count} but got {len(call.inputs)} inputs for model '{name_of_callee}'"
    is_fitting = len(required) <= len(call.inputs) <= len(known)  # which the server checks first
    unknown = [name for name in dict.fromkeys(call.inputs) if name not in known]
    for name in unknown:
        yield each.problem(
            call.line,
            f"sends the input {name!r} to {name_of_callee!r}, which does not have it",
            counted
            if call.has_all_inputs and not is_fitting
            else f"unexpected inference input '{name}' for model '{name_of_callee}'",
            _name_of(name, known, "input", suggestions),
        )
    missing = [name for name in required if name not in call.inputs]
    if call.has_all_inputs and missing and not unknown:
        yield each.problem(
            call.line,
            f"does not send the required input{'s' if len(missing) > 1 else ''} {listed_in_quotes(missing)} to "
            f"{name_of_callee!r}",
            counted,
            f"add the missing tensor to inputs, or mark the input of {name_of_callee!r} as optional",
        )


def _name_of(name: str, names: list[str], side: str, suggestions: Suggestions) -> str:
    close = suggestions.closest(name, sorted(names))
    there = listed_in_quotes(sorted(names)) if names else "none"
    return f"did you mean {close!r}?" if close is not None else f"use an {side} of the model: {there}"


@request_rule(
    "CT198",
    Severity.WARNING,
    "a Python model reads another model's output on the GPU with as_numpy",
    source=backend("python_backend", "src/pb_tensor.cc", 579, 590),
)
def output_on_gpu(each: ModelRequest) -> Iterator[Problem]:
    """`as_numpy()` reads an output that the other model leaves in the memory of the GPU.

    A response to a request of a Python model contains the tensors where the other model wrote them. ONNX Runtime,
    TensorRT and PyTorch write to the GPU, except for texts. So does FIL if its `transfer_threshold` is 0, the default,
    and DALI if the operator that makes the output runs on the GPU. Every such read fails on an instance with a GPU, and
    works on a machine without one. With `preferred_memory`, the server copies the outputs to the memory of the host.

    Example:
        $ cdk-triton validate . --default-model pipeline --additional-model network
        # network/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # network/1/model.onnx
        <ir_version: 8, opset_import: ["": 17]>
        network (float[4] IN) => (float[4] OUT) { OUT = Relu(IN) }
        # pipeline/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                given = pb_utils.get_input_tensor_by_name(request, "IN")
                call = pb_utils.InferenceRequest(model_name="network", inputs=[given], requested_output_names=["OUT"])
                values = pb_utils.get_output_tensor_by_name(call.exec(), "OUT").as_numpy()
                return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values * 2)])

    Instead:
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                given = pb_utils.get_input_tensor_by_name(request, "IN")
                call = pb_utils.InferenceRequest(
                    model_name="network",
                    inputs=[given],
                    requested_output_names=["OUT"],
                    preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0),
                )
                values = pb_utils.get_output_tensor_by_name(call.exec(), "OUT").as_numpy()
                return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values * 2)])

    Limits:
        The rule checks only models whose instances are all on the GPU, and outputs of DALI that literals show to be
        there. If the name of the output is not known, all outputs have to be on the GPU. The rule does not follow a
        response into another function. It skips a file that asks where a tensor is (`is_cpu`), or passes tensors on
        with DLPack.
    """
    callee = each.callee
    name = known_backend(callee.context, callee.model)
    named = each.call.outputs if each.call.has_all_outputs else [tensor.name for tensor in callee.config.output]
    for line, output in each.call.on_host:
        read = [output] if output else sorted(set(named))
        if not output and not each.call.has_all_outputs and completes_tensors(callee, "output"):
            continue
        if read and all(is_on_gpu(callee, one) for one in read):
            several = "s" if len(read) > 1 else ""
            yield each.problem(
                line,
                f"reads the output{several} {listed_in_quotes(read)} of {each.call.model!r} with as_numpy(), but its "
                f"backend {name!r} leaves the output{several} on the GPU",
                "Tensor is stored in GPU and cannot be converted to NumPy.",
                "write preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0) in the request",
            )


@request_rule(
    "CT199",
    Severity.WARNING,
    "a Python model sends an input that does not fit the model that it calls",
    source=core("src/infer_request.cc", 1100, 1185),
)
def unfit_input(each: ModelRequest) -> Iterator[Problem]:
    """A Python model sends an input of another type or shape than the model that it calls expects.

    The server rejects the request. For an input of the type `TYPE_FP32`, write `np.array([0.5], np.float32)`: without a
    `dtype`, numpy makes an FP64 array.

    A model with `max_batch_size` above 0 expects a batch dimension before the dims of its configuration. So a Python
    model without batches has to add this dimension: make a new `Tensor` of `np.expand_dims(values, 0)`.

    Example:
        $ cdk-triton validate . --default-model pipeline --additional-model classifier
        # classifier/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "CLASS" data_type: TYPE_FP32 dims: 1 }
        # pipeline/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "CLASS" data_type: TYPE_FP32 dims: [ -1, 1 ] }
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                image = pb_utils.get_input_tensor_by_name(request, "IMAGE")
                call = pb_utils.InferenceRequest(
                    model_name="classifier", inputs=[image], requested_output_names=["CLASS"]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Instead:
        # pipeline/1/model.py
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                image = pb_utils.get_input_tensor_by_name(request, "IMAGE")
                batch = pb_utils.Tensor("IMAGE", np.expand_dims(image.as_numpy(), 0))
                call = pb_utils.InferenceRequest(
                    model_name="classifier", inputs=[batch], requested_output_names=["CLASS"]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Limits:
        The rule checks only tensors that the model passes on unchanged, and the types and shapes of arrays that
        literals show. It skips shapes that a backend may complete, and inputs with `reshape` or `allow_ragged_batch`.
    """
    own = {tensor.name: tensor for tensor in each.owner.config.input}
    expected = {tensor.name: tensor for tensor in each.callee.config.input}
    for name, kind in each.call.types:
        wanted = enum_name(expected[name], "data_type").removeprefix("TYPE_") if name in expected else kind
        if wanted not in (kind, "INVALID"):
            yield each.problem(
                each.call.line,
                f"sends the {kind} input {name!r} to {each.callee.name!r}, which expects {wanted}",
                _type_error(name, kind, wanted, each.callee),
                of_type(wanted),
            )
    for name, shape in each.call.shapes:
        wanted_shape = _shape(each.callee, expected[name]) if name in expected else None
        if wanted_shape is not None:
            yield from _unfit_shape(each, name, shape, wanted_shape)
    for name in each.call.passed_on or ():
        if name not in own or name not in expected:
            continue
        types = [enum_name(tensor, "data_type").removeprefix("TYPE_") for tensor in (own[name], expected[name])]
        shapes = [_shape(each.owner, own[name]), _shape(each.callee, expected[name])]
        if types[0] != types[1] and "INVALID" not in types:
            yield each.problem(
                each.call.line,
                f"passes the {types[0]} input {name!r} on to {each.callee.name!r}, which expects {types[1]}",
                _type_error(name, types[0], types[1], each.callee),
                f"create a Tensor {name!r} of the type {types[1]}",
            )
        elif shapes[0] is not None and shapes[1] is not None and not fits(shapes[0], shapes[1]):
            yield each.problem(
                each.call.line,
                f"passes the input {name!r} of the shape {list(shapes[0])} on to {each.callee.name!r}, which expects "
                f"{list(shapes[1])}",
                f"unexpected shape for input '{name}' for model '{each.callee.name}'",
                f"create a Tensor {name!r} of this shape",
            )


def _type_error(name: str, sent: str, wanted: str, callee: ConfiguredModel) -> str:
    given, expected = ("BYTES" if kind == "STRING" else kind for kind in (sent, wanted))  # the names of the protocol
    return f"inference input '{name}' data-type is '{given}', but model '{callee.name}' expects '{expected}'"


def _unfit_shape(each: ModelRequest, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[Problem]:
    size = each.callee.config.max_batch_size
    if not fits(shape, wanted):
        lacks_batch = size and fits((1, *shape), wanted)
        yield each.problem(
            each.call.line,
            f"sends the input {name!r} of the shape {list(shape)} to {each.callee.name!r}, which expects "
            f"{list(wanted)}",
            f"unexpected shape for input '{name}' for model '{each.callee.name}'",
            "add the batch dimension, with np.expand_dims(values, 0)" if lacks_batch else "give the array this shape",
        )
    elif size and shape[0] > size:
        yield each.problem(
            each.call.line,
            f"sends the input {name!r} with {shape[0]} rows to {each.callee.name!r}, whose max_batch_size is {size}",
            f"inference request batch-size must be <= {size} for '{each.callee.name}'",
            f"send at most {size} rows at once, or raise max_batch_size",
        )


def _shape(each: ConfiguredModel, tensor: ModelInput) -> tuple[int, ...] | None:
    """The shape of an input, with the batch dimension; None if the configuration does not determine it."""
    size = each.config.max_batch_size
    is_open = not tensor.dims or (size == 0 and completes_batch_size(each))
    if is_open or tensor.HasField("reshape") or tensor.allow_ragged_batch:
        return None
    return ((-1,) if size else ()) + tuple(tensor.dims)
