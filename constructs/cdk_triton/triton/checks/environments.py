"""CT151 to CT158: plans that were built elsewhere, and the packed environments of Python models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.triton.checks._artifacts import Files, artifacts, is_at_least, known_release, repository_files
from cdk_triton.triton.checks._sources import backend, core
from cdk_triton.triton.checks.engine import Check, Problem, rule
from cdk_triton.triton.contents import Unreadable
from cdk_triton.triton.contents.beginning import is_git_lfs_pointer
from cdk_triton.triton.contents.packed_environment import PackedEnvironment, environment_python, packed_environment
from cdk_triton.triton.contents.tensorrt_plan import PlanFile, tensorrt_plan
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.repository import Model, RepositoryFile

_PARAMETER = "EXECUTION_ENV_PATH"
_FIELD = f'parameters["{_PARAMETER}"].string_value'
_VARIABLE = "$$TRITON_MODEL_DIRECTORY"
_UNPACK = backend("python_backend", "src/pb_env.cc", 109, 200)


@rule(
    "CT151",
    Severity.WARNING,
    "nobody can tell where a TensorRT plan runs",
    source="https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/advanced.html",
)
def unverifiable_plan(check: Check) -> Iterator[Problem]:
    """A plan runs with the TensorRT version that built it, on the kind of GPU that it was built on.

    The file does not say in a documented way which ones these are. Build it in the image that serves it, on the GPU
    that serves it. Who has done so acknowledges the warning with that reason.

    Example:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        # model/1/model.plan
        ftrt

    Instead:
        # model/config.pbtxt
        platform: "onnxruntime_onnx"
        # model/1/model.plan is removed
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }
    """
    release = known_release(check.platform)
    for each in artifacts(check):
        if (
            each.backend != "tensorrt"
            or each.file is None
            or not isinstance(read := check.contents(tensorrt_plan, each.file), PlanFile)
        ):
            continue
        on = ""
        if check.platform is not None and release is not None:
            instance = check.platform.instance
            on = f" (TensorRT {release.tensorrt} on {instance.gpu}, compute capability {instance.compute_capability})"
        doubt = "" if read.begins_like_plan else ", and it does not begin as plans of TensorRT 8.6 and newer do"
        yield Problem(
            each.file.path,
            f"the plan does not say for which TensorRT and GPU it was built{doubt}; with others{on} the server would "
            f"not load {each.model.name!r}: unable to load plan file to auto complete config",
            "build it in the serving image on the serving GPU, and acknowledge CT151 with that reason",
        )


@rule(
    "CT152",
    Severity.ERROR,
    "a file that should be a TensorRT plan is something else",
    source=backend("tensorrt_backend", "src/loader.cc", 86, 101),
)
def no_plan(check: Check) -> Iterator[Problem]:
    """An ONNX file does not become a plan by its name, nor does the `.engine` file that Ultralytics exports.

    Example:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        # model/1/model.plan
        <?xml version="1.0"?><net/>

    Instead:
        # model/config.pbtxt
        backend: "openvino"
        # model/1/model.plan is removed
        # model/1/model.xml
        <?xml version="1.0"?><net/>
        # model/1/model.bin
        weights
    """
    for each in artifacts(check):
        if each.backend != "tensorrt" or each.file is None or check.contents(is_git_lfs_pointer, each.file):
            continue  # a pointer is reported by CT127
        read = check.contents(tensorrt_plan, each.file)
        if isinstance(read, Unreadable):
            yield Problem(
                each.file.path,
                f"the file {read.reason} and no TensorRT plan, and the server would not load {each.model.name!r}: "
                f"unable to load plan file to auto complete config: {each.file.path}",
                "build the plan with trtexec in the serving image, on the serving GPU",
            )


@dataclass(frozen=True)
class _Environment:
    """Where a Python model's environment is.

    Attributes:
        model: the model.
        written: the path as the configuration writes it.
        path: the path in the repository, or None where it is outside.
        files: all files of the repository.
    """

    model: Model
    written: str
    path: PurePosixPath | None
    files: Files

    @property
    def archive(self) -> RepositoryFile | None:
        """The archive, if it is one that is there."""
        return None if self.path is None else self.files.file(self.path)

    @property
    def is_directory(self) -> bool:
        """Whether it is unpacked already."""
        return self.path is not None and self.files.has_directory(self.path)


def _environments(check: Check) -> Iterator[_Environment]:
    for model in check.loaded_models:
        config = model.config
        if config is None or model.backend_name != "python" or _PARAMETER not in config.parameters:
            continue
        written = config.parameters[_PARAMETER].string_value
        if not written:
            continue
        path: PurePosixPath | None = None
        root = "/opt/ml/model/" if check.mode == "single" else None
        if written.startswith(_VARIABLE):
            path = PurePosixPath(normpath(f"{model.directory}/{written.removeprefix(_VARIABLE)}"))
        elif root is not None and written.startswith(root):
            path = PurePosixPath(normpath(written.removeprefix(root)))
        if path is not None and path.parts[:1] == ("..",):
            path = None
        yield _Environment(model, written, path, repository_files(check))


@rule("CT153", Severity.ERROR, "the environment of a Python model is missing", source=_UNPACK)
def missing_environment(check: Check) -> Iterator[Problem]:
    """`EXECUTION_ENV_PATH` names an archive or a directory that is not there.

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
    for each in _environments(check):
        if each.path is not None and not each.files.has(each.path) and not each.is_directory:
            yield Problem(
                each.model.config_path,
                f"the environment {each.path} is missing, and the server would not load {each.model.name!r}: Failed to "
                f"get the canonical path for {each.path}.",
                "put the packed environment there, or leave the parameter out",
                _FIELD,
            )


@rule("CT154", Severity.ERROR, "the environment of a Python model cannot be unpacked", source=_UNPACK)
def no_archive(check: Check) -> Iterator[Problem]:
    """The server unpacks tar archives, plain or compressed with gzip, and nothing else.

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
    for each in _environments(check):
        read = None if each.archive is None else check.contents(packed_environment, each.archive)
        if isinstance(read, Unreadable):
            yield Problem(
                each.path,
                f"the file {read.reason}, and the server would not load {each.model.name!r}: "
                "archive_read_open_filename() failed.",
                "pack the environment with conda-pack, as .tar.gz",
            )


@rule(
    "CT155",
    Severity.ERROR,
    "the environment of a Python model has no script bin-activate",
    source=backend("python_backend", "src/stub_launcher.cc", 606, 616),
)
def no_activate(check: Check) -> Iterator[Problem]:
    """`bin/activate` has to be at the top of the archive, not below a directory.

    `conda-pack` and `venv-pack` write such archives; `tar -czf env.tar.gz my_env` does not.

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
    for each in _environments(check):
        top = ""
        if each.is_directory and each.path is not None:
            has_activate = each.files.has(each.path / "bin" / "activate")
        else:
            read = None if each.archive is None else check.contents(packed_environment, each.archive)
            if not isinstance(read, PackedEnvironment):
                continue
            has_activate, top = read.has_activate, read.top
        if not has_activate:
            below = f" (everything in it is below {top})" if top else ""
            yield Problem(
                each.path,
                f"the environment has no bin/activate at its top{below}, and the server would not load "
                f"{each.model.name!r}: The Python environment should contain an 'activate' script.",
                "pack it with conda-pack, or with tar -C ENVIRONMENT -czf env.tar.gz .",
            )


@rule(
    "CT156",
    Severity.ERROR,
    "the environment of a Python model has another Python than the container",
    source="https://github.com/triton-inference-server/python_backend#using-custom-python-execution-environments",
    applies=lambda platform: known_release(platform) is not None,
)
def other_python(check: Check) -> Iterator[Problem]:
    """The process that runs a model is linked to the container's Python, and finds no package of another version.

    The images have Python 3.8 through 23.04, 3.10 from 23.05 on, and 3.12 from 24.11 on. A model directory with a
    `triton_python_backend_stub` of its own may have any.

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
    release = known_release(check.platform)
    for each in _environments(check) if release is not None else ():
        if release is None or each.path is None or each.files.has(each.model.directory / "triton_python_backend_stub"):
            continue
        if each.is_directory:
            python = next(filter(None, map(environment_python, _telling(each.files, each.path))), None)
        else:
            read = None if each.archive is None else check.contents(packed_environment, each.archive)
            python = read.python if isinstance(read, PackedEnvironment) else None
        if python not in (None, release.python):
            yield Problem(
                each.path,
                f"the environment has Python {python} and the container of {release.release} has {release.python}, so "
                f"that {each.model.name!r} would find none of its packages: ModuleNotFoundError",
                f"create the environment with python={release.python}",
            )


def _telling(files: Files, directory: PurePosixPath) -> Iterator[str]:
    """The paths in an unpacked environment that may say which Python it has; it has too many to look at all."""
    yield from (f"conda-meta/{name}" for name in files.names_in(directory / "conda-meta"))
    library = directory / "lib"
    yield from (f"lib/{name}/{each}/" for name in files.names_in(library) for each in files.names_in(library / name))


@rule(
    "CT157",
    Severity.ERROR,
    "the release cannot use an environment that is unpacked already",
    source=_UNPACK,
    applies=lambda platform: platform.release is not None and not is_at_least(platform, "23.07"),
)
def unpacked_too_early(check: Check) -> Iterator[Problem]:
    """`EXECUTION_ENV_PATH` may name a directory from 23.07 on.

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
    for each in _environments(check):
        if each.is_directory:
            yield Problem(
                each.path,
                "the environment is a directory, which releases before 23.07 do not take, and the server would not "
                f"load {each.model.name!r}: archive_read_open_filename() failed.",
                "pack it as .tar.gz, or serve with 23.07 or newer",
            )


@rule(
    "CT158",
    Severity.WARNING,
    "the environment of a Python model is outside the repository",
    source=core("src/model_config_utils.cc", 956, 1009),
)
def environment_elsewhere(check: Check) -> Iterator[Problem]:
    """Nothing puts a file there before the model is loaded, unless the image has it or another model writes it.

    `$$TRITON_MODEL_DIRECTORY` at the beginning of the path stands for the model's directory.

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
    for each in _environments(check):
        if each.path is None:
            yield Problem(
                each.model.config_path,
                f"the environment is {each.written!r}, outside the repository; where it is missing, the server would "
                f"not load {each.model.name!r}: Failed to get the canonical path for {each.written}.",
                f'write "{_VARIABLE}/…" and put it into the repository, or acknowledge CT158 with who puts it there',
                _FIELD,
            )
