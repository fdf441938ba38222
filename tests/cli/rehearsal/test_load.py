"""`validate --load` and `golden record --local`: the real server loads a repository and answers golden requests."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import numpy as np
import pytest

from build_program.rehearsal import server
from build_program.rehearsal.run import main
from cdk_triton import GoldenRequest, Rehearsal, Tolerance, TritonModel, TritonMultiModel
from cdk_triton.rehearsal.document import write_folder
from cdk_triton.rehearsal.requests import golden_requests
from cdk_triton.triton import ModelRepository
from cdk_triton_local import build_tools

if TYPE_CHECKING:
    from golden_messages import Messages

pytestmark = pytest.mark.server

PROGRAM = str(Path(sysconfig.get_path("scripts")) / "cdk-triton")

CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 2 }
output { name: "y" data_type: TYPE_FP32 dims: 2 }
output { name: "label" data_type: TYPE_STRING dims: 1 }
instance_group { kind: KIND_GPU count: 1 }
"""
MODEL = """
import os, signal, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        INITIALIZE

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            EXECUTE
            label = np.array([[b"cat" if row[0] > 0 else b"dog"] for row in x], dtype=object)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2), pb_utils.Tensor("label", label)]))
        return answers
"""
SETTINGS = """
[rehearsal]
load_timeout = {timeout}

[[rehearsal.requests]]
request = "golden/one.json"
{comparison}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Path]:
    """Write a repository with a golden request."""

    def write(
        initialize: str = "pass", execute: str = "pass", comparison: str = "", timeout: float = 60, x: float = 1.0
    ) -> Path:
        root = tmp_path / "models"
        (root / "model/1").mkdir(parents=True, exist_ok=True)
        (root / "golden").mkdir(exist_ok=True)
        (root / "model/config.pbtxt").write_text(CONFIG)
        (root / "model/1/model.py").write_text(MODEL.replace("INITIALIZE", initialize).replace("EXECUTE", execute))
        (root / "golden/one.json").write_text(request(x))
        (root / "cdk-triton.toml").write_text(SETTINGS.format(timeout=timeout, comparison=comparison))
        return root

    return write


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def request(x: float) -> str:
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [x, 2.0]}
    return json.dumps({"inputs": [tensor]})


def rehearsed(outcome: Any) -> Mapping[str, Any]:
    (found,) = json.loads(outcome.out)["rehearsals"]
    assert outcome.status == (found["reason"] is not None)
    return dict(found)


@pytest.mark.parametrize("mode", ["single", "multi"])
def test_a_repository_that_loads_and_answers_passes(run: Any, repository: Callable[..., Path], mode: str) -> None:
    root = repository(comparison='label = "cat"')
    before = sorted(root.rglob("*"))
    found = rehearsed(run("validate", root, "--load", "--format", "json", "--mode", mode))
    assert found["reason"] is None
    assert found["stand_ins"] == ["serve"]
    assert [each["name"] for each in found["requests"]] == ["golden/one.json"]
    assert sorted(root.rglob("*")) == before
    assert "KIND_GPU" in (root / "model/config.pbtxt").read_text()


def test_instances_that_fit_into_a_container_fit_here(run: Any, repository: Callable[..., Path]) -> None:
    """A construct lets each instance begin with little shared memory; without that, five fill a container's 64 MB."""
    root = repository()
    config = root / "model/config.pbtxt"
    config.write_text(config.read_text().replace("count: 1", "count: 5"))
    assert rehearsed(run("validate", root, "--load", "--format", "json", "--mode", "multi"))["reason"] is None


def test_a_recorded_answer_is_expected_from_then_on(
    run: Any, repository: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(comparison='expect = "golden/one.npz"')
    missing = run("validate", root, "--load")
    assert missing.status == 1
    assert "golden record" in missing.out
    monkeypatch.chdir(root.parent)
    recorded = run("golden", "record", "models", "--local")
    assert recorded.status == 0
    assert recorded.out == "wrote models/golden/one.npz: y, label\n"
    passed = run("validate", "models", "--load")
    assert passed.status == 0
    assert "largest difference 0" in passed.out
    with np.load(root / "golden/one.npz", allow_pickle=False) as arrays:
        assert arrays["y"].tolist() == [[2.0, 4.0]]
        assert arrays["label"].tolist() == [[b"cat"]]
    assert run("golden", "record", root, "--local").status == 2
    repository(comparison='expect = "golden/one.npz"', execute="raise ValueError('no such row')")
    failed = run("golden", "record", root, "--local", "--force")
    assert (failed.status, "no such row" in failed.said) == (1, True)
    repository(comparison='expect = "golden/one.npz"', execute="x = x * 1.5")
    changed = rehearsed(run("validate", root, "--load", "--format", "json"))
    assert "'y' differs in 2 of 2 values, most at [0, 1]: 6 instead of 4" in changed["reason"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"initialize": "os.kill(os.getppid(), signal.SIGKILL)", "mode": "multi"}, "the server ended with exit"),
        ({"initialize": "raise ValueError('no tokenizer')", "mode": "multi"}, "model 'models.tar.gz' does not load: "),
        ({"initialize": "raise ValueError('no tokenizer')"}, "model 'model' does not load: ValueError: no tokenizer"),
        ({"initialize": "import pandaz"}, "model 'model' does not load: ModuleNotFoundError: No module named 'pandaz'"),
        ({"initialize": "time.sleep(3600)", "timeout": 2}, "the models were not ready after 2 s"),
        ({"execute": "raise ValueError('no such row')"}, "golden/one.json: the server answered with status 500"),
        ({"execute": "os.kill(os.getppid(), signal.SIGKILL)"}, "golden/one.json: the server ended with exit"),
        (
            {"execute": "x = np.zeros((1, 50 << 20), np.float32)"},
            "golden/one.json: the server answered with status 500: Python models need more than the 64 MiB of /dev/shm",
        ),
        ({"comparison": 'label = "dog"'}, "golden/one.json: the first text of 'label' is not the label 'dog'"),
    ],
)
def test_a_fault_is_found_before_any_deployment(
    run: Any, repository: Callable[..., Path], fault: Mapping[str, Any], reason: str
) -> None:
    mode = {"mode": "single", **fault}["mode"]
    root = repository(**{name: value for name, value in fault.items() if name != "mode"})
    found = rehearsed(run("validate", root, "--load", "--format", "json", "--mode", mode))
    assert found["reason"].startswith(reason)
    assert {f"{each['name']}: {each['reason']}" for each in found["requests"]} <= {found["reason"]}  # told once
    assert Path(found["log"]).is_file()


def pickled() -> bytes:
    """An `.npz` whose array can only be read by running code."""
    written = io.BytesIO()
    np.savez(written, y=np.array([{}], object))
    return written.getvalue()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("golden/one.json", b"x = 1"),
        ("golden/one.json", b'{"outputs": []}'),
        ("golden/one.npz", b"no archive"),
        ("golden/one.npz", pickled()),
    ],
    ids=["no JSON", "no request", "no .npz", "a pickle"],
)
def test_a_golden_file_that_is_none_is_named(
    messages: Messages, run: Any, repository: Callable[..., Path], file: str, content: bytes
) -> None:
    root = repository(comparison='expect = "golden/one.npz"')
    np.savez(root / "golden/one.npz", y=np.zeros((1, 2), np.float32))
    (root / file).write_bytes(content)
    found = rehearsed(run("validate", root, "--load", "--format", "json"))
    assert found["log"] is None  # no server was started
    messages.record("rehearsal", found["reason"])


ENSEMBLE = """
platform: "ensemble"
max_batch_size: 4
input { name: "q" data_type: TYPE_FP32 dims: 2 }
output { name: "a" data_type: TYPE_FP32 dims: 2 }
ensemble_scheduling { step { model_name: "model" model_version: -1
  input_map { key: "x" value: "q" } output_map { key: "y" value: "a" } } }
"""


def test_a_backend_that_this_machine_lacks_is_no_fault_of_the_repository(run: Any, tmp_path: Path) -> None:
    root = tmp_path / "models"
    (root / "model/1").mkdir(parents=True)
    (root / "model/config.pbtxt").write_text(
        CONFIG.replace('"python"', '"openvino"').replace("STRING", "FP32").replace("KIND_GPU", "KIND_CPU")
    )
    (root / "model/1/model.xml").write_text("<net/>")
    (root / "model/1/model.bin").write_text("weights")
    outcome = run("validate", root, "--load")
    assert outcome.status == 1
    assert "models: not runnable here: model 'model' does not load" in " ".join(outcome.out.split())
    assert "this machine does not have the backend openvino" in " ".join(outcome.out.split())


def test_several_repositories_are_reported_each(run: Any, repository: Callable[..., Path], tmp_path: Path) -> None:
    root = repository(comparison='label = "dog"')
    other = shutil.copytree(root, tmp_path / "other/models")
    (root / "golden/one.json").unlink()
    outcome = run("validate", root, other, "--load", "--format", "json")
    first, second = json.loads(outcome.out)["rehearsals"]
    assert outcome.status == 1
    assert ("one.json" in first["reason"], first["log"]) == (True, None)
    assert second["reason"].endswith("is not the label 'dog'")


def test_an_app_is_rehearsed_as_it_serves_its_repositories(
    run: Any, repository: Callable[..., Path], tmp_path: Path
) -> None:
    root = repository(comparison='label = "dog"')
    (root / "golden/two.json").write_text(request(-1.0))
    expected = np.array([[-2.0, 4.5]], np.float32)
    np.savez(root / "golden/two.npz", y=expected)
    given = Rehearsal(
        [
            GoldenRequest("golden/two.json", "golden/two.npz", tolerance=Tolerance(1.0, 0.0)),
            GoldenRequest("golden/two.json", "golden/two.npz", cosine=0.0),
        ],
        environment={"GREETING": "hello"},
    )
    models = [ModelRepository.from_directory(root, rehearsal=given), ModelRepository.from_directory(root)]
    app = cdk.App(outdir=str(tmp_path / "cdk.out"), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Text")
    TritonMultiModel(stack, "Fleet", platform="25.09/ml.g5.xlarge", ensembles={"text": models[0]})
    TritonModel(stack, "Model", platform="25.09/ml.g5.xlarge", repository=models[1])
    app.synth()

    outcome = run("validate", "--app", tmp_path / "cdk.out", "--load", "--format", "json")
    found = {each["construct"]: each for each in json.loads(outcome.out)["rehearsals"]}
    assert outcome.status == 1
    fleet, model = found["Text/Fleet"], found["Text/Model"]
    assert (fleet["reason"], [each["name"] for each in fleet["requests"]]) == (None, ["golden/two.json"] * 2)
    assert model["reason"] == "golden/one.json: the first text of 'label' is not the label 'dog'"


@pytest.mark.parametrize(("entry", "asked"), [("model", ["a random request"]), ("ens", [])])
def test_a_random_request_fits_the_model_that_is_served(
    run: Any, repository: Callable[..., Path], entry: str, asked: list[str]
) -> None:
    root = repository()
    (root / "ens/1").mkdir(parents=True)
    (root / "ens/config.pbtxt").write_text(ENSEMBLE)
    (root / "cdk-triton.toml").unlink()
    if entry == "ens":  # whose step needs a sequence, which a random request is not
        (root / "model/config.pbtxt").write_text(f"{CONFIG} sequence_batching {{ oldest {{}} }}")
    found = rehearsed(run("validate", root, "--load", "--format", "json", "--default-model", entry))
    assert (found["reason"], [each["name"] for each in found["requests"]]) == (None, asked)


@pytest.mark.parametrize(("entry", "fails"), [("ens", True), ("model", False)])
def test_a_random_request_asks_for_every_output_of_an_ensemble(
    run: Any, repository: Callable[..., Path], entry: str, fails: bool
) -> None:
    root = repository(execute="answers.append(pb_utils.InferenceResponse([pb_utils.Tensor('y', x)])); continue")
    (root / "cdk-triton.toml").unlink()
    (root / "ens/1").mkdir(parents=True)
    texts = 'output { name: "texts" data_type: TYPE_STRING dims: 1 }'
    step = 'output_map { key: "label" value: "texts" } output_map'
    (root / "ens/config.pbtxt").write_text(texts + ENSEMBLE.replace("output_map", step))
    found = rehearsed(run("validate", root, "--load", "--format", "json", "--default-model", entry))
    assert (found["reason"] is not None) is fails
    assert not fails or found["reason"].startswith("a random request: the answer lacks the output 'texts', and has 'a'")


def test_a_model_that_hangs_is_given_up_with_what_one_of_its_threads_raised(
    repository: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The program runs in this process, so that its limit of 60 s can become 2 s."""
    monkeypatch.setattr(server, "_ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(server, "_GRACE_SECONDS", 2.0)
    monkeypatch.setenv("PATH", f"{build_tools.tools_directory()}:{os.environ['PATH']}")
    monkeypatch.setenv("CDK_TRITON_STAND_IN_PYTHON", sys.executable)
    in_thread = 'import threading; threading.Thread(target=lambda: int("no number")).start()'
    models = ModelRepository.from_directory(repository(execute=f"{in_thread}; time.sleep(3600)"))
    shutil.copytree(models.root / "model", tmp_path / "in/repository/model")
    (tmp_path / "root").mkdir()
    write_folder(tmp_path / "in", models, "single", {}, golden_requests(models))
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert main([str(tmp_path / each) for each in ("in", "out", "root")]) == 1
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    found = json.loads((tmp_path / "out/rehearsal.json").read_text())
    assert found["reason"] == (
        "golden/one.json: the server did not answer within 2 s, which is SageMaker's limit; meanwhile, a model raised "
        "ValueError: invalid literal for int() with base 10: 'no number' (model/1/model.py, line 14)"
    )


def test_an_interrupted_rehearsal_leaves_nothing(repository: Callable[..., Path]) -> None:
    root = repository(initialize="time.sleep(3600)")
    command = [PROGRAM, "validate", str(root), "--load"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        log = root.parent / "cache/cdk-triton/rehearsals"
        while not serving(root.parent):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130
    assert not serving(root.parent)
    assert [each.name[:7] for each in log.iterdir()] == ["models-"]


def serving(directory: Path) -> list[str]:
    """The processes that name a directory in their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            is_server = b"tritonserver" in (each / "cmdline").read_bytes()
            if is_server and str(directory).encode() in (each / "environ").read_bytes():
                found.append(each.name)
        except OSError:
            continue
    return found


def test_a_model_may_repeat_a_random_request(run: Any, repository: Callable[..., Path]) -> None:
    """What nobody wrote has no text to keep out of the message, and the exception says what the model expects."""
    text = 'pb_utils.get_input_tensor_by_name(request, "text").as_numpy()'
    root = repository(execute=f"raise ValueError('no labels of ' + {text}[0][0].decode())")
    (root / "cdk-triton.toml").unlink()
    config = CONFIG + ' input { name: "text" data_type: TYPE_STRING dims: 1 }'
    (root / "model/config.pbtxt").write_text(config)
    found = rehearsed(run("validate", root, "--load", "--format", "json"))
    assert "status 500: ValueError: no labels of " in found["reason"]
