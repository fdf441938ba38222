"""Where a Python model's environment is: `EXECUTION_ENV_PATH` in its configuration.

https://github.com/triton-inference-server/python_backend#using-custom-python-execution-environments
"""

from __future__ import annotations

from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cdk_triton.triton.repository import Model

__all__ = ["PARAMETER", "VARIABLE", "environment_path", "written_environment"]

PARAMETER: Final = "EXECUTION_ENV_PATH"
"""The parameter that names it."""

VARIABLE: Final = "$$TRITON_MODEL_DIRECTORY"
"""What stands for the model's directory at the beginning of the path (python_backend: src/pb_env.cc)."""


def written_environment(model: Model) -> str:
    """The environment of a Python model as its configuration writes it; nothing where it names none."""
    config = model.config
    if config is None or model.backend_name != "python" or PARAMETER not in config.parameters:
        return ""
    return config.parameters[PARAMETER].string_value


def environment_path(model: Model, root: str | None) -> PurePosixPath | None:
    """Where the environment of a Python model is in the repository; None where it names none, or one outside.

    Args:
        model: the model.
        root: where the server finds the repository; None where that is not known.
    """
    written = written_environment(model)
    path: PurePosixPath | None = None
    if written.startswith(VARIABLE):
        path = PurePosixPath(normpath(f"{model.directory}/{written.removeprefix(VARIABLE)}"))
    elif root is not None and written.startswith(f"{root}/"):
        path = PurePosixPath(normpath(written.removeprefix(f"{root}/")))
    return None if path is None or path.parts[:1] == ("..",) else path
