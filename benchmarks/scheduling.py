"""What sequences and priorities are worth on the real server, through the local AWS and the client.

Sequences: 16 callers, each with a sequence of 1,000 calls, take turns on a model that adds up. Each has to get its own
sums.

Priorities: 12 callers with level 2 keep a queue full, and one comes now and then, in turns with level 1 and with level
2 like the others. The server needs 10 ms for a request.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from _figures import progress, report
from cdk_triton.artifacts import write_archive
from cdk_triton.client import TritonClient
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Container, Endpoint, Variant
from cdk_triton_local.triton import TritonHost

SEQUENCES, STEPS = 16, 1000
SERVICE_SECONDS = 0.01
CALLERS, REQUESTS, PAUSE = 12, 100, 0.05

TENSORS = """
backend: "python"
input { name: "x" data_type: TYPE_INT64 dims: 1 }
output { name: "y" data_type: TYPE_INT64 dims: 1 }
instance_group { kind: KIND_CPU count: 1 }
"""
CONFIGS = {
    "sums": TENSORS
    + f"""
max_batch_size: 8
sequence_batching {{
  control_input {{ name: "start" control {{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }} }}
  max_sequence_idle_microseconds: 60000000
  oldest {{ max_candidate_sequences: {SEQUENCES} }}
}}
""",
    "queue": TENSORS
    + """
max_batch_size: 1
dynamic_batching { priority_levels: 2 default_priority_level: 2 }
""",
}
MODELS = {
    "sums": """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("y", self.sum_of(each))]) for each in requests]

    def sum_of(self, request):
        x, starts = (pb.get_input_tensor_by_name(request, name).as_numpy() for name in ("x", "start"))
        of = request.correlation_id()
        self.sums[of] = x + (0 if starts.any() else self.sums[of])
        return self.sums[of]
""",
    "queue": f"""
import time
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        time.sleep({SERVICE_SECONDS} * len(requests))
        inputs = [pb.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [pb.InferenceResponse([pb.Tensor("y", each)]) for each in inputs]
""",
}


class Archives:
    """An S3 with an archive for each model."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name, config in CONFIGS.items():
            (directory / name / name / "1").mkdir(parents=True)
            (directory / name / name / "config.pbtxt").write_text(config, encoding="utf-8")
            (directory / name / name / "1" / "model.py").write_text(MODELS[name], encoding="utf-8")
            write_archive(directory / name, directory / f"{name}.tar.gz")

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """Return an archive."""
        return {"Body": (self._directory / Key).open("rb")}


def x(value: int) -> dict[str, Any]:
    """The input of both models."""
    return {"x": np.array([[value]])}


def wrong_sums(client: TritonClient) -> int:
    """The sequences that did not get their own sums."""

    def sums_rightly(number: int) -> bool:
        with client.sequence(number) as calls:
            sums = [calls.infer(x(number), last=step == STEPS)["y"].item() for step in range(1, STEPS + 1)]
        return sums == [number * step for step in range(1, STEPS + 1)]

    with ThreadPoolExecutor(SEQUENCES) as callers:
        return SEQUENCES - sum(callers.map(sums_rightly, range(1, SEQUENCES + 1)))


def latencies(client: TritonClient) -> dict[int, list[float]]:
    """The seconds of the requests with level 1 and with level 2 of one caller, while others keep the queue full."""
    found: dict[int, list[float]] = {1: [], 2: []}
    end = threading.Event()

    def keep_full() -> None:
        while not end.is_set():
            client.infer(x(1), priority=2)

    callers = [threading.Thread(target=keep_full) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    for _ in range(REQUESTS):
        for priority, seconds in found.items():
            time.sleep(PAUSE)
            began = time.perf_counter()
            client.infer(x(1), priority=priority)
            seconds.append(time.perf_counter() - began)
    end.set()
    for caller in callers:
        caller.join()
    return found


def distribution(seconds: list[float]) -> str:
    """Percentiles in milliseconds."""
    tenths = statistics.quantiles(seconds, n=10)
    parts = {"p10": tenths[0], "p50": tenths[4], "p90": tenths[8], "max": max(seconds)}
    return ", ".join(f"{name} {value * 1e3:.0f} ms" for name, value in parts.items()) + f" of {len(seconds)}"


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        archives = Archives(Path(directory))
        host = TritonHost(lambda _: archives, Path(directory) / "host")
        with LocalAws(Path(directory) / "aws", host_factory=lambda aws: host) as aws:
            for name in CONFIGS:
                environment = {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
                container = Container("image", "SingleModel", f"s3://bucket/{name}.tar.gz", environment)
                host.deploy(Endpoint(name, name, (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
            runtime = aws.client("sagemaker-runtime")
            progress(f"scheduling: {SEQUENCES} sequences of {STEPS} calls ...")
            began = time.perf_counter()
            wrong = wrong_sums(TritonClient("sums", runtime))
            progress(f"scheduling: {SEQUENCES * STEPS / (time.perf_counter() - began):.0f} calls per second")
            high, default = latencies(TritonClient("queue", runtime)).values()
    progress(f"scheduling: with level 1: {distribution(high)}")
    progress(f"scheduling: without it: {distribution(default)}")
    report("scheduling.sequences", wrong, "sequences with a wrong sum", at_most=0)
    ratio = statistics.median(high) / statistics.median(default)
    report("scheduling.priority", ratio, "of the latency without a priority", at_most=0.5)


if __name__ == "__main__":
    main()
