"""The tensors that the models of an ensemble take and give, as far as their configurations list them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import completes_batch_size, known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, ensembles, has_no_configuration
from cdk_triton.checks.derived.contradicted import contradicted
from cdk_triton.checks.derived.cycles import ensemble_cycles
from cdk_triton.checks.derived.swapped_maps import exchanged_steps
from cdk_triton.checks.registry import Problem, rules_about
from cdk_triton.onnx_models.completion import completed
from cdk_triton.triton.ensemble import EnsembleStep
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput, enum_name
from cdk_triton.triton.text_format_reader import repeated_keys

__all__ = ["End", "RunStep", "fits", "fix_of_lost_output", "flow_ends", "passed_on", "run_steps", "step_rule"]


class RunStep(NamedTuple):
    """A step whose model has a configuration that can be read, or is known to have none.

    Attributes:
        ensemble: the ensemble.
        step: the step.
        runs: the model that the step runs, with the completed configuration as far as it is known.
    """

    ensemble: ConfiguredModel
    step: EnsembleStep
    runs: ConfiguredModel

    def unloadable(self, field: str, does: str, words: str, fix: str) -> Problem:
        """A problem of a field of the step; the server does not load the ensemble, and `words` are the server's."""
        where = f"ensemble_scheduling.step[{self.step.index}].{field}"
        said = f"in ensemble {self.ensemble.name}, {words}"
        return self.ensemble.unloadable(where, f"step {self.step.index} {does}", said, fix)


class End(NamedTuple):
    """One end of an ensemble tensor: an input or output of the ensemble, or of the model of a step.

    Attributes:
        model: the model whose configuration describes it: the ensemble itself, or a step's.
        what: the input or output in words.
        tensor: its name.
        field: the field of the ensemble's configuration that names it.
        data_type: the type as the file has it; "" if the file has none, or a wrong one.
        dims: the shape without batch dimension; None if the file has no shape, or a wrong one.
        batches: whether a batch dimension precedes the dims; True and False if the backend decides.
        writes: whether the tensor is written here: by the request, or by a step.
        reads: whether a step reads it here.
        is_optional: whether it is an input that a request may omit.
    """

    model: Model
    what: str
    tensor: str
    field: str
    data_type: str
    dims: tuple[int, ...] | None
    batches: tuple[bool, ...]
    writes: bool
    reads: bool
    is_optional: bool

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape with its batch dimension; two shapes if the backend decides whether there is one."""
        return tuple((-1, *(self.dims or ())) if batch else (self.dims or ()) for batch in self.batches)

    def agrees_in_shape(self, other: End) -> bool:
        """Whether the server accepts both shapes as equal, without the batch dimension or with it."""
        if self.dims is None or other.dims is None or fits(self.dims, other.dims):
            return True
        return any(fits(one, another) for one in self.shapes for another in other.shapes)


def fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes can be the same; -1 is any size."""
    return len(one) == len(other) and all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=True))


@per_check
def run_steps(context: CheckContext) -> Iterator[RunStep]:
    """The steps of all ensembles; a model that is missing or unreadable is reported by other rules.

    The result omits steps whose maps have key and value exchanged (CT343), and steps of a circle (CT302).
    """
    circle_of = {name: circle for circle in ensemble_cycles(context) for name in circle}
    for ensemble in ensembles(context):
        exchanged = exchanged_steps(context).get(ensemble.name, frozenset())
        for step in ensemble.model.graph.steps:
            if step.model_name in circle_of.get(ensemble.name, ()):
                continue
            model = context.repository.model(step.model_name)
            config = _configuration(context, model) if model is not None else None
            if model is not None and config is not None and step.index not in exchanged:
                yield RunStep(ensemble, step, ConfiguredModel(context, model, config))


step_rule = rules_about(run_steps)
"""Register a rule about each of these steps; the parameters are those of `rule`."""


def _configuration(context: CheckContext, model: Model) -> ModelConfig | None:
    """The configuration as the backend completes it; None if it cannot be known.

    A Python model without one has the tensors that its `auto_complete_config` sets, or none.
    """
    if has_no_configuration(context, model) and known_backend(context, model) == "python":
        return ModelConfig()
    return completed(context, model)


@per_check
def flow_ends(context: CheckContext) -> Iterator[tuple[ConfiguredModel, dict[str, list[End]]]]:
    """The ends of each ensemble tensor, in the order in which the server compares them with the first.

    The result omits tensors that are written twice, because the intended one is unknown (CT315).
    """
    by_ensemble: dict[str, list[RunStep]] = {}
    for run in run_steps(context):
        by_ensemble.setdefault(run.ensemble.name, []).append(run)
    for runs in by_ensemble.values():
        ensemble = runs[0].ensemble
        ends: dict[str, list[End]] = {}
        for end in _own_ends(ensemble.model, ensemble.config):
            ends.setdefault(end.tensor, []).append(end)
        for run in runs:
            for name, end in _step_ends(run):
                ends.setdefault(name, []).append(end)
        writes = Counter(name for step in ensemble.model.graph.steps for name in step.output_map.values())
        yield ensemble, {name: found for name, found in ends.items() if writes[name] < 2}


def passed_on(tensors: Mapping[str, list[End]]) -> Iterator[tuple[End, End]]:
    """Each place that writes a tensor with each input of a step that reads it."""
    for ends in tensors.values():
        source = next((end for end in ends if end.writes), None)
        for end in ends if source is not None else ():
            if source is not None and end.reads:
                yield source, end


def fix_of_lost_output(ensemble: ConfiguredModel, *ends: End) -> str:
    """The fix of an `output_map` with a key twice (CT107), because it is the cause of other faults; "" without one.

    Args:
        ensemble: the ensemble.
        ends: the ends of the tensor that is at fault; none for a tensor that no `output_map` has.
    """
    for field, key in repeated_keys(ensemble.model.config_text or "", ensemble.config):
        place = field.removesuffix(f'["{key}"]')
        if place.endswith(".output_map") and (not ends or field in {end.field for end in ends}):
            return f"correct the keys in {place}: the server uses only the last entry for {key!r}"
    return ""


def _own_ends(ensemble: Model, config: ModelConfig) -> Iterator[End]:
    """The ends of the ensemble itself: its steps get the shape of `reshape`, and `dims` are for callers."""
    batches = (False, True) if config.max_batch_size < 0 else (config.max_batch_size > 0,)  # the former: CT230
    for index, given in enumerate(config.input):
        shape = _inner_shape(given, config)
        yield _end(
            ensemble, "as input of the ensemble", given, f"input[{index}]", shape, batches, writes=True, reads=False
        )
    inputs = {tensor.name for tensor in config.input}
    for index, result in enumerate(config.output):
        if result.name not in inputs:  # otherwise the server does not look at it
            shape = _inner_shape(result, config)
            yield _end(
                ensemble,
                "as output of the ensemble",
                result,
                f"output[{index}]",
                shape,
                batches,
                writes=False,
                reads=False,
            )


def _inner_shape(tensor: ModelInput | ModelOutput, config: ModelConfig) -> tuple[int, ...] | None:
    if tensor.HasField("reshape"):
        shape = tuple(tensor.reshape.shape)
        return shape if shape or config.max_batch_size > 0 else None
    return tuple(tensor.dims) or None


def _step_ends(run: RunStep) -> Iterator[tuple[str, End]]:
    """The ends in a step's model, for the tensors that the step maps: its inputs first."""
    step, model, config = run.step, run.runs.model, run.runs.config
    where = f"ensemble_scheduling.step[{step.index}]"
    batches = (False, True) if config.max_batch_size < 0 else (config.max_batch_size > 0,)
    if config.max_batch_size == 0 and completes_batch_size(run.runs):
        batches = (False, True)
    for index, given in enumerate(config.input):
        name = given.name
        if name in step.input_map:
            what, field = f"as input {name!r} of {model.name!r}", f'{where}.input_map["{name}"]'
            shape = tuple(given.dims) or None
            end = _end(model, what, given, field, shape, batches, writes=False, reads=True)
            yield step.input_map[name], _without_contradicted(run, end, f"input[{index}]")
    outputs = {tensor.name: (index, tensor) for index, tensor in reversed(list(enumerate(config.output)))}
    for name, written in step.output_map.items():
        if name in outputs:
            index, result = outputs[name]
            what, field = f"as output {name!r} of {model.name!r}", f'{where}.output_map["{name}"]'
            shape = tuple(result.dims) or None
            end = _end(model, what, result, field, shape, batches, writes=True, reads=False)
            yield written, _without_contradicted(run, end, f"output[{index}]")


def _without_contradicted(run: RunStep, end: End, tensor: str) -> End:
    """The end without a type or shape that its model's network contradicts: CT133, CT134 or CT705 reports it."""
    wrong, name = contradicted(run.runs.context), run.runs.name
    if (name, f"{tensor}.data_type") in wrong:
        end = end._replace(data_type="")
    return end._replace(dims=None) if (name, f"{tensor}.dims") in wrong else end


def _end(
    model: Model,
    what: str,
    tensor: ModelInput | ModelOutput,
    field: str,
    shape: tuple[int, ...] | None,
    batches: tuple[bool, ...],
    *,
    writes: bool,
    reads: bool,
) -> End:
    if shape is not None and any(dim < 1 and dim != -1 for dim in shape):
        shape = None  # reported by CT204
    data_type = enum_name(tensor, "data_type") if tensor.data_type != 0 else ""  # TYPE_INVALID is reported by CT202
    optional = isinstance(tensor, ModelInput) and tensor.optional
    return End(model, what, tensor.name, field, data_type, shape, batches, writes, reads, optional)
