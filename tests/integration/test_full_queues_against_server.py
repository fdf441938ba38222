"""CT322 against the real server, 24.10: what becomes of requests to an ensemble when the queue of a step is full."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton_local import process
from cdk_triton_local.triton.server import free_port
from cdk_triton_local.triton.server_files import ServerFiles, arrange_server_files
from judging.composed import IN, OUT, Files, ensemble, python, step, tensor, write
from judging.server import named_memory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

NEAREST = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
PATIENCE = 5.0
"""Seconds; an answered request takes less than one."""

SLOW = """
import time
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.3)
        return [pb.InferenceResponse([pb.Tensor("OUT", pb.get_input_tensor_by_name(each, "IN").as_numpy())])
                for each in requests]
"""
LIMITED = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\ninstance_group { kind: KIND_CPU }\n"
FAST = python(f"instance_group {{ kind: KIND_CPU }}\n{IN}{OUT}", "fast")
MODELS = {
    **python(LIMITED + IN + OUT, "limited"),
    **FAST,
    "limited/1/model.py": SLOW,
    "fast/1/model.py": SLOW.replace("0.3", "0"),
}
ROW = step({"IN": "IN"}, {"OUT": "t"}, "fast") + step({"IN": "t"}, {"OUT": "OUT"}, "limited")
BRANCHES = step({"IN": "IN"}, {"OUT": "OUT"}, "fast") + step({"IN": "IN"}, {"OUT": "SECOND"}, "limited")
TURNED = step({"IN": "IN"}, {"OUT": "SECOND"}, "limited") + step({"IN": "IN"}, {"OUT": "OUT"}, "fast")
TWO = IN + OUT + tensor("output", "SECOND")


@pytest.fixture(scope="module")
def python_server(tmp_path_factory: pytest.TempPathFactory) -> ServerFiles:
    """A server with a Python backend that works."""
    return arrange_server_files(tmp_path_factory.mktemp("python"))


@contextmanager
def serving(server: ServerFiles, repository: Path) -> Iterator[str]:
    """The address of `pipeline` while a server runs it."""
    port = free_port()
    arguments = [
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--model-control-mode=explicit",
        "--load-model=pipeline",
    ]
    arguments += [f"--model-repository={repository}", f"--backend-directory={server.backends}"]
    option, memory = named_memory()
    libraries = {"LD_LIBRARY_PATH": str(server.libraries)} if server.libraries else {}
    child = process.start(
        [
            server.program,
            *arguments,
            option,
            "--http-address=127.0.0.1",
            f"--http-port={port}",
            "--exit-timeout-secs=1",
        ],
        environment={**libraries, "PATH": f"{server.python}:/usr/bin:/bin"},
        output=subprocess.DEVNULL,
        leftovers=memory,
    )
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=PATIENCE)
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v2/models/pipeline/infer"
    finally:
        child.kill()
        child.wait()


def answer(address: str) -> int | None:
    """The status of a request, or None if none comes."""
    given = {"name": "IN", "shape": [4], "datatype": "FP32", "data": [1, 2, 3, 4]}
    try:
        request = urllib.request.Request(address, data=json.dumps({"inputs": [given]}).encode())
        return int(urllib.request.urlopen(request, timeout=PATIENCE).status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


CASES: Mapping[str, tuple[Files, bool]] = {
    "in a row": ({**ensemble(steps=ROW), **MODELS}, True),
    "two that start together": ({**ensemble(TWO, BRANCHES), **MODELS}, False),
    "two that start together, the limited one first": ({**ensemble(TWO, TURNED), **MODELS}, False),
}


@pytest.mark.parametrize(("files", "answers_all"), CASES.values(), ids=CASES)
def test_the_server_answers_every_request_unless_the_rule_has_a_finding(
    tmp_path: Path, python_server: ServerFiles, files: Files, answers_all: bool
) -> None:
    repository = write(tmp_path / "repository", files)
    findings = [each.code for each in repository.check(platform=NEAREST, default_model="pipeline")]
    assert ("CT322" in findings) is not answers_all
    with serving(python_server, repository.root) as address, ThreadPoolExecutor(6) as clients:
        statuses = list(clients.map(answer, [address] * 6))
    assert (None not in statuses) is answers_all
    if answers_all:
        assert set(statuses) == {200, 503}
