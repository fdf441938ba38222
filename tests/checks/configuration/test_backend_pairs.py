"""The rules CT283 to CT285: platform and backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Write


def found(write: Write, config: str) -> list[Finding]:
    """What the rules CT280 to CT289 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [each for each in repository.check() if "CT280" <= each.code <= "CT289"]


ENSEMBLE = """
platform: "ensemble"
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step {
    model_name: "STEP" model_version: -1
    input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
  }
}
"""


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param('platform: "python"', [("CT283", "model/config.pbtxt", "platform")], id="CT283 a platform"),
        pytest.param(
            'default_model_filename: "bert.onnx"', [("CT283", "model/config.pbtxt", "backend")], id="CT283 a file name"
        ),
        pytest.param(
            'platform: "onnx" backend: "onnxruntime"', [("CT284", "model/config.pbtxt", "platform")], id="CT284 a pair"
        ),
        pytest.param(
            'backend: "tensorflow"',
            [("CT284", "model/config.pbtxt", "platform")],
            id="CT284 TensorFlow without a platform",
        ),
        pytest.param(
            'platform: "onnxruntime_onnx" default_model_filename: "model.plan"',
            [("CT284", "model/config.pbtxt", "platform")],
            id="CT284 a file name of another platform",
        ),
        pytest.param(
            ENSEMBLE + 'backend: "python"', [("CT285", "model/config.pbtxt", "backend")], id="CT285 a backend"
        ),
        pytest.param(
            ENSEMBLE + 'default_model_filename: "model.py"',
            [("CT285", "model/config.pbtxt", "default_model_filename")],
            id="CT285 a file name",
        ),
    ],
)
def test_platform_and_backend(messages: Messages, write: Write, config: str, findings: list[Place]) -> None:
    assert messages.of(found(write, config)) == findings


@pytest.mark.parametrize("config", [None, "max_batch_size: 8"], ids=["no configuration", "a configuration"])
@pytest.mark.parametrize("backend", ["onnxruntime", "pytorch", "tensorflow", "tensorrt"])
def test_a_name_alone_does_not_say_the_platform(
    messages: Messages, write: Write, backend: str, config: str | None
) -> None:
    """The server completes the backend from the name after it has completed the platform."""
    files = {f"model.{backend}/1/model.{backend}": "weights"}
    if config is not None:
        files[f"model.{backend}/config.pbtxt"] = config
    repository = write(files, base={})
    assert messages.of(repository.check()) == [("CT284", f"model.{backend}/config.pbtxt", "platform")]


@pytest.mark.parametrize(
    "config",
    [
        "",
        'platform: "onnxruntime_onnx"',
        'platform: "onnxruntime_onnx" backend: "onnxruntime"',
        'platform: "tensorrt_plan" default_model_filename: "other.plan"',
        'platform: "pytorch_libtorch"',
        'platform: "torch_aoti"',
        'platform: "tensorflow_savedmodel"',
        'platform: "x" backend: "python"',
        'default_model_filename: "model.xml"',
        'default_model_filename: "model.graphdef"',
        ENSEMBLE,
        ENSEMBLE + 'default_model_filename: "model.graphdef"',
    ],
)
def test_pairs_that_the_server_takes(write: Write, config: str) -> None:
    assert found(write, config) == []


def test_a_misspelt_platform(messages: Messages, write: Write) -> None:
    findings = found(write, 'platform: "onnxruntime_onx"')
    assert messages.of(findings) == [("CT283", "model/config.pbtxt", "platform")]
    assert 'platform: "onnxruntime_onnx"' in findings[0].fix


@pytest.mark.parametrize(("release", "codes"), [("25.09", {"CT283"}), ("26.03", set())])
def test_the_second_platform_of_pytorch_needs_a_release(write: Write, release: str, codes: set[str]) -> None:
    repository = write({"model/config.pbtxt": 'platform: "torch_aoti"', "model/1/model.pt2": ""}, base={})
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert {each.code for each in repository.check(platform=platform) if each.code.startswith("CT28")} == codes


@pytest.mark.parametrize(
    ("release", "code"),
    [
        pytest.param("26.03", "CT283", id="26.03 knows no such platform"),
        pytest.param("26.04", "CT284", id="26.04 takes it for PyTorch's, and rejects the pair"),
    ],
)
def test_the_old_name_of_pytorchs_platform(messages: Messages, write: Write, release: str, code: str) -> None:
    repository = write({"model/config.pbtxt": 'platform: "libtorch"', "model/1/model.pt": ""}, base={})
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    pairs = [each for each in repository.check(platform=platform) if each.code.startswith("CT28")]
    assert messages.of(pairs) == [(code, "model/config.pbtxt", "platform")]
