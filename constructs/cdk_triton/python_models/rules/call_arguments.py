"""CT195 to CT197: the arguments of a request for another model that this model needs."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.decoupling import decoupled_models
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, core
from cdk_triton.python_models.model_requests import ModelRequest, request_rule
from cdk_triton.triton.findings import Severity

_EXECUTOR = "src/request_executor.cc"


@request_rule(
    "CT195",
    Severity.WARNING,
    "a Python model calls a decoupled model as if it returned one response",
    source=backend("python_backend", _EXECUTOR, 396, 412),
)
def decoupled_callee(each: ModelRequest) -> Iterator[Problem]:
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


@request_rule(
    "CT196",
    Severity.WARNING,
    "a Python model calls a version of another model that the server does not load",
    source=backend("python_backend", _EXECUTOR, 379, 393),
)
def unserved_version(each: ModelRequest) -> Iterator[Problem]:
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


@request_rule(
    "CT197",
    Severity.WARNING,
    "a Python model calls a model of sequences without a correlation ID",
    source=core("src/sequence_batch_scheduler/sequence_utils.h", 40, 57),
)
def no_correlation_id(each: ModelRequest) -> Iterator[Problem]:
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
