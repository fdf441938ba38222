"""Computes the arguments of tritonserver from environment variables, as the container's entry point does.

A SageMaker Triton image starts `docker/sagemaker/serve` of triton-inference-server/server. This module is that script
as a pure function, for the local AWS, and for users who want to see the effect of a variable before they deploy it. It
follows the script of the images 25.03 to 26.08 (blob 1b3121533), faults included, because the endpoint has them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton._arguments import one, require_type
from cdk_triton._checked import checked
from cdk_triton.errors import ServeError

__all__ = ["serve_arguments", "server_environment"]

MULTI_MODEL_REPOSITORY = "/tmp/sagemaker"  # noqa: S108 the container's path, never used here
SINGLE_MODEL_REPOSITORY = "/opt/ml/model/"
INFERENCE_TYPES = ("infer", "generate", "generate_stream")

# Flag → variable → the script's default (None: no flag), in the order in which the script appends them.
_FLAGS: tuple[tuple[str, str, str | None], ...] = (
    # Inverted: the value of the variable for "disable" is passed on unchanged.
    ("--model-namespacing=", "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING", "true"),
    ("--sagemaker-port=", "SAGEMAKER_BIND_TO_PORT", None),
    ("--sagemaker-safe-port-range=", "SAGEMAKER_SAFE_PORT_RANGE", None),
    ("--allow-grpc=", "SAGEMAKER_TRITON_ALLOW_GRPC", "false"),
    ("--allow-metrics=", "SAGEMAKER_TRITON_ALLOW_METRICS", "false"),
    ("--metrics-port=", "SAGEMAKER_TRITON_METRICS_PORT", None),
    ("--grpc-port=", "SAGEMAKER_TRITON_GRPC_PORT", None),
    ("--buffer-manager-thread-count=", "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT", None),
    ("--sagemaker-thread-count=", "SAGEMAKER_TRITON_THREAD_COUNT", None),
    ("--log-verbose=", "SAGEMAKER_TRITON_LOG_VERBOSE", "true"),
    ("--log-info=", "SAGEMAKER_TRITON_LOG_INFO", None),
    ("--log-warning=", "SAGEMAKER_TRITON_LOG_WARNING", None),
    ("--log-error=", "SAGEMAKER_TRITON_LOG_ERROR", None),
    ("--backend-config=python,shm-default-byte-size=", "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE", "16777216"),
    ("--backend-config=python,shm-growth-byte-size=", "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE", "1048576"),
    ("--backend-config=tensorflow,version=", "SAGEMAKER_TRITON_TENSORFLOW_VERSION", None),
)


_COUNT = one(lambda value: isinstance(value, int), "write the number of GPUs, such as 1")


@checked
def serve_arguments(
    environment: Mapping[str, str], model_directories: Iterable[str], *, gpu_count: int = 0
) -> list[str]:
    """The arguments that `serve` gives to tritonserver.

    Args:
        environment: the container's environment. An empty value counts as unset, as in the script.
        model_directories: the names of the directories at the top of `/opt/ml/model`, in the order in which the file
            system lists them. Add `config.pbtxt` if a file of that name is there, too. Ignored for a multi-model
            endpoint.
        gpu_count: the number of GPUs that `nvidia-smi -L` would list, for SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT.

    Returns:
        Everything after `tritonserver`. Values are split at blanks, because the script expands them unquoted. (It also
        expands `*`, `?` and `[` against the file system; these characters are returned unchanged.)

    Raises:
        ServeError: the script would exit; the error has the script's message.
    """
    require_type("gpu_count of serve_arguments()", gpu_count, _COUNT)
    names = list(model_directories)
    arguments = _arguments_before_models(environment, gpu_count)
    if not _is_multi_model(environment) and "config.pbtxt" in names:
        raise ServeError(
            "ERROR: Incorrect directory structure.\n       Model directory needs to contain the top level folder"
        )
    inference_type = environment.get("SAGEMAKER_TRITON_INFERENCE_TYPE", "")
    if inference_type and inference_type not in INFERENCE_TYPES:
        raise ServeError(
            f"ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE '{inference_type}'\n"
            "       Must be one of: infer, generate, generate_stream"
        )
    if not _is_multi_model(environment):
        arguments.append(f"--load-model={_model_to_load(environment, names)}")
    # The last line of the script: the fixed flags, then everything collected, unquoted.
    fixed = ["--allow-sagemaker=true", "--allow-http=false", "--model-control-mode=explicit"]
    return fixed + _split_at_blanks(" ".join(arguments))


def server_environment(environment: Mapping[str, str], model_directories: Iterable[str]) -> dict[str, str]:
    """The environment that tritonserver gets, which differs from the container's.

    The script assigns SAGEMAKER_TRITON_PING_MODE without exporting it. So the server gets the script's ping mode only
    if the variable is in the container's environment already, and otherwise uses `ready`, even for a multi-model
    endpoint. The script does export the name of the only model directory.

    Args:
        environment: the container's environment.
        model_directories: as for `serve_arguments`.

    Raises:
        ServeError: the script would exit; the error has the script's message.
    """
    result = dict(environment)
    if "SAGEMAKER_TRITON_PING_MODE" in result:
        default = "live" if _is_multi_model(environment) else "ready"
        result["SAGEMAKER_TRITON_PING_MODE"] = environment.get("SAGEMAKER_TRITON_OVERRIDE_PING_MODE") or default
    if not _is_multi_model(environment):
        result["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] = _model_to_load(environment, list(model_directories))
    return result


def _arguments_before_models(environment: Mapping[str, str], gpu_count: int) -> list[str]:
    repository = MULTI_MODEL_REPOSITORY if _is_multi_model(environment) else SINGLE_MODEL_REPOSITORY
    arguments = [f"--model-repository={repository}"]
    for flag, variable, default in _FLAGS:
        value = environment.get(variable) or default
        if value is not None:
            arguments.append(flag + value)
    if limit := environment.get("SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT"):
        arguments += [f"--model-load-gpu-limit {gpu}:{limit}" for gpu in range(gpu_count)]
    if additional := environment.get("SAGEMAKER_TRITON_ADDITIONAL_ARGS"):
        arguments.append(additional)
    return arguments


def _model_to_load(environment: Mapping[str, str], names: list[str]) -> str:
    if given := environment.get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"):
        if _is_directory(given, names):
            return given
        raise ServeError(f"ERROR: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME {given} does not exist")
    # The script collects the names with an unquoted substitution: one with a blank counts as two.
    words = _split_at_blanks(" ".join(names))
    if not words:
        raise ServeError("ERROR: No model found in model repository")
    if len(words) > 1:
        raise ServeError(
            "ERROR: More than 1 model directory found in model repository.\n"
            "       Either provide a single directory or set SAGEMAKER_TRITON_DEFAULT_MODEL_NAME to run the "
            "ensemble backend.\n"
            f"       Directories found in model repository: {' '.join(words)}"
        )
    return words[0]


def _is_directory(given: str, names: list[str]) -> bool:
    """As `[ -d /opt/ml/model/$given ]`, which `.` and `a/` pass too. Directories inside a model are not known here."""
    path = PurePosixPath(normpath(f"{SINGLE_MODEL_REPOSITORY}/{given}"))
    repository = PurePosixPath(SINGLE_MODEL_REPOSITORY)
    return repository.is_relative_to(path) or (path.parent == repository and path.name in names)


def _is_multi_model(environment: Mapping[str, str]) -> bool:
    return environment.get("SAGEMAKER_MULTI_MODEL") == "true"


def _split_at_blanks(text: str) -> list[str]:
    """As bash splits an unquoted expansion: quotes are ordinary characters."""
    return [word for word in re.split(r"[ \t\n]+", text) if word]
