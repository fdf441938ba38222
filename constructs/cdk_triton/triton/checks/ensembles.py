"""CT3xx: whether the server can load the models that an ensemble names."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from cdk_triton.triton.checks._sources import core
from cdk_triton.triton.checks.engine import Check, Problem, rule
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.repository import Model, ModelRepository

_MANAGER = "src/model_repository_manager/model_repository_manager.cc"


@rule(
    "CT301",
    Severity.ERROR,
    "an ensemble runs a model that the repository does not have",
    source=core(_MANAGER, 2139, 2159),
)
def missing_step(check: Check) -> Iterator[Problem]:
    """In a multi-model endpoint the step may find a model of another archive, for as long as that one is loaded."""
    names = [model.name for model in check.repository.models]
    for model in check.loaded_models:
        for step in model.graph.steps:
            if check.repository.model(step.model_name) is not None:
                continue
            close = get_close_matches(step.model_name, [name for name in names if name != model.name], n=1)
            yield Problem(
                model.config_path,
                f"step {step.index} runs the model {step.model_name!r}, for which the repository has no directory: "
                f"ensemble {model.name} contains models that are not available or ambiguous: {step.model_name}",
                f"write {close[0]!r} if that is meant, or add the model" if close else "add the model, or correct it",
                f"ensemble_scheduling.step[{step.index}].model_name",
            )


@rule("CT302", Severity.ERROR, "ensembles run each other in a circle", source=core(_MANAGER, 2229, 2270))
def circle(check: Check) -> Iterator[Problem]:
    """Reported for the first ensemble of the circle, by name."""
    for model in check.loaded_models:
        way = _way_back(check.repository, model)
        if way and model.name == min(way):
            yield Problem(
                model.config_path,
                f"the ensembles run each other in a circle ({' → '.join((*way, way[0]))}), and the server would load "
                f"none of them: circular dependency between ensembles: {way[0]} -> ... -> {way[-1]} -> {way[0]}",
                "take one of the steps out",
                "ensemble_scheduling.step",
            )


def _way_back(repository: ModelRepository, start: Model) -> tuple[str, ...]:
    """The shortest way along steps from an ensemble to itself, or () where there is none."""
    ways: list[tuple[str, ...]] = [(start.name,)]
    seen: set[str] = set()
    for way in ways:  # grows while we walk
        model = repository.model(way[-1])
        for name in model.graph.model_names if model is not None else ():
            if name == start.name:
                return way
            if name not in seen:
                seen.add(name)
                ways.append((*way, name))
    return ()


@rule(
    "CT303",
    Severity.ERROR,
    "an ensemble requires a version that is not loaded",
    source=core(_MANAGER, 1897, 1911),
)
def version_not_loaded(check: Check) -> Iterator[Problem]:
    """`model_version` left out is 0, not the latest version."""
    for model in check.loaded_models:
        for step in model.graph.steps:
            child = check.repository.model(step.model_name)
            # A child without any version, or whose policy cannot be read, is reported itself.
            if child is None or not child.served_versions or child.config_error is not None:
                continue
            if step.model_version == -1 or step.model_version in child.served_versions:
                continue
            served = ", ".join(map(str, child.served_versions))
            wanted = step.model_version
            written = "says no version, which means version 0" if wanted == 0 else f"asks for version {wanted}"
            yield Problem(
                model.config_path,
                f"step {step.index} {written}, and the server would load version {served} of {child.name!r}: ensemble "
                f"'{model.name}' depends on '{child.name}' whose required version {wanted} is not loaded",
                "write model_version: -1 for the latest version",
                f"ensemble_scheduling.step[{step.index}].model_version",
            )


@rule(
    "CT304",
    Severity.WARNING,
    "a model is never loaded",
    source="https://github.com/triton-inference-server/server/issues/5452",
)
def never_loaded(check: Check) -> Iterator[Problem]:
    """The container runs with explicit model control: what nobody names is not there when a model calls it (BLS)."""
    entry = check.entry
    names = {model.name for model in check.repository.models}
    if entry is None or any(set(model.graph.model_names) - names for model in check.loaded_models):
        return  # where a step is missing, the model may be the one that is meant
    loaded = {model.name for model in check.loaded_models}
    for model in check.repository.models:
        if model.name in loaded:
            continue
        if check.mode == "single":
            mend = "remove it, or name it in additional_models if a model calls it (BLS)"
        else:
            mend = (
                "remove it; a model that is called (BLS) has to be a step of the ensemble, or run on its own endpoint"
            )
        yield Problem(
            model.directory,
            f"nothing loads {model.name!r}, because the entry model {entry.name!r} does not run it as a step; a call "
            f"from another model would fail: Model {model.name} is not ready",
            mend,
        )
