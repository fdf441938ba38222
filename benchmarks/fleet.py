"""How long a multi-model endpoint that holds 4 of its 60 models lets 8 clients wait.

Popularity of the models falls as in Zipf's law (exponent 1.1). Each model adds a number of its own, so an answer of
another tenant is noticed. `--seconds` makes a shorter run; `--equal-names` gives the inner models of all archives the
same name, which makes Triton 24.10 load other tenants' models again.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import statistics
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _figures import progress, report
from cdk_triton_local.endpoints import Container, Endpoint, Invocation, Variant
from cdk_triton_local.triton import TritonHost

MODELS = 60
PLACES = 4
CLIENTS = 8
EXPONENT = 1.1
ALLOWED_SECONDS = 20

ENSEMBLE = """
platform: "ensemble"
input { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }
ensemble_scheduling { step { model_name: "STEP" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""

CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }
"""

MODEL = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value + NUMBER)]) for value in values]
"""


class Archives:
    """An S3 with an archive for each tenant.

    Args:
        equal_names: give their inner models the same name.
    """

    def __init__(self, *, equal_names: bool) -> None:
        self._equal_names = equal_names

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """Return an archive, by a key that ends with the tenant's number."""
        tenant = int(Key.rpartition("-")[2])
        step = "step" if self._equal_names else f"step{tenant}"
        files = {
            "ensemble/config.pbtxt": ENSEMBLE.replace("STEP", step),
            "ensemble/1/.keep": "",
            f"{step}/config.pbtxt": CONFIG,
            f"{step}/1/model.py": MODEL.replace("NUMBER", f"{tenant}.0"),
        }
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        return {"Body": io.BytesIO(buffer.getvalue())}


class Client:
    """Asks for one model after the other and keeps what happened.

    Args:
        host: runs the endpoint.
        seed: for the choice of models.
    """

    def __init__(self, host: TritonHost, seed: int) -> None:
        self._host = host
        self._random = random.Random(seed)
        self.seconds: list[float] = []
        self.faults: Counter[str] = Counter()

    def run(self, until: float) -> None:
        """Ask until that time."""
        weights = [1 / (rank + 1) ** EXPONENT for rank in range(MODELS)]
        while time.monotonic() < until:
            self._ask(self._random.choices(range(MODELS), weights)[0])

    def _ask(self, tenant: int) -> None:
        body = json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "FP32", "data": [0.5]}]}).encode()
        headers = {"content-type": "application/json", "x-amzn-sagemaker-target-model": f"tenant-{tenant}"}
        start = time.monotonic()
        answer = self._host.invoke(Invocation("fleet", headers, body))
        self.seconds.append(time.monotonic() - start)
        if answer.status != 200:
            self.faults[f"{answer.status} {answer.body.decode()[:200]}"] += 1
        elif json.loads(answer.body)["outputs"][0]["data"] != [tenant + 0.5]:
            self.faults["the answer of another tenant"] += 1


def measure(directory: Path, seconds: float, *, equal_names: bool) -> None:
    """Measure in `directory` and report."""
    log: list[str] = []
    host = TritonHost(
        lambda role: Archives(equal_names=equal_names), directory, max_loaded_models=PLACES, log=log.append
    )
    try:
        container = Container("image", "MultiModel", "s3://bucket/", {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"})
        host.deploy(Endpoint("fleet", "config", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
        clients = [Client(host, seed) for seed in range(CLIENTS)]
        progress(f"fleet: {CLIENTS} clients for {seconds:g} s ...")
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=client.run, args=[until]) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        host.close()
    times = sorted(each for client in clients for each in client.seconds)
    faults = sum((client.faults for client in clients), Counter[str]())
    loads = sum(line.startswith("loaded ") for line in log)
    progress(
        f"fleet: {len(times)} answers, {loads} loads; p50 {statistics.median(times):.1f} s, {times[-1]:.1f} s at most"
    )
    for fault, count in faults.items():
        progress(f"fleet: {count} x {fault}")
    report("fleet.faults", faults.total(), "errors and answers of another tenant", at_most=0)
    report("fleet.p99", statistics.quantiles(times, n=100)[98], "s", at_most=ALLOWED_SECONDS)


def main(arguments: list[str]) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--equal-names", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory:
        measure(Path(directory), options.seconds, equal_names=options.equal_names)


if __name__ == "__main__":
    main(sys.argv[1:])
