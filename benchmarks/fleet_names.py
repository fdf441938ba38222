"""Two warm tenants of a multi-model endpoint answer while six others are loaded: how much of their rate is left.

The inner models of the tenants have names of their own, or all the same name. In the second case the Python of Triton
24.10 writes bytecode into the models' directories, and each load makes Triton load the other tenants' models again.
From 24.11 on Python reads PYTHONDONTWRITEBYTECODE, which the library sets. The server here is 24.10. So archives that
bring their bytecode stand in for that: nothing is left to be written.
"""

from __future__ import annotations

import importlib.util
import io
import json
import py_compile
import statistics
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _figures import progress, report
from cdk_triton.local.endpoints import Container, Endpoint, Invocation, Variant
from cdk_triton.local.triton import TritonHost
from fleet import Archives

WARM = (0, 1)
LOADED = range(2, 8)
ROUNDS = 3
UNDISTURBED_SECONDS = 5
KEPT = 0.8


class ArchivesWithBytecode(Archives):
    """Archives that bring the bytecode of their Python file, which Python never compares with the file."""

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """Return an archive, by a key that ends with the tenant's number."""
        packed = super().get_object(Bucket=Bucket, Key=Key)["Body"]
        with tempfile.TemporaryDirectory(prefix="cdk-triton-") as temporary:
            directory = Path(temporary)
            with tarfile.open(fileobj=packed) as archive:
                archive.extractall(directory, filter="data")
            for source in directory.rglob("*.py"):
                compiled = importlib.util.cache_from_source(str(source))
                never = py_compile.PycInvalidationMode.UNCHECKED_HASH
                py_compile.compile(str(source), compiled, doraise=True, invalidation_mode=never)
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
                archive.add(directory, ".")
        return {"Body": io.BytesIO(buffer.getvalue())}


def ask(host: TritonHost, tenant: int) -> None:
    """Ask one tenant, and check that it is the one that answers."""
    body = json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "FP32", "data": [0.5]}]}).encode()
    headers = {"content-type": "application/json", "x-amzn-sagemaker-target-model": f"tenant-{tenant}"}
    answer = host.invoke(Invocation("fleet", headers, body))
    if answer.status != 200 or json.loads(answer.body)["outputs"][0]["data"] != [tenant + 0.5]:
        sys.exit(f"tenant {tenant} answered {answer.status} {answer.body.decode()[:200]}")


class Clients:
    """Two clients. Each sends requests to one warm tenant, the next one as soon as the last is answered."""

    def __init__(self, host: TritonHost) -> None:
        self._host = host
        self._answers = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=[tenant]) for tenant in WARM]
        for thread in self._threads:
            thread.start()

    def _run(self, tenant: int) -> None:
        while not self._ended.is_set():
            ask(self._host, tenant)
            with self._lock:
                self._answers += 1

    def stop(self) -> int:
        """End, and return the number of answers."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        return self._answers


def rates(archives: Archives) -> tuple[float, float]:
    """Answers per second of the warm tenants: undisturbed, and while the others are loaded."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory:
        host = TritonHost(archives, Path(directory), max_loaded_models=len(WARM) + len(LOADED))
        try:
            container = Container("image", "MultiModel", "s3://bucket/", {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"})
            host.deploy(Endpoint("fleet", "config", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
            for tenant in WARM:
                ask(host, tenant)
            clients, start = Clients(host), time.monotonic()
            time.sleep(UNDISTURBED_SECONDS)
            undisturbed = clients.stop() / (time.monotonic() - start)
            clients, start = Clients(host), time.monotonic()
            for tenant in LOADED:
                ask(host, tenant)
            return undisturbed, clients.stop() / (time.monotonic() - start)
        finally:
            host.close()


def main() -> None:
    """Measure in alternating rounds and report."""
    forms = {
        "distinct names": Archives(equal_names=False),
        "equal names, no bytecode": ArchivesWithBytecode(equal_names=True),
        "equal names, as 24.10 is": Archives(equal_names=True),
    }
    found: dict[str, list[tuple[float, float]]] = {form: [] for form in forms}
    for number in range(ROUNDS):
        for form, archives in forms.items():
            found[form].append(rates(archives))
            undisturbed, loading = found[form][-1]
            progress(
                f"fleet_names: round {number + 1}, {form}: {undisturbed:.0f} answers/s, {loading:.0f} during loads"
            )
    during = {form: statistics.median(loading for _, loading in each) for form, each in found.items()}
    alone = statistics.median(undisturbed for undisturbed, _ in found["distinct names"])
    for form, loading in during.items():
        progress(f"fleet_names: {form}: {loading / alone:.2f} of the undisturbed rate")
    distinct = during["distinct names"]
    progress(f"fleet_names: equal names, as 24.10 is: {during['equal names, as 24.10 is'] / distinct:.2f} of distinct")
    report("fleet_names.kept", during["equal names, no bytecode"] / distinct, "of distinct names", at_least=KEPT)


if __name__ == "__main__":
    main()
