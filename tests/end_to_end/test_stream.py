"""An ensemble with a decoupled step, by the CDK CLI on the local AWS: its results are streamed as they are made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdk_triton.client import TritonClient
from cdk_triton.errors import ModelError
from cdk_triton_local.aws import LocalAws

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
TEXT = '{ name: "text" data_type: TYPE_STRING dims: [ 1 ] }'
WORD = '{ name: "word" data_type: TYPE_STRING dims: [ 1 ] }'
STEPS = """
ensemble_scheduling {
  step { model_name: "upper" model_version: -1
    input_map { key: "text" value: "text" } output_map { key: "word" value: "line" } }
  step { model_name: "split" model_version: -1
    input_map { key: "text" value: "line" } output_map { key: "word" value: "word" } }
}
"""
UPPER = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        lines = [pb.get_input_tensor_by_name(each, "text").as_numpy()[0].upper() for each in requests]
        return [pb.InferenceResponse([pb.Tensor("word", np.array([line], object))]) for line in lines]
"""
SPLIT = """
import os, threading, time
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(request.get_response_sender(), request)).start()

    def answer(self, sender, request):
        gate, *words = pb.get_input_tensor_by_name(request, "text").as_numpy()[0].decode().split()
        for number, word in enumerate(words):
            while number and not os.path.exists(gate.lower()):
                time.sleep(0.005)
            sender.send(pb.InferenceResponse([pb.Tensor("word", np.array([word.encode()], object))]))
        sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def write_repository(directory: Path) -> Path:
    files = {
        "pipeline/config.pbtxt": f'platform: "ensemble" input {TEXT} output {WORD} {STEPS}',
        "pipeline/1/.keep": "",
        "upper/config.pbtxt": f'backend: "python" input {TEXT} output {WORD}',
        "upper/1/model.py": UPPER,
        "split/config.pbtxt": f'backend: "python" input {TEXT} output {WORD} '
        "model_transaction_policy { decoupled: true }",
        "split/1/model.py": SPLIT,
    }
    for path, content in files.items():
        file = directory / "words" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return directory / "words"


@pytest.fixture(name="aws", scope="module")
def _aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    directory = tmp_path_factory.mktemp("stream")
    app: list[str | Path] = [
        sys.executable,
        HERE / "stream_app" / "app.py",
        write_repository(directory),
        ASSETS,
        directory / "assembly",
    ]
    subprocess.run(app, check=True)
    with LocalAws(tmp_path_factory.mktemp("aws")) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        done = subprocess.run(
            [CDK, "deploy", "--all", "--require-approval", "never", "--app", directory / "assembly", "--no-notices"],
            env={**aws.process_environment(), "NODE_NO_WARNINGS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        yield aws


@pytest.fixture(name="client")
def _client(aws: LocalAws) -> TritonClient:
    return TritonClient.from_parameters("/words", aws.client("sagemaker-runtime"), ssm=aws.client("ssm"))


def test_the_results_of_an_ensemble_arrive_as_they_are_made(client: TritonClient, tmp_path: Path) -> None:
    gate = tmp_path.parent / "gate"  # in lower case
    results = client.stream({"text": f"{gate} one two three"})
    assert next(results)["word"].tolist() == [b"ONE"]
    gate.touch()
    assert [result["word"][0] for result in results] == [b"TWO", b"THREE"]


def test_the_repository_gives_the_names_of_the_ensemble(client: TritonClient, tmp_path: Path) -> None:
    gate = tmp_path.parent / "open"
    gate.touch()
    checked = client.for_repository(write_repository(tmp_path))
    assert [result["word"][0] for result in checked.stream({"text": [f"{gate} a b"]})] == [b"A", b"B"]
    assert checked.generate({"text": f"{gate} one"})["word"].tolist() == [b"ONE"]


def test_infer_names_the_other_call(client: TritonClient) -> None:
    with pytest.raises(ModelError, match=r"call generate\(\) or stream\(\) instead of infer\(\)"):
        client.infer({"text": ["a b"]})
