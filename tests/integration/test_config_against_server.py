"""`cdk-triton config` before the real server: it loads the configurations as they are written."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.cli.program import app
from cdk_triton_local.triton.server_files import arrange_server_files
from judging.server import Judge

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
NETWORK = (
    "network (float[N,2] x, int64[N] k) => (float[N,2] scores, float[N] y) { scores = Softmax(x) y = Cast<to=1>(k) }"
)
PYTHON = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "%s").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("%s", values)])
"""


@pytest.fixture(scope="module")
def whole_judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """A real server with NVIDIA's Python backend, and ONNX Runtime behind its backend's name."""
    return Judge(arrange_server_files(tmp_path_factory.mktemp("server")))


def write(directory: Path) -> list[Path]:
    """Two Python models around a network, with labels, and a network without a batch dimension."""
    (directory / "before.py").write_text(PYTHON % ("AMOUNT", "FEATURES"))
    (directory / "after.py").write_text(PYTHON % ("scores", "LABEL"))
    (directory / "labels.txt").write_text("fine\nfraud\n")
    onnx.save(onnx.parser.parse_model(f"{HEAD} {NETWORK}"), directory / "network.onnx")
    return [directory / "before.py", directory / "network.onnx", directory / "after.py"]


@pytest.mark.parametrize("ensemble", ["whole", "fixed"])
def test_the_server_loads_what_the_command_writes(whole_judge: Judge, tmp_path: Path, ensemble: str) -> None:
    models = write(tmp_path)
    if ensemble == "fixed":
        fixed = "fixed (float[T,2] scores) => (float[2,T] turned) { turned = Transpose<perm=[1,0]>(scores) }"
        onnx.save(onnx.parser.parse_model(f"{HEAD} {fixed}"), tmp_path / "fixed.onnx")
        models = [tmp_path / "network.onnx", tmp_path / "fixed.onnx"]

    done = CliRunner().invoke(app, ["config", *map(str, models), "--into", str(tmp_path / "models")])

    assert done.exit_code == 0, done.output
    repository = ModelRepository.from_directory(tmp_path / "models")
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    assert repository.check("single", platform) == repository.check("multi", platform) == ()
    verdict = whole_judge(repository.root, ["ensemble"])
    assert verdict.loaded, verdict.said
