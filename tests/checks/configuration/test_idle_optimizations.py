"""The rule CT293: settings of `optimization` that have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

TENSORS = (
    ' input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 } '
    "optimization "
)
TENSORRT = f'backend: "tensorrt"{TENSORS}'
BATCHING = f"max_batch_size: 8 {TENSORRT}"
ACCELERATOR = '{ execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }'
GRAPHS = "{ cuda { graphs: true } }"
GRAPH = '{ cuda { graphs: true graph_spec { batch_size: 0 input { key: "IN" value { dim: 4 } } } } }'


def at(*fields: str) -> list[Place]:
    return [("CT293", "model/config.pbtxt", f"optimization.{field}") for field in fields]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(TENSORRT + ACCELERATOR, at("execution_accelerators"), id="an accelerator of a plan"),
        pytest.param(f'backend: "python"{TENSORS}{ACCELERATOR}', at("execution_accelerators"), id="of a Python model"),
        pytest.param(f'backend: "onnxruntime"{TENSORS}{ACCELERATOR}', [], id="of ONNX Runtime"),
        pytest.param(f'backend: "onnxruntime"{TENSORS}{GRAPHS}', at("cuda"), id="graphs of ONNX Runtime"),
        pytest.param(f'backend: "python"{TENSORS}{GRAPHS}', at("cuda"), id="graphs of a Python model"),
        pytest.param(f'backend: "pytorch"{TENSORS}{GRAPHS}', [], id="a backend that was not read"),
        pytest.param(TENSORRT + GRAPHS, [], id="graphs whose batch size the plan decides"),
        pytest.param(TENSORRT + GRAPH, at("cuda.graph_spec[0]"), id="a graph without batches"),
        pytest.param(BATCHING + GRAPHS, [], id="graphs of batches"),
        pytest.param(BATCHING + GRAPH.replace("batch_size: 0", "batch_size: 8"), [], id="a graph of a batch"),
        pytest.param(BATCHING + GRAPH.replace("graphs: true", ""), at("cuda.graph_spec"), id="no graphs"),
        pytest.param(TENSORRT + "{ priority: PRIORITY_MAX }", [], id="another setting"),
    ],
)
def test_settings(messages: Messages, write: Write, config: str, expected: list[Place]) -> None:
    findings = write({"model/config.pbtxt": config}, base={}).check()
    assert messages.of(each for each in findings if each.code == "CT293") == expected


@pytest.mark.parametrize(("release", "count"), [("26.07", 1), ("26.08", 0)])
def test_newer_releases_may_find_the_graphs(messages: Messages, write: Write, release: str, count: int) -> None:
    image = f"example.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)
    findings = write({"model/config.pbtxt": TENSORRT + GRAPH}, base={}).check(platform=platform)
    assert messages.of(each for each in findings if each.code == "CT293") == at("cuda.graph_spec[0]") * count


@pytest.mark.parametrize(
    ("level", "release", "expected"),
    [
        *(pytest.param(level, None, [], id=f"{level}") for level in (-1, 0, 1, 2)),
        *(pytest.param(level, None, at("graph.level"), id=f"{level}") for level in (-2, 3, 99)),
        pytest.param(2, "24.01", [], id="2 of 24.01"),
        pytest.param(2, "23.12", at("graph.level"), id="2 of 23.12"),
    ],
)
def test_levels_of_onnx_runtime(
    messages: Messages, write: Write, level: int, release: str | None, expected: list[Place]
) -> None:
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    config = f'backend: "onnxruntime"{TENSORS}{{ graph {{ level: {level} }} }}'
    findings = write({"model/config.pbtxt": config}, base={}).check(platform=platform)
    assert messages.of(each for each in findings if each.code == "CT293") == expected
