"""What the checks say of a container's ports, and the guide of Triton's metrics: asked of a real server."""

from __future__ import annotations

import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ContainerEnvironment, serve_arguments
from cdk_triton.triton.environment import container_variables
from cdk_triton_local.triton.loopback import listening_addresses, loopback_library
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port

if TYPE_CHECKING:
    from cdk_triton_local.triton.server_files import ServerFiles
    from golden_messages import Messages

MULTI_MODEL = {"SAGEMAKER_MULTI_MODEL": "true"}


def test_metrics_have_a_port_of_their_own_and_sagemakers_has_none(server_files: ServerFiles, tmp_path: Path) -> None:
    given: list[int] = []

    def port() -> int:
        given.append(free_port())
        return given[-1]

    (tmp_path / "repository").mkdir()
    variables = container_variables(ContainerEnvironment(allow_metrics=True), multi_model=True) | MULTI_MODEL
    settings = ServerSettings(files=server_files, preload=loopback_library(), ports=port)
    server = TritonServer(settings, variables, tmp_path / "repository", tmp_path / "log")
    try:
        assert server.request("GET", "/metrics").status == 400
        # The server opens its port for metrics after the one that SageMaker asks.
        deadline = time.monotonic() + 30
        while not (ports := [each for each in given if each != server.port and listening_addresses(each)]):
            assert time.monotonic() < deadline, "no port for metrics was opened"
            threading.Event().wait(0.02)
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/metrics") as answer:
            assert b"nv_" in answer.read()
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"allow_metrics": True, "metrics_port": 8080}, "metrics requests and SageMaker requests at the same"),
        ({"allow_grpc": True, "grpc_port": 8080}, "GRPC requests and SageMaker requests at the same"),
        ({"allow_grpc": True, "allow_metrics": True, "metrics_port": 8001}, "GRPC requests and metrics requests at"),
        ({"allow_metrics": True, "safe_port_range": (9000, 9010)}, "allowed port range is [9000, 9010]"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_the_server_rejects_the_ports_that_the_checks_reject(
    messages: Messages, server_files: ServerFiles, tmp_path: Path, fields: dict[str, Any], refusal: str
) -> None:
    with messages.raises(ConfigurationError):
        ContainerEnvironment(**fields)

    variables = {f"SAGEMAKER_TRITON_{name.upper()}": str(value).lower() for name, value in fields.items()}
    if ports := fields.get("safe_port_range"):
        variables["SAGEMAKER_SAFE_PORT_RANGE"] = f"{ports[0]}-{ports[1]}"
    arguments = [each.replace("/tmp/sagemaker", str(tmp_path)) for each in serve_arguments(variables | MULTI_MODEL, [])]
    # It looks at the ports before it opens one, and at no file.
    done = subprocess.run(
        ["setpriv", "--pdeathsig", "KILL", server_files.program, *arguments],
        env={"LD_PRELOAD": str(loopback_library()), "LD_LIBRARY_PATH": str(server_files.libraries)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert refusal in done.stdout + done.stderr
