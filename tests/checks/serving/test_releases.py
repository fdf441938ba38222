"""The rules CT601 to CT606: whether the image has what the models need, and runs on the instance's GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from sample_repositories.files import DALI_PIPELINE

if TYPE_CHECKING:
    from golden_messages import Messages, Place
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
            [("CT606", "model/config.pbtxt", "platform")],
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
        pytest.param(PLAN, "24.11/ml.p3.2xlarge", [("CT602", "model/config.pbtxt", "")], id="CT602 Volta"),
        pytest.param(PLAN, "24.10/ml.p3.2xlarge", [], id="a version that was not read"),
        pytest.param(PLAN, "24.09/ml.p3.2xlarge", [], id="the last release for Volta"),
        pytest.param(PLAN, "24.12/ml.p6-b200.48xlarge", [("CT602", "model/config.pbtxt", "")], id="CT602 Blackwell"),
        pytest.param(PLAN, "25.01/ml.p6-b200.48xlarge", [], id="the first release for Blackwell"),
        pytest.param(
            {
                "model/config.pbtxt": 'backend: "python"',
                "model/1/model.py": "class TritonPythonModel:\n    def execute(self, requests): ...\n",
            },
            "22.07/ml.p5.4xlarge",
            [("CT603", ".", "")],
            id="CT603 Hopper",
        ),
        pytest.param(
            INT64_PLAN,
            "24.04/ml.g5.xlarge",
            [
                ("CT604", "model/config.pbtxt", "input[0].data_type"),
                ("CT604", "model/config.pbtxt", "output[0].data_type"),
            ],
            id="CT604 before TensorRT 10",
        ),
        pytest.param(INT64_PLAN, "24.05/ml.g5.xlarge", [], id="TensorRT 10"),
        pytest.param(
            {**DALI, "model/1/dali.py": ""},
            "24.04/ml.g5.xlarge",
            [("CT605", "model", "")],
            id="CT605 a Python file",
        ),
        pytest.param(
            {
                "model/config.pbtxt": 'backend: "dali" default_model_filename: "pipeline.py"',
                "model/1/pipeline.py": DALI_PIPELINE,
            },
            "24.04/ml.g5.xlarge",
            [("CT605", "model", "")],
            id="CT605 a Python file of another name",
        ),
        pytest.param({**DALI, "model/1/dali.py": ""}, "24.05/ml.g5.xlarge", [], id="DALI is importable"),
        pytest.param(
            {**DALI, "model/1/dali.py": "", "model/1/model.dali": ""},
            "24.04/ml.g5.xlarge",
            [],
            id="a serialised pipeline comes first",
        ),
    ],
)
def test_releases(
    messages: Messages, write: Write, files: Mapping[str, Change], where: str, findings: list[Place]
) -> None:
    repository = write(files, base={})
    found = [finding for finding in repository.check(platform=platform(where)) if finding.code.startswith("CT6")]
    assert messages.of(found) == findings


def model_of(backend: str, more: str = "") -> Mapping[str, str]:
    tensors = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    return {"m/config.pbtxt": f'backend: "{backend}" {tensors} {more}', "m/1/weights": "", "m/2/weights": ""}


@pytest.mark.parametrize(
    ("backend", "meant"),
    [
        ("onnx", "onnxruntime"),
        ("torch", "pytorch"),
        ("tensorrt_plan", "tensorrt"),
        ("pythn", "python"),
        ("filgpu", "fil"),
        ("vllm", None),
    ],
)
def test_a_backend_that_sagemakers_image_does_not_have(
    messages: Messages, write: Write, backend: str, meant: str | None
) -> None:
    image = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    found = write(model_of(backend), base={}).check(platform=image)
    assert messages.of(found) == [("CT601", "m/config.pbtxt", "backend")]
    assert meant is None or f'"{meant}"' in found[0].fix


def test_a_backend_of_no_image_is_a_warning_where_nobody_says_the_platform(messages: Messages, write: Write) -> None:
    assert messages.of(write(model_of("onnx"), base={}).check()) == [("CT606", "m/config.pbtxt", "backend")]


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


@pytest.mark.parametrize(
    ("backend", "runtime", "files", "codes"),
    [
        pytest.param("fil", "model.py", {"m/model.py": "", "m/2/model.py": ""}, ["CT607"], id="no backend in Python"),
        pytest.param("fil", "libfoo.so", {}, ["CT607"], id="a library that is nowhere"),
        pytest.param("fil", "libfoo.so", {"m/1/libfoo.so": ""}, ["CT607"], id="in a version that is not served"),
        pytest.param("fil", "libfoo.so", {"m/2/libfoo.so": ""}, [], id="in the version"),
        pytest.param("fil", "libfoo.so", {"m/libfoo.so": ""}, [], id="in the model"),
        pytest.param("fil", "libtriton_fil.so", {}, [], id="the backend's own"),
        pytest.param("fil", "../fil/libtriton_fil.so", {}, [], id="a path"),
        pytest.param("vllm", "model.py", {}, [], id="a backend of other images"),
    ],
)
def test_the_library_that_runtime_names(
    messages: Messages, write: Write, backend: str, runtime: str, files: Mapping[str, str], codes: list[str]
) -> None:
    repository = write({**model_of(backend, f'runtime: "{runtime}"'), **files}, base={})
    image = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    found = [each for each in repository.check(platform=image) if each.code == "CT607"]
    assert messages.of(found) == [(code, "m/config.pbtxt", "runtime") for code in codes]
    assert [each for each in repository.check() if each.code == "CT607"] == []  # an image of one's own may have it


def test_pytorch_has_a_backend_in_python(write: Write) -> None:
    repository = write(model_of("pytorch", 'runtime: "model.py"'), base={})
    found = repository.check(platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge"))
    assert "CT607" not in [each.code for each in found]


def test_backends_in_another_directory(write: Write) -> None:
    environment = ContainerEnvironment(additional_args=("--backend-directory=/opt/ml/model/backends",))
    assert write(model_of("own"), base={}).check(environment=environment) == ()


def test_nothing_is_known_of_ones_own_image_without_a_release(write: Write) -> None:
    platform = ServingPlatform(instance_type="ml.p6-b200.48xlarge", image=OWN_IMAGE)
    assert write(PLAN, base={}).check(platform=platform) == ()
