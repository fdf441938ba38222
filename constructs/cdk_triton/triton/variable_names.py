"""The environment variables that a container must not be given, because something before the models reads them.

The start script of the container is a bash script (`docker/sagemaker/serve` of triton-inference-server/server). The
dynamic loader, bash, the script and tritonserver read the names below, or replace their values. The tests compare them
with the real script.
"""

from __future__ import annotations

from typing import Final

__all__ = ["reserved_because"]

# Prefix → the reason, and what to do.
_PREFIXES: Final = {
    "SAGEMAKER_TRITON_": (
        "which the container's start script reads",
        "set the field of ContainerEnvironment that writes this variable",
    ),
    "LD_": (
        "which the dynamic loader reads for every program of the container, the start script's shell included",
        "name libraries of plugins and operators in additional_args ('--backend-config=tensorrt,plugins=<file>') or in "
        "config.pbtxt (model_operations); or set the variable by ENV in an image of your own",
    ),
    "BASH": ("which the shell of the container's start script reads or replaces", "choose another name"),
}

# Variable → the field of ContainerEnvironment that writes it.
_BY_FIELD: Final = {
    "SAGEMAKER_BIND_TO_PORT": "port",
    "SAGEMAKER_SAFE_PORT_RANGE": "safe_port_range",
    "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING": "model_namespacing",
    "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "ping_mode",
    **{
        f"SAGEMAKER_TRITON_{field.upper()}": field
        for field in (
            *("default_model_name", "ping_mode", "inference_type", "additional_args", "tensorflow_version"),
            *("log_verbose", "log_info", "log_warning", "log_error", "allow_metrics", "metrics_port"),
            *("allow_grpc", "grpc_port", "thread_count", "buffer_manager_thread_count", "model_load_gpu_limit"),
            *("shm_default_byte_size", "shm_growth_byte_size"),
        )
    },
}

# Bash reads these when it starts a script; man bash, "Shell Variables".
_READ_BY_SHELL: Final = (
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "FUNCNEST",
    "GLOBIGNORE",
    "GLOBSORT",
    "IFS",
    "POSIXLY_CORRECT",  # and by getopt_long in tritonserver
    "PS4",
    "SHELLOPTS",
)

# The server would see another value: bash or the script sets these.
_REPLACED: Final = (
    *("COMP_WORDBREAKS", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "HISTCMD"),
    *("OLDPWD", "OPTERR", "OPTIND", "PIPESTATUS", "PPID", "PS1", "PS2", "PWD", "RANDOM", "SECONDS", "SHLVL", "SRANDOM"),
    *("LINENO", "UID", "_"),
    *("MODEL_DIRS", "SAGEMAKER_ARGS", "SAGEMAKER_MODEL_REPO", "SAGEMAKER_MULTI_MODEL_REPO"),
    *("SAGEMAKER_SINGLE_MODEL_REPO", "i", "is_mme_mode", "num_gpus"),
)

_NAMES: Final = {
    "PATH": (
        "by which the container finds its start script, tritonserver and python3",
        "use absolute paths of programs in your models, or set PATH by ENV in an image of your own",
    ),
    "SAGEMAKER_MULTI_MODEL": (
        "which SageMaker sets itself",
        "remove the variable, and use a TritonMultiModel for a multi-model endpoint",
    ),
    **{
        name: ("which the container's start script reads", f"set the field {field} of ContainerEnvironment instead")
        for name, field in _BY_FIELD.items()
    },
    **dict.fromkeys(
        _READ_BY_SHELL,
        (
            "which the shell of the container's start script reads",
            "choose another name, or set the variable in your model's code",
        ),
    ),
    **dict.fromkeys(
        _REPLACED,
        ("whose value the container's start script or its shell replaces", "choose another name"),
    ),
    # TritonParser::Parse in src/command_line_parser.cc: Vertex AI's port is SageMaker's, and the server would exit.
    **dict.fromkeys(
        ("AIP_HTTP_PORT", "AIP_MODE"),
        ("which tritonserver reads to serve Vertex AI instead of SageMaker", "choose another name"),
    ),
}


def reserved_because(name: str) -> tuple[str, str] | None:
    """Why a container must not have a variable, and what to do; None if the variable is allowed.

    PYTHONPATH and PYTHONHOME are accepted, because only the processes of Python models read them, and packed
    environments and images of your own need them. So are GLIBC_TUNABLES and MALLOC_, whose wrong values the loader
    ignores.

    Args:
        name: the name of the variable.
    """
    if (found := _NAMES.get(name)) is not None:
        return found
    return next((found for prefix, found in _PREFIXES.items() if name.startswith(prefix)), None)
