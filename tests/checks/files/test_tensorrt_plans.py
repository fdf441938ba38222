"""The rules CT151 and CT152: plans that were built elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx.parser
import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from sample_repositories import Change, Write

ONNX = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }'
)


def platform(release: str | None) -> ServingPlatform | None:
    return None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            b"ftrt\0\0",
            "warning CT151: the plan does not say for which TensorRT and GPU it was built; with others the server would"
            " not load 'model': unable to load plan file to auto complete config; build it in the serving image on the"
            " serving GPU, and acknowledge CT151 with that reason",
        ),
        (
            b"ptrt\0\0",
            "warning CT151: the plan does not say for which TensorRT and GPU it was built, and it does not begin as "
            "plans of TensorRT 8.6 and newer do; with others the server would not load 'model': unable to load plan "
            "file to auto complete config; build it in the serving image on the serving GPU, and acknowledge CT151 "
            "with that reason",
        ),
        (b"", "the file is empty"),
        (b"PK\x03\x04", "the file is a ZIP archive, as PyTorch writes it"),
        (ONNX.SerializeToString(), "the file is an ONNX file"),
        (
            b'\x20\0\0\0{"description": "Ultralytics"}..ftrt',
            "the file has the description in front of the plan that Ultralytics' export writes",
        ),
    ],
)
def test_plans(write: Write, content: bytes, found: str) -> None:
    (finding,) = write(
        {"model/config.pbtxt": 'platform: "tensorrt_plan"', "model/1/model.plan": content}, base={}
    ).check()
    expected = (
        found
        if found.startswith("warning")
        else f"error CT152: {found} and no TensorRT plan, and the server would not load 'model': unable to load plan "
        "file to auto complete config: model/1/model.plan; build the plan with trtexec in the serving image, on the "
        "serving GPU"
    )
    assert str(finding) == f"model/1/model.plan: {expected}"


def test_a_plan_for_a_known_platform(write: Write) -> None:
    files: dict[str, Change] = {"model/config.pbtxt": 'platform: "tensorrt_plan"', "model/1/model.plan": b"ftrt"}
    (finding,) = write(files, base={}).check(platform=platform("25.09"))
    assert (
        "with others (TensorRT 10.13.3.9 on NVIDIA A10G, compute capability 8.6) the server would not"
        in finding.message
    )
