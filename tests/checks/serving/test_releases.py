"""The rules CT601 to CT606: whether the image has what the models need, and runs on the instance's GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from sample_repositories import Change, Write

OWN_IMAGE = f"example.com/triton@sha256:{64 * '0'}"

TENSORFLOW = {
    "model/config.pbtxt": 'platform: "tensorflow_savedmodel"',
    "model/1/model.savedmodel/saved_model.pb": "weights",
}
PLAN = {"model/config.pbtxt": 'platform: "tensorrt_plan"', "model/1/model.plan": "plan"}
INT64_PLAN = {
    "model/config.pbtxt": """
        platform: "tensorrt_plan"
        input { name: "ids" data_type: TYPE_INT64 dims: 8 }
        output { name: "rank" data_type: TYPE_INT64 dims: 8 }
    """,
    "model/1/model.plan": "plan",
}
DALI = {"model/config.pbtxt": 'backend: "dali"'}


def platform(text: str) -> ServingPlatform:
    """`25.09/ml.g5.xlarge`, with an image of one's own: SageMaker has none of some releases."""
    release, _, instance_type = text.partition("/")
    return ServingPlatform(release=release, instance_type=instance_type, image=OWN_IMAGE)


@pytest.mark.parametrize(
    ("files", "where", "findings"),
    [
        pytest.param(
            TENSORFLOW,
            "25.04/ml.g5.xlarge",
            [
                "model/config.pbtxt platform: warning CT606: 'model' needs the backend 'tensorflow', which SageMaker's"
                " image does not have; the image is one of your own, and without the backend it would not load the"
                " model: unable to find backend library for backend 'tensorflow', try specifying runtime on the model"
                " configuration.; convert the model to ONNX, or serve with a release up to 25.02 (SageMaker's last"
                " image is 24.09)",
            ],
            id="CT606 TensorFlow is gone from SageMaker's images",
        ),
        pytest.param(TENSORFLOW, "25.02/ml.g5.xlarge", [], id="the last release with TensorFlow"),
        pytest.param(
            {"model/config.pbtxt": 'platform: "tensorflow_graphdef"', "model/1/model.graphdef": "graph"},
            "24.09/ml.g5.xlarge",
            [],
            id="TensorFlow 2 runs a graph definition",
        ),
        pytest.param(
            {**TENSORFLOW, "model/libtriton_tensorflow.so": "library"},
            "25.04/ml.g5.xlarge",
            [],
            id="a backend of one's own",
        ),
        pytest.param(
            PLAN,
            "24.11/ml.p3.2xlarge",
            [
                "model/config.pbtxt: error CT602: ml.p3.2xlarge has the GPU NVIDIA V100 16GB and TensorRT of 24.11 no"
                " longer supports it, so that the server would not load 'model': unable to load plan file to auto"
                " complete config; serve with a release up to 24.09, or on a newer GPU",
            ],
            id="CT602 Volta",
        ),
        pytest.param(PLAN, "24.10/ml.p3.2xlarge", [], id="a version that was not read"),
        pytest.param(PLAN, "24.09/ml.p3.2xlarge", [], id="the last release for Volta"),
        pytest.param(
            PLAN,
            "24.12/ml.p6-b200.48xlarge",
            [
                "model/config.pbtxt: error CT602: ml.p6-b200.48xlarge has the GPU NVIDIA B200 and TensorRT of 24.12"
                " does not support it yet, so that the server would not load 'model': unable to load plan file to auto"
                " complete config; serve with 25.01 or newer",
            ],
            id="CT602 Blackwell",
        ),
        pytest.param(PLAN, "25.01/ml.p6-b200.48xlarge", [], id="the first release for Blackwell"),
        pytest.param(
            {
                "model/config.pbtxt": 'backend: "python"',
                "model/1/model.py": "class TritonPythonModel:\n    def execute(self, requests): ...\n",
            },
            "22.07/ml.p5.4xlarge",
            [
                ".: warning CT603: ml.p5.4xlarge has the GPU NVIDIA H100 80GB (compute capability 9.0), for which CUDA"
                " compiles from 11.8 on, and 22.07 was built with 11.7.1: models load slowly, or fail with: no kernel"
                " image is available for execution on the device; serve with a newer release, or on an older GPU",
            ],
            id="CT603 Hopper",
        ),
        pytest.param(
            INT64_PLAN,
            "24.04/ml.g5.xlarge",
            [
                "model/config.pbtxt input[0].data_type: error CT604: 'ids' is TYPE_INT64, and TensorRT 8 of 24.04"
                " builds INT64 as INT32, so that the server would not load 'model': unexpected datatype TYPE_INT32 for"
                " inference input 'ids', expecting TYPE_INT64; write TYPE_INT32 and send it, or serve with 24.05 or"
                " newer",
                "model/config.pbtxt output[0].data_type: error CT604: 'rank' is TYPE_INT64, and TensorRT 8 of 24.04"
                " builds INT64 as INT32, so that the server would not load 'model': unexpected datatype TYPE_INT32 for"
                " inference output 'rank', expecting TYPE_INT64; write TYPE_INT32 and send it, or serve with 24.05 or"
                " newer",
            ],
            id="CT604 before TensorRT 10",
        ),
        pytest.param(INT64_PLAN, "24.05/ml.g5.xlarge", [], id="TensorRT 10"),
        pytest.param(
            {**DALI, "model/1/dali.py": "pipeline"},
            "24.04/ml.g5.xlarge",
            [
                "model: warning CT605: model/1/dali.py has to be serialised by the container's python3, which finds"
                " DALI from 24.05 on, and the server of 24.04 may not load 'model': Failed to load model file. The"
                " program looked in the following locations; serialise the pipeline into model.dali with DALI of that"
                " release, or serve with 24.05 or newer",
            ],
            id="CT605 a Python file",
        ),
        pytest.param(
            {
                "model/config.pbtxt": 'backend: "dali" default_model_filename: "pipeline.py"',
                "model/1/pipeline.py": "pipeline",
            },
            "24.04/ml.g5.xlarge",
            [
                "model: warning CT605: model/1/pipeline.py has to be serialised by the container's python3, which finds"
                " DALI from 24.05 on, and the server of 24.04 may not load 'model': Failed to load model file. The"
                " program looked in the following locations; serialise the pipeline into model.dali with DALI of that"
                " release, or serve with 24.05 or newer",
            ],
            id="CT605 a Python file of another name",
        ),
        pytest.param({**DALI, "model/1/dali.py": "pipeline"}, "24.05/ml.g5.xlarge", [], id="DALI is importable"),
        pytest.param(
            {**DALI, "model/1/dali.py": "pipeline", "model/1/model.dali": "serialised"},
            "24.04/ml.g5.xlarge",
            [],
            id="a serialised pipeline comes first",
        ),
    ],
)
def test_releases(write: Write, files: Mapping[str, Change], where: str, findings: list[str]) -> None:
    repository = write(files, base={})
    found = [finding for finding in repository.check(platform=platform(where)) if finding.code.startswith("CT6")]
    assert [str(finding) for finding in found] == findings


NOT_FOUND = "unable to find backend library for backend '{}', try specifying runtime on the model configuration."


def model_of(backend: str, more: str = "") -> Mapping[str, str]:
    tensors = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    return {"m/config.pbtxt": f'backend: "{backend}" {tensors} {more}', "m/1/weights": "", "m/2/weights": ""}


@pytest.mark.parametrize(
    ("backend", "fix"),
    [
        ("onnx", 'did you mean backend: "onnxruntime"?'),
        ("torch", 'did you mean backend: "pytorch"?'),
        ("tensorrt_plan", 'did you mean backend: "tensorrt"?'),
        ("pythn", 'did you mean backend: "python"?'),
        ("filgpu", 'did you mean backend: "fil"?'),
        (
            "vllm",
            "name a backend of the image (dali, fil, identity, onnxruntime, openvino, python, pytorch, repeat, square,"
            " tensorrt)",
        ),
    ],
)
def test_a_backend_that_sagemakers_image_does_not_have(write: Write, backend: str, fix: str) -> None:
    (finding,) = write(model_of(backend), base={}).check(
        platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    )
    assert str(finding) == (
        f"m/config.pbtxt backend: error CT601: 'm' needs the backend '{backend}', which is not in SageMaker's image of"
        f" 25.09, and the server would not load it: {NOT_FOUND.format(backend)}; {fix}"
    )


def test_a_backend_of_no_image_is_a_warning_where_nobody_says_the_platform(write: Write) -> None:
    (finding,) = write(model_of("onnx"), base={}).check()
    assert str(finding) == (
        "m/config.pbtxt backend: warning CT606: 'm' needs the backend 'onnx', which no release of SageMaker's image"
        f" has, and a server without it would not load the model: {NOT_FOUND.format('onnx')}; did you mean backend:"
        ' "onnxruntime"?'
    )


@pytest.mark.parametrize("backend", ["identity", "square", "repeat", "tensorflow"])
def test_a_backend_that_some_image_has(write: Write, backend: str) -> None:
    codes = [finding.code for finding in write(model_of(backend), base={}).check()]
    assert "CT606" not in codes


@pytest.mark.parametrize("backend", ["vllm", "tensorrtllm"])
def test_a_backend_that_another_image_has(write: Write, backend: str) -> None:
    repository = write(model_of(backend), base={})
    assert repository.check(platform=platform("25.09/ml.g5.xlarge")) == ()
    assert [finding.code for finding in repository.check()] == ["CT606"]


@pytest.mark.parametrize(
    ("more", "files", "codes"),
    [
        pytest.param("", {"m/libtriton_own.so": "library"}, [], id="beside the versions"),
        pytest.param("", {"m/1/libtriton_own.so": "", "m/2/libtriton_own.so": ""}, [], id="in the served version"),
        pytest.param("", {"m/1/libtriton_own.so": ""}, ["CT601"], id="in a version that is not served"),
        pytest.param("", {"m/libtriton_another.so": ""}, ["CT601"], id="another backend's library"),
        pytest.param('runtime: "libtriton_special.so"', {}, [], id="runtime"),
    ],
)
def test_a_backend_of_ones_own(write: Write, more: str, files: Mapping[str, str], codes: list[str]) -> None:
    repository = write({**model_of("own", more), **files}, base={})
    found = repository.check(platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge"))
    assert [finding.code for finding in found] == codes


def test_backends_in_another_directory(write: Write) -> None:
    environment = ContainerEnvironment(additional_args=("--backend-directory=/opt/ml/model/backends",))
    assert write(model_of("own"), base={}).check(environment=environment) == ()
