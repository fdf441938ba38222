"""CT4xx: whether a single-model container starts. The source of all of it is the entry point of the image."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdk_triton.triton.checks._sources import server
from cdk_triton.triton.checks.engine import Check, Problem, rule
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.repository import CONFIG_NAME

_SERVE = "docker/sagemaker/serve"


@rule(
    "CT401",
    Severity.ERROR,
    "config.pbtxt is at the top of the repository",
    source=server(_SERVE, 137, 141),
    modes=("single",),
)
def configuration_at_top(check: Check) -> Iterator[Problem]:
    """Only a multi-model endpoint takes an archive that is itself one model."""
    if CONFIG_NAME in check.repository.model_directories:
        yield Problem(
            CONFIG_NAME,
            "the configuration is at the top of the repository, and the container would end with: Incorrect directory "
            "structure. Model directory needs to contain the top level folder",
            f"move everything into a directory, for example {check.repository.name}/{CONFIG_NAME}",
        )


@rule("CT402", Severity.ERROR, "the repository has no model", source=server(_SERVE, 165, 169), modes=("single",))
def no_model(check: Check) -> Iterator[Problem]:
    """Files at the top are no models."""
    if not check.repository.models:
        yield Problem(
            ".",
            "there is no directory in the repository, and the container would end with: No model found in model "
            "repository",
            f"put each model into a directory of its own, with its {CONFIG_NAME} and a version directory",
        )


@rule(
    "CT403",
    Severity.ERROR,
    "the repository does not tell its default model",
    source=server(_SERVE, 174, 178),
    modes=("single",),
)
def no_default_model(check: Check) -> Iterator[Problem]:
    """Several models need one ensemble that is no step of another, or a name."""
    repository = check.repository
    if check.default_model is not None or repository.entry_model() is not None or not repository.models:
        return
    names = ", ".join(model.name for model in repository.models)
    ensembles = ", ".join(model.name for model in repository.ensembles)
    found = f"several ensembles ({ensembles})" if ensembles else "no ensemble"
    yield Problem(
        ".",
        f"the repository has several models ({names}) and {found}, so that the default model is open, and the "
        "container would end with: More than 1 model directory found in model repository",
        "name the model in default_model_name of the container's environment",
    )


@rule(
    "CT404",
    Severity.ERROR,
    "a model that the container is told to load is not in the repository",
    source=server(_SERVE, 157, 163),
    modes=("single",),
)
def named_model_missing(check: Check) -> Iterator[Problem]:
    """The default model is looked for by the start script, the additional ones by the server."""
    names = ", ".join(model.name for model in check.repository.models)
    if check.default_model is not None and check.repository.model(check.default_model) is None:
        yield Problem(
            ".",
            f"the default model {check.default_model!r} is not among the models ({names}), and the container would end "
            f"with: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME {check.default_model} does not exist",
            "name one of the models in default_model_name",
        )
    for name in check.additional_models:
        if check.repository.model(name) is None:
            yield Problem(
                ".",
                f"the additional model {name!r} is not among the models ({names}), and the server would end with: "
                f"failed to poll model '{name}': model not found in any model repository",
                "name models of the repository in additional_models",
            )


@rule(
    "CT405",
    Severity.ERROR,
    "the start script cannot take the name of a model",
    source=server(_SERVE, 157, 183),
    modes=("single",),
)
def name_is_split(check: Check) -> Iterator[Problem]:
    """The script puts the name into the command line unquoted."""
    named = (check.entry, *(check.repository.model(name) for name in check.additional_models))
    for model in dict.fromkeys(model for model in named if model is not None):
        if match := re.search(r"[\s*?\[\]\\]", model.name):
            yield Problem(
                model.directory,
                f"the name {model.name!r} holds {match.group()!r}, which the container's start script would expand in "
                "--load-model",
                "rename the model, with letters, digits, '_', '-' and '.'",
            )
