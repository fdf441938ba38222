"""Python models on the real server, with as much shared memory as a container of SageMaker has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import onnx.parser
import pytest

from cdk_triton.errors import LocalError
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.environment import container_variables
from cdk_triton.triton.shared_memory import with_shared_memory

pytestmark = [pytest.mark.slow, pytest.mark.server]

NO_ROOM = "Unable to initialize shared memory key .*No space left on device"
MIB = 1 << 20
GROWS = """
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        size = int(pb.get_input_tensor_by_name(requests[0], "IN").as_numpy().max())
        return [pb.InferenceResponse([pb.Tensor("OUT", numpy.zeros((1, size), numpy.float32))]) for _ in requests]
"""
CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
instance_group { kind: KIND_CPU count: COUNT }
"""


def archive(packed: Callable[[Mapping[str, str]], bytes], instances: int) -> bytes:
    return packed({"model/config.pbtxt": CONFIG.replace("COUNT", str(instances)), "model/1/model.py": GROWS})


def start_size(size: int) -> dict[str, str]:
    return {"SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": str(size)}


@pytest.mark.parametrize(
    ("environment", "unloads"),
    [
        pytest.param(start_size(40 * MIB), 2, id="more than half of the memory each"),
        pytest.param(
            container_variables(with_shared_memory(ContainerEnvironment(), "24.10"), multi_model=True),
            0,
            id="as the constructs write it",
        ),
    ],
)
def test_ensembles_that_share_the_memory_of_a_container(
    new_bench: Any, packed: Callable[[Mapping[str, str]], bytes], environment: Mapping[str, str], unloads: int
) -> None:
    bench = new_bench()
    bench.fleet("fleet", environment=environment, a=archive(packed, 1), b=archive(packed, 1))
    for model in "aba":
        assert bench.answer("fleet", 2.0, model=model) == [0.0, 0.0]
    assert sum("unloaded" in line for line in bench.lines) == unloads, bench.lines


def test_the_last_instance_that_does_not_fit_is_rejected_in_the_servers_words(
    new_bench: Any, packed: Callable[[Mapping[str, str]], bytes]
) -> None:
    bench = new_bench()
    bench.single("two", archive(packed, 2), environment=start_size(32 * MIB))
    with pytest.raises(LocalError, match=NO_ROOM):
        bench.single("larger", archive(packed, 2), environment=start_size(33 * MIB))


def test_a_tensor_that_does_not_fit_fails_and_the_next_request_is_answered(
    new_bench: Any, packed: Callable[[Mapping[str, str]], bytes]
) -> None:
    bench = new_bench()
    bench.single("one", archive(packed, 1))
    response = bench.invoke("one", 20e6)
    assert response.status == 424
    assert re.search("Failed to increase the shared memory pool size.*No space left on device", str(response.body))
    assert bench.answer("one", 3.0) == [0.0, 0.0, 0.0]


LARGEST = """
    <ir_version: 8, opset_import: ["": 17]>
    largest (float[N, M] IN) => (float[N, 1] OUT) { OUT = ReduceMax<axes = [1], keepdims = 1> (IN) }
"""
STEP = """
step {{
  model_name: "{0}" model_version: -1
  input_map {{ key: "IN" value: "{1}" }} output_map {{ key: "OUT" value: "{2}" }}
}}
"""


def test_a_stand_in_needs_no_shared_memory(
    new_bench: Any, packed: Callable[[Mapping[str, str | bytes | None]], bytes]
) -> None:
    """On a GPU, the second step gets the 36 MB from the server."""
    tensors = CONFIG.replace('backend: "python"', "").replace("instance_group { kind: KIND_CPU count: COUNT }", "")
    steps = STEP.format("grows", "IN", "values") + STEP.format("largest", "values", "OUT")
    files = {
        "ensemble/config.pbtxt": f'platform: "ensemble" {tensors} ensemble_scheduling {{ {steps} }}',
        "ensemble/1": None,
        "grows/config.pbtxt": CONFIG.replace("COUNT", "1"),
        "grows/1/model.py": GROWS,
        "largest/config.pbtxt": f'backend: "onnxruntime" {tensors}',
        "largest/1/model.onnx": onnx.parser.parse_model(LARGEST).SerializeToString(),
    }
    bench = new_bench()
    bench.single("both", packed(files), environment={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble"})
    assert bench.answer("both", 9e6) == [0.0]
