"""CT110 to CT114: whether the server finds a version of a model to load."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.registry import Problem, rule, would_not_load
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.versions import LARGEST_VERSION, directory_version, is_version_name

_VERSIONS_TO_LOAD = core("src/model_repository_manager/model_lifecycle.cc", 84, 149)
_NO_VERSION = "at least one version must be available under the version policy of model"


@rule(
    "CT110",
    Severity.ERROR,
    "a model has no version that the server would load",
    source=core("src/model_repository_manager/model_lifecycle.cc", 449, 459),
)
def no_version(context: CheckContext) -> Iterator[Problem]:
    """Every model, even an ensemble, needs a version directory that the model's version policy selects.

    Otherwise, the server does not load the model. Git does not keep empty directories, so put a file such as `.gitkeep`
    into the version directory of an ensemble.

    Example:
        # model/config.pbtxt
        backend: "python"
        version_policy { specific { versions: 2 } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        version_policy { specific { versions: 1 } }
    """
    for model in context.loaded_models:
        unread = model.config_error is not None and model.config is None  # its policy is not known
        if model.served_versions or (unread and model.versions) or context.repository.hidden_models:
            continue  # the last are reported by CT401 and CT506
        path, field = model.directory, ""
        if model.versions:
            path, field = model.config_path, "version_policy"
            found = f"version_policy selects none of the versions of {model.name!r} ({_list(model.versions)})"
            fix = "correct version_policy, or add a version that it selects"
        elif model.is_ensemble:
            # Nothing is ever put into an ensemble's version directory, so that git, tar or S3 lose it on the way.
            found = f"the ensemble {model.name!r} has no version directory (git does not keep an empty directory)"
            fix = f"create the empty file {model.directory / '1' / '.gitkeep'}"
        elif model.looks_like_a_repository:
            found = f"{model.name!r} is not a model but a directory of models"
            fix = f"use the directory {model.name} as the repository, or move its models one level up"
        else:
            meant = next((name for name in model.subdirectories if re.fullmatch(r"v?0*[1-9]\d*", name)), None)
            found = f"the model {model.name!r} has no version directory"
            fix = f"put the model's files into the directory {model.directory / '1'}{_or_build(model)}"
            if meant is not None:
                fix = f"rename its directory {meant} to {meant.lstrip('v0')}"
        yield Problem(path, would_not_load(model, found, f"{_NO_VERSION} '{model.name}'"), fix, field)


def _or_build(model: Model) -> str:
    """The rest of the fix for a plan, which a recipe usually builds together with its directory."""
    if model.backend_name != "tensorrt":
        return ""
    return (
        ", or let a recipe build the plan (recipes=[TensorRTPlan(...)] in the app); for checks without the app, add "
        "the plan's path to the list 'produced' in cdk-triton.toml"
    )


@rule(
    "CT111",
    Severity.WARNING,
    "the version directory of an ensemble is empty",
    source="https://github.com/triton-inference-server/server/issues/3623",
)
def empty_ensemble_version(context: CheckContext) -> Iterator[Problem]:
    """Git does not keep empty directories, so a fresh clone lacks the version directory of the ensemble.

    The server does not load an ensemble without a version directory. The archives that this library makes contain the
    directory, because the library adds a placeholder. To keep the directory in clones too, add an empty file to it,
    such as `.gitkeep`.

    Example:
        # text/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }
        ensemble_scheduling { step {
          model_name: "model" model_version: -1
          input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "IDS" }
        } }
        # text/1/.gitignore
        # model/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }

    Instead:
        # text/1/.gitkeep
    """
    for model in context.loaded_models:
        for version in model.served_versions if model.is_ensemble else ():
            directory = model.directory / str(version)
            if str(version) in model.subdirectories and not _files_below(model, str(version)):
                yield Problem(
                    directory,
                    f"the version directory of the ensemble {model.name!r} is empty; the server would not load the "
                    "ensemble from a fresh clone, because git does not keep empty directories: "
                    f"{_NO_VERSION} '{model.name}'",
                    f"create the empty file {directory / '.gitkeep'}",
                )


@rule(
    "CT112",
    Severity.WARNING,
    "a version directory has leading zeros",
    source=_VERSIONS_TO_LOAD,
)
def leading_zeros(context: CheckContext) -> Iterator[Problem]:
    """The server ignores a version directory whose name has leading zeros, such as `01`.

    So the server does not load this version. Rename the directory to the number without zeros.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
        # model/02/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/02/model.py is removed
        # model/2/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
    """
    for model in context.loaded_models:
        for name in model.subdirectories:
            if len(name) > 1 and name.isdecimal() and name.startswith("0"):
                yield Problem(
                    model.directory / name,
                    f"the server would ignore version directory '{name}' which contains leading zeros in its directory "
                    "name",
                    f"rename the directory to {name.lstrip('0') or '0'}",
                )


@rule(
    "CT113",
    Severity.ERROR,
    "the server misreads the name of a directory as a version",
    source=_VERSIONS_TO_LOAD,
)
def misread_version(context: CheckContext) -> Iterator[Problem]:
    """The server reads a number at the beginning of a directory's name as a version, whatever follows the number.

    For example, the server reads `2_old` as version 2, and then looks for the files of this version in the directory
    `2`. The rule reports `2_old` if the directory `2` does not exist. The server reads a negative number as another,
    very large version, and crashes if a number is too large.

    Name each version directory with a number, 0 or greater. Give every other directory a name that does not begin with
    a number.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
        # model/2_old/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/2_old/model.py is removed
        # model/old_2/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
    """
    for model in context.loaded_models:
        for name in model.subdirectories:
            version = directory_version(name)
            if version is None or is_version_name(name):
                continue
            if not -LARGEST_VERSION - 1 <= version <= LARGEST_VERSION:
                yield Problem(
                    model.directory / name,
                    f"the number {version} is too large for a version, so the server would crash: std::out_of_range "
                    "stoll",
                    "give the version a smaller number",
                )
            elif version < 0 and version in model.served_versions:
                yield Problem(
                    model.directory / name,
                    f"the server reads the directory {name!r} as version {version} of {model.name!r}, and would look "
                    f"for its files in {model.directory / str(version % 2**64)}, because versions are unsigned",
                    "rename the directory: to a number from 0 on if it is a version, otherwise to a name that does not "
                    "begin with a number",
                )
            elif version in model.served_versions and version not in model.versions:
                yield Problem(
                    model.directory / name,
                    f"the server reads the directory {name!r} as version {version} of {model.name!r}, and would look "
                    f"for its files in {model.directory / str(version)}, which does not exist",
                    f"rename the directory: to {version} if it is that version, otherwise to a name that does not "
                    "begin with a number",
                )


@model_rule(
    "CT114",
    Severity.WARNING,
    "a version that the version policy names is missing",
    source=core("src/model_repository_manager/model_lifecycle.cc", 117, 128),
)
def specific_version_missing(each: ConfiguredModel) -> Iterator[Problem]:
    """The server logs an error for the missing version, and serves the other versions.

    Example:
        # model/config.pbtxt
        backend: "python"
        version_policy { specific { versions: [ 1, 2 ] } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        version_policy { specific { versions: 1 } }
    """
    served = each.model.served_versions
    for index, version in enumerate(each.config.version_policy.specific.versions if served else ()):
        if version not in served:
            yield each.problem(
                f"version_policy.specific.versions[{index}]",
                f"version {version} is specified for model '{each.name}', but the version directory is not present; "
                "the server would serve the other versions only",
                f"add {each.model.directory / str(version)}, or remove {version} from version_policy",
            )


def _files_below(model: Model, name: str) -> bool:
    directory = model.directory / name
    return any(file.path.is_relative_to(directory) for file in model.files)


def _list(versions: tuple[int, ...]) -> str:
    return ", ".join(map(str, versions))
