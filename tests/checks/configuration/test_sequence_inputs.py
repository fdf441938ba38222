"""The rule CT289: inputs that callers and the sequence batcher fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
