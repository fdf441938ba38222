"""The place of a Python model's environment: `EXECUTION_ENV_PATH` in its configuration.

https://github.com/triton-inference-server/python_backend#using-custom-python-execution-environments
"""

from __future__ import annotations

from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cdk_triton.triton.model import Model

__all__ = [
    "FIELD",
    "NUMPY_2_SINCE",
    "PARAMETER",
    "VARIABLE",
    "environment_path",
    "environment_text",
    "written_environment",
]

PARAMETER: Final = "EXECUTION_ENV_PATH"
"""The parameter that names it."""

FIELD: Final = f'parameters["{PARAMETER}"].string_value'
"""The field of the configuration in which it stands."""

NUMPY_2_SINCE: Final = "24.11"
"""The first release whose Python backend is built with pybind11 2.12, which reads arrays of numpy 2; 24.10 has 2.10
(CMakeLists.txt of the branches r24.10 and r24.11; https://github.com/triton-inference-server/python_backend/pull/384).
"""

VARIABLE: Final = "$$TRITON_MODEL_DIRECTORY"
"""The placeholder for the model's directory at the beginning of the path (python_backend: src/pb_env.cc)."""

# Stands for the directory of an archive, whose name is a hash.
_SOMEWHERE = "/opt/ml/models/archive/model"


def written_environment(model: Model) -> str:
    """The environment of a Python model as its configuration has it; "" if it names none."""
    config = model.config
    if config is None or model.backend_name != "python" or PARAMETER not in config.parameters:
        return ""
    return config.parameters[PARAMETER].string_value


def environment_text(model: Model, root: str | None) -> str | None:
    """The path that the Python backend opens, relative to the repository; None if it is outside.

    It may still contain `.` and `..`, which the server leaves to the system.

    Args:
        model: the model.
        root: the place where the server finds the repository; None if that is not known.
    """
    written = written_environment(model)
    if not written.startswith(VARIABLE) and root is None:
        return None
    root = root or _SOMEWHERE
    directory = f"{root}/{model.directory}"
    text = _collapsed(directory + written.removeprefix(VARIABLE) if written.startswith(VARIABLE) else written)
    if text.startswith(f"{directory}/"):  # the core passes on what is written
        text = written
    position = text.find(VARIABLE)
    if position >= 0:  # python_backend: src/python_be.cc, which takes the position for a part of the length
        text = text[:position] + directory + text[2 * position + len(VARIABLE) :]
    inside = normpath(text).removeprefix("/").startswith(f"{root}/"[1:])
    return text.lstrip("/").removeprefix(root[1:]).lstrip("/") if text.startswith("/") and inside else None


def _collapsed(text: str) -> str:
    """The path without `..`, as the core computes it (src/model_config_utils.cc): a `.` counts as a directory."""
    kept, skipped = "", 0
    rest = text
    while "/" in rest:
        rest, _, last = rest.rpartition("/")
        if not skipped:
            kept = f"/{last}{kept}"
        skipped -= skipped > 0
        if rest.endswith("/.."):
            skipped += 2
    return rest + kept


def environment_path(model: Model, root: str | None) -> PurePosixPath | None:
    """The path of a Python model's environment in the repository; None if the model names none, or one outside.

    Args:
        model: the model.
        root: the place where the server finds the repository; None if that is not known.
    """
    text = environment_text(model, root)
    return None if text is None else PurePosixPath(normpath(text))
