"""The rules CT147 to CT149: the inputs and outputs of an ONNX file that sequences and ragged batches need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.onnx_models import IN, OUT, onnx_model, written

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

START = (
    'sequence_batching { control_input { name: "S" '
    "control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } }"
)
STATE = 'sequence_batching { state { input_name: "SI" output_name: "SO" data_type: TYPE_FP32 dims: 4 } }'
RAGGED = 'input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }'


@pytest.mark.parametrize(
    ("tensors", "inputs", "outputs", "found"),
    [
        pytest.param(IN.format(4) + START, "float[N, 4] IN, float[N, 1] S", "float[N, 4] OUT", [], id="a control"),
        pytest.param(
            IN.format(4) + START,
            "float[N, 4] IN",
            "float[N, 4] OUT",
            [("CT147", "model/config.pbtxt", "sequence_batching.control_input[0].name")],
            id="no control",
        ),
        pytest.param(
            IN.format(4) + START,
            "float[N, 4] IN, float[N] S",
            "float[N, 4] OUT",
            [("CT147", "model/config.pbtxt", "sequence_batching.control_input[0].name")],
            id="a control of another shape",
        ),
        pytest.param(RAGGED, "float[T] IN", "float[N, 4] OUT", [], id="ragged"),
        pytest.param(
            RAGGED,
            "float[N, T] IN",
            "float[N, 4] OUT",
            [("CT148", "model/config.pbtxt", "input[0].allow_ragged_batch")],
            id="ragged, another shape",
        ),
        pytest.param(
            IN.format(4) + STATE, "float[N, 4] IN, float[N, 4] SI", "float[N, 4] OUT, float[N, 4] SO", [], id="a state"
        ),
        pytest.param(
            IN.format(4) + STATE,
            "float[N, 4] IN",
            "float[N, 4] OUT",
            [
                ("CT149", "model/config.pbtxt", "sequence_batching.state[0].input_name"),
                ("CT149", "model/config.pbtxt", "sequence_batching.state[0].output_name"),
            ],
            id="no state",
        ),
    ],
)
def test_sequences(
    messages: Messages, write: Write, tensors: str, inputs: str, outputs: str, found: list[Place]
) -> None:
    findings = written(write, tensors + OUT.format(4), onnx_model(inputs, outputs)).check()
    assert messages.of(each for each in findings if each.code.startswith(("CT13", "CT14"))) == found
