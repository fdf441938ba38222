"""How long `cdk-triton validate` takes: for a thousand ensembles, for one, and against asking the server itself.

A thousand ensembles of four models each in one directory are checked by the command in a process of its own, start of
the interpreter included. Byte code is there, as an installation writes it. Seconds on a clock depend on the machine and
on what else it does. So the figure is a ratio of processor time: that of the whole command, against that of parsing the
same 5,000 configurations in one process with protobuf's own `text_format.Parse`, which no check can do without. Both
take turns, and the medians count. The files are warm. Processes that the command starts, for ONNX networks, are not
counted. The seconds on a clock are printed too, cold: with the repository out of the page cache as far as the system
lets it go.

One ensemble is checked within a process that has imported the library and its
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
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import onnx.helper

from _figures import progress, report
from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton_local.triton.server_files import arrange_server_files

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


PARSE = """
import sys, time
from pathlib import Path
from google.protobuf import text_format
from cdk_triton.triton import ModelConfig
texts = [path.read_text() for path in sorted(Path(sys.argv[1]).rglob("config.pbtxt"))]
start = time.process_time()
for text in texts:
    text_format.Parse(text, ModelConfig())
print(time.process_time() - start)
"""

# What the script of the command does, and then the usage of this process alone.
COMMAND = """
import resource, sys
from cdk_triton.cli import main
usage = sys.argv.pop(1)
try:
    main()
finally:
    own = resource.getrusage(resource.RUSAGE_SELF)
    with open(usage, "w") as file:
        file.write(f"{own.ru_utime + own.ru_stime} {own.ru_maxrss * 1024 / 1e6}")
"""


class Run(NamedTuple):
    """One run of the command.

    Attributes:
        seconds: on a clock.
        processor: seconds of processor time of its own process.
        memory: its peak in MB.
    """

    seconds: float
    processor: float
    memory: float


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        measure_one(work / "one")
        measure_many(work / "many")


def measure_many(root: Path) -> None:
    """A thousand ensembles: the command against protobuf's parser, in turns."""
    progress(f"validate: writing {ENSEMBLES} ensembles with {MODELS} models each ...")
    write_ensembles(root, ENSEMBLES)
    forget(root)
    progress(f"validate: cold, {validate(root).seconds:.2f} s on a clock")
    runs, parsed = [], []
    for number in range(1, ROUNDS + 1):
        runs.append(validate(root))
        parsed.append(parse_all(root))
        progress(
            f"validate: round {number} of {ROUNDS}: {runs[-1].seconds:.2f} s on a clock; of processor time "
            f"{runs[-1].processor:.2f} s, and {parsed[-1]:.2f} s to parse"
        )
    ratio = statistics.median(run.processor for run in runs) / statistics.median(parsed)
    report("validate.thousand_ensembles", ratio, "times the processor time of parsing", at_most=3.5)
    report("validate.thousand_ensembles_memory", max(run.memory for run in runs), "MB", at_most=150)


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
        commands.append(validate(root / "model").seconds)
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


def parse_all(root: Path) -> float:
    """Seconds of processor time for parsing every configuration, in a process of its own, without reading the files."""
    return float(subprocess.run([sys.executable, "-c", PARSE, str(root)], check=True, capture_output=True).stdout)


def validate(root: Path) -> Run:
    """Run the command; it has to find the one thing that is wrong, or nothing."""
    started = time.perf_counter()
    with NamedTemporaryFile("r") as usage:
        command = [sys.executable, "-c", COMMAND, usage.name, "validate", str(root), "--format", "json"]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - started
        processor, memory = map(float, usage.read().split())
    findings = json.loads(done.stdout)["findings"]
    if {finding["code"] for finding in findings if finding["severity"] == "error"} - {"CT403"}:  # which one to load?
        raise RuntimeError(f"{root} has errors: {findings[:3]}")
    return Run(seconds, processor, memory)


def start(settings: ServerSettings, root: Path) -> float:
    """Seconds until a server has loaded the ensemble."""
    environment = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble0000",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "1048576",  # as the constructs write it
    }
    started = time.perf_counter()
    server = TritonServer(settings, environment, root / "model", root / "log")
    seconds = time.perf_counter() - started
    server.kill()
    return seconds


def write_ensembles(root: Path, count: int, *, first: int = 0) -> None:
    """Ensembles of Python and ONNX models in turns; the number of an ensemble is in the names of its models."""
    network = onnx_model()
    for number in range(first, first + count):
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
