"""Maps of an ensemble's steps in which key and value are exchanged.

A `key` is the name of the step's model, a `value` the ensemble's. Written the other way round nothing is connected any
more, and every rule about ensembles would report the one fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import ConfiguredModel, ensembles
from cdk_triton.onnx_models.completion import completed

__all__ = ["Exchanged", "exchanged_maps", "exchanged_steps"]


class Exchanged(NamedTuple):
    """A map with key and value exchanged.

    Attributes:
        ensemble: the ensemble.
        step: the step, by its index.
        kind: `input_map` or `output_map`.
        pairs: the map as it is written.
    """

    ensemble: ConfiguredModel
    step: int
    kind: str
    pairs: Mapping[str, str]


@per_check
def exchanged_maps(context: CheckContext) -> Iterator[Exchanged]:
    """The maps that connect the ensemble only if their keys and values are exchanged."""
    for ensemble in ensembles(context):
        candidates: list[Exchanged] = []
        given = {tensor.name for tensor in ensemble.config.input}
        taken = {tensor.name for tensor in ensemble.config.output}
        written, read = set(given), set(taken)  # under the names that are meant
        connected = {"input_map": given, "output_map": taken}
        for step in ensemble.model.graph.steps:
            model = context.repository.model(step.model_name)
            config = completed(context, model) if model is not None else None
            inputs = {tensor.name for tensor in config.input} if config is not None else set()
            outputs = {tensor.name for tensor in config.output} if config is not None else set()
            sides = (
                ("input_map", step.input_map, inputs, read),
                ("output_map", step.output_map, outputs, written),
            )
            for kind, pairs, own, named in sides:
                if _is_reversed(pairs, own):
                    candidates.append(Exchanged(ensemble, step.index, kind, pairs))
                    named.update(pairs)
                else:
                    named.update(pairs.values())
        for each in candidates:
            ends = written if each.kind == "input_map" else read
            if ends.issuperset(each.pairs) and not connected[each.kind].intersection(each.pairs.values()):
                yield each


@per_check
def exchanged_steps(context: CheckContext) -> Mapping[str, frozenset[int]]:
    """Ensemble → its steps with such a map."""
    steps: dict[str, set[int]] = {}
    for each in exchanged_maps(context):
        steps.setdefault(each.ensemble.name, set()).add(each.step)
    return {name: frozenset(found) for name, found in steps.items()}


def _is_reversed(pairs: Mapping[str, str], own: set[str]) -> bool:
    """Whether no key is a tensor of the model, and the values are different tensors of the model."""
    if not own.isdisjoint(pairs):
        return False
    values = set(pairs.values())
    return bool(pairs) and len(values) == len(pairs) and own.issuperset(values)
