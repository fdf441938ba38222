"""The rules CT147 to CT149: the inputs and outputs of an ONNX file that sequences and ragged batches need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.onnx_models import IN, OUT, onnx_model, written

if TYPE_CHECKING:
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
            [("CT147", "configuration specified sequence control 'S', but model does not provide that input")],
            id="no control",
        ),
        pytest.param(
            IN.format(4) + START,
            "float[N, 4] IN, float[N] S",
            "float[N, 4] OUT",
            [("CT147", "sequence control 'S' in model has dims [] but dims [1] is expected")],
            id="a control of another shape",
        ),
        pytest.param(RAGGED, "float[T] IN", "float[N, 4] OUT", [], id="ragged"),
        pytest.param(
            RAGGED,
            "float[N, T] IN",
            "float[N, 4] OUT",
            [("CT148", "with shape [-1]  for ragged input 'IN', model provides [-1,-1]")],
            id="ragged, another shape",
        ),
        pytest.param(
            IN.format(4) + STATE, "float[N, 4] IN, float[N, 4] SI", "float[N, 4] OUT, float[N, 4] SO", [], id="a state"
        ),
        pytest.param(
            IN.format(4) + STATE,
            "float[N, 4] IN",
            "float[N, 4] OUT",
            [("CT149", "has no input 'SI' for the state"), ("CT149", "has no output 'SO' for the state")],
            id="no state",
        ),
    ],
)
def test_sequences(write: Write, tensors: str, inputs: str, outputs: str, found: list[tuple[str, str]]) -> None:
    findings = written(write, tensors + OUT.format(4), onnx_model(inputs, outputs)).check()
    own = [finding for finding in findings if finding.code.startswith(("CT13", "CT14"))]
    assert [finding.code for finding in own] == [code for code, _ in found]
    assert all(words in finding.message for finding, (_, words) in zip(own, found, strict=True))
