"""CT194 to CT198: whether the requests of a Python model fit the models that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import completes_tensors, known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, configured
from cdk_triton.checks.derived.decoupling import decoupled_models
from cdk_triton.checks.registry import Problem, in_line, rules_about
from cdk_triton.checks.sources import backend, core
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import needed_sources
from cdk_triton.python_models.reader.model_calls import ModelCall
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_EXECUTOR = "src/request_executor.cc"
_ON_GPU = ("onnxruntime", "tensorrt")


@dataclass(frozen=True)
class _Request:
    """A request of a Python model for another model that the server loads.

    Attributes:
        caller: the name of the model that sends it.
        path: the file that sends it.
        call: the request.
        callee: the other model, with its configuration.
    """

    caller: str
    path: PurePosixPath
    call: ModelCall
    callee: ConfiguredModel

    def problem(self, line: int, does: str, said: str, fix: str) -> Problem:
        """A problem of a line; `said` is the error that the caller gets."""
        return in_line(self.path, line, f"{does}, so {self.caller!r} gets an error: {said}", fix)


@per_check
def _requests(context: CheckContext) -> Iterator[_Request]:
    callees = {each.name: each for each in configured(context) if not context.is_renamed(each.model)}
    seen = set()
    for each, sources in needed_sources(context):
        for path, source in sources.items():
            for call in source.references.calls:
                if call.model in callees and (path, call) not in seen:
                    seen.add((path, call))
                    yield _Request(each.model.name, path, call, callees[call.model])


_request_rule = rules_about(_requests)


@_request_rule(
    "CT194",
    Severity.WARNING,
    "a Python model calls another model with inputs or outputs that this model does not have",
    source=core("src/model.cc", 40, 66),
)
def unknown_tensors(each: _Request) -> Iterator[Problem]:
    """A request for another model (BLS) names an input or output that this model lacks, or omits an input.

    The server rejects the request. A tensor that comes from another request keeps its name: create a new `Tensor` with
    the other name, or rename the input.

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


def _input_problems(each: _Request, suggestions: Suggestions) -> Iterator[Problem]:
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


@_request_rule(
    "CT195",
    Severity.WARNING,
    "a Python model calls a decoupled model as if it returned one response",
    source=backend("python_backend", _EXECUTOR, 396, 412),
)
def decoupled_callee(each: _Request) -> Iterator[Problem]:
    """A request goes to a decoupled model without `decoupled=True`, or its responses are read as a single one.

    A decoupled model returns any number of responses. The request fails if `exec` or `async_exec` is called without
    `decoupled=True`. With this argument, these methods return an iterator of responses.

    Example:
        $ cdk-triton validate . --default-model pipeline --additional-model words
        # words/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "WORD" data_type: TYPE_STRING dims: 1 }
        # words/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                for request in requests:
                    request.get_response_sender().send(flags=1)
        # pipeline/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "WORD" data_type: TYPE_STRING dims: 1 }
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                text = pb_utils.get_input_tensor_by_name(request, "TEXT")
                call = pb_utils.InferenceRequest(model_name="words", inputs=[text], requested_output_names=["WORD"])
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Instead:
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                text = pb_utils.get_input_tensor_by_name(request, "TEXT")
                call = pb_utils.InferenceRequest(model_name="words", inputs=[text], requested_output_names=["WORD"])
                first = next(iter(call.exec(decoupled=True)))
                return pb_utils.InferenceResponse(first.output_tensors())
    """
    call = each.call
    if call.model not in decoupled_models(each.callee.context):
        return
    if call.plain:
        yield each.problem(
            call.plain,
            f"sends a request to the decoupled model {call.model!r} without decoupled=True",
            f"Model {call.model} is using the decoupled. The current BLS request call doesn't support models using the "
            "decoupled transaction policy",
            "write decoupled=True, and iterate over the responses",
        )
    if call.misread:
        yield each.problem(
            call.misread,
            f"uses the responses of the decoupled model {call.model!r} as if they were one response",
            "AttributeError: 'c_python_backend_utils.ResponseIterator' object has no attribute",
            "iterate over the responses",
        )


@_request_rule(
    "CT196",
    Severity.WARNING,
    "a Python model calls a version of another model that the server does not load",
    source=backend("python_backend", _EXECUTOR, 379, 393),
)
def unserved_version(each: _Request) -> Iterator[Problem]:
    """A request names a `model_version` that the other model does not have, or that its version policy omits.

    By default, the server loads only the newest version of a model. Without `model_version`, the request goes to the
    newest version that is loaded.

    Example:
        $ cdk-triton validate . --default-model pipeline --additional-model classifier
        # classifier/config.pbtxt
        backend: "python"
        # pipeline/config.pbtxt
        backend: "python"
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                call = pb_utils.InferenceRequest(
                    model_name="classifier", model_version=2, inputs=request.inputs(), requested_output_names=[]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Instead:
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                call = pb_utils.InferenceRequest(
                    model_name="classifier", inputs=request.inputs(), requested_output_names=[]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())
    """
    call, served = each.call, each.callee.model.served_versions
    if call.version is not None and call.version != -1 and served and call.version not in served:
        versions = ", ".join(map(str, served))
        yield each.problem(
            call.line,
            f"sends a request to version {call.version} of {call.model!r}, but the server loads version {versions}",
            f"Failed for execute the inference request. Model '{call.model}' is not ready",
            "omit model_version, or add the version to the version_policy of the model",
        )


@_request_rule(
    "CT197",
    Severity.WARNING,
    "a Python model calls a model of sequences without a correlation ID",
    source=core("src/sequence_batch_scheduler/sequence_utils.h", 40, 57),
)
def no_correlation_id(each: _Request) -> Iterator[Problem]:
    """A request goes to a model with `sequence_batching`, but does not name a sequence.

    The server rejects the request. Pass the identifier on with `correlation_id=request.correlation_id()`, and the
    beginning and the end of the sequence with `flags=request.flags()`.

    Example:
        $ cdk-triton validate . --default-model pipeline --additional-model counter
        # counter/config.pbtxt
        backend: "python"
        sequence_batching { }
        # pipeline/config.pbtxt
        backend: "python"
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                call = pb_utils.InferenceRequest(
                    model_name="counter", inputs=request.inputs(), requested_output_names=[]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Instead:
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                call = pb_utils.InferenceRequest(
                    model_name="counter",
                    inputs=request.inputs(),
                    requested_output_names=[],
                    correlation_id=request.correlation_id(),
                    flags=request.flags(),
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Limits:
        The rule skips sequences that a model repeats itself (`iterative_sequence`), and ensembles.
    """
    call, config = each.call, each.callee.config
    is_sequence = config.HasField("sequence_batching") and not config.sequence_batching.iterative_sequence
    if is_sequence and not call.has_correlation_id and not each.callee.model.is_ensemble:
        yield each.problem(
            call.line,
            f"sends a request without correlation_id to {call.model!r}, which has sequence_batching",
            f"inference request to model '{call.model}' must specify a non-zero or non-empty correlation ID",
            "write correlation_id=request.correlation_id() and flags=request.flags()",
        )


@_request_rule(
    "CT198",
    Severity.WARNING,
    "a Python model reads an output of another model as if the GPU did not hold it",
    source=backend("python_backend", "src/pb_tensor.cc", 579, 590),
)
def output_on_gpu(each: _Request) -> Iterator[Problem]:
    """`as_numpy()` reads an output that the other model leaves in the memory of the GPU.

    A response to a request of a Python model contains the tensors where the other model wrote them. ONNX Runtime and
    TensorRT write to the GPU, except for texts. Every such read fails on an instance with a GPU, and works on a machine
    without one. With `preferred_memory`, the server copies the outputs to the memory of the host.

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
        The rule checks only models of ONNX Runtime and TensorRT whose instances are all on the GPU. It skips a file
        that asks where a tensor is (`is_cpu`), or passes tensors on with DLPack.
    """
    callee = each.callee
    name = known_backend(callee.context, callee.model)
    kinds = {enum_name(group, "kind") for group in callee.config.instance_group}
    if name not in _ON_GPU or "KIND_CPU" in kinds:
        return
    texts = {tensor.name for tensor in callee.config.output if enum_name(tensor, "data_type") == "TYPE_STRING"}
    for line, output in each.call.on_host:
        if output not in texts:
            yield each.problem(
                line,
                f"reads the output {output!r} of {each.call.model!r} with as_numpy(), but its backend {name!r} leaves "
                "the output on the GPU",
                "Tensor is stored in GPU and cannot be converted to NumPy.",
                "write preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0) in the request",
            )
