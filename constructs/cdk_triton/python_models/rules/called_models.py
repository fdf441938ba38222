"""CT118, CT182 and CT191: the models that a Python model calls or loads itself."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import completes, has_argument
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.model_requests import ModelRequest, request_rule, way_back
from cdk_triton.python_models.modules import PythonModel, needed_sources, source_rule
from cdk_triton.python_models.reader.imports import ServerCall
from cdk_triton.triton.findings import Severity

_ONLY_EXECUTE = "BLS is only supported during the 'execute' function."
_FAILED = {
    "load_model": "Failed to load model",
    "unload_model": "Failed to unload model",
    "is_model_ready": "Failed to check model readiness",
}
"""Name → the error of the server before it is ready (python_backend: src/pb_stub_utils.cc, src/pb_stub.cc)."""


@rule(
    "CT182",
    Severity.WARNING,
    "a Python model calls a model that the server does not load",
    source=backend("python_backend", "src/request_executor.cc", 379, 393),
)
def called_model(context: CheckContext) -> Iterator[Problem]:
    """A Python model sends a request (BLS) to a model that is not in the repository, or that the server does not load.

    The request fails, because the other model is not ready. The server loads the entry model, the models in
    `additional_models`, and the models that the steps of these models run, at any depth. The server does not look into
    the source of a Python model. Correct the name, or add the model to `additional_models`. On a multi-model endpoint,
    make the model a step of the ensemble, or run it on another endpoint.

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
                    model_name="classifyer", inputs=request.inputs(), requested_output_names=[]
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

    Limits:
        The rule checks only literal names, in the call or in a variable that is set once. The rule skips a model that
        the caller loads itself (`load_model`).
    """
    if has_argument(context, "--load-model") or has_argument(context, "--model-control-mode"):
        return
    suggestions = Suggestions()
    there = sorted(model.name for model in context.repository.models)
    loaded = {model.name for model in context.loaded_models}
    for each, sources in needed_sources(context):
        for path, source in sources.items():
            for called in (one for one in source.references.calls if one.model not in loaded):
                name = called.model
                if any(other.references.may_load(name) for other in sources.values()):
                    continue
                why, fix = "is not in the repository", "name a model of the repository"
                if name in there:
                    why, fix = "the server never loads", _fix(context, name)
                elif close := suggestions.closest(name, there):
                    fix = f"did you mean {close!r}?"
                yield in_line(
                    path,
                    called.line,
                    f"sends a request to the model {name!r}, which {why}, so {each.model.name!r} gets an error: "
                    f"Failed for execute the inference request. Model '{name}' is not ready",
                    fix,
                )


@request_rule(
    "CT118",
    Severity.WARNING,
    "a Python model sends a request to itself",
    source=backend("python_backend", "README.md", 1620, 1626),
)
def own_request(each: ModelRequest) -> Iterator[Problem]:
    """The `execute` of a Python model sends a request (BLS) to the same model, and waits for the response.

    The instance that waits cannot process the request, so another instance has to. If there is none, or if all of them
    wait, they wait for ever. The same happens if the model sends the request to a second model, which sends one back.
    Call a function of the class instead, or move the work to another model.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                call = pb_utils.InferenceRequest(
                    model_name="model", inputs=request.inputs(), requested_output_names=[]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())

    Instead:
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.answer(request.inputs()) for request in requests]

            def answer(self, tensors):
                return pb_utils.InferenceResponse(tensors)

    Limits:
        The rule skips a model whose configuration has more than one instance. It skips requests to models whose
        transactions are decoupled, and requests that name a version.
    """
    instances = sum(max(group.count, 1) * max(len(group.gpus), 1) for group in each.owner.config.instance_group)
    others = way_back(each) if instances <= 1 else None
    if others is not None:
        through = f" through {listed_in_quotes(others)}" if others else ""
        yield in_line(
            each.path,
            each.call.plain,
            f"sends a request from {each.caller!r} to itself{through}, so an instance waits for another one, and for "
            "ever if there is none or all of them wait",
            f"call a function instead, or move the work to {'another' if others else 'a second'} model",
        )


def _fix(context: CheckContext, name: str) -> str:
    if context.mode == "single":
        return f"add {name!r} to additional_models"
    return f"make {name!r} a step of the ensemble, or run {name!r} on its own endpoint"


@source_rule(
    "CT191",
    Severity.ERROR,
    "a Python model calls or loads another model before execute",
    source=backend("python_backend", "src/infer_request.cc", 410, 425),
)
def too_early(each: PythonModel) -> Iterator[Problem]:
    """A Python model sends a request (BLS) in `initialize`, or in another method that runs before `execute`.

    The server does not load the model, because a Python model may send requests only in `execute`. For example, do not
    warm up another model in `initialize`. Use `model_warmup` in the configuration of that model, or send the first
    request in `execute`.

    On a single-model endpoint, `load_model`, `unload_model` and `is_model_ready` fail too before `execute`, because the
    server answers them only after it has loaded its models. Name the other model in `additional_models`, so that the
    server loads it. On a multi-model endpoint, these three functions work in `initialize`, because the server is ready.

    Example:
        $ cdk-triton validate . --default-model model --additional-model echo
        # echo/config.pbtxt
        backend: "python"
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/config.pbtxt
        backend: "python"
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def initialize(self, args):
                self.ask([])

            def ask(self, inputs):
                request = pb_utils.InferenceRequest(model_name="echo", requested_output_names=["OUT"], inputs=inputs)
                return request.exec()

            def execute(self, requests):
                return [pb_utils.InferenceResponse(self.ask(each.inputs()).output_tensors()) for each in requests]

    Instead:
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def ask(self, inputs):
                request = pb_utils.InferenceRequest(model_name="echo", requested_output_names=["OUT"], inputs=inputs)
                return request.exec()

            def execute(self, requests):
                return [pb_utils.InferenceResponse(self.ask(each.inputs()).output_tensors()) for each in requests]

    Limits:
        Like CT169, the rule checks only calls that are certain to run. It recognises a request if the same function
        creates the request.
    """
    context = each.file.context
    for call in each.source.asked:
        is_request = call.name in ("exec", "async_exec")
        if call.method == "auto_complete_config" and not completes(context):
            continue
        if not is_request and context.mode == "multi":
            continue
        yield each.file.unloadable(
            f"line {call.line} calls {call.name} while {call.method} runs",
            _said(call),
            "send requests to other models only in execute; use model_warmup to warm up a model"
            if is_request
            else "name the other model in additional_models, and call this function only in execute",
            line=call.line,
        )


def _said(call: ServerCall) -> str:
    if call.name == "async_exec" and not call.in_coroutine:
        return "RuntimeError: no running event loop"
    return f"{_FAILED[call.name]}: Server not ready" if call.name in _FAILED else _ONLY_EXECUTE
