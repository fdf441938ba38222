"""The variables that a container sets for the Python of its Python models."""

from __future__ import annotations

from typing import Final

__all__ = ["HONOURS_NO_BYTECODE", "NO_BYTECODE", "UNBUFFERED"]

NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
"""Set to any text, it keeps a Python that reads its environment from writing `__pycache__` directories.

A Python model that writes one changes its own directory. A load makes Triton look at the models of the same names in
all archives. Triton loads those again whose directories have changed (`PollModels` and `InitializeModelInfo` in
src/model_repository_manager/model_repository_manager.cc of triton-inference-server/core). Python models read the
variable from 24.11 on (`HONOURS_NO_BYTECODE`).
"""

HONOURS_NO_BYTECODE: Final = "24.11"
"""The first release whose Python models read `PYTHONDONTWRITEBYTECODE`.

python_backend 09c3537 of 2024-11-01 takes pybind11 2.12.0, whose `initialize_interpreter` starts Python with
`PyConfig_InitPythonConfig`. That of 2.10.0 takes `PyConfig_InitIsolatedConfig`, which ignores the environment.
"""

UNBUFFERED: Final = "PYTHONUNBUFFERED"
"""Set to any text, it lets what a Python model prints reach the log at once.

The container's output is a pipe, for which Python collects 8 KiB first. Python models read the variable from 24.11 on,
like `NO_BYTECODE`.
"""
