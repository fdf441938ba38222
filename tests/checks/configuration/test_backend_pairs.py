"""The rules CT283 to CT285: platform and backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories import Write


def found(write: Write, config: str) -> list[str]:
    """What the rules CT280 to CT289 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [str(each) for each in repository.check() if "CT280" <= each.code <= "CT289"]


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
        pytest.param(
            'platform: "python"',
            [
                "model/config.pbtxt platform: error CT283: the platform 'python' stands for no backend, and the server "
                "would not load 'model': unexpected platform type 'python' for model; name the backend, for example "
                'backend: "python"',
            ],
            id="CT283 a platform",
        ),
        pytest.param(
            'default_model_filename: "bert.onnx"',
            [
                "model/config.pbtxt backend: error CT283: the file name 'bert.onnx' stands for no backend, and none is "
                "named, and the server would not load 'model': unexpected platform type '' for model; name the "
                "backend, "
                'for example backend: "python"',
            ],
            id="CT283 a file name",
        ),
        pytest.param(
            'platform: "onnx" backend: "onnxruntime"',
            [
                "model/config.pbtxt platform: error CT284: the platform is 'onnx' and the backend is "
                "'onnxruntime', and "
                "the server would not load 'model': unexpected 'platform' and 'backend' pair, got:onnx, onnxruntime; "
                'write platform: "onnxruntime_onnx", or leave platform out',
            ],
            id="CT284 a pair",
        ),
        pytest.param(
            'backend: "tensorflow"',
            [
                "model/config.pbtxt platform: error CT284: the platform is '' and the backend is 'tensorflow', and the "
                "server would not load 'model': unexpected 'platform' and 'backend' pair, got:, tensorflow; write "
                'platform: "tensorflow_savedmodel" or "tensorflow_graphdef"',
            ],
            id="CT284 TensorFlow without a platform",
        ),
        pytest.param(
            'platform: "onnxruntime_onnx" default_model_filename: "model.plan"',
            [
                "model/config.pbtxt platform: error CT284: the platform is 'onnxruntime_onnx' and the backend is "
                "'tensorrt', and the server would not load 'model': unexpected 'platform' and 'backend' pair, "
                'got:onnxruntime_onnx, tensorrt; write platform: "tensorrt_plan", or leave platform out',
            ],
            id="CT284 a file name of another platform",
        ),
        pytest.param(
            ENSEMBLE + 'backend: "python"',
            [
                "model/config.pbtxt backend: error CT285: the ensemble has the backend 'python', and the server would "
                "not load it: Ensemble model 'model' must have platform type 'ensemble' and empty backend type; leave "
                "out backend",
            ],
            id="CT285 a backend",
        ),
        pytest.param(
            ENSEMBLE + 'default_model_filename: "model.py"',
            [
                "model/config.pbtxt default_model_filename: error CT285: the ensemble has the backend 'python', "
                "and the "
                "server would not load it: Ensemble model 'model' must have platform type 'ensemble' and empty backend "
                "type; leave out default_model_filename",
            ],
            id="CT285 a file name",
        ),
    ],
)
def test_platform_and_backend(write: Write, config: str, findings: list[str]) -> None:
    assert found(write, config) == findings


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


def test_a_misspelt_platform(write: Write) -> None:
    (finding,) = found(write, 'platform: "onnxruntime_onx"')
    assert finding.startswith("model/config.pbtxt platform: error CT283: the platform 'onnxruntime_onx' stands for no")
    assert finding.endswith('; did you mean platform: "onnxruntime_onnx"?')


@pytest.mark.parametrize(("release", "codes"), [("25.09", {"CT283"}), ("26.03", set())])
def test_the_second_platform_of_pytorch_needs_a_release(write: Write, release: str, codes: set[str]) -> None:
    repository = write({"model/config.pbtxt": 'platform: "torch_aoti"', "model/1/model.pt2": ""}, base={})
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert {each.code for each in repository.check(platform=platform) if each.code.startswith("CT28")} == codes
