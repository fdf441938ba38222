"""What `ContainerEnvironment` takes and rejects, asked of a real server: fields, and arguments of tritonserver.

The judge is release 24.10. CT420 is compared for that release; options of other releases, CT421 and CT424 are out of
its sight. CT422 and CT423 are about older releases and another backend. CT425 warns of numbers that the server takes in
part: it starts with them here. CT426 and CT427 are about settings that nothing reads. CT428 is compared.
"""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.triton import ContainerEnvironment, serve_arguments
from cdk_triton.triton.environment import container_variables
from cdk_triton.triton.server_options import argument_fault, options_of
from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.server import free_port
from cdk_triton_local.triton.server_files import arrange_server_files
from judging.composed import IN, OUT, python, write

if TYPE_CHECKING:
    from cdk_triton_local.triton.server_files import ServerFiles

RELEASE = "24.10"
MULTI_MODEL = {"SAGEMAKER_MULTI_MODEL": "true"}
READY_SECONDS = 60

Start = Callable[[Sequence[str]], tuple[bool, str]]
"""Starts a server with arguments: whether it answers on SageMaker's port, and what it printed if not."""


def starts(files: ServerFiles, directory: Path, arguments: Sequence[str]) -> tuple[bool, str]:
    """Start a server on a free port and end it as soon as it listens there."""
    port = free_port()
    child = subprocess.Popen(
        [
            *("setpriv", "--pdeathsig", "KILL", files.program),
            *(each.replace("/tmp/sagemaker", str(directory)) for each in arguments),
            *([] if any(each.startswith("--sagemaker-port") for each in arguments) else [f"--sagemaker-port={port}"]),
        ],
        env={
            "LD_PRELOAD": str(loopback_library()),
            "LD_LIBRARY_PATH": str(files.libraries),
            "PATH": f"{files.python}:/usr/bin:/bin",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert child.stdout is not None
    said: list[bytes] = []
    reader = threading.Thread(target=said.extend, args=(child.stdout,))
    reader.start()
    watchdog = threading.Timer(READY_SECONDS, child.kill)
    watchdog.start()
    is_ready = False
    while child.poll() is None and not is_ready:
        with socket.socket() as connection:
            is_ready = connection.connect_ex(("127.0.0.1", port)) == 0
        threading.Event().wait(0.02)
    watchdog.cancel()
    child.kill()
    child.wait()
    reader.join()
    child.stdout.close()
    return is_ready, b"".join(said).decode(errors="replace")


@pytest.fixture
def start(server_files: ServerFiles, tmp_path: Path) -> Start:
    """Starts a multi-model container's server with further arguments."""
    given = serve_arguments({**container_variables(ContainerEnvironment(), multi_model=True), **MULTI_MODEL}, [])
    return lambda arguments: starts(server_files, tmp_path, [*given, *arguments])


def test_the_table_has_the_options_of_the_server(server_files: ServerFiles) -> None:
    done = subprocess.run(
        [server_files.program, "--help"],
        env={"LD_LIBRARY_PATH": str(server_files.libraries)},
        capture_output=True,
        text=True,
        check=False,
    )
    printed = re.findall(r"^  --([a-z0-9-]+)( <)?", done.stdout + done.stderr, re.MULTILINE)
    assert {name: bool(value) for name, value in printed} == {
        name: kind != "flag" for name, kind in options_of(RELEASE).items()
    }


# For one option of each kind: on both sides of every bound.
WHOLE = ("1", "0", "-1", "+5", "5abc", "1.5", "abc", "", "9" * 30, "0x10")
BOUNDS = ("2147483647", "2147483648", "-2147483648", "-2147483649")
VALUES: Mapping[str, Sequence[str]] = {
    "log-warning": ("true", "TRUE", "on", "1", "False", "off", "0", "maybe", "", "yes", "2"),
    "exit-timeout-secs": (*WHOLE, *BOUNDS),
    "log-verbose": ("true", "False", "on", "1", "3", "abc", "", "2147483648"),
    "pinned-memory-pool-byte-size": ("0", "256MB", "1e9", "9223372036854775808", "-9223372036854775809", "abc"),
    "min-supported-compute-capability": ("6.0", ".5", "5.", "1e400", "5e-324", "inf", "nan", "0x1p3", "x", ""),
    "model-config-name": ("", "a"),
    "id": ("", "a=b"),
    "log-format": ("default", "ISO8601", "iso8601"),
    "rate-limit": ("OFF", "execution_count", "x"),
    "rate-limit-resource": ("R:1", "R:1:2", "R:1:2:3", "R", "R:a", ":1"),
    "backend-config": ("", "a", "a,b", "a,b=c", "b=c", ",b=c", "a,b=", "a,=c", "=c", "a=b,c=d"),
    "metrics-config": ("a=b", "a,b=c", "a", "a=b,c", "=b"),
    "host-policy": ("a,numa-node=0", "a,cpu-cores=0-1", "a,b=c", "a", ",numa-node=0"),
    "trace-config": (
        "rate=5",
        "rate=x",
        "level=MAX",
        "level=x",
        "mode=x",
        "a=b",
        "a",
        "x,a=b",
        "triton,file=/dev/null",
    ),
    "trace-level": ("x", "MIN", "off"),
    "http-restricted-api": ("health:a=b", "x:a=b", "health,trace:a=b", "health,health:a=b", "health", ":a=b"),
    "grpc-infer-response-compression-level": ("HIGH", "x"),
    "cuda-memory-pool-byte-size": ("0:100", "7:100", "0:64MB", "0", "a:1", "0:-1", f"0:{'9' * 30}"),
    "model-load-gpu-limit": ("0:0.5", "0:1.5", "-1:0.5", "0:nan", "0:5e-324", "0", "0:1"),
    "sagemaker-safe-port-range": ("9000-9010", "9000", "a-b", "9010-9000"),
    "model-load-thread-count": ("0", "-1"),
}
WRITTEN: Sequence[Sequence[str]] = (
    *([each] for each in ("--nope", "--nope=1", "-", "-x", "--help", "--help=1", "x", "--exit-timeout-secs")),
    *([each] for each in ("--disable-auto-complete-config", "--disable-auto-complete-config=true", "--disable-auto")),
    *(
        [each]
        for each in ("--exit-t=3", "--log=1", "--log-v=1", "--trace-l=OFF", "--strict=true", "--=1", "--allow-c=1")
    ),
    ["--log-verbose", "1"],
    ["--log-verbose", "x"],
    ["--trace-count", "-1"],
    ["--exit-timeout-secs", "--log-info=true"],
    ["--log-info=true", "1"],
    ["--allow-client-shm=true"],
    ["--http-max-input-size=5"],
    ["--grpc-infer-thread-count=4"],
)


def cases() -> Iterator[Sequence[str]]:
    yield from WRITTEN
    for option, values in VALUES.items():
        yield from ([f"--{option}={value}"] for value in values)
    # Every other option with a value of its kind, and with another.
    good = {"bool": "true", "int32": "9", "int64": "9", "text": "/dev/null", "int32:uint64": "0:9"}
    for option, kind in options_of(RELEASE).items():
        if (
            kind in good
            and option not in VALUES
            and not re.search("sagemaker|model-(repo|store)|vertex|load-mo", option)
        ):
            # A log file keeps what is printed, no cache is installed here, and other tests may use Triton's ports.
            if not re.match("log-file|response-cache|allow-(http|grpc|metrics)", option):
                yield [f"--{option}={good[kind]}"]
            if kind != "text":
                yield [f"--{option}=x"]


def test_the_server_starts_with_what_is_taken_and_not_with_what_is_rejected(start: Start) -> None:
    arguments = list(cases())
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(start, arguments))
    wrong = [
        (each, is_started, argument_fault(each, RELEASE), said[-300:])
        for each, (is_started, said) in zip(arguments, verdicts, strict=True)
        if is_started != (argument_fault(each, RELEASE) is None)
    ]
    assert wrong == []
    assert sum(is_started for is_started, _ in verdicts) > 60


# Field → values at the bounds of what it takes.
FIELDS: Mapping[str, Sequence[Any]] = {
    "model_namespacing": (True, False),
    "ping_mode": ("ready", "live"),
    "log_verbose": (True, False, 0, 1, 2**31 - 1),
    "log_info": (True, False),
    "log_warning": (True, False),
    "log_error": (True, False),
    "thread_count": (1, 1024),
    "buffer_manager_thread_count": (0, 1024),
    "shm_default_byte_size": (1 << 20, 2**63 - 1),
    "shm_growth_byte_size": (1, 2**63 - 1),
    "model_load_gpu_limit": (1, 1.0, 1e-5, 2.2250738585072014e-308),
    "tensorflow_version": (1, 2),
    "safe_port_range": ((1, 65535), [9000, 9000]),
    "additional_args": ((), ("--exit-timeout-secs", "5"), ("--log-verbose=1",)),
}


def test_every_value_that_a_field_takes_starts_the_server(server_files: ServerFiles, tmp_path: Path) -> None:
    environments = [{field: value} for field, values in FIELDS.items() for value in values]
    ports = iter([free_port() for _ in range(3)])
    environments += [
        {"allow_metrics": True, "metrics_port": next(ports)},
        {"allow_grpc": True, "grpc_port": next(ports)},
    ]

    def verdict(fields: Mapping[str, Any]) -> tuple[bool, str]:
        variables = {**container_variables(ContainerEnvironment(**fields), multi_model=True), **MULTI_MODEL}
        return starts(server_files, tmp_path, serve_arguments(variables, [], gpu_count=1))

    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(verdict, environments))
    failed = [(fields, said[-300:]) for fields, (ok, said) in zip(environments, verdicts, strict=True) if not ok]
    assert failed == []


@pytest.mark.parametrize(
    ("size", "is_loaded"), [(1 << 20, True), ((1 << 20) - 1, False)], ids=["the least that the field takes", "one less"]
)
def test_the_python_backend_takes_the_least_shared_memory(tmp_path: Path, size: int, is_loaded: bool) -> None:
    repository = tmp_path / "repository"
    write(repository, python(f"{IN}{OUT}"))
    variables = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "model", "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": str(size)}
    server = arrange_server_files(tmp_path / "server")
    arguments = [each.replace("/opt/ml/model", str(repository)) for each in serve_arguments(variables, ["model"])]
    is_started, said = starts(server, tmp_path, [*arguments, f"--backend-directory={server.backends}"])
    assert is_started is is_loaded
    assert ("shm-default-byte-size can't be smaller than 4 MiBs" in said) is not is_loaded


@pytest.mark.parametrize(("end", "is_loaded"), [("", True), ("/", False), ("//", False)])
def test_the_python_backend_compares_the_backend_directory(tmp_path: Path, end: str, is_loaded: bool) -> None:
    repository = tmp_path / "repository"
    write(repository, python(f"{IN}{OUT}"))
    server = arrange_server_files(tmp_path / "server")
    variables = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "model"}
    arguments = [each.replace("/opt/ml/model", str(repository)) for each in serve_arguments(variables, ["model"])]
    is_started, said = starts(server, tmp_path, [*arguments, f"--backend-directory={server.backends}{end}"])
    assert is_started is is_loaded
    assert ("ModuleNotFoundError: No module named 'model'" in said) is not is_loaded
