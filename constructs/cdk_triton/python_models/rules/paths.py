"""CT145, CT146, CT164 and CT165: whether a Python model's process starts with its names and paths, and imports them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files, file_rule
from cdk_triton.checks.derived.releases import is_at_least, is_older
from cdk_triton.checks.registry import Problem, rule, would_not_load
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.environments import environments
from cdk_triton.python_models.modules import model_modules
from cdk_triton.python_models.reader.execution_environment import FIELD
from cdk_triton.python_models.reader.shell_words import misread
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model

_STUB = "src/pb_stub.cc"
_EXEC_SINCE = "25.08"  # python_backend #404: no shell reads the command any more, and names are checked
_UTF8_SINCE = "24.11"  # pybind11 2.12 and Python 3.12: UTF-8 whatever the locale

# What names may not have from 25.08 on: src/pb_utils.h, INVALID_CHARS.
_REJECTED = frozenset(";|&$`<>()[]{}\\\"'*?~#!")


@rule(
    "CT145",
    Severity.ERROR,
    "a character in a Python model's name prevents the start of the model's process",
    source=backend("python_backend", "src/stub_launcher.cc", 357, 372),
)
def unsafe_name(context: CheckContext) -> Iterator[Problem]:
    """The name of a Python model has a character with which the server cannot start the model's process.

    The server starts a process for each Python model, and the start command contains the name. Up to release 25.07, a
    shell reads the command. If the name contains a space or a parenthesis, the shell does not start the process, and
    the server waits for the process forever. From 25.08 on, the server does not load a model whose name contains a
    character with a special meaning in a shell. Use only letters, digits, `_`, `.` and `-`.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # text/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }
        ensemble_scheduling { step {
          model_name: "model[0]" model_version: -1
          input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "IDS" }
        } }
        # model[0]/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }

    Instead:
        # text/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }
        ensemble_scheduling { step {
          model_name: "model_0" model_version: -1
          input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "IDS" }
        } }
        # model[0]/config.pbtxt is removed
        # model_0/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }

    Limits:
        If no release is given, the rule reports only names that fail in every release, and CT165 reports names that
        fail only up to 25.07. The rule skips a name that CT405 reports, because the container's start script does not
        accept this name either.
    """
    for model in context.loaded_models:
        wrong = _wrong_in_name(context, model) if model.backend_name == "python" else None
        if wrong is not None and not _is_other_rules(context, model):
            yield Problem(
                model.directory,
                f"the name {model.name!r} has the character {wrong!r}, which a shell interprets; from 25.08 on "
                "the server would not load the model (Invalid stub name: contains invalid characters), and an older "
                "server would wait for ever",
                "rename the model: use letters, digits, '_', '.' and '-' only",
            )


def _wrong_in_name(context: CheckContext, model: Model) -> str | None:
    """The character for which the release, or every release if none is given, cannot run a model of that name."""
    rejected = next((character for character in model.name if character in _REJECTED), None)
    if context.platform is not None and is_at_least(context.platform, _EXEC_SINCE):
        return rejected
    broken = _misread_name(context, model)
    return broken if rejected is not None or _has_shell(context) else None


def _misread_name(context: CheckContext, model: Model) -> str | None:
    # The name is a word of its own, with the number of the instance, and a part of the model's path.
    return misread(f"{model.name}/") or misread(model.name, lambda: [each.name for each in context.repository.models])


def _has_shell(context: CheckContext) -> bool:
    """Whether a shell of the release reads the command that starts a model's process."""
    return context.platform is not None and is_older(context.platform, _EXEC_SINCE)


def _is_other_rules(context: CheckContext, model: Model) -> bool:
    """Whether CT405 reports the name, or a server from 25.08 on renames the model."""
    named = model is context.entry or model.name in context.additional_models
    if context.mode == "single":
        return named and (model.name == "*" or any(character in " \t\n" for character in model.name))
    return context.is_renamed(model) and (context.platform is None or is_at_least(context.platform, _EXEC_SINCE))


@file_rule(
    "CT146",
    Severity.ERROR,
    "a Python model's file cannot be imported under its name",
    source=backend("python_backend", _STUB, 2044, 2072),
)
def unimportable_file(each: BackendFile) -> Iterator[Problem]:
    """The server imports the file as a module, so the file's name must end in `.py` and must not contain another dot.

    Otherwise, the server does not load the model. Before 24.11, the process of a Python model is an isolated Python.
    This Python reads paths as ASCII, whatever the container's locale is, so it does not find a file whose path contains
    a non-ASCII character.

    Example:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "model.v2.py"
        # model/1/model.v2.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "model_v2.py"
        # model/1/model_v2.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
    """
    if each.backend != "python" or not (each.is_there or each.files.has_directory(each.path)):
        return
    found, platform = model_modules(each.context)[each.version], each.context.platform
    if platform is not None and is_older(platform, _UTF8_SINCE) and not str(each.path).isascii():
        yield _not_ascii(each)
    elif isinstance(found, str):
        yield Problem(
            each.model.config_path if each.field else each.path,
            would_not_load(each.model, f"the file {each.path} cannot be imported as a module", found),
            "name a file (not a directory) in the version directory, such as model.py, with '.py' at the end and no "
            "other dot; also rename every module or package that has the name of the file's directory",
            each.field,
        )


@rule(
    "CT164",
    Severity.ERROR,
    "a path breaks the command that starts a Python model",
    source="https://github.com/triton-inference-server/python_backend/blob/r25.07/src/stub_launcher.cc#L290-L420",
    applies=lambda platform: is_older(platform, _EXEC_SINCE),
)
def unsafe_path(context: CheckContext) -> Iterator[Problem]:
    """The path of a Python model's file or unpacked environment has a character that a shell interprets.

    Up to release 25.07, a shell reads both paths. If a path contains a space, a quote, `$`, `;`, `&`, a parenthesis or
    `{a,b}`, the shell starts another command. The server then waits for the model's process forever. Use only letters,
    digits, `_`, `.` and `-`, or serve with 25.08 or newer.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "model$v2.py"
        # model/1/model$v2.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "model_v2.py"
        # model/1/model$v2.py is removed
        # model/1/model_v2.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
    """
    for model, path, wrong, field in _misread_paths(context):
        yield Problem(
            model.config_path,
            f"the path {path} has the character {wrong!r}; the shell that starts the process of {model.name!r} "
            "interprets this character, so the server would wait for ever",
            "use letters, digits, '_', '.' and '-' only, or serve with 25.08 or newer",
            field,
        )


@rule(
    "CT165",
    Severity.WARNING,
    "a Python model's name or path works with some releases only",
    source="https://github.com/pybind/pybind11/blob/v2.10.0/include/pybind11/embed.h#L112-L163",
)
def path_of_some_releases(context: CheckContext) -> Iterator[Problem]:
    """No release is given, and the server finds or starts a model with this name or path only in newer releases.

    Up to release 25.07, a shell reads the name and the path of a Python model. If the name or the path contains a space
    or a quote, the server waits for the model forever. If a platform is given, CT145 or CT164 reports this fault.

    Before 24.11, the server does not load a model whose path contains a non-ASCII character. If a platform is given,
    CT146 reports this fault.

    Example:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "modèle.py"
        # model/1/modèle.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "modele.py"
        # model/1/modèle.py is removed
        # model/1/modele.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
    """
    platform = context.platform
    if platform is None or platform.release is None:
        for model in context.loaded_models:
            blank = _misread_name(context, model) if model.backend_name == "python" else None
            if blank is not None and not _REJECTED & set(model.name) and not _is_other_rules(context, model):
                yield _of_some(model.directory, f"the name {model.name!r}", blank, model)
        for model, path, wrong, field in _misread_paths(context):
            yield _of_some(model.config_path, f"the path {path}", wrong, model, field)
        for each in _python_files(context):
            if not str(each.path).isascii():
                yield _not_ascii(each)


def _not_ascii(each: BackendFile) -> Problem:
    wrong = next(character for character in str(each.path) if not character.isascii())
    return each.problem(
        f"the path has the character {wrong!r}; before 24.11 the server would not load {each.model.name!r}, because "
        "Python reads the path as ASCII",
        "use ASCII, or serve with 24.11 or newer",
    )


def _of_some(path: PurePosixPath, what: str, wrong: str, model: Model, field: str = "") -> Problem:
    return Problem(
        path,
        f"{what} has the character {wrong!r}, which a shell interprets; in releases up to 25.07 the server would "
        f"wait for {model.name!r} for ever",
        "use letters, digits, '_', '.' and '-' only, or give the platform if its release is 25.08 or newer",
        field,
    )


def _python_files(context: CheckContext) -> Iterator[BackendFile]:
    return (each for each in backend_files(context) if each.backend == "python" and each.is_there)


def _misread_paths(context: CheckContext) -> Iterator[tuple[Model, PurePosixPath, str, str]]:
    """The paths that a shell misreads: the model, the path, the character, and the field."""
    for each in _python_files(context):
        wrong = misread(f"{each.version.name}/{each.name}", partial(_beside, each))
        if wrong is not None and not isinstance(model_modules(context)[each.version], str):
            yield each.model, each.path, wrong, each.field
    for environment in environments(context):
        if environment.is_directory and environment.path is not None:
            wrong = misread(f"/{environment.path}")
            if wrong is not None and misread(f"/{environment.owner.model.directory}") is None:
                yield environment.owner.model, environment.path, wrong, FIELD


def _beside(each: BackendFile) -> list[str]:
    """The files of a version, relative to the model's directory."""
    return [str(path.relative_to(each.version.parent)) for path in each.files if each.version in path.parents]
