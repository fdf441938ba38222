"""Two warm tenants of a multi-model server answer while six others are loaded: how much of their rate is left.

The inner models of the tenants have names of their own, or all the same name. In the second case the Python of Triton
24.10 writes bytecode into the models' directories, and each load makes Triton load the other tenants' models again.
From 24.11 on Python reads PYTHONDONTWRITEBYTECODE, which the library sets. The server here is 24.10. So archives that
bring their bytecode stand in for that: nothing is left to be written.

A load holds the thread of the server's HTTP front end that has its connection, and every other connection of that
thread waits (sagemaker_server.cc calls TRITONSERVER_ServerLoadModel in its handler). Chance would decide which clients
wait. So one connection has all the loads, and the clients have connections of other threads: those that answer while
the first connection loads.
"""

from __future__ import annotations

import importlib.util
import io
import json
import py_compile
import socket
import statistics
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from _figures import progress, report
from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton_local.triton.server_files import arrange_server_files
from fleet import Archives

WARM = (0, 1)
LOADED = range(2, 8)
ROUNDS = 3
UNDISTURBED_SECONDS = 5
KEPT = 0.8
PING_SECONDS = 0.2
SECONDS = 60


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


class Fleet:
    """A multi-model tritonserver and its archives, as SageMaker lays them out."""

    def __init__(self, archives: Archives, work: Path) -> None:
        self._archives = archives
        self._work = work
        repository = work / "empty"
        repository.mkdir()
        settings = ServerSettings(arrange_server_files(work), loopback_library(), free_port)
        environment = {"SAGEMAKER_MULTI_MODEL": "true", "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
        self._server = TritonServer(settings, environment, repository, work / "log")
        self._loads = self._connection(SECONDS)

    def close(self) -> None:
        """End the server."""
        self._loads.close()
        self._server.kill()

    def load(self, tenant: int) -> None:
        """Load a tenant's archive, on the connection of all loads."""
        repository = self._work / "models" / f"tenant-{tenant}" / "model"
        with tarfile.open(
            fileobj=self._archives.get_object(Bucket="bucket", Key=f"tenant-{tenant}")["Body"]
        ) as archive:
            archive.extractall(repository, filter="data")
        body = json.dumps({"model_name": f"tenant-{tenant}", "url": str(repository)})
        self._loads.request("POST", "/models", body, {"X-Amzn-SageMaker-Target-Model": f"tenant-{tenant}"})
        with self._loads.getresponse() as answer:
            if answer.status != 200:
                sys.exit(f"tenant {tenant} was not loaded: {answer.status} {answer.read().decode()[:200]}")

    def connections_beside_loads(self, tenant: int, count: int) -> list[HTTPConnection]:
        """Load a tenant, and return connections that answered meanwhile."""
        found: list[HTTPConnection] = []
        load = threading.Thread(target=self.load, args=[tenant])
        load.start()
        while len(found) < count:
            connection = self._connection(PING_SECONDS)
            try:
                connection.request("GET", "/ping")
                connection.getresponse().read()
            except TimeoutError:
                continue  # and leave it open: the next connection goes to a thread with fewer
            if not load.is_alive():
                sys.exit(f"a load ended before {count} connections of other threads were found")
            connection.sock.settimeout(SECONDS)
            found.append(connection)
        load.join()
        return found

    def _connection(self, seconds: float) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", self._server.port, timeout=seconds)
        connection.connect()
        # Without this, the second segment of a request waits for the acknowledgement of the first: 40 ms.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def ask(connection: HTTPConnection, tenant: int) -> None:
    """Ask one tenant, and check that it is the one that answers."""
    body = json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "FP32", "data": [0.5]}]})
    headers = {"content-type": "application/json", "x-amzn-sagemaker-target-model": f"tenant-{tenant}"}
    connection.request("POST", f"/models/tenant-{tenant}/invoke", body, headers)
    with connection.getresponse() as answer:
        text = answer.read().decode()
        if answer.status != 200 or json.loads(text)["outputs"][0]["data"] != [tenant + 0.5]:
            sys.exit(f"tenant {tenant} answered {answer.status} {text[:200]}")


class Clients:
    """Two clients. Each sends requests to one warm tenant, the next one as soon as the last is answered."""

    def __init__(self, connections: list[HTTPConnection]) -> None:
        self._answers = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=each) for each in zip(connections, WARM, strict=True)]
        for thread in self._threads:
            thread.start()

    def _run(self, connection: HTTPConnection, tenant: int) -> None:
        while not self._ended.is_set():
            ask(connection, tenant)
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
    with (
        tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory,
        closing(Fleet(archives, Path(directory))) as fleet,
    ):
        first, last = WARM
        fleet.load(first)
        connections = fleet.connections_beside_loads(last, len(WARM))
        clients, start = Clients(connections), time.monotonic()
        time.sleep(UNDISTURBED_SECONDS)
        undisturbed = clients.stop() / (time.monotonic() - start)
        clients, start = Clients(connections), time.monotonic()
        for tenant in LOADED:
            fleet.load(tenant)
        return undisturbed, clients.stop() / (time.monotonic() - start)


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
