"""CT4xx: whether a single-model container starts. The source of all of it is the entry point of the image."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import server
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import CONFIG_NAME
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.repository import repository_above
from cdk_triton.triton.server_options import loaded_models

_SERVE = "docker/sagemaker/serve"
_ADDITIONAL_ARGS_SINCE = "23.07"


@rule(
    "CT401",
    Severity.ERROR,
    "config.pbtxt is at the top of the repository",
    source=server(_SERVE, 137, 141),
    modes=("single",),
)
def configuration_at_top(context: CheckContext) -> Iterator[Problem]:
    """A `config.pbtxt` is at the top of the repository of a single-model container.

    Before the server starts, the container's start script looks for this file, and ends with an error if it finds the
    file. Only a multi-model endpoint accepts an archive that is itself one model. If the directory is one of the models
    of a repository, name the directory above. Otherwise, move the files of the model into a directory.

    Example:
        # config.pbtxt
        backend: "python"

        # 1/model.py
        class TritonPythonModel:
            def execute(self, requests): ...

    Instead:
        # config.pbtxt is removed
        # 1/model.py is removed
        # model/config.pbtxt
        backend: "python"
    """
    repository = context.repository
    if CONFIG_NAME not in repository.model_directories:
        return
    if (above := repository_above(repository)) is not None:
        fix = f"name the directory above, which has more models: {above}"
    elif repository.hidden_models:
        (model,) = repository.models
        name = model.config.name if model.config is not None else ""
        moved = "it and the version directories" if model.versions else "it"
        fix = f"move {moved} into a directory of its own beside {listed_in_quotes(repository.hidden_models)}"
        if name in repository.model_directories:
            fix = f"remove it if it is a copy of {name}/{CONFIG_NAME}, or {fix}"
        elif name and "/" not in name:
            fix = f"{fix}, here {name}"
    else:
        file = f"{repository.name}/{CONFIG_NAME}"
        fix = (
            f"move all files of the model into a directory, for example to {file}, or name the directory above if that "
            "is the repository"
        )
    yield Problem(
        CONFIG_NAME,
        f"the file {CONFIG_NAME} is at the top of the repository, so the container would fail with: Incorrect "
        "directory structure. Model directory needs to contain the top level folder",
        fix,
    )


@rule("CT402", Severity.ERROR, "the repository has no model", source=server(_SERVE, 165, 169), modes=("single",))
def no_model(context: CheckContext) -> Iterator[Problem]:
    """The repository has files at its top, but no directory.

    The container's start script counts the directories of the repository, and ends with an error if it finds no
    directory. Put each model into its own directory, with its `config.pbtxt` and a version directory.

    Example:
        # README.md
        The model is still in training.

    Instead:
        # model/config.pbtxt
        backend: "python"
    """
    if not context.repository.models:
        yield Problem(
            ".",
            "the repository has no directory, so the container would fail with: No model found in model repository",
            f"put each model into a directory of its own, with its {CONFIG_NAME} and a version directory",
        )


@rule(
    "CT403",
    Severity.ERROR,
    "the default model of a repository is not given",
    source=server(_SERVE, 174, 178),
    modes=("single",),
)
def no_default_model(context: CheckContext) -> Iterator[Problem]:
    """The repository has several models, and the default model, which `/invocations` runs, is not given.

    The container's start script ends with an error if it finds several directories and no default model. If the
    repository has only one model, or only one ensemble that is not a step of another ensemble, the library sets
    `SAGEMAKER_TRITON_DEFAULT_MODEL_NAME` to this model. A directory that has neither a configuration nor a version,
    such as `scripts`, does not count as a model. For any other repository, set `default_model_name` in the container's
    environment. For the command, use the option `--default-model`.

    Example:
        # calls_the_other/config.pbtxt
        backend: "python"

        # is_called/config.pbtxt
        backend: "python"

    Instead:
        $ cdk-triton validate . --default-model calls_the_other --additional-model is_called
    """
    repository = context.repository
    if context.default_model is not None or repository.entry_model() is not None or not repository.models:
        return
    meant = [model for model in repository.models if model.config and model.config.HasField("ensemble_scheduling")]
    if len(meant) == 1 and not repository.ensembles:
        return  # it is meant as the only ensemble: reported by CT311
    names = listed_in_quotes(model.name for model in context.loaded_models)
    ensembles = listed_in_quotes(model.name for model in repository.ensembles)
    found = f"several ensembles ({ensembles})" if ensembles else "no ensemble"
    yield Problem(
        ".",
        f"the repository has several models ({names}) and {found}, so the default model is ambiguous and the "
        "container would fail with: More than 1 model directory found in model repository",
        "set default_model_name in the container's environment, or --default-model for the command",
    )


@rule(
    "CT404",
    Severity.ERROR,
    "a model that the container has to load is not in the repository",
    source=server(_SERVE, 157, 163),
    modes=("single",),
)
def named_model_missing(context: CheckContext) -> Iterator[Problem]:
    """The container's environment names a model that has no directory in the repository.

    The container's start script looks for the directory of the default model, and the server looks for the additional
    models. If one of these models is missing, the container ends, and SageMaker does not create the endpoint.

    Example:
        $ cdk-triton validate . --default-model clasifier
        # classifier/config.pbtxt
        backend: "python"

    Instead:
        $ cdk-triton validate . --default-model classifier
    """
    names = listed_in_quotes(model.name for model in context.repository.models)
    if context.default_model is not None and context.repository.model(context.default_model) is None:
        yield Problem(
            ".",
            f"the default model {context.default_model!r} is not among the models ({names}), so the container would "
            f"fail with: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME {context.default_model} does not "
            "exist",
            "name one of the models in default_model_name",
        )
    for name in context.additional_models:
        if context.repository.model(name) is None:
            yield Problem(
                ".",
                f"the additional model {name!r} is not among the models ({names}), so the server would fail with: "
                f"failed to poll model '{name}': model not found in any model repository",
                "name models of the repository in additional_models",
            )


@rule(
    "CT405",
    Severity.ERROR,
    "the start script cannot pass a model's name to the server",
    source=server(_SERVE, 157, 183),
    modes=("single",),
)
def name_is_split(context: CheckContext) -> Iterator[Problem]:
    """The name of the default model or of an additional model contains white space, or is `*`.

    The container's start script writes the name after `--load-model=` without quotes. White space splits the name in
    two, and the server reads `*` as all models. Models that only the steps of an ensemble run are not affected, and
    neither are the models of a multi-model endpoint. Rename the model.

    Example:
        # */config.pbtxt
        backend: "dali"

    Instead:
        # */config.pbtxt is removed
        # model/config.pbtxt
        backend: "python"
    """
    named = (context.entry, *(context.repository.model(name) for name in context.additional_models))
    for model in dict.fromkeys(model for model in named if model is not None):
        if match := re.search(r"[ \t\n]", model.name):
            found = f"contains {match.group()!r}, so the container's start script would split the name in --load-model"
        elif model.name == "*":
            found = "stands for all models in the --load-model of the container's start script"
        else:
            continue
        yield Problem(
            model.directory,
            f"the name {model.name!r} {found}",
            "rename the model, and use only letters, digits, '_', '-' and '.'",
        )


@rule(
    "CT406",
    Severity.ERROR,
    "the release's start script ignores additional models",
    source=server(_SERVE, 132, 134),
    modes=("single",),
    applies=lambda platform: (
        platform.release is not None and release_order(platform.release) < release_order(_ADDITIONAL_ARGS_SINCE)
    ),
)
def additional_models_ignored(context: CheckContext) -> Iterator[Problem]:
    """`additional_models` names a model, but the release's start script does not read this setting.

    The library passes the names of additional models in `SAGEMAKER_TRITON_ADDITIONAL_ARGS`. The start script reads this
    variable from 23.07 on. With an older release, the container starts without these models, and the first call to such
    a model fails. Serve with 23.07 or newer, or make the model a step of an ensemble.

    Example:
        $ cdk-triton validate . --platform 23.06/ml.g5.xlarge --default-model caller --additional-model called
        # caller/config.pbtxt
        backend: "python"

        # called/config.pbtxt
        backend: "python"

    Instead:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge --default-model caller --additional-model called
    """
    release, environment = context.release, context.environment
    for name in context.additional_models:
        is_argument = environment is not None and name in loaded_models(environment.additional_args)
        field = "additional_args" if is_argument else "additional_models"
        if (model := context.repository.model(name)) is not None:
            yield Problem(
                model.directory,
                f"{field} names {name!r}, but the start script of {release} ignores additional models "
                f"({_ADDITIONAL_ARGS_SINCE} was the first to load them); a call from another model would fail: "
                f"Model '{name}' is not ready",
                f"serve with {_ADDITIONAL_ARGS_SINCE} or newer, or make the model a step of an ensemble",
            )
