"""CT660 and CT661: what callers cannot tell the schedulers of the models that they reach."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import SOURCES, known_backend
from cdk_triton.checks.derived.configured import configured
from cdk_triton.checks.derived.decoupling import known_inference_type
from cdk_triton.checks.derived.scheduling import sequence_models
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.inference_type import GENERATING

_NO_SEQUENCE = "must specify a non-zero or non-empty correlation ID"
"""The server's answer to a request that is part of no sequence."""


@per_check
def _reached(context: CheckContext) -> Iterator[str]:
    """The models that get the parameters of a caller's request: the entry model, and at any depth its steps."""
    names = [] if context.entry is None else [context.entry.name]
    for name in names:  # grows while we walk
        model = context.repository.model(name)
        names += [step for step in model.graph.model_names if step not in names] if model is not None else []
    yield from names


@rule(
    "CT660",
    Severity.WARNING,
    "no request can choose a priority level",
    source=backend("python_backend", "src/request_executor.cc", 413, 435),
)
def unreachable_levels(context: CheckContext) -> Iterator[Problem]:
    """A model has `priority_levels`, but no request to it can have a priority, so all have the default level.

    A caller's request has one, and an ensemble passes it on to its steps. But a model that is not a step gets its
    requests from models that call it (BLS), and `pb_utils.InferenceRequest` has no priority. Make the model a step of
    an ensemble that callers invoke, or remove `priority_levels`.

    With the `inference_type` `generate` or `generate_stream`, callers cannot set a priority either. The server treats
    `priority` as a custom parameter, which only the model itself reads.

    Example:
        $ cdk-triton validate . --default-model pipeline --additional-model scorer
        # pipeline/config.pbtxt
        backend: "python"
        # pipeline/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.ask(request) for request in requests]

            def ask(self, request):
                call = pb_utils.InferenceRequest(
                    model_name="scorer", inputs=request.inputs(), requested_output_names=[]
                )
                return pb_utils.InferenceResponse(call.exec().output_tensors())
        # scorer/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { priority_levels: 2 default_priority_level: 2 }

    Instead:
        # scorer/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching {}

    Limits:
        The rule does not report a model beside a backend that it does not know, because a backend in C++ can set the
        priority of the requests that it sends.
    """
    if context.entry is None:
        return
    kind = known_inference_type(context)
    calls = all(known_backend(context, model) in (*SOURCES, "python") for model in context.loaded_models)
    for each in configured(context):
        batching = each.config.dynamic_batching
        if batching.priority_levels < 2:
            continue
        if each.name not in _reached(context) and calls:
            why = "only models that call it (BLS) send it requests, and the requests of Python models have no priority"
            fix = f"make {each.name!r} a step of an ensemble that callers invoke, or remove priority_levels"
        elif each.name in _reached(context) and kind in GENERATING:
            why = f"inference_type is {kind!r}, whose requests have no priority"
            fix = "use the inference_type 'infer', or remove priority_levels"
        else:
            continue
        yield each.problem(
            "dynamic_batching.priority_levels",
            f"{each.name!r} has {batching.priority_levels} priority levels, but {why}, so every request would have the "
            f"level {batching.default_priority_level}",
            fix,
        )


@rule(
    "CT661",
    Severity.ERROR,
    "a container that generates gets no sequences",
    source=core("src/sequence_batch_scheduler/sequence_utils.h", 36, 57),
    modes=("single",),
)
def sequences_without_ids(context: CheckContext) -> Iterator[Problem]:
    """`inference_type` is `generate` or `generate_stream`, and requests reach a model with a sequence batcher.

    The requests of these protocols cannot name a sequence, because the server treats `sequence_id` as a custom
    parameter. A sequence batcher rejects a request without a sequence, so the endpoint answers every request with an
    error. Use the `inference_type` `infer`, and call the model with `TritonClient.sequence`. A model with
    `iterative_sequence` needs no sequence in the request.

    Example:
        # environment=ContainerEnvironment(inference_type="generate")
        # model/config.pbtxt
        backend: "python"
        sequence_batching {}

    Instead:
        # environment=ContainerEnvironment(inference_type="infer")

    Limits:
        The rule does not report a model that other models call (BLS), because their requests can name a sequence.
    """
    kind = known_inference_type(context)
    for each in sequence_models(context) if kind in GENERATING else ():
        if each.name in _reached(context) and not each.config.sequence_batching.iterative_sequence:
            yield each.problem(
                "sequence_batching",
                f"{each.name!r} has a sequence batcher, but inference_type is {kind!r}, whose requests cannot name a "
                f"sequence, so the endpoint would answer every request with: {_NO_SEQUENCE}",
                "use the inference_type 'infer' and call TritonClient.sequence(), or remove sequence_batching",
            )
