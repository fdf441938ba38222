"""Stand-ins for the tools of a GPU image, for builds on this machine: executables for a build's PATH.

Each prints on a line of its own that it is one: `cdk-triton stand-in for NAME: …`; the build program records that in
`build.json`. They take the options of the real ones and print what the build program reads of them; a TensorRT plan of
this `trtexec` is an ONNX network that the local backend `tensorrt` runs on the CPU. They show nothing about the speed
or the accuracy of a GPU.

* `bin` contains the executables, and `python` the package `nvidia.dali` for a build's `PYTHONPATH`;
* `trtexec`, `nvidia_smi` and `serve` are the programs behind the executables;
* `options` parses the options of `trtexec`, and `engine` builds and runs its plans.

| variable | what it sets |
|---|---|
| `CDK_TRITON_STAND_IN_PYTHON` | the interpreter that runs them |
| `CDK_TRITON_STAND_IN_GPU` | the GPU's name as `nvidia-smi` prints it |
| `CDK_TRITON_STAND_IN_COMPUTE_CAPABILITY` | its compute capability |
| `CDK_TRITON_STAND_IN_TENSORRT` | the version of TensorRT, which determines the options of `trtexec` |
| `CDK_TRITON_STAND_IN_RELEASE` | the release, whose names and formats the stand-in for FIL has |
| `CDK_TRITON_STAND_IN_ROOT` | the directory that stands for `/` where `serve` looks for models |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["environment", "modules_directory", "tools_directory"]


def tools_directory() -> Path:
    """The directory with the executables `trtexec`, `nvidia-smi` and `serve`."""
    return Path(__file__).with_name("bin")


def modules_directory() -> Path:
    """The directory with the package `nvidia.dali`, for the `PYTHONPATH` of a build."""
    return Path(__file__).with_name("python")


def environment(
    *, gpu: str, compute_capability: str, tensorrt: str, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of a build that runs with the stand-ins, `PATH` among them.

    Args:
        gpu: the GPU's name, as in the library's tables or in the output of `nvidia-smi`.
        compute_capability: "8.6".
        tensorrt: the version, with or without build: "10.13.3.9".
        base: the environment to which they are added; without a `PATH`, it gets that of this process.
    """
    path = (base or {}).get("PATH") or os.environ.get("PATH", os.defpath)
    return {
        "PATH": f"{tools_directory()}{os.pathsep}{path}",
        "CDK_TRITON_STAND_IN_PYTHON": sys.executable,
        "CDK_TRITON_STAND_IN_GPU": gpu,
        "CDK_TRITON_STAND_IN_COMPUTE_CAPABILITY": compute_capability,
        "CDK_TRITON_STAND_IN_TENSORRT": tensorrt,
    }
