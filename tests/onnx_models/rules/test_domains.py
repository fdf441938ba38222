"""The rule CT179: operators of an ONNX file that nothing registers.

`tests/integration/test_onnx_graphs_against_onnxruntime.py` lets the real ONNX Runtime judge the same graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton.repository import Mode
    from golden_messages import Messages
    from sample_repositories import Write

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository
from sample_repositories.onnx_graphs import TAKEN, UNREGISTERED, graph

FOUND = ("CT179", "model/1/model.onnx", "")
HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> model (float[N, 4] x) => (float[N, 4] y) '
LIBRARY = 'backend: "onnxruntime" model_operations { op_library_filename: "libcustom.so" }'
TENSORRT = (
    'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }'
)


def model(write: Write, text: str, config: str = 'backend: "onnxruntime"') -> ModelRepository:
    return write({"model/config.pbtxt": config, "model/1/model.onnx": graph(text).SerializeToString()}, base={})


@pytest.mark.parametrize("name", UNREGISTERED)
def test_an_operator_that_nothing_registers(messages: Messages, write: Write, name: str) -> None:
    assert messages.of(model(write, UNREGISTERED[name]).check()) == [FOUND]


@pytest.mark.parametrize("name", TAKEN)
def test_an_operator_that_is_registered(write: Write, name: str) -> None:
    assert [each.code for each in model(write, TAKEN[name]).check() if each.code == "CT179"] == []


@pytest.mark.parametrize("config", [LIBRARY, TENSORRT], ids=["library", "TensorRT"])
def test_something_may_register_it(write: Write, config: str) -> None:
    repository = model(write, UNREGISTERED["an operator of one's own"], config)
    assert "CT179" not in [each.code for each in repository.check()]


@pytest.mark.parametrize(
    ("operator", "mode", "word"),
    [
        pytest.param("own.Relu", "single", "/opt/ml/model/model/", id="the path of an archive"),
        pytest.param("own.Relu", "multi", "image of your own", id="an archive without a known path"),
        pytest.param("TRT.EfficientNMS_TRT", "single", "TensorRT plan", id="a plugin of TensorRT"),
        pytest.param("mmdeploy.NMS_TRT", "multi", "TensorRT plan", id="a plugin of TensorRT in another domain"),
    ],
)
def test_the_fix_fits_operator_and_endpoint(
    messages: Messages, write: Write, operator: str, mode: Mode, word: str
) -> None:
    findings = [each for each in model(write, HEAD + f"{{ y = {operator}(x) }}").check(mode) if each.code == "CT179"]
    assert messages.of(findings) == [FOUND]
    assert word in findings[0].fix


def test_many_nodes_are_one_finding(write: Write) -> None:
    repository = model(write, HEAD + "{ a = own.Relu(x) b = own.Relu(a) y = own.Relu(b) }")
    assert [each.code for each in repository.check()] == ["CT179"]


@pytest.mark.parametrize(
    ("operator", "release", "expected"),
    [
        pytest.param("PagedAttention", None, [], id="no release"),
        pytest.param("PagedAttention", "25.04", [FOUND], id="ONNX Runtime 1.21"),
        pytest.param("PagedAttention", "25.09", [], id="ONNX Runtime 1.23"),
        pytest.param("PagedAttention", "23.05", [], id="older than the table"),
        pytest.param("QuickerGelu", "25.09", [FOUND], id="in no version"),
        pytest.param("QuickerGelu", "29.01", [], id="a release that nobody knows"),
        pytest.param("AllReduce", "25.09", [], id="in builds with NCCL"),
    ],
)
def test_the_release_decides(
    messages: Messages, write: Write, operator: str, release: str | None, expected: list[tuple[str, str, str]]
) -> None:
    repository = model(write, HEAD + f"{{ y = com.microsoft.{operator}(x) }}")
    image = "registry.example/triton@sha256:" + "1" * 64 if release == "29.01" else None
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)
    assert [each for each in messages.of(repository.check(platform=platform)) if each[0] == "CT179"] == expected
