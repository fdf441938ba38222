"""The rules CT151 and CT152: plans that were built elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx.parser
import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write

ONNX = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }'
)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(b"ftrt\0\0", "CT151", id="a plan"),
        pytest.param(b"ptrt\0\0", "CT151", id="a plan of an older TensorRT"),
        pytest.param(b"", "CT152", id="empty"),
        pytest.param(b"PK\x03\x04", "CT152", id="a ZIP archive"),
        pytest.param(ONNX.SerializeToString(), "CT152", id="ONNX"),
        pytest.param(b'\x20\0\0\0{"description": "Ultralytics"}..ftrt', "CT152", id="a description in front"),
    ],
)
def test_plans(messages: Messages, write: Write, content: bytes, code: str) -> None:
    files: dict[str, Change] = {"model/config.pbtxt": 'platform: "tensorrt_plan"', "model/1/model.plan": content}
    assert messages.of(write(files, base={}).check()) == [(code, "model/1/model.plan", "")]


def test_a_plan_for_a_known_platform(messages: Messages, write: Write) -> None:
    files: dict[str, Change] = {"model/config.pbtxt": 'platform: "tensorrt_plan"', "model/1/model.plan": b"ftrt"}
    found = write(files, base={}).check(platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge"))
    assert messages.of(found) == [("CT151", "model/1/model.plan", "")]
    assert "TensorRT 10.13.3.9 on NVIDIA A10G, compute capability 8.6" in found[0].message
