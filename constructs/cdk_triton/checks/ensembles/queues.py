"""CT322 and CT323: what a release does with an ensemble whose steps have limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import configured
from cdk_triton.checks.derived.decoupling import decoupled_models
from cdk_triton.checks.derived.queues import effective_policies
from cdk_triton.checks.derived.releases import is_older, is_within
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core_commit
from cdk_triton.triton.ensemble import EnsembleGraph, EnsembleStep
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model

_ANSWERS_SINCE = "26.02"  # core 8d0aaf6
_SURVIVES_SINCE = "26.04"  # core a02b0c0
_LIMITED_SINCE, _SHARED_SINCE = "25.11", "26.04"  # core a02b0c0


class _Limit(NamedTuple):
    """A limit of the queue of a model.

    Attributes:
        model: the model.
        field: the limit as a field of its configuration.
        size: the requests that may wait.
    """

    model: Model
    field: str
    size: int


@rule(
    "CT322",
    Severity.WARNING,
    "a full queue of a step may hang the request or crash the server",
    source=core_commit("8d0aaf66900f5940be5500b379abd2b85ed7c657"),
    applies=lambda platform: is_older(platform, _SURVIVES_SINCE),
)
def full_queue(context: CheckContext) -> Iterator[Problem]:
    """A step's model has a `max_queue_size`, and other steps may run while the model's full queue rejects a request.

    Before 26.02, the server then never answers the request to the ensemble. After the rejection, the server no longer
    counts the other steps that end, so it waits for them for ever. Before 26.04, the server may also crash, because it
    uses freed memory (core a02b0c0). This may happen if the server starts several steps together, and the queue
    rejects a step that is not the last of them. Remove `max_queue_size`, serve with 26.04 or newer, or acknowledge
    CT322 if the queue is never full.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # left/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        # right/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        dynamic_batching { default_queue_policy { max_queue_size: 16 } }
        # whole/config.pbtxt
        platform: "ensemble"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output [ { name: "a" data_type: TYPE_FP32 dims: 4 }, { name: "b" data_type: TYPE_FP32 dims: 4 } ]
        ensemble_scheduling {
          step {
            model_name: "left"
            model_version: -1
            input_map { key: "x" value: "x" }
            output_map { key: "y" value: "a" }
          }
          step {
            model_name: "right"
            model_version: -1
            input_map { key: "x" value: "x" }
            output_map { key: "y" value: "b" }
          }
        }

    Instead:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge

    Limits:
        If the steps run one after the other, and no step is decoupled, the servers of all releases answer with status
        503. The rule does not report this case.
    """
    release = context.platform.release if context.platform is not None else None
    may_hang = context.platform is not None and is_older(context.platform, _ANSWERS_SINCE)
    for ensemble in context.loaded_models:
        for step in ensemble.graph.steps:
            limit = _limit(context, step)
            if limit is None:
                continue
            beside, later = _running_beside(context, ensemble.graph, step)
            if later is not None:
                said = f"may crash, because it starts step {later.index} together with step {step.index}"
                since = _SURVIVES_SINCE
            elif beside is not None and may_hang:
                said = f"would never answer a request to {ensemble.name!r} that arrives while step {beside.index} runs"
                since = _ANSWERS_SINCE
            else:
                continue
            yield Problem(
                limit.model.config_path,
                f"the queue of {limit.model.name!r} (step {step.index} of {ensemble.name!r}) holds {limit.size} "
                f"requests and rejects further requests; when the queue is full, the server of {release} {said}",
                f"remove max_queue_size, serve with {since} or newer, or acknowledge CT322 if the queue is never full",
                limit.field,
            )


def _limit(context: CheckContext, step: EnsembleStep) -> _Limit | None:
    """The first limit of the queue of a step's model."""
    model = context.repository.model(step.model_name)
    if model is None or model.config is None or model.is_ensemble:
        return None  # the steps of an inner ensemble are looked at for themselves
    policies = effective_policies(model.config)
    limits = ((field, policy.max_queue_size) for field, policy in policies if policy.max_queue_size)
    field, size = next(limits, ("", 0))
    return _Limit(model, f"{field}.max_queue_size", size) if size else None


def _running_beside(
    context: CheckContext, graph: EnsembleGraph, step: EnsembleStep
) -> tuple[EnsembleStep | None, EnsembleStep | None]:
    """A step that may run while `step` is started, and one that is started together with it and after it."""
    before, after = _reached(graph, step, backwards=True), _reached(graph, step, backwards=False)
    beside: EnsembleStep | None = None
    later: EnsembleStep | None = None
    for other in graph.steps:
        if other.index == step.index:
            continue
        is_apart = other.index not in before and other.index not in after
        if is_apart or (other.index in before and other.model_name in decoupled_models(context)):
            beside = beside or other
        if is_apart and other.index > step.index and _writers(graph, other) == _writers(graph, step):
            later = later or other
    return beside, later


def _reached(graph: EnsembleGraph, step: EnsembleStep, *, backwards: bool) -> set[int]:
    """The indexes of all steps that `step` waits for, or that wait for it."""
    reached: set[int] = set()
    pending = [step]
    for each in pending:  # grows while we walk
        names = (each.input_map if backwards else each.output_map).values()
        for name in names:
            tensor = graph.tensors[name]
            for other in tensor.writers if backwards else tensor.readers:
                if other.index not in reached:
                    reached.add(other.index)
                    pending.append(other)
    return reached


def _writers(graph: EnsembleGraph, step: EnsembleStep) -> set[int]:
    """The steps that write what a step reads; if two steps have the same, one moment starts both."""
    return {writer.index for name in step.input_map.values() for writer in graph.tensors[name].writers}


@rule(
    "CT323",
    Severity.WARNING,
    "max_inflight_requests limits each request separately",
    source=core_commit("a02b0c0ebb5fe14ad04c6e16ca994d7e2fd13667"),
    applies=lambda platform: is_within(platform, _LIMITED_SINCE, _SHARED_SINCE),
)
def limit_of_each_request(context: CheckContext) -> Iterator[Problem]:
    """An ensemble has `max_inflight_requests`, which releases from 25.11 to 26.03 apply to each request separately.

    From 26.04 on, all requests to the ensemble share the limit. Before 26.04, the limit bounds only the responses of a
    decoupled step that the next step has not finished yet. Because each request has its own limit, the memory that the
    server needs grows with the number of requests. Without a decoupled step, the limit has no effect before 26.04.

    Example:
        $ cdk-triton validate . --platform 26.03/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        # whole/config.pbtxt
        platform: "ensemble"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          max_inflight_requests: 16
          step {
            model_name: "model"
            model_version: -1
            input_map { key: "x" value: "x" }
            output_map { key: "y" value: "y" }
          }
        }

    Instead:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
    """
    release = context.platform.release if context.platform is not None else None
    for model, config in configured(context):
        limit = config.ensemble_scheduling.max_inflight_requests
        if not limit or not model.is_ensemble:
            continue
        said = "has no effect, because each step runs once for a request"
        if model.name in decoupled_models(context):
            said = f"applies to each request separately, so ten requests may have {10 * limit} runs of a step in flight"
        yield Problem(
            model.config_path,
            f"max_inflight_requests is {limit}, but in the server of {release} the limit {said}; from {_SHARED_SINCE} "
            f"on, all requests to {model.name!r} share the limit",
            f"serve with {_SHARED_SINCE} or newer, or acknowledge CT323 if a limit for each request is meant",
            "ensemble_scheduling.max_inflight_requests",
        )
