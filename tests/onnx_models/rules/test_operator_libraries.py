"""The rule CT291: libraries of custom operators that the dynamic loader does not find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton.repository import Mode
    from golden_messages import Messages, Place
    from sample_repositories import Write

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import Finding, ModelRepository

FOUND = ("CT291", "model/config.pbtxt", "model_operations.op_library_filename[0]")
OWN_IMAGE = ServingPlatform(instance_type="ml.g5.xlarge", image=f"example.com/triton@sha256:{'0' * 64}")

NVIDIA_IMAGE = ServingPlatform(instance_type="ml.g5.xlarge", release="25.09")


def model(write: Write, *libraries: str, backend: str = "onnxruntime") -> ModelRepository:
    names = ", ".join(f'"{library}"' for library in libraries)
    config = f'backend: "{backend}" model_operations {{ op_library_filename: [ {names} ] }}'
    return write({"model/config.pbtxt": config, "model/1/model.onnx": "", "model/1/libcustom.so": "ELF"}, base={})


def findings(
    repository: ModelRepository, mode: Mode = "single", platform: ServingPlatform | None = None
) -> list[Finding]:
    return [each for each in repository.check(mode, platform=platform) if each.code == "CT291"]


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        pytest.param("libcustom.so", [FOUND], id="a name"),
        pytest.param("libother.so", [], id="a name that the repository does not have"),
        pytest.param("lib/libother.so", [], id="a relative path to such a name"),
        pytest.param("1/libcustom.so", [FOUND], id="relative to the model"),
        pytest.param("./libcustom.so", [FOUND], id="relative to the working directory"),
        pytest.param("$$TRITON_MODEL_DIRECTORY/libcustom.so", [FOUND], id="a variable of the Python backend"),
        pytest.param("/opt/ml/model/model/1/libcustom.so", [], id="in the archive"),
        pytest.param("/opt/ml/model/model/../model/1//libcustom.so", [], id="in the archive, on a longer way"),
        pytest.param("/opt/ml/model/model/libcustom.so", [FOUND], id="not in the archive"),
        pytest.param("/opt/ml/model/model/2/../1/libcustom.so", [FOUND], id="through a missing directory"),
        pytest.param("/opt/ml/model/model/1", [FOUND], id="a directory"),
        pytest.param("/opt/ml/models/0123/model/model/1/libcustom.so", [FOUND], id="an archive of another endpoint"),
        pytest.param("/opt/tritonserver/libcustom.so", [], id="of the image"),
    ],
)
def test_a_library_on_a_single_model_endpoint(
    messages: Messages, write: Write, library: str, expected: list[Place]
) -> None:
    assert messages.of(findings(model(write, library))) == expected


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("libcustom.so", [FOUND]),
        ("/opt/ml/model/model/1/libcustom.so", [FOUND]),
        ("/opt/tritonserver/libcustom.so", []),
    ],
)
def test_a_multi_model_endpoint_has_no_place_for_a_library(
    messages: Messages, write: Write, library: str, expected: list[Place]
) -> None:
    assert messages.of(findings(model(write, library), "multi")) == expected


def test_ones_own_image_may_have_the_library(write: Write) -> None:
    repository = model(write, "libcustom.so", "lib/libcustom.so", "/opt/ml/model/model/libcustom.so")
    found = findings(repository, platform=OWN_IMAGE)
    assert [each.field for each in found] == ["model_operations.op_library_filename[2]"]


def test_an_image_of_nvidia_does_not_have_the_library(messages: Messages, write: Write) -> None:
    found = findings(model(write, "libother.so"), platform=NVIDIA_IMAGE)
    assert messages.of(found) == [FOUND]


def test_each_library_is_one_finding(write: Write) -> None:
    repository = model(write, "/opt/ml/model/model/1/libcustom.so", "liba.so", "libb.so")
    found = findings(repository, platform=NVIDIA_IMAGE)
    assert [each.field[-3:] for each in found] == ["[1]", "[2]"]


def test_only_the_onnx_runtime_backend_opens_the_libraries(write: Write) -> None:
    assert findings(model(write, "libcustom.so", backend="python")) == []


def test_the_fix_is_the_path_of_the_library_that_is_there(write: Write) -> None:
    repository = model(write, "libcustom.so")
    (finding,) = findings(repository)
    assert finding.fix.split("'")[1] in [f"/opt/ml/model/{file.path}" for file in repository.files]
