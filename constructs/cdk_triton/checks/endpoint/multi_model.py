"""CT5xx: which model of an archive a multi-model endpoint serves.

The loader does not parse configurations. It lists the directories at the top of the archive, keeps each one that holds
a `config.pbtxt` with the literal text of an ensemble, and serves the last one that it keeps; where it keeps none, it
serves the last directory of its list. The order is that of the file system, not of the names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import server
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import CONFIG_NAME

_LOADER = "src/sagemaker_server.cc"
_MANY = 5


@rule(
    "CT501",
    Severity.ERROR,
    "an archive for a multi-model endpoint has several ensembles",
    source=server(_LOADER, 982, 1031),
    modes=("multi",),
)
def several_ensembles(context: CheckContext) -> Iterator[Problem]:
    """Triton's multi-model loader finds more than one ensemble in the archive, for example a nested ensemble.

    The loader does not determine which ensemble runs the others. It serves the ensemble that the file system lists
    last, without an error. On the next instance, this may be another ensemble. Keep one ensemble in each archive, or
    use a single-model endpoint, which accepts nested ensembles.

    Example:
        $ cdk-triton validate . --mode multi
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

        # inner/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "model" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }

        # outer/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "inner" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }

    Instead:
        # inner/config.pbtxt is removed
        # outer/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "model" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }
    """
    models = context.repository.models
    found = [model.name for model in models if model.is_literally_ensemble and model.is_ensemble]  # others are CT504's
    if len(found) > 1:
        yield Problem(
            ".",
            f"the loader recognises {len(found)} models as ensembles ({listed_in_quotes(found)}), so the endpoint "
            "would serve the ensemble that the file system lists last, without an error",
            "keep one ensemble per archive; put the steps of a nested ensemble into the outer ensemble",
        )


@rule(
    "CT502",
    Severity.ERROR,
    "an archive for a multi-model endpoint has several models and no ensemble",
    source=server(_LOADER, 982, 1036),
    modes=("multi",),
)
def no_ensemble(context: CheckContext) -> Iterator[Problem]:
    """The archive has several directories, but none of them is an ensemble.

    Triton's multi-model loader serves the directory that the file system lists last. It does not recognise a Python
    model that calls the other models (BLS), and it does not load the models that this model calls. Connect the models
    with an ensemble, keep one model in each archive, or use a single-model endpoint.

    Example:
        $ cdk-triton validate . --mode multi
        # first/config.pbtxt
        backend: "python"

        # second/config.pbtxt
        backend: "python"

    Instead:
        # first/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

        # second/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

        # both/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "first" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "between" }
          }
          step {
            model_name: "second" model_version: -1
            input_map { key: "IN" value: "between" } output_map { key: "OUT" value: "OUT" }
          }
        }
    """
    models = context.repository.models
    if any(model.config is not None and model.config.HasField("ensemble_scheduling") for model in models):
        return  # it is meant as an ensemble: reported by CT311
    if len(models) > 1 and not any(model.is_ensemble or model.is_literally_ensemble for model in models):
        names = listed_in_quotes(model.name for model in models)
        yield Problem(
            ".",
            f"the archive has several directories ({names}) and no ensemble, so a multi-model endpoint would serve "
            "the directory that the file system lists last, without an error",
            "connect the models by an ensemble, keep one model per archive, or use a single-model endpoint",
        )


@rule(
    "CT503",
    Severity.ERROR,
    "a multi-model endpoint does not recognise the ensemble",
    source=server("src/sagemaker_server.h", 88, 88),
    modes=("multi",),
)
def ensemble_not_recognised(context: CheckContext) -> Iterator[Problem]:
    """An ensemble's configuration does not contain the exact text `platform: "ensemble"`.

    Triton's multi-model loader does not parse the configuration. It searches for this text, in which the white space
    after the colon may have any length. The server itself also accepts single quotes, a space before the colon, or a
    comment between the two words. If the loader does not find the text, it serves the directory that the file system
    lists last. The loader serves an archive with only one directory, whatever the configuration contains.

    Example:
        $ cdk-triton validate . --mode multi
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

        # ensemble/config.pbtxt
        platform: 'ensemble'
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "model" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }

    Instead:
        # ensemble/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "model" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }
    """
    models = context.repository.models
    if len(models) < 2 or any(model.is_literally_ensemble for model in models):
        return  # one directory is served whatever it is; a recognised ensemble is served even if others are not
    for model in models:
        if model.is_ensemble:
            yield Problem(
                model.config_path,
                f"{model.name!r} is an ensemble, but the loader of a multi-model endpoint does not find "
                '`platform: "ensemble"` in the file, so the endpoint would serve the directory that the file system '
                "lists last",
                'write `platform: "ensemble"`, with double quotes and no space before the colon',
                "platform",
            )


@rule(
    "CT504",
    Severity.ERROR,
    "a multi-model endpoint recognises another model as an ensemble",
    source=server("src/sagemaker_server.h", 88, 88),
    modes=("multi",),
)
def taken_for_ensemble(context: CheckContext) -> Iterator[Problem]:
    """A model is not an ensemble, but its configuration contains the text `platform: "ensemble"`.

    Triton's multi-model loader does not parse the configuration. It also finds the text in a comment, or where a longer
    word ends in `platform:`. The loader may then serve this model instead of the ensemble. Remove the text from the
    file.

    Example:
        $ cdk-triton validate . --mode multi
        # model/config.pbtxt
        # This one has no platform: "ensemble" of its own.
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

        # ensemble/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "model" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }

    Instead:
        # model/config.pbtxt
        # This one is not an ensemble.
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
    """
    if len(context.repository.models) < 2:
        return
    for model in context.repository.models:
        if model.is_literally_ensemble and not model.is_ensemble:
            yield Problem(
                model.config_path,
                f"{model.name!r} is not an ensemble, but the loader of a multi-model endpoint searches the file, "
                'comments included, and finds the text `platform: "ensemble"`, so the endpoint may serve this model',
                "remove this text from the file",
                line=model.ensemble_literal_line,
            )


@rule(
    "CT505",
    Severity.WARNING,
    "an archive for a multi-model endpoint has many models",
    source=server(_LOADER, 1024, 1029),
    modes=("multi",),
)
def many_models(context: CheckContext) -> Iterator[Problem]:
    """The archive has more than five directories.

    SageMaker loads and unloads an archive as a whole. If the memory runs out, SageMaker unloads whole archives. The
    next invocation of a large archive then waits until all its models are loaded again. The server logs a warning when
    it loads an archive of this size. Split the ensemble if callers need its parts separately.

    Example:
        $ cdk-triton validate . --mode multi
        # a/config.pbtxt
        backend: "python"
        input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }

        # b/config.pbtxt
        backend: "python"
        input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }

        # c/config.pbtxt
        backend: "python"
        input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }

        # d/config.pbtxt
        backend: "python"
        input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }

        # e/config.pbtxt
        backend: "dali"
        input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }

        # ensemble/config.pbtxt
        platform: "ensemble"
        input { name: "I" data_type: TYPE_FP32 dims: 1 }
        output { name: "a" data_type: TYPE_FP32 dims: 1 }
        output { name: "b" data_type: TYPE_FP32 dims: 1 }
        output { name: "c" data_type: TYPE_FP32 dims: 1 }
        output { name: "d" data_type: TYPE_FP32 dims: 1 }
        output { name: "e" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step { model_name: "a" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "a"} }
          step { model_name: "b" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "b"} }
          step { model_name: "c" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "c"} }
          step { model_name: "d" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "d"} }
          step { model_name: "e" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "e"} }
        }

    Instead:
        # e/config.pbtxt is removed
        # ensemble/config.pbtxt
        platform: "ensemble"
        input { name: "I" data_type: TYPE_FP32 dims: 1 }
        output { name: "a" data_type: TYPE_FP32 dims: 1 }
        output { name: "b" data_type: TYPE_FP32 dims: 1 }
        output { name: "c" data_type: TYPE_FP32 dims: 1 }
        output { name: "d" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step { model_name: "a" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "a"} }
          step { model_name: "b" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "b"} }
          step { model_name: "c" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "c"} }
          step { model_name: "d" model_version: -1 input_map {key: "I" value: "I"} output_map {key: "O" value: "d"} }
        }
    """
    count = len(context.repository.models)
    if count > _MANY:
        yield Problem(
            ".",
            f"the archive has {count} directories, so the server would warn that smaller ensembles are recommended "
            "for better memory management, because SageMaker loads and unloads the archive as a whole",
            "split the ensemble if callers need its parts separately",
        )


@rule(
    "CT506",
    Severity.ERROR,
    "a multi-model endpoint does not find models below a config.pbtxt at the top",
    source=server(_LOADER, 1060, 1073),
    modes=("multi",),
)
def models_beside_configuration(context: CheckContext) -> Iterator[Problem]:
    """The archive has a `config.pbtxt` at its top, and also directories with their own `config.pbtxt`.

    Triton's multi-model loader treats the whole archive as one model because of the `config.pbtxt` at the top. So the
    server treats the directories as versions of this model, or ignores them. Remove the `config.pbtxt` at the top, or
    move it into its own directory.

    Example:
        $ cdk-triton validate . --mode multi
        # config.pbtxt
        backend: "python"

        # 1/model.py
        class TritonPythonModel:
            def execute(self, requests): ...

        # model/config.pbtxt
        backend: "python"

    Instead:
        # config.pbtxt is removed
        # 1/model.py is removed
    """
    for name in context.repository.hidden_models:
        yield Problem(
            PurePosixPath(name, CONFIG_NAME),
            f"the archive has a {CONFIG_NAME} at the top and is therefore one model, so the server would not find the "
            f"model {name!r} in the archive",
            f"remove the {CONFIG_NAME} at the top, or move it into a directory of its own",
        )


@rule(
    "CT507",
    Severity.ERROR,
    "an archive for a multi-model endpoint has no model",
    source=server(_LOADER, 1060, 1119),
    modes=("multi",),
)
def no_model_to_load(context: CheckContext) -> Iterator[Problem]:
    """The archive has files at its top, but neither a directory nor a `config.pbtxt`.

    The server treats the archive itself as a model without versions, and returns an error for the first invocation.
    SageMaker loads an archive only at its first invocation, so the deployment does not show this fault.

    Example:
        $ cdk-triton validate . --mode multi
        # README.md
        The model is still in training.

    Instead:
        # model/config.pbtxt
        backend: "python"
    """
    if not context.repository.models:
        yield Problem(
            ".",
            f"the archive has neither a {CONFIG_NAME} nor a directory, so the server would treat the archive itself "
            "as a model and answer the first invocation with: at least one version must be available under the "
            "version policy of model",
            f"put each model into a directory of its own, with its {CONFIG_NAME} and a version directory",
        )
