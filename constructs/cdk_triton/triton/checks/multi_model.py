"""CT5xx: which model of an archive a multi-model endpoint serves.

The loader does not parse configurations. It lists the directories at the top of the archive, remembers each one that
holds a `config.pbtxt` with the literal text of an ensemble, and serves the last one it remembers; where it remembers
none, it serves the last directory that it saw. The order is that of the file system, not of the names.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.triton.checks._sources import server
from cdk_triton.triton.checks.engine import Check, Problem, rule
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.repository import CONFIG_NAME

_LOADER = "src/sagemaker_server.cc"
_MANY = 5


@rule(
    "CT501",
    Severity.ERROR,
    "an archive for a multi-model endpoint has several ensembles",
    source=server(_LOADER, 982, 1031),
    modes=("multi",),
)
def several_ensembles(check: Check) -> Iterator[Problem]:
    """Nested ensembles too: the loader does not know which one is the outer one."""
    found = [model.name for model in check.repository.models if model.is_literally_ensemble]
    if len(found) > 1:
        yield Problem(
            ".",
            f"the loader takes {len(found)} models for ensembles ({', '.join(found)}), and the endpoint would "
            "serve the one that the file system lists last, without an error",
            "keep one ensemble per archive; put the steps of a nested ensemble into the outer one",
        )


@rule(
    "CT502",
    Severity.ERROR,
    "an archive for a multi-model endpoint has several models and no ensemble",
    source=server(_LOADER, 982, 1036),
    modes=("multi",),
)
def no_ensemble(check: Check) -> Iterator[Problem]:
    """A Python model that calls the others (BLS) cannot be told from them."""
    models = check.repository.models
    if len(models) > 1 and not any(model.is_ensemble or model.is_literally_ensemble for model in models):
        names = ", ".join(model.name for model in models)
        yield Problem(
            ".",
            f"the archive has several directories ({names}) and no ensemble, and a multi-model endpoint would serve "
            "the one that the file system lists last, without an error",
            "connect the models by an ensemble, keep one model per archive, or use a single-model endpoint",
        )


@rule(
    "CT503",
    Severity.ERROR,
    "a multi-model endpoint does not recognise the ensemble",
    source=server("src/sagemaker_server.h", 88, 88),
    modes=("multi",),
)
def ensemble_not_recognised(check: Check) -> Iterator[Problem]:
    """The text has to be exactly `platform: "ensemble"`, with any white space after the colon."""
    models = check.repository.models
    if len(models) < 2 or any(model.is_literally_ensemble for model in models):
        return  # one directory is served whatever it is; a recognised ensemble is served even if others are not
    for model in models:
        if model.is_ensemble:
            yield Problem(
                model.config_path,
                f"{model.name!r} is an ensemble, but the loader of a multi-model endpoint searches the file for the "
                'text platform: "ensemble" and does not find it, so that it would serve whichever directory the file '
                "system lists last",
                'write platform: "ensemble", with double quotes and no space before the colon',
                "platform",
            )


@rule(
    "CT504",
    Severity.ERROR,
    "a multi-model endpoint takes a model for an ensemble that is none",
    source=server("src/sagemaker_server.h", 88, 88),
    modes=("multi",),
)
def taken_for_ensemble(check: Check) -> Iterator[Problem]:
    """A comment is enough."""
    if len(check.repository.models) < 2:
        return
    for model in check.repository.models:
        if model.is_literally_ensemble and not model.is_ensemble:
            yield Problem(
                model.config_path,
                f"{model.name!r} is no ensemble, but the loader of a multi-model endpoint finds the text platform: "
                '"ensemble" in the file, in a comment for example, and would serve this model',
                "reword the comment",
            )


@rule(
    "CT505",
    Severity.WARNING,
    "an archive for a multi-model endpoint has many models",
    source=server(_LOADER, 1024, 1029),
    modes=("multi",),
)
def many_models(check: Check) -> Iterator[Problem]:
    """SageMaker unloads whole archives when memory runs short."""
    count = len(check.repository.models)
    if count > _MANY:
        yield Problem(
            ".",
            f"the archive has {count} directories, and the server would warn that smaller ensembles are recommended "
            "for better memory management: all of it is loaded and unloaded together",
            "split the ensemble if its parts are wanted separately",
        )


@rule(
    "CT506",
    Severity.ERROR,
    "models beside a config.pbtxt at the top are not found",
    source=server(_LOADER, 1060, 1073),
    modes=("multi",),
)
def models_beside_configuration(check: Check) -> Iterator[Problem]:
    """With a configuration at the top the archive is one model, and its directories are that model's."""
    if CONFIG_NAME not in check.repository.model_directories:
        return
    for file in check.repository.files:
        if file.path.name == CONFIG_NAME and len(file.path.parts) == 2:
            yield Problem(
                file.path,
                f"the archive has a {CONFIG_NAME} at the top and is therefore one model, so that the model "
                f"{file.path.parts[0]!r} in it would not be found",
                f"remove the {CONFIG_NAME} at the top, or move it into a directory of its own",
            )


@rule(
    "CT507",
    Severity.ERROR,
    "an archive for a multi-model endpoint has no model",
    source=server(_LOADER, 1060, 1119),
    modes=("multi",),
)
def no_model_to_load(check: Check) -> Iterator[Problem]:
    """Files at the top are no models."""
    if not check.repository.models:
        yield Problem(
            ".",
            f"there is neither a {CONFIG_NAME} nor a directory in the archive, and the server would answer the first "
            "invocation with: model not found in any model repository",
            f"put each model into a directory of its own, with its {CONFIG_NAME} and a version directory",
        )
