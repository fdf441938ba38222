"""CT322 and CT323: what a release does with an ensemble whose steps have limits."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import ConfiguredModel, ensemble_rule, model_rule
from cdk_triton.checks.derived.decoupling import decoupled_models
from cdk_triton.checks.derived.releases import is_older, is_within
from cdk_triton.checks.derived.scheduling import effective_policies
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core_commit
from cdk_triton.triton.ensemble import EnsembleGraph, EnsembleStep
from cdk_triton.triton.findings import Severity

_ANSWERS_SINCE = "26.02"  # core 8d0aaf6
_SURVIVES_SINCE = "26.04"  # core a02b0c0
_LIMITED_SINCE, _SHARED_SINCE = "25.11", "26.04"  # core a02b0c0


@model_rule(
    "CT322",
    Severity.WARNING,
    "a full queue of a step may hang the request or crash the server",
    source=core_commit("8d0aaf66900f5940be5500b379abd2b85ed7c657"),
    applies=lambda platform: is_older(platform, _SURVIVES_SINCE),
)
def full_queue(ensemble: ConfiguredModel) -> Iterator[Problem]:
    """A step's model has a `max_queue_size`, and other steps may run while the model's full queue rejects a request.

    Before 26.02, the server then never responds to the request to the ensemble. After the rejection, the server no
    longer counts the other steps that end, so it waits for them forever. Before 26.04, the server may also crash,
    because it uses freed memory (core a02b0c0). This may happen if the server starts several steps together, and the
    queue rejects a step that is not the last of them. Remove `max_queue_size`, serve with 26.04 or newer, or
    acknowledge CT322 if the queue is never full.

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
        If the steps run one after the other, and no step is decoupled, the servers of all releases return status 503.
        The rule does not report this case.
    """
    context, graph = ensemble.context, ensemble.model.graph
    may_hang = context.platform is not None and is_older(context.platform, _ANSWERS_SINCE)
    for step in graph.steps:
        limit = _limit(context, step)
        if limit is None:
            continue
        beside, later = _running_beside(context, graph, step)
        if later is not None:
            effect = f"may crash, because it starts step {later.index} together with step {step.index}"
            since = _SURVIVES_SINCE
        elif beside is not None and may_hang:
            effect = f"would never answer a request to {ensemble.name!r} that arrives while step {beside.index} runs"
            since = _ANSWERS_SINCE
        else:
            continue
        model, field, size = limit
        yield model.problem(
            field,
            f"the queue of {model.name!r} (step {step.index} of {ensemble.name!r}) holds {size} requests and rejects "
            f"further requests; when the queue is full, the server of {context.release} {effect}",
            f"remove max_queue_size, serve with {since} or newer, or acknowledge CT322 if the queue is never full",
        )


def _limit(context: CheckContext, step: EnsembleStep) -> tuple[ConfiguredModel, str, int] | None:
    """The first limit of the queue of a step's model: the model, the field, and how many requests may wait."""
    model = context.repository.model(step.model_name)
    if model is None or model.config is None or model.is_ensemble:
        return None  # the steps of an inner ensemble are looked at for themselves
    for field, policy in effective_policies(model.config):
        if policy.max_queue_size:
            return ConfiguredModel(context, model, model.config), f"{field}.max_queue_size", policy.max_queue_size
    return None


def _running_beside(
    context: CheckContext, graph: EnsembleGraph, step: EnsembleStep
) -> tuple[EnsembleStep | None, EnsembleStep | None]:
    """A step that may run while `step` starts, and a later step that starts together with it."""
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
    """The indexes of all steps that `step` waits for (backwards), or that wait for it."""
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
    """The steps that write the inputs of a step; two steps with the same writers start together."""
    return {writer.index for name in step.input_map.values() for writer in graph.tensors[name].writers}


@ensemble_rule(
    "CT323",
    Severity.WARNING,
    "max_inflight_requests limits each request separately",
    source=core_commit("a02b0c0ebb5fe14ad04c6e16ca994d7e2fd13667"),
    applies=lambda platform: is_within(platform, _LIMITED_SINCE, _SHARED_SINCE),
)
def limit_of_each_request(each: ConfiguredModel) -> Iterator[Problem]:
    """An ensemble has `max_inflight_requests`, which releases from 25.11 to 26.03 apply to each request separately.

    From 26.04 on, all requests to the ensemble share the limit. Before 26.04, the limit applies only to the responses
    of a decoupled step that the next step has not finished yet. Because each request has its own limit, the server
    needs more memory when there are more requests. Without a decoupled step, the limit has no effect before 26.04.

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
    platform, limit = each.context.platform, each.config.ensemble_scheduling.max_inflight_requests
    if not limit or platform is None:
        return
    effect = "has no effect, because each step runs once for a request"
    if each.name in decoupled_models(each.context):
        effect = f"applies to each request separately, so ten requests may have {10 * limit} runs of a step in flight"
    yield each.problem(
        "ensemble_scheduling.max_inflight_requests",
        f"max_inflight_requests is {limit}, but in the server of {platform.release} the limit {effect}; from "
        f"{_SHARED_SINCE} on, all requests to {each.name!r} share the limit",
        f"serve with {_SHARED_SINCE} or newer, or acknowledge CT323 if a limit for each request is meant",
    )
