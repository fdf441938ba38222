"""The rules CT289, CT294 and CT295: inputs that the sequence batcher fills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

CONFIG = """
backend: "python"
max_batch_size: 4
input {{ name: "IN" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_FP32 dims: 1 }}
sequence_batching {{
  control_input {{ name: "{signal}" control {{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }} }}
  state {{ input_name: "{state}" output_name: "STATE" data_type: TYPE_FP32 dims: 1 }}
}}
"""


@pytest.mark.parametrize(
    ("signal", "state", "fields"),
    [
        ("START", "BEFORE", []),
        ("IN", "BEFORE", ["control_input[0].name"]),
        ("START", "IN", ["state[0].input_name"]),
    ],
)
def test_an_input_that_the_batcher_fills(
    messages: Messages, write: Write, signal: str, state: str, fields: list[str]
) -> None:
    files = {"model/config.pbtxt": CONFIG.format(signal=signal, state=state), "model/1/model.py": PYTHON_MODEL}
    found = [each for each in write(files, base={}).check() if each.code == "CT289"]
    assert messages.of(found) == [("CT289", "model/config.pbtxt", f"sequence_batching.{field}") for field in fields]


SEQUENCES = """
backend: "{backend}"
max_batch_size: {most}
input {{ name: "IN" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_FP32 dims: 1 }}
sequence_batching {{ {batching} }}
"""
READY = 'control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } }'
TEXT = 'control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }'


@pytest.mark.parametrize(
    ("batching", "most", "backend", "is_found"),
    [
        pytest.param("", 8, "python", True, id="the default strategy"),
        pytest.param("direct { }", 2, "python", True, id="direct"),
        pytest.param("direct { }", 1, "python", False, id="one slot"),
        pytest.param("", 0, "python", False, id="no batches"),
        pytest.param("oldest { max_candidate_sequences: 4 }", 8, "python", False, id="no slots"),
        pytest.param(READY, 8, "python", False, id="ready"),
        pytest.param("iterative_sequence: true", 8, "python", False, id="an iterative sequence"),
        pytest.param("", 8, "onnxruntime", False, id="a network without a state of its own"),
    ],
)
def test_slots_without_requests(write: Write, batching: str, most: int, backend: str, is_found: bool) -> None:
    files = {
        "model/config.pbtxt": SEQUENCES.format(backend=backend, most=most, batching=batching),
        "model/1/model.py": PYTHON_MODEL,
    }
    found = [(each.path, each.field) for each in write(files, base={}).check() if each.code == "CT294"]
    assert found == [("model/config.pbtxt", "sequence_batching")] * is_found


@pytest.mark.parametrize(
    ("release", "backend", "is_found"),
    [("24.09", "python", True), ("24.05", "python", False), ("25.04", "python", False), ("24.09", "custom", False)],
)
def test_an_identifier_that_is_text(write: Write, release: str, backend: str, is_found: bool) -> None:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    config = SEQUENCES.format(backend=backend, most=1, batching=TEXT)
    found = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={}).check(platform=platform)
    field = "sequence_batching.control_input[0].control[0].data_type"
    assert [each.field for each in found if each.code == "CT295"] == [field] * is_found
