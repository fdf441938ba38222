"""CT153 to CT159: the packed environments of Python models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import relpath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import Files, is_pointer
from cdk_triton.checks.derived.releases import is_at_least, known_release
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.python_models.environments import (
    ModelEnvironment,
    environment_rule,
    environments,
    rejected_member,
)
from cdk_triton.python_models.modules import PROVIDED, has_module, python_sources, python_version
from cdk_triton.python_models.reader.compiled_modules import packed_files
from cdk_triton.python_models.reader.execution_environment import FIELD, VARIABLE
from cdk_triton.python_models.reader.image_modules import installed_modules, standard_modules
from cdk_triton.python_models.reader.packed_environment import PackedEnvironment, environment_python, packed_environment
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.releases import Release
from cdk_triton.triton.unreadable import Unreadable

_CUSTOM = "https://github.com/triton-inference-server/python_backend#using-custom-python-execution-environments"
_UNPACK = backend("python_backend", "src/pb_env.cc", 109, 200)


@environment_rule("CT153", Severity.ERROR, "the environment of a Python model is missing", source=_UNPACK)
def missing_environment(each: ModelEnvironment) -> Iterator[Problem]:
    """`EXECUTION_ENV_PATH` names an archive or a directory that does not exist, or lacks the variable before the path.

    The server then does not load the model. `$$TRITON_MODEL_DIRECTORY` at the beginning of the path stands for the
    model's directory. Write the variable with two `$`, without braces, and with a `/` after it. Without the variable,
    a path is relative to the server's working directory, which contains no model. An absolute path that ends like the
    path of a file in the repository, such as `/models/text/env.tar.gz`, does not lead to this file. If the path
    contains `..`, the directory before `..` must exist too.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }

    Instead:
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
    """
    if each.opened is not None and not each.is_there:
        fix = "put the packed environment there, or remove the parameter"
        if each.other is not None:
            fix = f'write "{VARIABLE}/{relpath(each.other, each.owner.model.directory)}", which is there'
        yield each.owner.unloadable(
            FIELD,
            f"the environment {each.opened} is missing",
            f"Failed to get the canonical path for {each.opened}.",
            fix,
        )
    elif each.is_misspelt:
        yield each.owner.unloadable(
            FIELD,
            f"the path of the environment, {each.written!r}, does not begin with {VARIABLE}",
            f"Failed to get the canonical path for {each.written}.",
            f'begin the path with "{VARIABLE}/", with two $',
        )
    elif each.is_misplaced:
        where = (
            f"is not the place of {each.meant} in the container"
            if each.is_absolute
            else "is relative to the server's working directory, not to the model"
        )
        fix = f'put the packed environment into the model\'s directory and write "{VARIABLE}/…"'
        if each.meant is not None:
            fix = f'write "{VARIABLE}/{relpath(each.meant, each.owner.model.directory)}"'
        yield each.owner.unloadable(
            FIELD,
            f"the path of the environment, {each.written!r}, {where}",
            f"Failed to get the canonical path for {each.written}.",
            fix,
        )


@environment_rule("CT154", Severity.ERROR, "the environment of a Python model cannot be unpacked", source=_UNPACK)
def no_archive(each: ModelEnvironment) -> Iterator[Problem]:
    """The server unpacks only tar archives, either uncompressed or compressed with gzip.

    The server does not load a model with any other kind of archive. Pack the environment with `conda-pack`, as
    `.tar.gz`.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.zip" }
        }
        # model/env.zip
        PK

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
    """
    context, archive = each.owner.context, each.archive
    if archive is None or is_pointer(context, archive):
        return  # the latter is reported by CT127
    read = context.contents(packed_environment, archive)
    if isinstance(read, Unreadable):
        words, fix = "archive_read_open_filename() failed.", "pack the environment with conda-pack, as .tar.gz"
        yield each.unloadable(f"the file {read.reason}", words, fix)


@environment_rule(
    "CT155",
    Severity.ERROR,
    "the environment of a Python model has no activate script",
    source=backend("python_backend", "src/stub_launcher.cc", 606, 616),
)
def no_activate(each: ModelEnvironment) -> Iterator[Problem]:
    """`bin/activate` must be at the top of the archive or of the unpacked environment, not below another directory.

    Otherwise, the server does not load the model. `conda-pack` and `venv-pack` write such archives, and so does
    `tar -C my_env -czf env.tar.gz .` for an environment of `venv`. The command `tar -czf env.tar.gz my_env` does not,
    and an environment of conda has the script only after `conda-pack`.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/env.tar.gz
        my_env/bin/activate
        my_env/lib/python3.12/os.py

    Instead:
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
    """
    context, top = each.owner.context, ""
    if each.is_directory and each.path is not None:
        script = each.path / "bin" / "activate"
        has_activate, is_directory = each.files.has(script), each.files.has_directory(script)
    else:
        read = None if each.archive is None else context.contents(packed_environment, each.archive)
        if not isinstance(read, PackedEnvironment) or rejected_member(each) is not None:
            return  # the second is reported by CT167
        has_activate, is_directory, top = read.has_activate, read.has_directory, read.top
        whole = context.contents(packed_files, each.archive) if has_activate and each.archive is not None else None
        if whole is not None and not whole.has_activate:  # another program than conda-pack packed it
            yield each.unloadable(
                "the environment of conda has no bin/activate",
                "The Python environment should contain an 'activate' script.",
                "pack the environment with conda-pack, which adds the script",
            )
    if is_directory and (context.platform is None or not is_at_least(context.platform, "25.08")):
        yield Problem(
            each.path,
            "bin/activate of the environment is a directory; in releases up to 25.07, the shell that starts the "
            f"process of {each.owner.name!r} cannot read bin/activate, so the server would wait for ever",
            "pack the environment with conda-pack, which writes a script",
        )
    elif not has_activate and not is_directory:
        below = f" (everything in it is below {top})" if top else ""
        yield each.unloadable(
            f"the environment has no bin/activate at its top{below}",
            "The Python environment should contain an 'activate' script.",
            "pack the environment with conda-pack, or with `tar -C ENVIRONMENT -czf env.tar.gz .`",
        )


@rule(
    "CT156",
    Severity.ERROR,
    "the environment of a Python model has another Python than the container",
    source=_CUSTOM,
    applies=lambda platform: known_release(platform) is not None,
)
def other_python(context: CheckContext) -> Iterator[Problem]:
    """The process of a Python model is linked to the container's Python, and finds only packages for this version.

    The model's file imports a package that only the environment can contain, because the model, Python's standard
    library and the image do not contain it. So the server does not load the model. CT166 describes the packages of the
    image.

    The images contain Python 3.8 up to release 23.04, Python 3.10 from 23.05, and Python 3.12 from 24.11. If the
    model's directory contains a `triton_python_backend_stub`, the environment may have any Python version.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/1/model.py
        import transformers
        class TritonPythonModel:
            def execute(self, requests):
                return []
        # model/env.tar.gz
        conda-meta/python-3.10.14-h955ad1f_1.json
        bin/activate

    Instead:
        # model/env.tar.gz
        conda-meta/python-3.12.4-h5148396_1.json
        bin/activate
    """
    missed = _missed_imports(context)
    for each, python, release in _other_pythons(context):
        if each.owner.name in missed:
            file, name = missed[each.owner.name]
            yield each.unloadable(
                f"the environment has Python {python}, but the container of {release.release} has {release.python}; "
                f"{file} would not find {name!r}",
                f"ModuleNotFoundError: No module named '{name}'",
                f"create the environment with python={release.python}",
            )


@rule(
    "CT159",
    Severity.WARNING,
    "a Python model may need an environment of another Python",
    source=_CUSTOM,
    applies=lambda platform: known_release(platform) is not None,
)
def perhaps_other_python(context: CheckContext) -> Iterator[Problem]:
    """The container's Python does not find the packages of an environment with another Python version.

    If the top of the model's file imports a package that only the environment can contain, CT156 reports the import as
    an error. This rule reports an environment without such an import, because an import in a function or in another
    file may still fail. The process of the model still finds the environment's programs and shared libraries. If the
    model uses nothing else from the environment, acknowledge the warning.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/env.tar.gz
        conda-meta/python-3.10.14-h955ad1f_1.json
        bin/activate

    Instead:
        # model/env.tar.gz
        conda-meta/python-3.12.4-h5148396_1.json
        bin/activate
    """
    missed = _missed_imports(context)
    for each, python, release in _other_pythons(context):
        if each.owner.name not in missed:
            yield Problem(
                each.path,
                f"the environment has Python {python}, but the container of {release.release} has {release.python}, so "
                f"{each.owner.name!r} would not find the environment's packages: ModuleNotFoundError",
                f"create the environment with python={release.python}, or acknowledge CT159 if the environment has no "
                "packages",
            )


def _missed_imports(context: CheckContext) -> dict[str, tuple[PurePosixPath, str]]:
    """Model → one of its files, and a module that the file imports and only an environment can have."""
    missed: dict[str, tuple[PurePosixPath, str]] = {}
    installed = installed_modules(context.platform.release) if context.platform is not None else None
    provided = standard_modules(python_version(context)) | PROVIDED | (installed or frozenset())
    for each, source in python_sources(context):
        for name in source.imports:
            if name not in provided and not has_module(each, name):
                missed.setdefault(each.model.name, (each.path, name))
    return missed


def _other_pythons(context: CheckContext) -> Iterator[tuple[ModelEnvironment, str, Release]]:
    """The environments with another Python than the container, and that Python."""
    release = known_release(context.platform)
    if release is None or "python" in release.assumed:
        return
    for each in environments(context):
        if each.path is None or each.files.has(each.owner.model.directory / "triton_python_backend_stub"):
            continue
        if each.is_directory:
            python = next(filter(None, map(environment_python, _telling(each.files, each.path))), None)
        else:
            read = None if each.archive is None else context.contents(packed_environment, each.archive)
            python = read.python if isinstance(read, PackedEnvironment) else None
        if python is not None and python != release.python:
            yield each, python, release


def _telling(files: Files, directory: PurePosixPath) -> Iterator[str]:
    """The few paths in an unpacked environment that may show its Python."""
    yield from (f"conda-meta/{name}" for name in files.names_in(directory / "conda-meta"))
    library = directory / "lib"
    yield from (f"lib/{name}/{each}/" for name in files.names_in(library) for each in files.names_in(library / name))


@environment_rule(
    "CT157",
    Severity.ERROR,
    "the release cannot use an environment that is unpacked already",
    source=_UNPACK,
    applies=lambda platform: platform.release is not None and not is_at_least(platform, "23.07"),
)
def unpacked_too_early(each: ModelEnvironment) -> Iterator[Problem]:
    """Before 23.07, the server does not load a model if `EXECUTION_ENV_PATH` names a directory.

    Pack the environment as `.tar.gz`, or serve with 23.07 or newer.

    Example:
        $ cdk-triton validate . --platform 23.03/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env" }
        }
        # model/env/bin/activate
        # model/env/lib/python3.8/os.py
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/env/bin/activate is removed
        # model/env/lib/python3.8/os.py is removed
        # model/env.tar.gz
        bin/activate
        lib/python3.8/os.py
    """
    if each.is_directory:
        yield each.unloadable(
            "the environment is a directory, which releases before 23.07 do not accept",
            "archive_read_open_filename() failed.",
            "pack it as .tar.gz, or serve with 23.07 or newer",
        )


@environment_rule(
    "CT158",
    Severity.WARNING,
    "the environment of a Python model is outside the repository",
    source=core("src/model_config_utils.cc", 956, 1009),
)
def environment_elsewhere(each: ModelEnvironment) -> Iterator[Problem]:
    """`EXECUTION_ENV_PATH` names a path outside the repository, where the library puts no file.

    The file may be missing when the server loads the model. It exists only if the image contains it, or if another
    model has written it before. If the file is missing, the server does not load the model. Put the environment into
    the repository, or acknowledge the warning with the reason why the file exists. `$$TRITON_MODEL_DIRECTORY` at the
    beginning of the path stands for the model's directory.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "/tmp/conda/env.tar.gz" }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
    """
    if each.path is None and not (each.is_misspelt or each.is_misplaced):
        where = "outside the repository" if each.is_absolute else "relative to the server's working directory"
        yield each.owner.unloadable(
            FIELD,
            f"the environment {each.written!r} is {where}",
            f"Failed to get the canonical path for {each.written}.",
            f'put the environment into the repository and write "{VARIABLE}/…", or acknowledge CT158 and explain how '
            "the file gets to the instance",
            joint="; if the instance does not have this file, ",
        )
