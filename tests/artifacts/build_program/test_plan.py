"""A plan is read completely or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdk_triton.artifacts.build_program.plan import PlanError, read_plan

KEY = "0123456789abcdef" * 4
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "build": "cdk-triton-0123456789abcdef",
    "deadline_seconds": 6900,
    "platform": {
        "image": "sagemaker-tritonserver:25.09-py3",
        "release": "25.09",
        "gpu": "NVIDIA A10G",
        "compute_capability": "8.6",
        "tensorrt": None,
        "dali": None,
        "python": None,
    },
    "ensembles": [
        {
            "repository": "text",
            "artifact_key": KEY,
            "sources": "sources/a.tar.gz",
            "files": {"bert/config.pbtxt": KEY},
            "inputs": [{"path": f"inputs/{KEY}", "sha256": KEY, "to": "bert/bert.onnx"}],
            "steps": [{"recipe": "tensorrt_plan", "name": "the TensorRT plan of bert"}],
            "remove": ["bert/bert.onnx"],
        }
    ],
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def to_file(text: str) -> Path:
        (tmp_path / "plan.json").write_text(text)
        return tmp_path / "plan.json"

    return to_file


def test_a_plan_is_read(write: Callable[[str], Path]) -> None:
    plan = read_plan(write(json.dumps(DOCUMENT)))

    (ensemble,) = plan.ensembles
    assert (plan.build, plan.deadline_seconds, plan.platform["gpu"]) == (
        "cdk-triton-0123456789abcdef",
        6900,
        "NVIDIA A10G",
    )
    assert ensemble.inputs[0].to == "bert/bert.onnx"
    assert ensemble.remove == ("bert/bert.onnx",)


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(json.dumps(DOCUMENT))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "the build plan plan.json is no JSON: "),
        ("[]", "the build plan has schema 'list' and this build program reads schema 1: plan and program are of "),
        (
            '{"schema": 2}',
            "the build plan has schema 2 and this build program reads schema 1: plan and program are of ",
        ),
        (changed(lambda plan: plan.pop("ensembles")), "the build plan is damaged: KeyError: 'ensembles'"),
        (
            changed(lambda plan: plan["platform"].pop("gpu")),
            "the build plan is damaged: ValueError: its platform does ",
        ),
        (changed(lambda plan: plan["ensembles"].clear()), "the build plan is damaged: ValueError: it builds nothing"),
        (
            changed(lambda plan: plan["ensembles"].append(plan["ensembles"][0])),
            "the build plan is damaged: ValueError: it builds nothing, or something twice",
        ),
        (
            changed(lambda plan: plan["ensembles"][0].update(sources="../a.tar.gz")),
            "the build plan is damaged: ValueError: '../a.tar.gz' is no relative path below the folder",
        ),
        (
            changed(lambda plan: plan["ensembles"][0].update(artifact_key="..")),
            "the build plan is damaged: ValueError: '..' is no SHA-256",
        ),
        (
            changed(lambda plan: plan["ensembles"][0]["steps"][0].pop("name")),
            "the build plan is damaged: KeyError: 'name'",
        ),
    ],
)
def test_a_damaged_plan_is_refused(write: Callable[[str], Path], text: str, reason: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_plan(write(text))

    assert str(raised.value).startswith(reason)


def test_a_missing_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"the build plan plan\.json cannot be read: No such file"):
        read_plan(tmp_path / "plan.json")
