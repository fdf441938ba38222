"""The interruptions in the data flow of an ensemble, and the pairs of loose ends that probably belong together.

One misspelt name leaves two loose ends: a tensor that nothing reads, and one that nothing writes. Each pair is one
fault and is reported once.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import ConfiguredModel, ensembles
from cdk_triton.checks.derived.cycles import cycles
from cdk_triton.checks.derived.swapped_maps import Exchanged, exchanged_steps
from cdk_triton.checks.registry import rules_about
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.triton.ensemble import EnsembleGraph, EnsembleStep, EnsembleTensor

__all__ = ["LooseEnds", "Source", "key_of", "loose_ends", "loose_ends_rule", "said_unconnected"]


class Source(NamedTuple):
    """An input or output that writes an ensemble tensor in vain.

    Attributes:
        kind: `input` for an input of the ensemble that no step reads, `unread` for an output of a step that nothing
            reads, or `again` for an output that writes a tensor which another has written already.
        tensor: its name.
        step: the step that writes it; -1 for an input of the ensemble.
        output: the output of the step's model; "" for an input of the ensemble.
    """

    kind: Literal["input", "unread", "again"]
    tensor: str
    step: int = -1
    output: str = ""


@dataclass(frozen=True)
class LooseEnds:
    """The tensors that are not connected in an ensemble.

    Attributes:
        ensemble: the ensemble.
        sources: the tensors that are written in vain.
        unwritten: the tensors that a step or the response reads, and that no step writes.
        partner: each of `unwritten` that is probably misspelt → the source that is probably meant.
        circles: the steps of each circle, by index.
        unready_outputs: the ensemble's outputs that some step would write, and that are never written.
    """

    ensemble: ConfiguredModel
    sources: tuple[Source, ...] = ()
    unwritten: tuple[EnsembleTensor, ...] = ()
    partner: dict[str, Source] = field(default_factory=dict)
    cycles: tuple[tuple[int, ...], ...] = ()
    unready_outputs: tuple[str, ...] = ()

    def of(self, kind: Literal["input", "unread", "again"]) -> Iterator[tuple[Source, EnsembleTensor | None]]:
        """The sources of one kind, each with the unwritten tensor that was probably meant."""
        tensors = {tensor.name: tensor for tensor in self.unwritten}
        wanted = {source: tensors[name] for name, source in self.partner.items()}
        for source in self.sources:
            if source.kind == kind:
                yield source, wanted.get(source)


@per_check
def loose_ends(context: CheckContext) -> Iterator[LooseEnds]:
    """The loose ends of every ensemble with steps.

    If a step does not declare its inputs or outputs (CT314), its ends are open. Then only tensors that are written
    twice count. The result has no ensemble whose maps have key and value exchanged.
    """
    suggestions = Suggestions()
    for ensemble in ensembles(context):
        graph = ensemble.model.graph
        if not graph.steps or ensemble.name in exchanged_steps(context):
            continue  # the latter is reported by CT343
        if all(step.input_map and step.output_map for step in graph.steps):
            yield _loose_ends(ensemble, suggestions)
        else:
            yield LooseEnds(ensemble, tuple(source for source in _sources(graph) if source.kind == "again"))


loose_ends_rule = rules_about(loose_ends)
"""Register a rule about the loose ends of each ensemble; the parameters are those of `rule`."""


def said_unconnected(found: Exchanged) -> str:
    """The server's first message about an ensemble with a map whose key and value are exchanged."""
    ensemble, graph = found.ensemble, found.ensemble.model.graph
    tensors = graph.tensors.values()
    written: set[str] = set()
    for step in graph.steps:
        for name in step.output_map.values():
            if name in written:
                said = f"ensemble tensor '{name}' can appear in an output map only once for ensemble"
                return f"{said} '{ensemble.said_name}' step {step.index}"
            written.add(name)
    for side in ("input", "output"):
        for tensor in tensors:
            if (tensor.is_input if side == "input" else tensor.is_output) and not (tensor.readers or tensor.writers):
                return f"ensemble {side} '{tensor.name}' for ensemble {ensemble.name}' is not used"
    for name in _unready_outputs(graph):
        return f"output '{name}' for ensemble '{ensemble.said_name}' is not written"
    unwritten = next((tensor.name for tensor in tensors if tensor.is_output and not tensor.writers), None)
    if unwritten is not None:
        return f"output '{unwritten}' for ensemble '{ensemble.said_name}' is not written"
    return f"ensemble tensor '{next(iter(found.pairs.values()))}' is unused in ensemble '{ensemble.said_name}'"


def key_of(step: EnsembleStep, tensor: str) -> str:
    """The input of the step's model that reads a tensor, as its field in the ensemble's configuration."""
    key = next(name for name, read in step.input_map.items() if read == tensor)
    return f'ensemble_scheduling.step[{step.index}].input_map["{key}"]'


def _loose_ends(ensemble: ConfiguredModel, suggestions: Suggestions) -> LooseEnds:
    graph = ensemble.model.graph
    sources = tuple(_sources(graph))
    unwritten = tuple(
        tensor
        for tensor in graph.tensors.values()
        if not tensor.writers and not tensor.is_input and (tensor.readers or tensor.is_output)
    )
    ready = _ready(graph)
    # If a tensor is written twice (CT315), the order of the steps is unknown.
    waiting = len(ready.steps) < len(graph.steps) and all(source.kind != "again" for source in sources)
    return LooseEnds(
        ensemble,
        sources,
        unwritten,
        _partners(graph, sources, unwritten, suggestions) if sources and unwritten else {},
        _circles(graph) if waiting else (),
        _unready_outputs(graph, ready.tensors),
    )


def _unready_outputs(graph: EnsembleGraph, ready: Container[str] | None = None) -> tuple[str, ...]:
    """The ensemble's outputs that some step would write, and that are never written."""
    known = _ready(graph).tensors if ready is None else ready
    return tuple(
        tensor.name
        for tensor in graph.tensors.values()
        if tensor.is_output and tensor.writers and tensor.name not in known
    )


def _sources(graph: EnsembleGraph) -> Iterator[Source]:
    for tensor in graph.tensors.values():
        if tensor.is_input and not tensor.readers and not (tensor.writers and tensor.is_output):
            yield Source("input", tensor.name)
    written: set[str] = set()
    for step in graph.steps:
        for output, name in step.output_map.items():
            tensor = graph.tensors[name]
            if name in written:
                yield Source("again", name, step.index, output)
            elif not tensor.readers and not tensor.is_input and not tensor.is_output:
                yield Source("unread", name, step.index, output)
            written.add(name)


def _partners(
    graph: EnsembleGraph, sources: tuple[Source, ...], unwritten: tuple[EnsembleTensor, ...], suggestions: Suggestions
) -> dict[str, Source]:
    """Pairs of loose ends with similar names; if only two ends are left, they are a pair as well."""
    partner: dict[str, Source] = {}
    left = dict.fromkeys(sources)
    for tensor in unwritten:
        if suggestions.are_used_up:
            break
        names = {each.tensor: each for each in left if each.kind != "again" and _fits(graph, each, tensor)}
        close = suggestions.closest(tensor.name, names) if names else None
        if close is not None:
            partner[tensor.name] = names[close]
            del left[names[close]]
    alone = [tensor for tensor in unwritten if tensor.name not in partner]
    if len(alone) == 1 and len(left) == 1 and _fits(graph, next(iter(left)), alone[0]):
        partner[alone[0].name] = next(iter(left))
    return partner


def _fits(graph: EnsembleGraph, source: Source, tensor: EnsembleTensor) -> bool:
    """Whether a source may be meant for a tensor.

    An input of the ensemble is meant for a step: the response does not use it, and no step has to write it. The output
    of a step is not meant for the step itself.
    """
    if source.kind == "input":
        return not tensor.is_output and not graph.tensors[source.tensor].writers
    return all(reader.index != source.step for reader in tensor.readers)


class _Ready(NamedTuple):
    steps: set[int]
    tensors: set[str]


def _ready(graph: EnsembleGraph) -> _Ready:
    """The steps that run when a request comes in, and the tensors that are then written."""
    missing = {step.index: set(step.input_map.values()) for step in graph.steps}
    pending = [tensor.name for tensor in graph.tensors.values() if tensor.is_input]
    tensors = set(pending)
    steps: set[int] = set()
    for name in pending:  # grows while we walk
        for step in graph.tensors[name].readers:
            missing[step.index].discard(name)
            if not missing[step.index]:
                steps.add(step.index)
                new = [written for written in step.output_map.values() if written not in tensors]
                tensors.update(new)
                pending += new
    return _Ready(steps, tensors)


def _circles(graph: EnsembleGraph) -> tuple[tuple[int, ...], ...]:
    """The steps that wait for each other; no step waits for the tensors of the request."""
    followers = {
        step.index: [
            reader.index
            for name in step.output_map.values()
            if not graph.tensors[name].is_input
            for reader in graph.tensors[name].readers
        ]
        for step in graph.steps
    }
    return tuple(cycles(followers))
