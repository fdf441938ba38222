"""Requests in files: what Triton's schedulers read from their `parameters`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.client.kserve import Body, read_body
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages

TENSOR = {"name": "x", "datatype": "FP32", "shape": [1], "data": [2.0]}


def read(directory: Path, parameters: dict[str, Any]) -> Body:
    file = directory / "request.json"
    file.write_text(json.dumps({"inputs": [TENSOR], "parameters": parameters}))
    return read_body(str(file))


@pytest.mark.parametrize(
    "parameters",
    [
        {"priority": 0, "timeout": 0, "sequence_id": 0},
        {"sequence_id": "", "sequence_start": False, "sequence_end": False},
        {"sequence_start": False},
    ],
)
def test_what_triton_takes_for_absent_is_absent(tmp_path: Path, parameters: dict[str, Any]) -> None:
    body = read(tmp_path, {"custom": 1, **parameters})
    assert (body.priority, body.queue_timeout_seconds, body.step, body.parameters) == (None, None, None, {"custom": 1})


@pytest.mark.parametrize(
    "parameters",
    [
        {"sequence_id": 7, "sequence_start": "false"},
        {"sequence_id": 7, "sequence_end": 1},
        {"sequence_id": False},
        {"sequence_id": 0, "sequence_start": True},
        {"timeout": -5},
        {"timeout": 0.5},
        {"priority": "high"},
        {"priority": False},
    ],
)
def test_a_parameter_of_another_type_is_one_sentence(
    tmp_path: Path, messages: Messages, parameters: dict[str, Any]
) -> None:
    with messages.raises(ConfigurationError):
        read(tmp_path, parameters)
