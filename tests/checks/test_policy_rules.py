"""The rules CT280 to CT285: response cache, platform and backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from sample_repositories import Write

MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""


def found(write: Write, config: str) -> list[str]:
    """What the rules CT280 to CT289 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": MODEL}, base={})
    return [str(each) for each in repository.check() if "CT280" <= each.code <= "CT289"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            "response_cache { enable: true } model_transaction_policy { decoupled: true }",
            [
                "model/config.pbtxt response_cache.enable: error CT280: response_cache is on and 'model' is "
                "decoupled, and the server would not load 'model': Response Cache does not currently support "
                "model model with 'decoupled' transaction policy. Please disable the response cache; leave "
                "response_cache out",
            ],
            id="CT280",
        ),
        pytest.param(
            "response_cache { enable: true } sequence_batching { }",
            [
                "model/config.pbtxt response_cache.enable: error CT281: response_cache is on beside "
                "sequence_batching, and the server would not load 'model': Response Cache does not currently "
                "support model model with sequence batching scheduler. Please disable the response cache; "
                "leave response_cache out",
            ],
            id="CT281",
        ),
        pytest.param(
            "response_cache { enable: true }",
            [
                "model/config.pbtxt response_cache.enable: warning CT282: the server that SageMaker starts "
                "has no cache, so that it would cache no response of 'model'; leave response_cache out, or "
                "add --cache-config=local,size=104857600 to additional_args",
            ],
            id="CT282",
        ),
    ],
)
def test_it_is_found(write: Write, config: str, findings: list[str]) -> None:
    assert found(write, 'backend: "python" ' + config) == findings


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            "model_transaction_policy { decoupled: true }",
            id="decoupled",
        ),
        pytest.param(
            "response_cache { enable: false }",
            id="a cache that is off",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "python" ' + config) == []


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


@pytest.mark.parametrize("cached", ["inner", "outer"])
def test_an_ensemble_is_decoupled_by_any_of_its_parts(write: Write, cached: str) -> None:
    tensors = "\n".join(ENSEMBLE.splitlines()[2:4])
    files = {
        "part/config.pbtxt": 'backend: "python" model_transaction_policy { decoupled: true }' + tensors,
        "part/1/model.py": MODEL,
        "inner/config.pbtxt": ENSEMBLE.replace("STEP", "part"),
        "inner/1/.gitkeep": "",
        "outer/config.pbtxt": ENSEMBLE.replace("STEP", "inner"),
        "outer/1/.gitkeep": "",
    }
    files[f"{cached}/config.pbtxt"] += "response_cache { enable: true }"
    findings = write(files, base={}).check()
    assert [str(each) for each in findings if each.code.startswith("CT28")] == [
        f"{cached}/config.pbtxt response_cache.enable: error CT280: response_cache is on and 'part' is "
        f"decoupled, and the "
        f"server would not load '{cached}': Response Cache does not currently support model {cached} with 'decoupled' "
        "transaction policy. Please disable the response cache; leave response_cache out"
    ]


def test_a_server_with_a_cache_answers_the_warning(write: Write) -> None:
    config = 'backend: "python" response_cache { enable: true }'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": MODEL}, base={})
    arguments = ("--cache-config=local,size=1048576",)
    environment = ContainerEnvironment(default_model_name="model", additional_args=arguments)
    assert "CT282" in {each.code for each in repository.check()}
    assert "CT282" not in {each.code for each in repository.check(environment=environment)}


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
