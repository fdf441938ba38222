"""What `validate` and `golden record` say of golden requests that no server can be asked, or that it rejects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton_local.endpoints import Response

if TYPE_CHECKING:
    from tests.cli.echo import World

    from golden_messages import Messages

CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
output { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
"""
DECOUPLED = "model_transaction_policy { decoupled: true }"
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 4
input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
output { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
ensemble_scheduling {
  step {
    model_name: "image" model_version: -1
    input_map { key: "IMAGE" value: "IMAGE" } output_map { key: "IMAGE" value: "IMAGE" }
  }
}
"""
MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        EXECUTE
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write the repository `models` with a golden request, in the directory of the command."""
    monkeypatch.chdir(tmp_path)

    def write(config: str = CONFIG, expect: str = 'expect = "golden/one.npz"') -> Path:
        root = Path("models")
        (root / "image/1").mkdir(parents=True)
        (root / "image/config.pbtxt").write_text(config)
        execute = "return None" if DECOUPLED in config else "return [None for request in requests]"
        (root / "image/1/model.py").write_text(MODEL.replace("EXECUTE", execute))
        (root / "golden").mkdir()
        tensor = {"name": "IMAGE", "datatype": "UINT8", "shape": [1, 2], "data": [1, 2]}
        (root / "golden/one.json").write_text(json.dumps({"inputs": [tensor]}))
        (root / "cdk-triton.toml").write_text(f'[[rehearsal.requests]]\nrequest = "golden/one.json"\n{expect}\n')
        return root

    return write


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "json", "sarif"])
def test_validate_reads_golden_files_without_a_server(
    messages: Messages, run: Any, repository: Callable[..., Path], output: str
) -> None:
    root = repository()

    missing = run("validate", root, "--format", output)
    (root / "golden/one.npz").write_text("Die Sonne scheint.")
    damaged = run("validate", root, "--format", output)

    for found, said in ((missing, "models/golden/one.npz does not exist"), (damaged, "it is not a ZIP file")):
        assert (found.status, said in found.said) == (2, True)
        assert "Sonne" not in found.said + found.out
        if output != "text":
            assert said in json.dumps(json.loads(found.out))
        messages.record("rehearsal", found.said)


@pytest.mark.parametrize("ensemble", [False, True], ids=["alone", "in an ensemble"])
@pytest.mark.parametrize("command", [("validate", "models", "--load"), ("golden", "record", "models", "--local")])
def test_a_decoupled_model_gets_no_golden_request(
    messages: Messages, run: Any, repository: Callable[..., Path], command: tuple[str, ...], ensemble: bool
) -> None:
    root = repository(CONFIG + DECOUPLED)
    if ensemble:
        (root / "ens/1").mkdir(parents=True)
        (root / "ens/config.pbtxt").write_text(ENSEMBLE)

    found = run(*command)

    said = " ".join(f"{found.out} {found.said}".split())
    assert found.status in (1, 2)
    assert "'image' is decoupled, so a golden request has no single answer to compare: remove the golden" in said
    if command[0] == "golden":
        messages.record("rehearsal", found.said)


@pytest.mark.slow
def test_an_endpoint_that_rejects_a_request_is_told_without_words_of_its_model(
    messages: Messages, run: Any, repository: Callable[..., Path], world: World
) -> None:
    repository()
    said = {"Message": "…", "OriginalStatusCode": 400, "OriginalMessage": '{"error": "unknown patient Ada"}'}
    world.echo.error = Response(424, {"x-amzn-ErrorType": "ModelError"}, json.dumps(said).encode())

    found = run("golden", "record", "models", "--endpoint", "image")

    assert (found.status, found.out) == (1, "")
    assert "golden/one.json: the model container of the endpoint 'image' answered 400" in found.said
    assert "Ada" not in found.err
    messages.record("rehearsal", found.said)
