"""CT332 to CT335, CT342 and CT343: whether steps map the inputs and outputs that their models have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdk_triton._wording import listed, listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import completes_tensors
from cdk_triton.checks.derived.composition import flow_ends, passed_on, run_steps
from cdk_triton.checks.derived.swapped_maps import Exchanged, exchanged_maps
from cdk_triton.checks.derived.unconnected_tensors import said_unconnected
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.triton.ensemble import EnsembleStep
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput

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
    for ensemble, _, step, model, config in run_steps(context):
        strange, missing = _unmatched_inputs(step, config)
        if not strange or completes_tensors(context, model, config, "input"):
            continue
        meant = _meant(strange, missing, suggestions)
        unmapped = [tensor.name for tensor in config.input if tensor.optional and tensor.name not in step.input_map]
        meant |= _meant([key for key in strange if key not in meant], unmapped, suggestions)
        for key in strange if config.input else strange[:1]:
            yield Problem(
                ensemble.config_path,
                f"step {step.index} maps the input {key!r}, but {model.name!r} has {_names(config.input, 'input')}, so "
                f"the server would not load {ensemble.name!r}: in ensemble {ensemble.name}, ensemble tensor "
                f"{step.input_map[key]} is mapping to non-existing input {key} in model {model.name}",
                _fix(meant.get(key), model, config.input, "input"),
                f'ensemble_scheduling.step[{step.index}].input_map["{key}"]',
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
    for ensemble, _, step, model, config in run_steps(context):
        strange, missing = _unmatched_inputs(step, config)
        if not missing or not step.input_map:
            continue  # the latter is reported by CT314
        known = () if strange and completes_tensors(context, model, config, "input") else strange
        misspelt = set(_meant(known, missing, suggestions).values())  # reported by CT332
        for name in (each for each in missing if each not in misspelt):
            yield Problem(
                ensemble.config_path,
                f"step {step.index} maps no tensor to the required input {name!r} of {model.name!r}, so the server "
                f"would not load {ensemble.name!r}: in ensemble {ensemble.name}, input {name} in model "
                f"{model.name} is not mapped to any ensemble tensors",
                f"map a tensor to {name!r}, or write optional: true for {name!r} in {model.name!r} if the model works "
                "without this input",
                f"ensemble_scheduling.step[{step.index}].input_map",
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
    for ensemble, _, step, model, config in run_steps(context):
        outputs = {tensor.name for tensor in config.output}
        strange = [key for key in step.output_map if key not in outputs]
        if not strange or completes_tensors(context, model, config, "output"):
            continue
        meant = _meant(strange, [name for name in sorted(outputs) if name not in step.output_map], suggestions)
        for key in strange if config.output else strange[:1]:
            yield Problem(
                ensemble.config_path,
                f"step {step.index} maps the output {key!r}, but {model.name!r} has {_names(config.output, 'output')}, "
                f"so the server would not load {ensemble.name!r}: in ensemble {ensemble.name}, ensemble tensor "
                f"{step.output_map[key]} is mapped from non-existing output {key} in model {model.name}",
                _fix(meant.get(key), model, config.output, "output"),
                f'ensemble_scheduling.step[{step.index}].output_map["{key}"]',
            )


@rule(
    "CT335",
    Severity.ERROR,
    "a step maps an output that its model lists twice",
    source=core(_ENSEMBLE_UTILS, 200, 228),
)
def output_listed_twice(context: CheckContext) -> Iterator[Problem]:
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
    for ensemble, _, step, model, config in run_steps(context):
        listed: dict[str, list[ModelOutput]] = {}
        for output in config.output:
            listed.setdefault(output.name, []).append(output)
        for key, tensor in step.output_map.items():
            outputs = listed.get(key, [])
            if len(outputs) < 2 or sum(bool(output.label_filename) for output in outputs) > 1:
                continue  # the latter is reported by CT219
            if len({output.data_type for output in outputs}) > 1:  # then the server stumbles over that first
                said = f"ensemble tensor {tensor}: inconsistent data type"
            elif len({len(output.dims) for output in outputs}) > 1:
                said = f"ensemble tensor {tensor}: inconsistent shape"
            else:
                said = f"multiple outputs in model {model.name} are mapped to the same ensemble tensor {tensor}"
            yield Problem(
                ensemble.config_path,
                f"step {step.index} maps {key!r}, which {model.name!r} lists {len(outputs)} times, so the server would "
                f"not load {ensemble.name!r}: in ensemble {ensemble.name}, {said}",
                f"list {key!r} once in {model.config_path}",
                f'ensemble_scheduling.step[{step.index}].output_map["{key}"]',
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
    model's input if the model works without it. Otherwise remove `optional` from the ensemble's input.

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
    for ensemble, _, tensors in flow_ends(context):
        for source, end in passed_on(tensors):
            if source.model is ensemble and source.is_optional and not end.is_optional:
                yield Problem(
                    ensemble.config_path,
                    f"the input {source.tensor!r} of {ensemble.name!r} is optional, but a step maps it to the required "
                    f"input {end.tensor!r} of {end.model.name!r}, so a request without {source.tensor!r} would fail "
                    f"with: missing required input(s) ['{end.tensor}']",
                    f"write optional: true for the input of {end.model.name!r} if the model works without it, or "
                    "remove `optional` from the ensemble's input",
                    end.field,
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
    Other rules do not check the connections of such an ensemble, so check the repository again after this fix.

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
        yield Problem(
            first.ensemble.config_path,
            f"key and value are exchanged in {listed(places)} (the key {key!r} is the ensemble's tensor, the value "
            f"{value!r} is the model's), so the server would not load {first.ensemble.name!r}: "
            f"{said_unconnected(first)}",
            f'write the model\'s tensor as key and the ensemble\'s as value: key: "{value}" value: "{key}"',
            f'ensemble_scheduling.step[{first.step}].{first.kind}["{key}"]',
        )


def _unmatched_inputs(step: EnsembleStep, config: ModelConfig) -> tuple[list[str], list[str]]:
    """The keys that are not inputs of the model, and the required inputs of the model that are not keys."""
    inputs = {tensor.name for tensor in config.input}
    missing = dict.fromkeys(tensor.name for tensor in config.input if tensor.name and not tensor.optional)
    return [key for key in step.input_map if key not in inputs], [
        name for name in missing if name not in step.input_map
    ]


def _meant(strange: Sequence[str], missing: Sequence[str], suggestions: Suggestions) -> dict[str, str]:
    """Each strange name → the missing one that is like it, or the last of both where only two are left."""
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
    """The fix for a name that the model does not have."""
    if meant is not None:
        return f"write {meant!r} as the key if you mean this {side}"
    if not tensors:
        return f"write the {side}s of {model.name!r} into {model.config_path}"
    return f"remove the entry, or name an {side} of the model"


def _names(tensors: Sequence[ModelInput] | Sequence[ModelOutput], side: str) -> str:
    """A model's inputs or outputs in words, and not a hundred of them."""
    if not tensors:
        return f"no {side}s"
    return f"only the {side}{'s' if len(tensors) > 1 else ''} {listed_in_quotes(tensor.name for tensor in tensors)}"
