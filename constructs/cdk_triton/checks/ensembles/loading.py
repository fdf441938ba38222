"""CT3xx: whether the server can load the models that an ensemble names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import ConfiguredModel, ensembles, model_rule
from cdk_triton.checks.derived.cycles import ensemble_cycles
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import is_loaded_by_model, is_named_by_model
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import CONFIG_NAME, Model

_MANAGER = "src/model_repository_manager/model_repository_manager.cc"


@rule(
    "CT301",
    Severity.ERROR,
    "an ensemble runs a model that the repository does not have",
    source=core(_MANAGER, 2139, 2159),
)
def missing_step(context: CheckContext) -> Iterator[Problem]:
    """A step names a model for which the repository has no directory.

    The server loads an ensemble together with the models that its steps run. If one of these models is missing, the
    server loads none of them. In a multi-model endpoint, the step may find a model of this name in another archive, but
    only while that archive is loaded.

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
            model_name: "clasifier"
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
    names = {model.name for model in context.repository.models}
    hidden = context.repository.hidden_models
    suggestions = Suggestions()
    for ensemble in ensembles(context):
        for step in ensemble.model.graph.steps:
            name = step.model_name
            if not name or name in names or name in hidden or _leads_to_model(context, name):
                continue  # the first is reported by CT314, the third by CT401 and CT506
            close = suggestions.closest(name, names, other_than=ensemble.name)
            yield ensemble.unloadable(
                f"ensemble_scheduling.step[{step.index}].model_name",
                f"step {step.index} runs the model {name!r}, for which the repository has no directory",
                f"ensemble {ensemble.name} contains models that are not available or ambiguous: {name}",
                "add the model, or correct the name"
                if close is None
                else f"write {close!r} if that is meant, or add the model",
            )


def _leads_to_model(context: CheckContext, name: str) -> bool:
    """Whether a name with slashes is the path of a model, or leads out of the repository.

    The server also loads a model by its path, unless the configuration has a name.
    """
    if "/" not in name:
        return False
    found = named_file(context, PurePosixPath(), name)
    nameless = {each.directory for each in context.repository.models if each.config is None or not each.config.name}
    return not found.is_known or found.path in nameless


@rule("CT302", Severity.ERROR, "ensembles run each other in a circle", source=core(_MANAGER, 2229, 2270))
def circle(context: CheckContext) -> Iterator[Problem]:
    """An ensemble is a step of itself, or of an ensemble that it runs.

    The server loads none of the ensembles in the circle. If an ensemble outside the circle runs one of them, the server
    (Triton 2.51) follows the circle until the server's memory is used up. The server then crashes without a message.

    Example:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "pipeline"
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
    models = {model.name: model for model in context.loaded_models}
    found = ensemble_cycles(context)
    run_by: dict[str, list[str]] = {}
    for name, model in models.items() if found else ():
        for step in model.graph.model_names:
            run_by.setdefault(step, []).append(name)
    for way in found:
        around = set(way)
        outside = next((other for name in way for other in run_by[name] if other not in around), None)
        effect = (
            ", so the server would load none of them: circular dependency between ensembles: "
            f"{way[0]} -> ... -> {way[-1]} -> {way[0]}"
        )
        if outside is not None:
            effect = f", and {outside!r}, which is not in the circle, runs one of them, so the server would crash"
        yield Problem(
            models[way[0]].config_path,
            f"the ensembles run each other in a circle ({' → '.join((*way, way[0]))}){effect}",
            "remove one step of the circle",
            "ensemble_scheduling.step",
        )


@model_rule(
    "CT303",
    Severity.ERROR,
    "an ensemble requires a version that is not loaded",
    source=core(_MANAGER, 1897, 1911),
)
def version_not_loaded(each: ConfiguredModel) -> Iterator[Problem]:
    """A step requires a version of its model that the model's version policy does not load.

    The server does not load the ensemble. A step without `model_version` requires version 0, not the latest version. By
    default, the server loads only the highest version of a model. Write `model_version: -1` for the latest version.

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
    for step in each.model.graph.steps:
        child = each.context.repository.model(step.model_name)
        # A child without any version, or whose policy cannot be read, is reported itself.
        if child is None or not child.served_versions or child.config_error is not None:
            continue
        if step.model_version == -1 or step.model_version in child.served_versions:
            continue
        served = ", ".join(map(str, child.served_versions))
        wanted = step.model_version
        written = f"requires version {wanted}{', the default of model_version' * (wanted == 0)}"
        yield each.problem(
            f"ensemble_scheduling.step[{step.index}].model_version",
            f"step {step.index} {written}, but the server would load only version {served} of {child.name!r}: "
            f"ensemble '{each.name}' depends on '{child.name}' whose required version {wanted} is not loaded",
            "write model_version: -1 for the latest version",
        )


@rule(
    "CT304",
    Severity.WARNING,
    "a model is never loaded",
    source="https://github.com/triton-inference-server/server/issues/5452",
)
def never_loaded(context: CheckContext) -> Iterator[Problem]:
    """A model of the repository is neither the entry model nor a model that the steps of the entry model run.

    The container starts the server with explicit model control. So the server loads only the entry model, the models of
    its steps at any depth, and the models that `additional_models` names. If a model calls a model that is not loaded
    (BLS), the call fails. A directory that has neither a configuration nor a version directory is not a model. Such a
    directory only makes the archive larger.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # explainer/config.pbtxt
        backend: "python"
        input { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        output { name: "REASON" data_type: TYPE_STRING dims: 1 }

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
        $ cdk-triton validate . --additional-model explainer

    Limits:
        The rule skips a model that a Python model loads itself (`load_model`), or may load. It also skips a directory
        that is not a model if the source of a Python model names the directory in a text.
    """
    entry = context.entry
    names = {model.name for model in context.repository.models}
    if entry is None or any(_lacks_a_step(model, names) for model in context.loaded_models):
        return  # the model may be the one that is meant
    loaded = {model.name for model in context.loaded_models}
    for model in context.repository.models:
        if model.name in loaded or is_loaded_by_model(context, model.name):
            continue
        if not model.is_recognisable:
            if is_named_by_model(context, model.name):
                continue
            yield Problem(
                model.directory,
                f"{model.name!r} is in the archive but is not a model, because it has neither a {CONFIG_NAME} nor a "
                "version directory, so the server would not load it",
                f"move {model.name!r} out of the repository, or into the directory of the model that reads its files",
            )
            continue
        if context.mode == "single":
            fix = f"remove {model.name!r}, or name it in additional_models if a model calls it (BLS)"
        else:
            fix = (
                f"remove {model.name!r}; if a model calls it (BLS), make it a step of the ensemble, or serve it on its "
                "own endpoint"
            )
        yield Problem(
            model.directory,
            f"the server would not load {model.name!r}, because the entry model {entry.name!r} does not run it as a "
            f"step, so a call from another model would fail: Model '{model.name}' is not ready; cdk-triton did not "
            f"check the files of {model.name!r}",
            fix,
        )


def _lacks_a_step(model: Model, names: set[str]) -> bool:
    """Whether an ensemble has no steps, or a step whose model is missing; other rules report both."""
    steps = model.graph.model_names
    return model.is_ensemble and (not steps or any(name not in names for name in steps))
