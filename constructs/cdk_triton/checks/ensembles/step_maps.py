"""CT332 to CT335, CT342 and CT343: whether steps map the inputs and outputs that their models have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdk_triton._wording import listed, listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import completes_tensors
from cdk_triton.checks.derived.composition import RunStep, flow_ends, passed_on, run_steps, step_rule
from cdk_triton.checks.derived.contradicted import misnamed
from cdk_triton.checks.derived.swapped_maps import Exchanged, exchanged_maps
from cdk_triton.checks.derived.unconnected_tensors import said_unconnected
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelInput, ModelOutput

_ENSEMBLE_UTILS = "src/ensemble_scheduler/ensemble_utils.cc"


@rule(
    "CT332",
    Severity.ERROR,
    "a step maps an input that its model does not have",
    source=core(_ENSEMBLE_UTILS, 131, 145),
)
def no_such_input(context: CheckContext) -> Iterator[Problem]:
    """A `key` in an `input_map` is not the name of an input of the step's model.

    The server does not load the ensemble. In a map, the `key` is the tensor's name in the model, and the `value` is its
    name in the ensemble. A Python model without `config.pbtxt` has only the inputs that its `auto_complete_config`
    adds.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "picture" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "picture" value: "picture" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "picture" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "picture" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }

    Limits:
        The rule skips a model whose backend may add inputs, because these inputs are not known before the server runs.
        DALI, TensorFlow and Python models with `auto_complete_config` may add inputs that the configuration omits. Some
        other backends add inputs if the configuration names no input.
    """
    suggestions = Suggestions()
    for run in run_steps(context):
        step, inputs = run.step, run.runs.config.input
        strange, missing = _unmatched_inputs(run)
        if not strange or completes_tensors(run.runs, "input"):
            continue
        meant = _meant(strange, missing, suggestions)
        unmapped = [tensor.name for tensor in inputs if tensor.optional and tensor.name not in step.input_map]
        meant |= _meant([key for key in strange if key not in meant], unmapped, suggestions)
        for key in strange if inputs else strange[:1]:
            if (run.runs.name, "input", key) in misnamed(context):
                continue
            yield run.unloadable(
                f'input_map["{key}"]',
                f"maps the input {key!r}, but {run.runs.name!r} has {_names(inputs, 'input')}",
                f"ensemble tensor {step.input_map[key]} is mapping to non-existing input {key} in model "
                f"{run.runs.name}",
                _fix(meant.get(key), run.runs.model, inputs, "input"),
            )


@rule(
    "CT333",
    Severity.ERROR,
    "a step omits an input that its model requires",
    source=core(_ENSEMBLE_UTILS, 164, 174),
)
def unmapped_input(context: CheckContext) -> Iterator[Problem]:
    """An input of a step's model is not `optional`, but the step's `input_map` does not contain this input.

    The server does not load the ensemble. Map a tensor to the input, or write `optional: true` for this input if the
    model works without it.

    Example:
        # encoder/config.pbtxt
        backend: "python"
        input { name: "TOKENS" data_type: TYPE_INT64 dims: -1 }
        input { name: "MASK" data_type: TYPE_INT64 dims: -1 }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 384 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TOKENS" data_type: TYPE_INT64 dims: -1 }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 384 }
        ensemble_scheduling {
          step {
            model_name: "encoder"
            model_version: -1
            input_map { key: "TOKENS" value: "TOKENS" }
            output_map { key: "VECTOR" value: "VECTOR" }
          }
        }

    Instead:
        # encoder/config.pbtxt
        backend: "python"
        input { name: "TOKENS" data_type: TYPE_INT64 dims: -1 }
        input { name: "MASK" data_type: TYPE_INT64 dims: -1 optional: true }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 384 }
    """
    suggestions = Suggestions()
    for run in run_steps(context):
        strange, missing = _unmatched_inputs(run)
        if not missing or not run.step.input_map:
            continue  # the latter is reported by CT314
        known = () if strange and completes_tensors(run.runs, "input") else strange
        misspelt = set(_meant(known, missing, suggestions).values())  # reported by CT332
        model = run.runs.name
        for name in (each for each in missing if each not in misspelt):
            if (model, "input", name) in misnamed(context):
                continue
            yield run.unloadable(
                "input_map",
                f"maps no tensor to the required input {name!r} of {model!r}",
                f"input {name} in model {model} is not mapped to any ensemble tensors",
                f"map a tensor to {name!r}, or write optional: true for {name!r} in {model!r} if the model works "
                "without this input",
            )


@rule(
    "CT334",
    Severity.ERROR,
    "a step maps an output that its model does not have",
    source=core(_ENSEMBLE_UTILS, 183, 198),
)
def no_such_output(context: CheckContext) -> Iterator[Problem]:
    """A `key` in an `output_map` is not the name of an output of the step's model.

    The server does not load the ensemble. In a map, the `key` is the tensor's name in the model, and the `value` is its
    name in the ensemble.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORE" value: "SCORES" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }

    Limits:
        The rule skips a model whose backend may add outputs, because these outputs are not known before the server runs
        (CT332 lists such backends).
    """
    suggestions = Suggestions()
    for run in run_steps(context):
        step, outputs = run.step, run.runs.config.output
        names = {tensor.name for tensor in outputs}
        strange = [key for key in step.output_map if key not in names]
        if not strange or completes_tensors(run.runs, "output"):
            continue
        meant = _meant(strange, [name for name in sorted(names) if name not in step.output_map], suggestions)
        for key in strange if outputs else strange[:1]:
            if (run.runs.name, "output", key) in misnamed(context):
                continue
            yield run.unloadable(
                f'output_map["{key}"]',
                f"maps the output {key!r}, but {run.runs.name!r} has {_names(outputs, 'output')}",
                f"ensemble tensor {step.output_map[key]} is mapped from non-existing output {key} in model "
                f"{run.runs.name}",
                _fix(meant.get(key), run.runs.model, outputs, "output"),
            )


@step_rule(
    "CT335",
    Severity.ERROR,
    "a step maps an output that its model lists twice",
    source=core(_ENSEMBLE_UTILS, 200, 228),
)
def output_listed_twice(run: RunStep) -> Iterator[Problem]:
    """A model has two outputs of the same name, and a step maps this name to a tensor of the ensemble.

    The server loads such a model by itself (CT211), but it does not load an ensemble that maps the output.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }

    Instead:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
    """
    model = run.runs.model
    listed: dict[str, list[ModelOutput]] = {}
    for output in run.runs.config.output:
        listed.setdefault(output.name, []).append(output)
    for key, tensor in run.step.output_map.items():
        outputs = listed.get(key, [])
        if len(outputs) < 2 or sum(bool(output.label_filename) for output in outputs) > 1:
            continue  # the latter is reported by CT219
        if len({output.data_type for output in outputs}) > 1:  # then the server stumbles over that first
            words = f"ensemble tensor {tensor}: inconsistent data type"
        elif len({len(output.dims) for output in outputs}) > 1:
            words = f"ensemble tensor {tensor}: inconsistent shape"
        else:
            words = f"multiple outputs in model {model.name} are mapped to the same ensemble tensor {tensor}"
        yield run.unloadable(
            f'output_map["{key}"]',
            f"maps {key!r}, which {model.name!r} lists {len(outputs)} times",
            words,
            f"list {key!r} once in {model.config_path}",
        )


@rule(
    "CT342",
    Severity.WARNING,
    "a step requires an input that the ensemble makes optional",
    source=core("src/ensemble_scheduler/ensemble_scheduler.cc", 1040, 1062),
)
def optional_for_required(context: CheckContext) -> Iterator[Problem]:
    """An input of the ensemble is `optional`, but a step maps this input to a required input of its model.

    The server loads the ensemble, but a request that omits the input fails at the step. Write `optional: true` for the
    model's input if the model works without it. Otherwise, remove `optional` from the ensemble's input.

    Example:
        # translator/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        input { name: "LANGUAGE" data_type: TYPE_STRING dims: 1 }
        output { name: "RESULT" data_type: TYPE_STRING dims: 1 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        input { name: "LANGUAGE" data_type: TYPE_STRING dims: 1 optional: true }
        output { name: "RESULT" data_type: TYPE_STRING dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "translator"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            input_map { key: "LANGUAGE" value: "LANGUAGE" }
            output_map { key: "RESULT" value: "RESULT" }
          }
        }

    Instead:
        # translator/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        input { name: "LANGUAGE" data_type: TYPE_STRING dims: 1 optional: true }
        output { name: "RESULT" data_type: TYPE_STRING dims: 1 }
    """
    for ensemble, tensors in flow_ends(context):
        for source, end in passed_on(tensors):
            if source.model is ensemble.model and source.is_optional and not end.is_optional:
                yield ensemble.problem(
                    end.field,
                    f"the input {source.tensor!r} of {ensemble.name!r} is optional, but a step maps it to the required "
                    f"input {end.tensor!r} of {end.model.name!r}, so a request without {source.tensor!r} would fail "
                    f"with: missing required input(s) ['{end.tensor}']",
                    f"write optional: true for the input of {end.model.name!r} if the model works without it, or "
                    "remove `optional` from the ensemble's input",
                )


@rule(
    "CT343",
    Severity.ERROR,
    "the key and the value in a step's map are exchanged",
    source=core("src/model_config_utils.cc", 199, 288),
)
def exchanged_names(context: CheckContext) -> Iterator[Problem]:
    """A step's map has the ensemble's name of a tensor as the `key`, and the model's name as the `value`.

    Exchange the two names: in each `input_map` and `output_map`, the `key` is the name in the model, and the `value` is
    the name in the ensemble. The server does not load the ensemble, because exchanged names leave tensors unconnected.
    Other rules do not check the connections of such an ensemble, so check the repository again after you have exchanged
    the names.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "picture" data_type: TYPE_FP32 dims: 4 }
        output { name: "result" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "picture" value: "IMAGE" }
            output_map { key: "result" value: "SCORES" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "picture" data_type: TYPE_FP32 dims: 4 }
        output { name: "result" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "picture" }
            output_map { key: "SCORES" value: "result" }
          }
        }
    """
    by_ensemble: dict[str, list[Exchanged]] = {}
    for each in exchanged_maps(context):
        by_ensemble.setdefault(each.ensemble.name, []).append(each)
    for found in by_ensemble.values():
        first = found[0]
        key, value = next(iter(first.pairs.items()))
        kinds: dict[int, list[str]] = {}
        for each in found:
            kinds.setdefault(each.step, []).append(each.kind)
        places = [f"{' and '.join(names)} of step {step}" for step, names in kinds.items()]
        yield first.ensemble.unloadable(
            f'ensemble_scheduling.step[{first.step}].{first.kind}["{key}"]',
            f"key and value are exchanged in {listed(places)} (the key {key!r} is the ensemble's tensor, the value "
            f"{value!r} is the model's)",
            said_unconnected(first),
            f'write the model\'s tensor as key and the ensemble\'s as value: key: "{value}" value: "{key}"',
        )


def _unmatched_inputs(run: RunStep) -> tuple[list[str], list[str]]:
    """The keys that are not inputs of the model, and the required inputs of the model that are not keys."""
    inputs, keys = run.runs.config.input, run.step.input_map
    names = {tensor.name for tensor in inputs}
    required = dict.fromkeys(tensor.name for tensor in inputs if tensor.name and not tensor.optional)
    return [key for key in keys if key not in names], [name for name in required if name not in keys]


def _meant(strange: Sequence[str], missing: Sequence[str], suggestions: Suggestions) -> dict[str, str]:
    """Each strange name → the missing name that is like it; if one of each is left, they belong together as well."""
    meant: dict[str, str] = {}
    left = dict.fromkeys(missing)
    for key in strange if missing else ():
        close = suggestions.closest(key, left)
        if close is not None:
            meant[key] = close
            del left[close]
    alone = [key for key in strange if key not in meant]
    if len(alone) == 1 and len(left) == 1:
        meant[alone[0]] = next(iter(left))
    return meant


def _fix(meant: str | None, model: Model, tensors: Sequence[ModelInput] | Sequence[ModelOutput], side: str) -> str:
    if meant is not None:
        return f"write {meant!r} as the key if you mean this {side}"
    if not tensors:
        return f"write the {side}s of {model.name!r} into {model.config_path}"
    return f"remove the entry, or name an {side} of the model"


def _names(tensors: Sequence[ModelInput] | Sequence[ModelOutput], side: str) -> str:
    """The first of a model's inputs or outputs, in words."""
    if not tensors:
        return f"no {side}s"
    return f"only the {side}{'s' if len(tensors) > 1 else ''} {listed_in_quotes(tensor.name for tensor in tensors)}"
