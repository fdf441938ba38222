"""Which models answer one request several times, and where an ensemble mixes such answers with others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.triton.ensemble import EnsembleGraph, EnsembleStep
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelConfig

__all__ = ["decoupled_models", "mixed_tensors"]


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
def mixed_tensors(context: CheckContext) -> Iterator[tuple[Model, ModelConfig, EnsembleStep | None, str, str]]:
    """Places where tensors meet that are not written equally often: the step (None: the response) and two of them."""
    decoupled = decoupled_models(context)
    for model in context.loaded_models if decoupled else ():
        if model.config is None or not model.is_ensemble:
            continue
        origin: dict[str, int] = {tensor.name: -1 for tensor in model.config.input}
        for step in _in_turn(model.graph, set(origin)):
            read = list(step.input_map.values())
            if not read or any(name not in origin for name in read):
                continue  # it reads nothing (CT314), or follows what is mixed already
            if (mixed := _mixed(origin, read)) is not None:
                yield model, model.config, step, *mixed
                continue
            own = step.index if step.model_name in decoupled else origin[read[0]]
            for name in step.output_map.values():
                origin.setdefault(name, own)
        taken = [tensor.name for tensor in model.config.output]
        if all(name in origin for name in taken) and (mixed := _mixed(origin, taken)) is not None:
            yield model, model.config, None, *mixed


def _mixed(origin: Mapping[str, int], names: list[str]) -> tuple[str, str] | None:
    """Two of the tensors that come from different decoupled steps; -1 stands for none."""
    return next(((name, names[0]) for name in names if origin[name] != origin[names[0]]), None)


def _in_turn(graph: EnsembleGraph, given: set[str]) -> Iterator[EnsembleStep]:
    """The steps in an order in which each finds its tensors written, without the steps that never do."""
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
