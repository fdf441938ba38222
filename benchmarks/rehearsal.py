"""A rehearsal of this machine: what it adds to the server's own time, and how much memory golden requests take.

The program of a GPU build rehearses one Python model with the real tritonserver, started as `serve`. The server alone
is started and asked in the same way, for comparison.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from _figures import progress, report
from cdk_triton.artifacts.program import write_program
from cdk_triton_local import build_tools

NUMBERS = 25_000
"""FP32 numbers of a request: 100 kB."""
REQUESTS = 1_000
MOST_SECONDS_BEYOND = 3.0
MOST_GROWTH_MB = 20.0
"""The bodies have 100 MB together."""

CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: -1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
instance_group { kind: KIND_GPU count: 1 }
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", each[:, :1].copy())]) for each in inputs]
"""


def main() -> int:
    """Measure, and return 1 if a figure does not hold."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        write_program(work / "program.pyz")
        progress("the server alone, and a rehearsal with one request")
        alone = seconds_alone(work / "alone")
        seconds, few_mb = rehearsed(work, 1)
        progress(f"a rehearsal with {REQUESTS:,} requests of 100 kB")
        _, many_mb = rehearsed(work, REQUESTS)
    holds = [
        report("rehearsal.beyond_the_server", seconds - alone, "seconds", at_most=MOST_SECONDS_BEYOND),
        report("rehearsal.growth", many_mb - few_mb, "MB for 100 MB of requests", at_most=MOST_GROWTH_MB),
    ]
    return 0 if all(holds) else 1


def seconds_alone(root: Path) -> float:
    """How long the server takes to start, to answer one request, and to end."""
    write_repository(root / "opt/ml/model")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**variables(), "SAGEMAKER_BIND_TO_PORT": str(port), "CDK_TRITON_STAND_IN_ROOT": str(root)}
    body, content_type = request()
    began = time.monotonic()
    with subprocess.Popen(["serve"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as server:
        while status(port, "GET", "/ping") != 200:
            if server.poll() is not None:
                raise RuntimeError(f"the server ended with exit status {server.returncode}")
            time.sleep(0.01)
        if (answered := status(port, "POST", "/invocations", body, content_type)) != 200:
            raise RuntimeError(f"the server answered with status {answered}")
        server.terminate()
    return time.monotonic() - began


def rehearsed(work: Path, count: int) -> tuple[float, float]:
    """How many seconds a rehearsal with so many requests takes, and the most MB that the program has in memory."""
    folder, out, root = (work / f"{name}{count}" for name in ("in", "out", "root"))
    for each in (folder, root):
        each.mkdir()
    write_repository(folder / "repository")
    body, content_type = request()
    for number in range(count):
        (folder / f"request{number}").write_bytes(body)
    (folder / "rehearsal.json").write_text(json.dumps(document(count, content_type)))
    command = [sys.executable, str(work / "program.pyz"), "rehearse", str(folder), str(out), str(root)]
    began = time.monotonic()
    with subprocess.Popen(command, env=variables(), stdout=subprocess.DEVNULL) as program:
        most = 0
        process = psutil.Process(program.pid)
        while program.poll() is None:
            most = max(most, process.memory_info().rss)
            time.sleep(0.02)
    seconds = time.monotonic() - began
    reason = json.loads((out / "rehearsal.json").read_text())["reason"]
    if reason is not None:
        raise RuntimeError(reason)
    shutil.rmtree(folder)
    return seconds, most / 1e6


def document(count: int, content_type: str) -> Mapping[str, Any]:
    """The document of a rehearsal whose answers are not compared."""
    row = {"content_type": content_type, "comparison": {"how": "any"}, "expected": None, "expected_type": ""}
    return {
        "schema": 1,
        "repository": "search",
        "mode": "single",
        "environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "model"},
        "load_timeout_seconds": 120.0,
        "requests": [{"name": f"golden/{each}.npz", "body": f"request{each}", **row} for each in range(count)],
        "keep_answers": False,
    }


def request() -> tuple[bytes, str]:
    """The body and the content type of a request."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, NUMBERS], "parameters": {"binary_data_size": 4 * NUMBERS}}
    header = json.dumps({"inputs": [tensor]}).encode()
    size = len(header)
    return header + bytes(4 * NUMBERS), f"application/vnd.sagemaker-triton.binary+json;json-header-size={size}"


def write_repository(repository: Path) -> None:
    """Write the model."""
    (repository / "model/1").mkdir(parents=True)
    (repository / "model/config.pbtxt").write_text(CONFIG)
    (repository / "model/1/model.py").write_text(MODEL)


def variables() -> dict[str, str]:
    """The environment with the stand-in for `serve`."""
    path = f"{build_tools.tools_directory()}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "CDK_TRITON_STAND_IN_PYTHON": sys.executable}


def status(port: int, method: str, path: str, body: bytes = b"", content_type: str = "") -> int | None:
    """The status of an answer; None without one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body or None, {"Content-Type": content_type} if content_type else {})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
