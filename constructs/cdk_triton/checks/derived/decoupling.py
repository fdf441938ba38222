"""Models that answer one request several times: ensembles that mix such answers, and containers that pass them on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import ConfiguredModel, ensembles
from cdk_triton.triton.ensemble import EnsembleGraph, EnsembleStep
from cdk_triton.triton.inference_type import VARIABLE, inference_type, reads_inference_type
from cdk_triton.triton.server_options import variable_since

__all__ = [
    "DECOUPLED_REJECTED",
    "STREAM",
    "decoupled_models",
    "known_inference_type",
    "mixed_tensors",
    "way_to_stream",
]

DECOUPLED_REJECTED = "HTTP end point doesn't support models with decoupled transaction policy"
"""The server's answer where only one response can be passed on."""

STREAM = "TritonClient.stream()"
"""The call that returns several responses."""


@per_check
def decoupled_models(context: CheckContext) -> Mapping[str, str]:
    """The decoupled models, each with the one that makes it so.

    A model declares it in its configuration. An ensemble is decoupled if one of its steps is; its own declaration does
    not count.
    """
    run_by: dict[str, list[str]] = {}
    causes: dict[str, str] = {}
    for model in context.loaded_models:
        if model.is_ensemble:
            for name in model.graph.model_names:
                run_by.setdefault(name, []).append(model.name)
        elif model.config is not None and model.config.model_transaction_policy.decoupled:
            causes[model.name] = model.name
    pending = list(causes)
    for name in pending:  # grows while we walk
        for ensemble in run_by.get(name, ()):
            if ensemble not in causes:
                causes[ensemble] = causes[name]
                pending.append(ensemble)
    return causes


@per_check
def mixed_tensors(context: CheckContext) -> Iterator[tuple[ConfiguredModel, EnsembleStep | None, str, str]]:
    """Steps (None: the response) that read tensors which are not written equally often, each with two such tensors."""
    decoupled = decoupled_models(context)
    for ensemble in ensembles(context) if decoupled else ():
        origin: dict[str, int] = {tensor.name: -1 for tensor in ensemble.config.input}
        for step in _in_turn(ensemble.model.graph, set(origin)):
            read = list(step.input_map.values())
            if not read or any(name not in origin for name in read):
                continue  # it reads nothing (CT314), or follows what is mixed already
            if (mixed := _mixed(origin, read)) is not None:
                yield ensemble, step, *mixed
                continue
            own = step.index if step.model_name in decoupled else origin[read[0]]
            for name in step.output_map.values():
                origin.setdefault(name, own)
        taken = [tensor.name for tensor in ensemble.config.output]
        if all(name in origin for name in taken) and (mixed := _mixed(origin, taken)) is not None:
            yield ensemble, None, *mixed


def known_inference_type(context: CheckContext) -> str | None:
    """The inference type that `/invocations` has, such as `infer`; None if it depends on an environment not given.

    A multi-model endpoint always infers, and so does every release that does not read the variable, whatever its
    environment is.
    """
    if context.mode == "multi":
        return "infer"
    if context.environment is not None:
        return inference_type(context.environment.inference_type, _release(context))
    return None if reads_inference_type(_release(context)) else "infer"


def way_to_stream(context: CheckContext) -> str:
    """What to do so that the container passes several responses on."""
    release = "" if reads_inference_type(_release(context)) else f"of {variable_since(VARIABLE)} or newer "
    return f"use a single-model container {release}with inference_type='generate_stream' and call {STREAM}"


def _release(context: CheckContext) -> str | None:
    return None if context.platform is None else context.platform.release


def _mixed(origin: Mapping[str, int], names: list[str]) -> tuple[str, str] | None:
    """Two of the tensors that come from different decoupled steps; -1 stands for no such step."""
    return next(((name, names[0]) for name in names if origin[name] != origin[names[0]]), None)


def _in_turn(graph: EnsembleGraph, given: set[str]) -> Iterator[EnsembleStep]:
    """The steps that run, in an order in which the inputs of each step are written before it."""
    missing = {step.index: {name for name in step.input_map.values() if name not in given} for step in graph.steps}
    pending = [step for step in graph.steps if not missing[step.index]]
    for step in pending:  # grows while we walk
        yield step
        for name in step.output_map.values():
            for reader in graph.tensors[name].readers:
                if name in missing[reader.index]:
                    missing[reader.index].discard(name)
                    if not missing[reader.index]:
                        pending.append(reader)
