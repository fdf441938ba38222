"""Endpoints on real tritonserver processes: single models, updates, crashes."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local.endpoints import Container, Endpoint, Variant
from cdk_triton_local.triton.loopback import listening_addresses
from cdk_triton_local.triton.server import TritonServer, free_port

if TYPE_CHECKING:
    from golden_messages import Messages

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""
LOOPBACK = {"127.0.0.1", "::1"}


def servers(bench: Any) -> list[psutil.Process]:
    """The tritonservers of a bench, by the logs that they write; other tests may have servers of their own."""
    found = [child for child in psutil.Process().children(recursive=True) if child.name() == "tritonserver"]
    return [
        server for server in found if any(Path(log.path).is_relative_to(bench.directory) for log in server.open_files())
    ]


def tree(parent: int) -> list[psutil.Process]:
    return [child for child in psutil.Process(parent).children(recursive=True) if "triton" in child.name()]


def shared_memory(processes: list[psutil.Process]) -> set[Path]:
    """The files in shared memory that they share."""
    maps = {area.path for process in processes for area in process.memory_maps()}
    return {Path(path) for path in maps if path.startswith("/dev/shm/")}


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, bench_in: Any, adder: Any) -> Iterator[Any]:
    """An endpoint that only answers; everything that listens is switched on."""
    bench = bench_in(tmp_path_factory.mktemp("one"))
    environment = {"ALLOW_GRPC": "true", "ALLOW_METRICS": "true", "THREAD_COUNT": "3"}
    bench.single("one", adder(1), environment={f"SAGEMAKER_TRITON_{key}": value for key, value in environment.items()})
    yield bench
    bench.host.close()


def test_a_single_model_endpoint_answers(one: Any) -> None:
    response = one.invoke("one", 1.0, 2.0)
    assert json.loads(response.body)["outputs"] == [
        {"name": "OUT", "datatype": "FP32", "shape": [1, 2], "data": [2.0, 3.0]}
    ]
    assert response.headers["x-Amzn-Invoked-Production-Variant"] == "AllTraffic"
    assert response.headers["Content-Type"] == "application/json"


def test_nothing_listens_on_another_interface_than_loopback(one: Any) -> None:
    [server] = servers(one)
    listening = [c.laddr for c in server.net_connections() if c.status == psutil.CONN_LISTEN]
    assert len({address.port for address in listening}) == 3  # SageMaker, gRPC, metrics
    assert {address.ip for address in listening} <= LOOPBACK
    assert all(len(listening_addresses(address.port)) == 1 for address in listening)


def test_the_server_gets_the_flags_of_the_serve_script(one: Any) -> None:
    [server] = servers(one)
    flags = server.cmdline()[1:]
    assert "--model-control-mode=explicit" in flags
    assert "--sagemaker-thread-count=3" in flags
    assert "--load-model=model" in flags
    assert not [flag for flag in flags if "/opt/ml" in flag]
    assert server.environ()["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "model"
    assert "PYTHONPATH" not in server.environ()


@pytest.mark.usefixtures("one")
def test_a_directory_name_with_a_blank_is_no_obstacle(one: Any) -> None:
    assert " " in str(one.directory)
    assert one.answer("one", 1.0) == [2.0]


def test_closing_leaves_nothing_but_logs(one: Any) -> None:
    one.host.close()
    assert servers(one) == []
    assert (one.directory / "logs" / "one" / "AllTraffic.log").stat().st_size > 0
    assert not (one.directory / "endpoints").exists()


def test_what_the_serve_script_rejects_is_rejected_in_its_words(new_bench: Any, adder: Any) -> None:
    bench = new_bench()
    with pytest.raises(LocalError, match="Model directory needs to contain the top level folder"):
        bench.single("one", adder(1, "flat"))
    assert bench.invoke("one", 1.0).status == 400
    assert list((bench.directory / "endpoints").iterdir()) == []


def test_a_model_that_does_not_load_fails_the_deployment_with_the_servers_words(new_bench: Any, packed: Any) -> None:
    bench = new_bench()
    broken = {"model/config.pbtxt": 'backend: "python" max_batch_size: -1', "model/1/model.py": ""}
    with pytest.raises(LocalError, match="max_batch_size"):
        bench.single("one", packed(broken))


def test_a_model_that_listens_beyond_loopback_fails_the_deployment(
    messages: Messages, new_bench: Any, packed: Any
) -> None:
    """Its program runs without the library that keeps the server at home."""
    listen = "import socket; s = socket.create_server(('0.0.0.0', 0)); print('up', flush=True); input()"
    model = f"""
import subprocess

class TritonPythonModel:
    def initialize(self, args):
        command = [{sys.executable!r}, "-c", {listen!r}]
        self.program = subprocess.Popen(command, env={{}}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.program.stdout.readline()
"""
    bench = new_bench()
    archive = packed({"model/config.pbtxt": CONFIG, "model/1/model.py": model})
    with pytest.raises(LocalError, match=r"0\.0\.0\.0:\d+") as caught:
        bench.single("one", archive)
    messages.record("LocalError", re.sub(r"0\.0\.0\.0:\d+", "0.0.0.0:PORT", str(caught.value)))
    assert servers(bench) == []


def test_an_update_swaps_the_server_and_a_failed_one_keeps_the_old(new_bench: Any, adder: Any, packed: Any) -> None:
    bench = new_bench()
    bench.single("one", adder(1))
    bench.single("one", adder(2))
    assert bench.answer("one", 1.0) == [3.0]
    assert len(servers(bench)) == 1
    with pytest.raises(LocalError):
        bench.single("one", packed({"model/config.pbtxt": "nonsense"}))
    assert bench.answer("one", 1.0) == [3.0]
    bench.host.remove("one")
    assert servers(bench) == []
    assert "not found" in json.loads(bench.invoke("one", 1.0).body)["Message"]


def test_a_fleet_may_be_a_whole_bucket(new_bench: Any, adder: Any) -> None:
    bench = new_bench()
    bench.fleet("fleet", prefix="", a=adder(1))
    assert bench.answer("fleet", 1.0, model="a") == [2.0]


def test_a_server_that_dies_with_a_request_in_flight_is_replaced(
    messages: Messages, new_bench: Any, adder: Any
) -> None:
    bench = new_bench()
    bench.fleet("fleet", a=adder(1))
    assert bench.answer("fleet", 1.0, model="a") == [2.0]
    failed = bench.invoke("fleet", 666.0, model="a")
    assert failed.status == 424
    error = json.loads(failed.body)
    assert failed.headers["x-amzn-ErrorType"] == "ModelError"
    assert error["OriginalStatusCode"] == 0
    assert "could not get a response from the fleet endpoint" in error["OriginalMessage"]
    assert bench.answer("fleet", 1.0, model="a") == [2.0], "reloaded on demand"
    messages.record("log", next(line for line in bench.lines if re.search(r"\b137\b", line)))


def test_a_server_that_is_killed_while_idle_is_replaced(new_bench: Any, adder: Any) -> None:
    bench = new_bench()
    bench.single("one", adder(1))
    assert bench.answer("one", 1.0) == [2.0]
    [server] = servers(bench)
    stubs = server.children(recursive=True)
    memory = shared_memory(stubs)
    assert memory
    server.kill()
    assert bench.invoke("one", 1.0).status in (200, 424)  # the crash may be noticed first
    assert bench.answer("one", 1.0) == [2.0]
    assert not any(stub.is_running() for stub in stubs)
    assert not any(path.exists() for path in memory)


def test_a_port_in_use_is_left_alone(messages: Messages, new_bench: Any, adder: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        offered = iter([port, free_port()])
        bench = new_bench(ports=lambda: next(offered))
        bench.single("one", adder(1))
        assert bench.answer("one", 1.0) == [2.0]
        bench = new_bench(ports=lambda: port)
        with pytest.raises(LocalError, match=f"port {port} ") as caught:
            bench.single("one", adder(1))
    messages.record("LocalError", str(caught.value).replace(str(port), "PORT"))


def test_two_hosts_share_nothing(new_bench: Any, adder: Any) -> None:
    first, second = new_bench(), new_bench()
    first.single("one", adder(1))
    second.single("one", adder(2))
    assert (first.answer("one", 1.0), second.answer("one", 1.0)) == ([2.0], [3.0])
    first.host.close()
    assert second.answer("one", 1.0) == [3.0]


@pytest.fixture
def host_process(tmp_path: Path, adder: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that runs a host with one endpoint."""
    (tmp_path / "model.tar.gz").write_bytes(adder(1))
    program = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from cdk_triton_local.endpoints import Container, Endpoint, Variant
        from cdk_triton_local.triton import TritonHost
        class Files:
            def get_object(self, *, Bucket, Key):
                return {{"Body": open({str(tmp_path)!r} + "/" + Key, "rb")}}
        host = TritonHost(lambda role: Files(), Path({str(tmp_path)!r}))
        container = Container("image", "SingleModel", "s3://bucket/model.tar.gz", {{}})
        host.deploy(Endpoint("one", "config", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
        print("ready", flush=True)
        sys.stdin.read()
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_killed_host_leaves_no_server_no_stub_and_no_shared_memory(host_process: subprocess.Popen[bytes]) -> None:
    assert host_process.stdout is not None
    assert host_process.stdout.readline() == b"ready\n"
    processes = tree(host_process.pid)
    memory = shared_memory(processes)
    assert len(memory) == 1
    assert {process.name()[:12] for process in processes} == {"tritonserver", "triton_pytho"}
    os.kill(host_process.pid, signal.SIGKILL)
    assert eventually(lambda: not any(process.is_running() for process in processes)), processes
    assert eventually(lambda: not any(path.exists() for path in memory))


SLOW = """
import time

class TritonPythonModel:
    def initialize(self, args):
        time.sleep(INITIALIZE)

    def execute(self, requests):
        time.sleep(60)
"""


def slow(packed: Any, *, initialize: float = 0) -> bytes:
    """An archive whose model does not answer."""
    model = SLOW.replace("INITIALIZE", str(initialize))
    archive: bytes = packed({"model/config.pbtxt": CONFIG, "model/1/model.py": model})
    return archive


def test_closing_gives_up_a_server_that_starts_and_an_invocation_in_flight(new_bench: Any, packed: Any) -> None:
    bench = new_bench()
    bench.single("hangs", slow(packed))
    with ThreadPoolExecutor(2) as pool:
        answer = pool.submit(bench.invoke, "hangs", 1.0)
        deployment = pool.submit(bench.single, "starts", slow(packed, initialize=60))
        assert eventually(lambda: len(servers(bench)) == 2)
        since = time.monotonic()
        bench.host.close()
        assert time.monotonic() - since < 40, "not the 60 s of the invocation, nor those of the start"
        with pytest.raises(LocalError):
            deployment.result(10)
        assert answer.result(10).status == 424
    assert servers(bench) == []
    assert not (bench.directory / "endpoints").exists()


def test_an_endpoint_is_deployed_while_another_one_waits_for_its_invocations(
    new_bench: Any, packed: Any, adder: Any
) -> None:
    bench = new_bench()
    bench.single("hangs", slow(packed))
    with ThreadPoolExecutor(2) as pool:
        pool.submit(bench.invoke, "hangs", 1.0)
        assert eventually(lambda: bench.host._endpoints["hangs"].variants[0]._users == 1)
        removal = pool.submit(bench.host.remove, "hangs")
        bench.single("one", adder(1))
        assert bench.answer("one", 1.0) == [2.0]
        assert not removal.done()
        bench.host.close()


def test_a_server_that_answers_no_pings_is_replaced(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, new_bench: Any, adder: Any
) -> None:
    monkeypatch.setattr("cdk_triton_local.triton.variant._PING_SECONDS", 0.05)
    monkeypatch.setattr("cdk_triton_local.triton.variant._PINGS_IN_VAIN", 2)
    bench = new_bench()
    bench.single("one", adder(1))
    [server] = servers(bench)
    server.suspend()
    assert eventually(lambda: not server.is_running())
    assert bench.answer("one", 1.0) == [2.0]
    messages.record("log", next(line for line in bench.lines if "ping" in line))


@pytest.mark.parametrize("name", ["../../out", "x/../../../victim", "with a blank", "", "a" * 64, "-a"])
@pytest.mark.parametrize("what", ["endpoint", "variant"])
def test_a_name_that_is_no_part_of_a_path_is_rejected(messages: Messages, one: Any, what: str, name: str) -> None:
    container = Container("image", "SingleModel", "s3://bucket/one.tar.gz", {})
    names = {"endpoint": "one", "variant": "AllTraffic", what: name}
    with pytest.raises(LocalError) as caught:
        one.host.deploy(
            Endpoint(names["endpoint"], "config", (Variant(names["variant"], 1.0, "ml.g5.xlarge", container),))
        )
    messages.record("LocalError", str(caught.value))


def test_a_server_that_dies_while_the_disk_is_full_is_replaced_later(
    monkeypatch: pytest.MonkeyPatch, new_bench: Any, adder: Any
) -> None:
    bench = new_bench()
    bench.single("one", adder(1))
    attempts: list[str] = []

    class FullDisk(TritonServer):
        def __init__(self, *arguments: Any) -> None:
            attempts.append("start")
            if len(attempts) < 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().__init__(*arguments)

    monkeypatch.setattr("cdk_triton_local.triton.variant.TritonServer", FullDisk)
    [server] = servers(bench)
    server.kill()
    assert eventually(lambda: len(attempts) == 3)
    assert bench.answer("one", 1.0) == [2.0]


def test_a_killed_server_leaves_no_environment_in_the_temporary_directory(new_bench: Any, adder: Any) -> None:
    bench = new_bench()
    bench.single("one", adder(1))
    [listed] = bench.directory.glob("endpoints/*/temporary-directories")
    places = [Path(line) for line in listed.read_text().splitlines()]
    assert places
    assert all(place.is_dir() for place in places)
    (places[0] / "lib").mkdir()
    (places[0] / "lib" / "python").write_text("unpacked")
    [server] = servers(bench)
    server.kill()
    assert eventually(lambda: not any(place.exists() for place in places))
    bench.host.close()
    assert bench.invoke("one", 1.0).status == 400


def test_the_metrics_of_a_multi_model_endpoint_are_recorded(
    monkeypatch: pytest.MonkeyPatch, new_bench: Any, adder: Any
) -> None:
    monkeypatch.setattr("cdk_triton_local.triton.variant._PING_SECONDS", 0.2)
    recorded: list[tuple[str, str, str, float]] = []
    bench = new_bench(max_loaded_models=1, record=lambda *values, **dimensions: recorded.append(values))
    bench.fleet("fleet", a=adder(1), b=adder(2))
    for model in ("a", "a", "b"):
        assert bench.invoke("fleet", 1.0, model=model).status == 200
    assert bench.send("fleet", b"nonsense", model="b").status == 424

    def values(name: str) -> list[float]:
        return [value for endpoint, variant, found, value in recorded if found == name]

    assert {each[:2] for each in recorded} == {("fleet", "AllTraffic")}
    assert values("Invocations") == [1] * 4
    assert values("ModelCacheHit") == [0, 1, 0, 1]
    assert values("Invocation4XXErrors") == [0, 0, 0, 1]
    assert values("InvocationModelErrors") == [0, 0, 0, 1]
    assert len(values("ModelLatency")) == len(values("OverheadLatency")) == 4
    assert [len(values(f"Model{what}Time")) for what in ("Downloading", "Loading", "LoadingWait", "Unloading")] == [
        2,
        2,
        2,
        1,
    ]
    assert sum(values("ModelLoadingWaitTime")) >= sum(values("ModelLoadingTime"))
    assert sum(values("OverheadLatency")) >= sum(values("ModelLoadingWaitTime"))
    assert eventually(lambda: 1 in values("LoadedModelCount"))


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("hangs_up", [False, True], ids=["and waits", "and hangs up"])
def test_another_user_of_the_machine_cannot_make_the_server_load_a_model(
    tmp_path: Path, new_bench: Any, adder: Any, hangs_up: bool
) -> None:
    bench = new_bench()
    bench.fleet("fleet", a=adder(1))
    generation = bench.host._endpoints["fleet"].variants[0]._generation
    for user, is_heard in {65534: False, **({} if hangs_up else {0: True})}.items():
        repository = tmp_path / f"of-{user}" / "model"
        (repository / "own" / "1").mkdir(parents=True)
        (repository / "own" / "config.pbtxt").write_text(CONFIG)
        (repository / "own" / "1" / "model.py").write_text(SLOW.replace("INITIALIZE", "0"))
        body = json.dumps({"model_name": f"hash{user}", "url": str(repository)})
        request = f"POST /models HTTP/1.1\r\nHost: x\r\nX-Amzn-SageMaker-Target-Model: of{user}\r\n"
        request += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        program = textwrap.dedent(f"""
            import os, socket
            os.setuid({user})
            with socket.socket() as connection:
                connection.connect(("127.0.0.1", {generation.server.port}))
                connection.sendall({request.encode()!r})
                try:
                    {hangs_up} or connection.recv(1000)
                except ConnectionError:
                    pass
        """)
        subprocess.run([sys.executable, "-I", "-c", program], check=True)

        def listed(user: int = user) -> bool:
            return bool(generation.server.request("GET", f"/models/hash{user}").status == 200)

        assert eventually(listed, 20.0 if is_heard else 3.0) == is_heard
    assert bench.answer("fleet", 1.0, model="a") == [2.0]
