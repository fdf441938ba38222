"""`cdk-triton invoke --stream` against a real tritonserver behind the local AWS."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from streaming_account import StreamingAccount, streaming_account

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome

    from golden_messages import Messages

Run = Callable[..., "Outcome"]


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamingAccount]:
    with streaming_account(tmp_path_factory.mktemp("streams")) as account:
        yield account


@pytest.fixture(autouse=True)
def _at_the_account(account: StreamingAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in account.aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def test_each_result_is_printed_with_its_time(run: Run, account: StreamingAccount) -> None:
    named = ["--request-id", "r-1", "--inference-id", "i-1", "--custom-attributes", "tenant=7"]
    found = run("invoke", account.endpoint(), "--stream", "--input", "PROMPT=hi", "--input", "COUNT=2", *named)
    assert found.status == 0, found.err
    lines = found.out.splitlines()
    assert [line.split(" after ")[0] for line in lines if line.startswith("result ")] == ["result 1", "result 2"]
    assert [line.split()[-1] for line in lines if line.startswith("TEXT")] == ["0", "1"]
    assert "2 results in" in found.err
    assert [line.split() for line in lines if line.startswith("OUTPUT")] == [["OUTPUT", "TYPE", "SHAPE", "VALUES"]] * 2
    assert [line.split()[1] for line in lines if line.startswith("SCORES")] == ["FP32"] * 2
    assert "the first after" in found.err


def test_a_result_is_printed_before_the_last_is_made(account: StreamingAccount) -> None:
    gate = account.gate("command")
    given = ["--input", "PROMPT:BYTES=hi", "--input", f"GATE:BYTES={gate}", "--format", "json"]
    command = [sys.executable, "-m", "cdk_triton", "invoke", account.endpoint(), "--stream", *given]
    environment = account.aws.process_environment(os.environ)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert first["outputs"][-1]["data"] == ["hi 0"]
        assert [output["datatype"] for output in first["outputs"]] == ["FP32", "BYTES"]
        gate.touch()
        assert len(process.stdout.readlines()) == 2
    assert process.returncode == 0


def test_a_result_of_an_unknown_model_has_no_types(
    run: Run, account: StreamingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON does not tell FP32 from FP64."""
    monkeypatch.setattr("cdk_triton.cli.requests.options._QUICK_BYTES", 1)
    given = ("invoke", account.endpoint(), "--stream", "--input", "PROMPT:BYTES=hi", "--input", "COUNT:INT32=1")
    found = run(*given)
    assert found.status == 0, found.err
    assert [line.split() for line in found.out.splitlines() if line.startswith("OUTPUT")] == [
        ["OUTPUT", "SHAPE", "VALUES"]
    ]
    outputs = json.loads(run(*given, "--format", "json").out)["outputs"]
    assert [set(each) for each in outputs] == [{"name", "shape", "data"}] * 2


COMPLETED = """
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_output({"name": "TOKENS", "data_type": "TYPE_INT32", "dims": [1]})
        return config

    def execute(self, requests):
        score, tokens = pb.Tensor("SCORE", np.ones(1, np.float32)), pb.Tensor("TOKENS", np.array([7], np.int32))
        return [pb.InferenceResponse([score, tokens]) for _ in requests]
"""


def test_what_config_pbtxt_does_not_have_is_printed_without_a_type(run: Run, account: StreamingAccount) -> None:
    tensor = '{ name: "%s" data_type: TYPE_%s dims: 1 }'
    config = f'backend: "python" input {tensor % ("PROMPT", "STRING")} output {tensor % ("SCORE", "FP32")}'
    account.archive("completed", config, COMPLETED)
    given = ("invoke", account.endpoint(model="completed"), "--stream", "--input", "PROMPT=hi")
    found = run(*given)
    assert found.status == 0, found.err
    assert [line.split() for line in found.out.splitlines()[1:]] == [
        ["OUTPUT", "TYPE", "SHAPE", "VALUES"],
        ["SCORE", "FP32", "[1]", "1"],
        ["TOKENS", "[1]", "7"],
    ]
    assert json.loads(run(*given, "--format", "json").out)["outputs"] == [
        {"name": "SCORE", "datatype": "FP32", "shape": [1], "data": [1.0]},
        {"name": "TOKENS", "shape": [1], "data": [7]},
    ]


def test_a_stream_does_not_need_the_archive(
    run: Run, account: StreamingAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = account.endpoint()
    file = tmp_path / "request.json"
    file.write_text('{"inputs": [{"name": "PROMPT", "datatype": "BYTES", "shape": [1], "data": ["hi"]}]}')
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    for given in (["--data", str(file)], ["--input", "PROMPT:BYTES=hi"]):
        found = run("invoke", endpoint, "--stream", *given)
        assert found.status == 0, found.err
        assert "3 results in" in found.err


def test_ctrl_c_ends_a_stream(account: StreamingAccount) -> None:
    gate = account.gate("interrupted")
    given = ["--input", "PROMPT:BYTES=hi", "--input", f"GATE:BYTES={gate}"]
    command = [sys.executable, "-m", "cdk_triton", "invoke", account.endpoint(), "--stream", *given]
    environment = account.aws.process_environment(os.environ)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    gate.touch()
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_an_endpoint_with_one_result_streams_it(run: Run, account: StreamingAccount) -> None:
    found = run("invoke", account.endpoint("generate"), "--stream", "--input", "PROMPT=hi", "--input", "COUNT=1")
    assert found.status == 0, found.err
    assert "1 result in" in found.err


def test_a_release_that_does_not_read_the_variable_infers(
    run: Run, account: StreamingAccount, messages: Messages
) -> None:
    old = account.endpoint(model="one", release="24.09")
    assert run("invoke", old, "--input", "PROMPT=hi").status == 0
    streamed = run("invoke", old, "--stream", "--input", "PROMPT=hi")
    assert streamed.status == 2
    messages.record("invoke --stream", streamed.said)


def test_a_component_streams(run: Run, account: StreamingAccount) -> None:
    endpoint, component = account.component()
    found = run("invoke", endpoint, "--component", component, "--stream", "--input", "PROMPT=hi", "--format", "json")
    assert found.status == 0, found.err
    assert len(found.out.splitlines()) == 3


def test_an_error_of_the_model_comes_after_its_results(run: Run, account: StreamingAccount) -> None:
    given = ["--input", "PROMPT=hi", "--input", "FAIL_AFTER=1"]
    found = run("invoke", account.endpoint(), "--stream", *given)
    assert found.status == 1
    assert "result 1 after" in found.out
    assert "out of words" in found.err.splitlines()[-1]


def test_what_cannot_stream_is_a_usage_error(
    run: Run, account: StreamingAccount, tmp_path: Path, messages: Messages
) -> None:
    body = {"inputs": [{"name": "PROMPT", "datatype": "BYTES", "shape": [1], "data": ["hi"]}]}
    wanted = tmp_path / "request.json"
    wanted.write_text(json.dumps({**body, "outputs": [{"name": "TEXT"}]}))
    infers = account.endpoint("infer", model="one")
    for arguments in (
        [infers, "--stream", "--input", "PROMPT=hi"],
        [account.endpoint(), "--input", "PROMPT=hi"],
        [account.fleet(), "--target-model", "several.tar.gz", "--stream", "--input", "PROMPT:BYTES=hi"],
        [account.endpoint(), "--stream", "--input", "PROMPT=hi", "--out", str(tmp_path)],
        [account.endpoint(), "--stream", "--data", str(wanted)],
    ):
        found = run("invoke", *arguments)
        assert found.status == 2, found.err
        assert found.out == ""
        messages.record("invoke --stream", found.said)
