"""CT310 to CT316: whether the configuration of an ensemble has the fields that it needs, and no others."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import (
    ConfiguredModel,
    completed_pair,
    ensemble_rule,
    is_wrong_pair,
    model_rule,
)
from cdk_triton.checks.derived.unconnected_tensors import LooseEnds, loose_ends_rule
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig

_UTILS = "src/model_config_utils.cc"


@ensemble_rule("CT310", Severity.ERROR, "an ensemble has no ensemble_scheduling", source=core(_UTILS, 1673, 1679))
def no_ensemble_scheduling(each: ConfiguredModel) -> Iterator[Problem]:
    """A configuration has `platform: "ensemble"`, but no `ensemble_scheduling`.

    The server does not load the ensemble, because it has no steps to run. Another scheduler, such as
    `dynamic_batching`, cannot replace `ensemble_scheduling`. The server also rejects a configuration with two
    schedulers (CT101).

    Example:
        # model/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return [None for request in requests]
    """
    if each.config.backend or each.config.HasField("ensemble_scheduling"):
        return  # the former: CT285
    yield each.problem(
        "platform",
        f"{each.name!r} is an ensemble without steps, so the server would not load it: ensemble scheduling must be set "
        f"for ensemble {each.said_name} whose platform is ensemble",
        "add ensemble_scheduling with the steps, or replace platform by the backend that runs the "
        f"model{_misplaced_scheduler(each.config)}",
    )


@model_rule(
    "CT311",
    Severity.ERROR,
    "ensemble_scheduling is set for a model that is not an ensemble",
    source=core(_UTILS, 163, 168),
)
def scheduling_without_platform(each: ConfiguredModel) -> Iterator[Problem]:
    """A configuration lists the steps of an ensemble, but does not have `platform: "ensemble"`.

    The server does not load the model, because only the platform makes a model an ensemble. If the configuration does
    not name a backend either, the server looks for a backend that fits the model's files. The server then fails with
    another message, but the cause is the same.

    Example:
        $ cdk-triton validate . --default-model pipeline
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        backend: "python"
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
    """
    config = each.config
    if each.model.is_ensemble or not config.HasField("ensemble_scheduling"):
        return
    platform, backend = completed_pair(each.context, each.model)
    if is_wrong_pair(platform, backend, each.context.platform):
        said = f"unexpected 'platform' and 'backend' pair, got:{platform}, {backend}"
    elif backend:
        said = f"ensemble scheduling cannot be set for model '{each.said_name}' whose platform is not ensemble"
    elif config.platform or config.default_model_filename or "." in each.name:  # the last ends in a dot
        said = f"unexpected platform type '{config.platform}' for {each.said_name}"
    else:
        said = f"Could not determine backend for model '{each.said_name}' with no backend in model configuration"
    given = repr(config.platform) if config.platform else "empty"
    yield each.problem(
        "ensemble_scheduling",
        f"{each.name!r} has the steps of an ensemble, but its platform is {given}, so the server would not load it: "
        f"{said}",
        'write platform: "ensemble" and no backend, or remove ensemble_scheduling',
    )


@ensemble_rule(
    "CT312",
    Severity.ERROR,
    "an ensemble has settings that only other models may have",
    source=core(_UTILS, 169, 186),
)
def foreign_setting(each: ConfiguredModel) -> Iterator[Problem]:
    """An ensemble has an `instance_group`, `optimization` or `model_warmup`.

    The server does not load the ensemble. An ensemble does not compute anything itself, so the server has nothing to
    place on a GPU, to optimise or to warm up. Write these settings into the configurations of the models that the steps
    run.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        instance_group { count: 2 }
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
        instance_group { count: 2 }
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
            output_map { key: "SCORES" value: "SCORES" }
          }
        }
    """
    config = each.config
    for field, is_set, said in (
        ("instance_group", bool(config.instance_group), "instance group should not"),
        ("optimization", config.HasField("optimization"), "optimization should not"),
        ("model_warmup", bool(config.model_warmup), "model_warmup can not"),
    ):
        if is_set:
            yield each.problem(
                field,
                f"{each.name!r} is an ensemble with {field}, so the server would not load it: {said} be specified for "
                f"ensemble '{each.said_name}'",
                f"remove {field}, and add {field} to each step's model that needs it",
            )


@ensemble_rule("CT313", Severity.ERROR, "an ensemble has no steps", source=core(_UTILS, 188, 193))
def no_steps(each: ConfiguredModel) -> Iterator[Problem]:
    """The `ensemble_scheduling` of an ensemble is empty.

    The server does not load an ensemble without steps. Add a step for each model that the ensemble runs.

    Example:
        # model/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling { }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return [None for request in requests]
    """
    if each.config.HasField("ensemble_scheduling") and not each.config.ensemble_scheduling.step:
        yield each.unloadable(
            "ensemble_scheduling",
            f"the ensemble_scheduling of {each.name!r} is empty",
            f"must specify 'step' for ensemble '{each.said_name}'",
            "add a step for every model that the ensemble runs",
        )


@ensemble_rule(
    "CT314",
    Severity.ERROR,
    "a step omits its model, its inputs or its outputs",
    source=core(_UTILS, 85, 103),
)
def incomplete_step(each: ConfiguredModel) -> Iterator[Problem]:
    """A step has no `model_name`, no `input_map` or no `output_map`.

    The server does not load the ensemble. The `model_name` of a step is the model that the step runs. The `input_map`
    maps tensors of the ensemble to the model's inputs, and the `output_map` maps the model's outputs to tensors of the
    ensemble. In both maps, the `key` is the name in the model, and the `value` is the name in the ensemble.

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
    """
    for step in each.model.graph.steps:
        for field, value, fix in (
            ("model_name", step.model_name, "name the model that the step runs"),
            ("input_map", step.input_map, "map every input of the model to a tensor of the ensemble"),
            ("output_map", step.output_map, "name a tensor for every output that the ensemble needs"),
        ):
            if not value:
                yield each.unloadable(
                    f"ensemble_scheduling.step[{step.index}].{field}",
                    f"step {step.index} has no {field}",
                    f"must specify '{field}' in step {step.index} of ensemble '{each.said_name}'",
                    fix,
                )


@loose_ends_rule("CT315", Severity.ERROR, "an ensemble tensor is written twice", source=core(_UTILS, 107, 119))
def written_twice(loose: LooseEnds) -> Iterator[Problem]:
    """Two outputs, of one step or of two steps, are mapped to the same tensor of the ensemble.

    The server does not load the ensemble. Map one of the two outputs to another tensor.

    Example:
        # tagger/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "LABEL" data_type: TYPE_STRING dims: 1 }
        output { name: "REASON" data_type: TYPE_STRING dims: 1 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "LABEL" data_type: TYPE_STRING dims: 1 }
        output { name: "REASON" data_type: TYPE_STRING dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "tagger"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            output_map { key: "LABEL" value: "LABEL" }
            output_map { key: "REASON" value: "LABEL" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "LABEL" data_type: TYPE_STRING dims: 1 }
        output { name: "REASON" data_type: TYPE_STRING dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "tagger"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            output_map { key: "LABEL" value: "LABEL" }
            output_map { key: "REASON" value: "REASON" }
          }
        }
    """
    ensemble = loose.ensemble
    for source, meant in loose.of("again"):
        first = ensemble.model.graph.tensors[source.tensor].writers[0].index
        other = f"step {first}" if first != source.step else f"another output of step {first}"
        yield ensemble.unloadable(
            f'ensemble_scheduling.step[{source.step}].output_map["{source.output}"]',
            f"step {source.step} writes {source.tensor!r}, which {other} also writes",
            f"ensemble tensor '{source.tensor}' can appear in an output map only once for ensemble "
            f"'{ensemble.said_name}' step {source.step}",
            f"write {meant.name!r}, which no step writes, in one of the two places"
            if meant is not None
            else "give the tensor another name in one of the two places",
        )


@loose_ends_rule(
    "CT316",
    Severity.WARNING,
    "a step writes an input of its ensemble",
    source=core("src/ensemble_scheduler/ensemble_scheduler.cc", 980, 1010),
)
def written_input(loose: LooseEnds) -> Iterator[Problem]:
    """A step maps an output to a tensor that is also an input of the ensemble.

    The server loads the ensemble. Whenever a tensor is written, the server runs the steps that read the tensor. So
    these steps run once for the tensor of the request, and again for the output of the step. If a step's output leads
    to one of the step's own inputs, the steps run forever. The server then never responds to the request (seen with
    Triton 2.51). Map the output to another tensor.

    Example:
        # denoiser/config.pbtxt
        backend: "python"
        input { name: "NOISY" data_type: TYPE_FP32 dims: 4 }
        output { name: "CLEAN" data_type: TYPE_FP32 dims: 4 }
        output { name: "GAIN" data_type: TYPE_FP32 dims: 1 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "SIGNAL" data_type: TYPE_FP32 dims: 4 }
        output { name: "GAIN" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "denoiser"
            model_version: -1
            input_map { key: "NOISY" value: "SIGNAL" }
            output_map { key: "CLEAN" value: "SIGNAL" }
            output_map { key: "GAIN" value: "GAIN" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "SIGNAL" data_type: TYPE_FP32 dims: 4 }
        output { name: "CLEAN" data_type: TYPE_FP32 dims: 4 }
        output { name: "GAIN" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "denoiser"
            model_version: -1
            input_map { key: "NOISY" value: "SIGNAL" }
            output_map { key: "CLEAN" value: "CLEAN" }
            output_map { key: "GAIN" value: "GAIN" }
          }
        }
    """
    for tensor in loose.ensemble.model.graph.tensors.values():
        if not tensor.is_input or not tensor.writers or not tensor.readers:
            continue
        step = tensor.writers[0]
        output = next(name for name, written in step.output_map.items() if written == tensor.name)
        yield loose.ensemble.problem(
            f'ensemble_scheduling.step[{step.index}].output_map["{output}"]',
            f"step {step.index} writes {tensor.name!r}, which is an input of the ensemble {loose.ensemble.name!r}; the "
            f"server would run each step that reads {tensor.name!r} once for the request's tensor and again for this "
            "output, and these runs may never end",
            "map the output to another tensor",
        )


def _misplaced_scheduler(config: ModelConfig) -> str:
    """The fix for a scheduler that only other models have; "" if the configuration lacks one."""
    scheduler = config.WhichOneof("scheduling_choice")
    if scheduler is None:
        return ""
    return f"; an ensemble has no scheduler of its own, so put {scheduler} into the models of its steps"
