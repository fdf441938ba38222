"""How long `cdk-triton validate` takes: for a thousand ensembles, for one, and against asking the server itself.

A thousand ensembles of four models each in one directory are checked by the command in a process of its own, start of
the interpreter included, and cold: with the repository out of the page cache as far as the system lets it go. Byte code
is there, as an installation writes it. One ensemble is checked within a process that has imported the library and its
rules, as the constructs do at synth. The server learns the same by loading that ensemble: a real tritonserver with its
Python backend and this machine's stand-ins, started and waited for as the local AWS does. Server, command and check
take turns, so that a busy moment meets all of them.

The figure against the server is that of the check, which is what synth pays and what differs from one tool to the
other. A person who calls the command pays for an interpreter and its imports as well; how that compares is printed, and
not a figure: most of it is Python's start.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import onnx.helper

from _figures import progress, report
from cdk_triton.local.triton.loopback import loopback_library
from cdk_triton.local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton.local.triton.server_files import arrange_server_files

ENSEMBLES = 1000
MODELS = 4
ROUNDS = 3

PYTHON_MODEL = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb.get_input_tensor_by_name(request, "IN") for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", tensor.as_numpy())]) for tensor in tensors]
"""

CONFIG = """
name: "{name}"
backend: "{backend}"
max_batch_size: 16
input [ {{ name: "IN" data_type: TYPE_FP32 dims: [ 128 ] }} ]
output [ {{ name: "OUT" data_type: TYPE_FP32 dims: [ 128 ] }} ]
instance_group [ {{ kind: KIND_CPU }} ]
dynamic_batching {{ }}
"""

STEP = """
  step {{
    model_name: "{name}"
    model_version: -1
    input_map {{ key: "IN" value: "tensor{before}" }}
    output_map {{ key: "OUT" value: "tensor{after}" }}
  }}"""

ENSEMBLE = """
name: "{name}"
platform: "ensemble"
max_batch_size: 16
input [ {{ name: "tensor0" data_type: TYPE_FP32 dims: [ 128 ] }} ]
output [ {{ name: "tensor{last}" data_type: TYPE_FP32 dims: [ 128 ] }} ]
ensemble_scheduling {{{steps}
}}
"""

ONE = """
import sys, time
from cdk_triton.checks import rules
from cdk_triton.triton import ModelRepository
rules()  # which imports their modules
start = time.perf_counter()
findings = ModelRepository.from_directory(sys.argv[1]).check()
print(time.perf_counter() - start)
assert findings == (), findings
"""


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        measure_one(work / "one")
        measure_many(work / "many")


def measure_many(root: Path) -> None:
    """A thousand ensembles, by the command, cold each time."""
    progress(f"validate: writing {ENSEMBLES} ensembles with {MODELS} models each ...")
    write_ensembles(root, ENSEMBLES)
    runs = []
    for number in range(1, ROUNDS + 1):
        forget(root)
        runs.append(validate(root))
        progress(f"validate: round {number} of {ROUNDS}: {runs[-1][0]:.2f} s")
    report("validate.thousand_ensembles", statistics.median(seconds for seconds, _ in runs), "s", at_most=5)
    report("validate.thousand_ensembles_memory", max(memory for _, memory in runs), "MB", at_most=150)


def measure_one(root: Path) -> None:
    """One ensemble, within a process and by the server."""
    write_ensembles(root / "model", 1)
    settings = ServerSettings(arrange_server_files(root), loopback_library(), free_port)
    check_once(root)
    validate(root / "model")
    checks: list[float] = []
    commands: list[float] = []
    servers: list[float] = []
    for number in range(1, ROUNDS + 1):
        progress(f"validate: one ensemble, round {number} of {ROUNDS} ...")
        checks.append(check_once(root))
        commands.append(validate(root / "model")[0])
        servers.append(start(settings, root))
    check, command, server = (statistics.median(seconds) for seconds in (checks, commands, servers))
    progress(f"validate: medians: check {check * 1000:.1f} ms, command {command:.2f} s, tritonserver {server:.2f} s")
    progress(f"validate: the whole command is {server / command:.1f} times as fast as tritonserver")
    report("validate.one_ensemble", check * 1000, "ms after import", at_most=50)
    report("validate.against_tritonserver", server / check, "times as fast as starting tritonserver", at_least=30)


def forget(root: Path) -> None:
    """Let go of the files' pages, so that the next reader reads the disk."""
    os.sync()
    for file in root.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def check_once(root: Path) -> float:
    """Seconds for one ensemble in a process that has imported the library, the first of its life."""
    command = [sys.executable, "-c", ONE, str(root / "model")]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def validate(root: Path) -> tuple[float, float]:
    """Seconds and peak memory in MB of the command; it has to find the one thing that is wrong, or nothing."""
    command = [str(Path(sys.executable).with_name("cdk-triton")), "validate", str(root), "--format", "json"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        findings = json.load(child.stdout)["findings"]
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if {finding["code"] for finding in findings if finding["severity"] == "error"} - {"CT403"}:  # which one to load?
        raise RuntimeError(f"{root} has errors: {findings[:3]}")
    return seconds, usage.ru_maxrss * 1024 / 1e6


def start(settings: ServerSettings, root: Path) -> float:
    """Seconds until a server has loaded the ensemble."""
    environment = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble0000", "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
    started = time.perf_counter()
    server = TritonServer(settings, environment, root / "model", root / "log")
    seconds = time.perf_counter() - started
    server.kill()
    return seconds


def write_ensembles(root: Path, count: int) -> None:
    """Ensembles of Python and ONNX models in turns."""
    network = onnx_model()
    for number in range(count):
        names = [f"model{number:04}_{letter}" for letter, _ in zip("abcd", range(MODELS), strict=True)]
        for index, name in enumerate(names):
            backend = ("python", "onnxruntime")[index % 2]
            version = root / name / "1"
            version.mkdir(parents=True)
            (root / name / "config.pbtxt").write_text(CONFIG.format(name=name, backend=backend), encoding="utf-8")
            if backend == "python":
                (version / "model.py").write_text(PYTHON_MODEL, encoding="utf-8")
            else:
                (version / "model.onnx").write_bytes(network)
        ensemble = root / f"ensemble{number:04}"
        (ensemble / "1").mkdir(parents=True)
        (ensemble / "1" / ".gitkeep").touch()
        text = ENSEMBLE.format(name=ensemble.name, last=MODELS, steps="".join(steps(names)))
        (ensemble / "config.pbtxt").write_text(text, encoding="utf-8")


def steps(names: list[str]) -> Iterator[str]:
    """The steps of an ensemble that runs its models in a row."""
    for index, name in enumerate(names):
        yield STEP.format(name=name, before=index, after=index + 1)


def onnx_model() -> bytes:
    """A network that returns its input."""
    shape: list[str | int | None] = ["batch", 128]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["IN"], ["OUT"])],
        "identity",
        [value("IN", onnx.TensorProto.FLOAT, shape)],
        [value("OUT", onnx.TensorProto.FLOAT, shape)],
    )
    opset = onnx.helper.make_opsetid("", 17)
    return bytes(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString())


if __name__ == "__main__":
    main()
