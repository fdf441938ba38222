"""A plan is read completely or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from build_program.plan import PlanError, read_plan

if TYPE_CHECKING:
    from golden_messages import Messages


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
    "rehearsals": [
        {
            "key": "f" * 64,
            "repository": "text",
            "artifact_key": KEY,
            "archive": None,
            "golden": "rehearsals/f.zip",
            "document": {"requests": []},
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
    assert [(each.artifact_key, each.archive) for each in plan.rehearsals] == [(KEY, None)]


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(json.dumps(DOCUMENT))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param('{"schema": 2}', id="another schema"),
        pytest.param(changed(lambda plan: plan.pop("ensembles")), id="no ensembles"),
        pytest.param(changed(lambda plan: plan["platform"].pop("gpu")), id="no GPU"),
        pytest.param(changed(lambda plan: plan.update(ensembles=[], rehearsals=[])), id="does nothing"),
        pytest.param(changed(lambda plan: plan["ensembles"].append(plan["ensembles"][0])), id="an ensemble twice"),
        pytest.param(changed(lambda plan: plan["ensembles"][0].update(sources="../a.tar.gz")), id="a path outside"),
        pytest.param(changed(lambda plan: plan["ensembles"][0].update(artifact_key="..")), id="no key"),
        pytest.param(changed(lambda plan: plan["rehearsals"].append(plan["rehearsals"][0])), id="a rehearsal twice"),
        pytest.param(changed(lambda plan: plan["rehearsals"][0].update(golden="/f.zip")), id="a golden path outside"),
        pytest.param(changed(lambda plan: plan["ensembles"][0]["steps"][0].pop("name")), id="a step without a name"),
    ],
)
def test_a_damaged_plan_is_rejected(messages: Messages, write: Callable[[str], Path], text: str) -> None:
    with messages.raises(PlanError):
        read_plan(write(text))


def test_a_missing_plan_is_rejected(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(PlanError):
        read_plan(tmp_path / "plan.json")
