"""The machine that AWS would give a job, with stand-ins for its GPU and for the tools on its PATH."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdk_triton.sagemaker import codebuild_gpu, gpu_instances, image_release
from cdk_triton.triton import Release, releases
from cdk_triton_local import build_tools
from cdk_triton_local.process import child_environment
from cdk_triton_local.triton.backends import RELEASE
from cdk_triton_local.triton.paths import shell_safe

__all__ = ["CODEBUILD_MACHINES", "JobMachine", "processing_machine"]

_INSTALLED = "24.10"
"""The Triton release that runs endpoints here (`cdk_triton_local.triton.server_files`)."""


@dataclass(frozen=True)
class JobMachine:
    """A machine of AWS.

    Attributes:
        gpu: NVIDIA's product name of the GPU, such as "NVIDIA A10G"; None for a machine without one.
        compute_capability: the compute capability of the GPU, such as "8.6".
    """

    gpu: str | None = None
    compute_capability: str | None = None

    def environment(self, work: Path, image: str, extra: Mapping[str, str]) -> dict[str, str]:
        """The environment of a job's commands: from the user's, the variables for child processes and those of pip.

        Args:
            work: a directory of the job's own, which gets the programs that have to be on its PATH.
            image: the URI of the image in which the job would run. On a machine with a GPU, its tools have stand-ins.
            extra: the job's variables.
        """
        found = child_environment()
        if self.gpu is not None and self.compute_capability is not None:
            found |= _stand_in_variables(self.gpu, self.compute_capability, _release_in(image), found)
            found["CDK_TRITON_STAND_IN_ROOT"] = _root_directory(work / "root")
            found |= {RELEASE: release} if (release := image_release(image)) is not None else {}
        # On AWS a build gets its package index from its image or its project, here from the settings of this machine's
        # user: a mirror, or a directory of wheels if there is no network.
        found |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        path = os.pathsep.join((_python_directory(work / "bin"), found.get("PATH", os.defpath)))
        return found | {"PATH": path} | dict(extra)

    def describe(self, image: str) -> str:
        """Describe the GPU and the tools that a job gets, for its log."""
        if self.gpu is None:
            return "no GPU"
        played = _release_in(image)
        return (
            f"{self.gpu} (compute capability {self.compute_capability}), TensorRT {played.tensorrt} and DALI "
            f"{played.dali} of Triton {played.release}"
        )


def _release_in(image: str) -> Release:
    """The release in the image's tag, or the installed one if the tag has none."""
    tag = re.search(r":(\d\d\.\d\d)-", image)
    rows = {row.release: row for row in releases()}
    return rows.get(tag[1] if tag else "", rows[_INSTALLED])


def _stand_in_variables(gpu: str, compute_capability: str, played: Release, base: Mapping[str, str]) -> dict[str, str]:
    # If the exact version is not known, the first of its major version.
    tensorrt = played.tensorrt.replace("x", "0")
    tools = build_tools.environment(gpu=gpu, compute_capability=compute_capability, tensorrt=tensorrt, base=base)
    modules = str(build_tools.modules_directory())
    return {**tools, "PYTHONPATH": modules, "CDK_TRITON_STAND_IN_DALI": played.dali or "0.0.0"}


def _root_directory(directory: Path) -> str:
    """The directory that stands for `/` when a job starts a server."""
    directory.mkdir(parents=True, exist_ok=True)
    return str(shell_safe(directory))


def _python_directory(directory: Path) -> str:
    """Its `python3` is the interpreter that runs the local AWS."""
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "python3"
    # A link would lead a virtual environment's interpreter out of its environment.
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return str(directory)


def _with_gpu(gpu: str) -> JobMachine:
    capability = next(each.compute_capability for each in gpu_instances().values() if each.gpu == gpu)
    return JobMachine(gpu, capability)


CODEBUILD_MACHINES: Mapping[tuple[str, str], JobMachine] = {
    ("LINUX_GPU_CONTAINER", "BUILD_GENERAL1_SMALL"): _with_gpu(codebuild_gpu()),
    ("LINUX_CONTAINER", "BUILD_GENERAL1_SMALL"): JobMachine(),
    ("LINUX_CONTAINER", "BUILD_GENERAL1_MEDIUM"): JobMachine(),
    ("LINUX_CONTAINER", "BUILD_GENERAL1_LARGE"): JobMachine(),
}
"""The machines of CodeBuild that are simulated, by environment type and compute type.

Its large machine with GPUs is not: TensorRT has left its V100 behind ("Build environment compute modes and types").
"""


def processing_machine(instance_type: str) -> JobMachine:
    """The machine behind an instance type of SageMaker."""
    instance = gpu_instances().get(instance_type)
    return JobMachine() if instance is None else JobMachine(instance.gpu, instance.compute_capability)
