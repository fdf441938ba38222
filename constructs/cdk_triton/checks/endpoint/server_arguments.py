"""CT425 to CT428: arguments that tritonserver takes, without the effect that they were written for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cdk_triton._wording import did_you_mean, listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core, server
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.option_values import cut_number
from cdk_triton.triton.server_options import Given, given_options, options_of

_UNIT = re.compile(r"([kmgt])i?b?", re.IGNORECASE)
_POWERS = {"k": 10, "m": 20, "g": 30, "t": 40}
# Options that begin with the number of a GPU. The server looks the value up for each GPU that it finds.
_BY_GPU = ("cuda-memory-pool-byte-size", "cuda-virtual-address-size", "model-load-gpu-limit")

# What each backend reads of its settings: `TRITONBACKEND_Initialize` at the branches r23.07 to r26.08. Settings
# of other backends are not known whole.
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "onnxruntime": ("enable-global-threadpool", "inter_op_thread_count", "intra_op_thread_count"),
    "python": (
        "shm-default-byte-size",
        "shm-growth-byte-size",
        "shm-region-prefix-name",
        "shm_message_queue_size",
        "stub-timeout-seconds",
        "thread-pool-size",
    ),
    "tensorrt": ("coalesce-request-input", "execution-policy", "plugins", "version-compatible"),
}
# What the server itself sets for every backend, or a library that backends share.
_COMMON = (
    "auto-complete-config",
    "backend-directory",
    "default-max-batch-size",
    "min-compute-capability",
    "triton-backend-memory-tracker",
)


@rule(
    "CT425",
    Severity.WARNING,
    "the server reads only the beginning of a number",
    source=server("src/command_line_parser.cc", 108, 151),
)
def cut_off_number(context: CheckContext) -> Iterator[Problem]:
    """A number in `additional_args` is followed by a unit, an exponent or other text, which the server ignores.

    The server reads numbers with `std::stoi` and similar functions, which stop without an error where the number ends.
    So the server reads `256MB` as 256, `1e9` as 1, and `0x10` as 0. Write the full number in decimal digits,
    such as `268435456` for 256 MiB.

    Example:
        # environment=ContainerEnvironment(additional_args=["--pinned-memory-pool-byte-size=512MB"])
        # model/config.pbtxt
        backend: "python"

    Instead:
        # environment=ContainerEnvironment(additional_args=["--pinned-memory-pool-byte-size=536870912"])
    """
    release = context.release
    for given in _given(context):
        cut = cut_number(options_of(release)[given.option], given.value)
        if cut is not None:
            number, rest = cut
            yield Problem(
                ".",
                f"additional_args of the container's environment holds '--{given.option}={given.value}', but "
                f"tritonserver reads {number + rest!r} as {number}",
                _whole(number, rest, given),
            )


def _whole(number: str, rest: str, given: Given) -> str:
    """The fix, with the intended number if it is clear."""
    if (unit := _UNIT.fullmatch(rest)) is not None and "size" in f"{given.option} {given.value}" and number.isdecimal():
        size = int(number) << _POWERS[unit[1].lower()]
        return f"write the number of bytes without a unit: {size} for {number} {unit[1].upper()}iB"
    if "." in number:
        return "write the intended number as a decimal number, with nothing after it"
    return "write the intended number as a whole number, in digits only"


@rule(
    "CT426",
    Severity.WARNING,
    "a backend does not read a setting",
    source=backend("onnxruntime_backend", "src/onnxruntime_loader.cc", 63, 103),
)
def unread_backend_setting(context: CheckContext) -> Iterator[Problem]:
    """`--backend-config` in `additional_args` names a setting that its backend does not read.

    A backend ignores a setting that it does not read, so the argument has no effect. A hyphen is not an underscore: the
    Python backend reads `shm-default-byte-size`, but not `shm_default_byte_size`. The rule knows the settings of the
    backends `onnxruntime`, `python` and `tensorrt`.

    Example:
        # environment=ContainerEnvironment(additional_args=["--backend-config=python,shm-default-bytesize=16777216"])
        # model/config.pbtxt
        backend: "python"

    Instead:
        # environment=ContainerEnvironment(additional_args=["--backend-config=python,shm-default-byte-size=16777216"])

    Limits:
        The rule skips settings of other backends, because the library's lists of these settings are not complete. It
        also skips settings that do not name a backend.
    """
    for given in _given(context):
        name, comma, rest = given.value.partition(",")
        setting = rest.partition("=")[0]
        known = _SETTINGS.get(name, ()) if comma and given.option == "backend-config" else ()
        if known and setting not in (*known, *_COMMON):
            yield Problem(
                ".",
                f"additional_args of the container's environment holds '--{given.option}={given.value}', but the "
                f"backend {name!r} does not read {setting!r}{did_you_mean(setting, known)}, so the argument has no "
                "effect",
                "correct the setting's name, or remove the argument",
            )


@rule(
    "CT427",
    Severity.WARNING,
    "an argument names a GPU that the instance does not have",
    source=core("src/cuda_memory_manager.cc", 94, 112),
    applies=lambda platform: True,
)
def argument_beyond_gpus(context: CheckContext) -> Iterator[Problem]:
    """An argument about GPU memory in `additional_args` contains the number of a GPU that the instance does not have.

    The values of `--cuda-memory-pool-byte-size`, `--cuda-virtual-address-size` and `--model-load-gpu-limit` begin with
    the number of a GPU. GPUs are numbered from 0. The server uses such a value only for the GPUs that it has, so the
    argument has no effect.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # environment=ContainerEnvironment(additional_args=["--cuda-memory-pool-byte-size=1:268435456"])
        # model/config.pbtxt
        backend: "python"

    Instead:
        # environment=ContainerEnvironment(additional_args=["--cuda-memory-pool-byte-size=0:268435456"])
    """
    platform = context.platform
    if platform is None:
        return
    for given in _given(context):
        gpu = given.value.partition(":")[0]
        if given.option in _BY_GPU and gpu.isdecimal() and int(gpu) >= platform.gpu_count:
            count = "1 GPU" if platform.gpu_count == 1 else f"{platform.gpu_count} GPUs"
            yield Problem(
                ".",
                f"additional_args of the container's environment holds '--{given.option}={given.value}', but "
                f"{platform.instance_type} has {count}, numbered from 0, so the argument has no effect",
                (
                    "write the GPU number 0"
                    if platform.gpu_count == 1
                    else f"write a GPU number from 0 to {platform.gpu_count - 1}"
                )
                + ", or remove the argument",
            )


@rule(
    "CT428",
    Severity.ERROR,
    "the Python backend does not accept a slash after the backend directory",
    source=backend("python_backend", "src/python_be.cc", 2424, 2444),
    applies=lambda platform: is_at_least(platform, "23.10"),  # branches of the backend: r23.09 does not compare paths
)
def slash_after_backend_directory(context: CheckContext) -> Iterator[Problem]:
    """`--backend-directory` in `additional_args` ends with a slash, and the release is 23.10 or newer.

    The Python backend appends `/python` to this path, and compares the result with its own path. The double slash makes
    them differ, so the backend looks for `model.py` in its own directory instead of the model's. The server then does
    not load any Python model. Remove the slash, or remove the argument if it names the image's own directory,
    `/opt/tritonserver/backends`.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # environment=ContainerEnvironment(additional_args=["--backend-directory=/opt/tritonserver/backends/"])
        # model/config.pbtxt
        backend: "python"

    Instead:
        # environment=ContainerEnvironment(additional_args=["--backend-directory=/opt/tritonserver/backends"])
    """
    directories = [given.value for given in _given(context) if given.option == "backend-directory"]
    models = [model.name for model in context.loaded_models if model.backend_name == "python"]
    if models and directories and directories[-1].endswith("/"):
        yield Problem(
            ".",
            f"additional_args of the container's environment holds '--backend-directory={directories[-1]}' with a "
            f"slash at the end, so the Python backend of {context.release} would not load "
            f"{listed_in_quotes(models)}: ModuleNotFoundError: No module named 'model'",
            "remove the slash",
        )


def _given(context: CheckContext) -> tuple[Given, ...]:
    """The options in `additional_args`, as the release reads them."""
    if context.environment is None:
        return ()
    release = context.release
    return given_options(context.environment.additional_args, release)
