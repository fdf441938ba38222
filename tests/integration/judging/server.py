"""The real tritonserver as judge: does it load a repository, and if not, what does it say?

A backend without a single line of work is enough, because the core judges configurations and files before any model
runs; it is copied under every backend's name. The server here is Triton 2.51 (24.10), started with SageMaker's flags,
or one of somebody's own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdk_triton.triton import serve_arguments
from cdk_triton.triton.releases import backends_in
from cdk_triton_local.triton.server_files import ServerFiles

__all__ = ["BACKENDS", "Judge", "NoServerError", "Verdict", "named_memory", "null_server_files", "other_server_files"]

BACKENDS: Final = (
    "dali",
    "fil",
    "identity",
    "null",
    "onnxruntime",
    "openvino",
    "python",
    "pytorch",
    "repeat",
    "square",
    "tensorflow",
    "tensorrt",
    "vllm",
)

SOURCE: Final = """
#include <stddef.h>
#include <stdint.h>
void *TRITONBACKEND_ResponseNew(void **response, void *request);
void *TRITONBACKEND_ResponseSend(void *response, const uint32_t flags, void *error);
void *TRITONBACKEND_RequestRelease(void *request, uint32_t flags);

/* Only a warm-up sends requests here; it waits for an answer, and does not look at it. */
void *TRITONBACKEND_ModelInstanceExecute(void *instance, void **requests, const uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        void *response = NULL;
        TRITONBACKEND_ResponseNew(&response, requests[i]);
        TRITONBACKEND_ResponseSend(response, 1 /* final */, NULL);
        TRITONBACKEND_RequestRelease(requests[i], 1 /* all */);
    }
    return NULL;
}
"""

PATIENCE: Final = 60.0
"""Seconds; a server that neither loads nor refuses in that time is killed, and counts as one that refuses."""


def null_server_files(packages: Path, directory: Path) -> ServerFiles:
    """The server of nvidia-pytriton in `packages` (site-packages), with null backends that are built in `directory`."""
    return ServerFiles(
        program=packages / "pytriton" / "tritonserver" / "bin" / "tritonserver",
        backends=_null_backends(directory, BACKENDS),
        libraries=packages / "nvidia_pytriton.libs",
        python=Path(sys.executable).parent,
    )


class NoServerError(Exception):
    """A folder is not that of a server; the message is for who named it."""


def other_server_files(folder: Path, release: str, directory: Path) -> ServerFiles:
    """A server of somebody's own, with null backends that are built in `directory`: those that its release has.

    Args:
        folder: what `/opt/tritonserver` of an image contains: `bin/tritonserver`, and its libraries in `lib`.
        release: the release of the server, `26.05`.
        directory: an empty directory.

    Raises:
        NoServerError: the folder contains no program `bin/tritonserver`.
    """
    program = folder.resolve() / "bin" / "tritonserver"
    if not os.access(program, os.X_OK) or program.is_dir():
        raise NoServerError(
            f"{folder} has no program bin/tritonserver; name a copy of /opt/tritonserver of an image, or the folder of "
            "an installed server"
        )
    libraries = program.parents[1] / "lib"
    return ServerFiles(
        program=program,
        backends=_null_backends(directory, sorted(backends_in(release))),
        libraries=libraries if libraries.is_dir() else None,
        python=Path(sys.executable).parent,
    )


def _null_backends(directory: Path, names: Sequence[str]) -> Path:
    """Build a directory with null backends of these names."""
    library, source = directory / "null.so", directory / "null.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    for name in names:
        (directory / "backends" / name).mkdir(parents=True)
        shutil.copy(library, directory / "backends" / name / f"libtriton_{name}.so")
    return directory / "backends"


def named_memory() -> tuple[str, str]:
    """An option that names the shared memory of a server's Python backend, and the pattern of its files.

    A server that is killed leaves them behind, and they are memory.
    """
    prefix = f"judged-{uuid.uuid4().hex}-"
    return f"--backend-config=python,shm-region-prefix-name={prefix}", f"/dev/shm/{prefix}*"


CRASH = "boost::interprocess::lock_exception"
"""What ends the server of 24.10 now and then, on a busy machine, where a Python model calls it while it loads."""


@dataclass(frozen=True)
class Verdict:
    """What became of a start.

    Attributes:
        loaded: every model that was asked for is served.
        said: the server's output up to that moment, without the path of the repository.
    """

    loaded: bool
    said: str


@dataclass(frozen=True)
class Judge:
    """Starts a server per question and kills it as soon as it has answered."""

    files: ServerFiles

    def __call__(self, directory: Path, models: Sequence[str]) -> Verdict:
        """Start it as a single-model container does with `models` in the repository `directory`."""
        for _ in range(2):
            verdict = self._start(directory, models)
            if CRASH not in verdict.said:
                return verdict
        return self._start(directory, models)

    def _start(self, directory: Path, models: Sequence[str]) -> Verdict:
        variables = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": models[0], "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
        arguments = [
            argument.replace("/opt/ml/model", str(directory))
            for argument in serve_arguments(variables, [models[0]])
            if not argument.startswith("--allow-sagemaker")  # no port at all: the question is whether it loads
        ]
        arguments += [f"--load-model={model}" for model in models[1:]]
        option, memory = named_memory()
        child = subprocess.Popen(
            [
                # A guardian (see `cdk_triton_local.process`) would take longer than the server's whole answer.
                *("setpriv", "--pdeathsig", "KILL"),
                self.files.program,
                *arguments,
                f"--backend-directory={self.files.backends}",
                option,
                "--exit-timeout-secs=1",
            ],
            env={
                "PATH": f"{self.files.python}:/usr/bin:/bin",
                **({"LD_LIBRARY_PATH": str(self.files.libraries)} if self.files.libraries else {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # what a real backend starts is in its group
        )
        assert child.stdout is not None
        watchdog = threading.Timer(PATIENCE, os.killpg, (child.pid, signal.SIGKILL))
        watchdog.start()
        said: list[str] = []
        missing = set(models)
        try:
            for raw in child.stdout:
                line = re.sub(rf"{re.escape(str(directory))}/*(::)?", "", raw.decode(errors="replace"))
                said.append(line)
                if found := re.search(r"successfully loaded '(?:.*::)?(.*)'", line):
                    missing.discard(found[1])
                    if not missing:
                        break
                if "Waiting for in-flight requests to complete" in line:
                    break  # it has said why it gives up, and only takes its time to leave
        finally:
            watchdog.cancel()
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()
            for left in Path("/").glob(memory.lstrip("/")):
                left.unlink()
        return Verdict(not missing, "".join(said))
