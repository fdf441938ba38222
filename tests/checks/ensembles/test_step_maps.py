"""The rules CT332 to CT335 and CT342: whether steps map the inputs and outputs that their models have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories.one_step import COMPLETED_PY
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


def tensor(side: str, name: str, more: str = "data_type: TYPE_FP32 dims: 4") -> str:
    """An input or output."""
    return f'{side} {{ name: "{name}" {more} }}\n'


IN, OUT = tensor("input", "IN"), tensor("output", "OUT")
LABELLED = tensor("output", "OUT", 'data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt"')
OPTIONAL = "data_type: TYPE_FP32 dims: 4 optional: true"


def python(text: str = IN + OUT, source: str = PYTHON_MODEL) -> dict[str, Change]:
    """A Python model with these inputs and outputs."""
    return {"model/config.pbtxt": f'backend: "python"\n{text}', "model/1/model.py": source}


def pipeline(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    text: str = IN + OUT,
    name: str = "pipeline",
    runs: str = "model",
) -> dict[str, Change]:
    """An ensemble of one step with these maps."""
    maps = "".join(f' input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items())
    maps += "".join(f' output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items())
    steps = f'ensemble_scheduling {{ step {{ model_name: "{runs}" model_version: -1{maps} }} }}'
    return {f"{name}/config.pbtxt": f'platform: "ensemble"\n{text}{steps}\n', f"{name}/1/.gitkeep": ""}


SOUND = pipeline({"IN": "IN"}, {"OUT": "OUT"})
BASE: dict[str, str] = {}


def said_of(repository: ModelRepository) -> list[Finding]:
    """The findings, as one reads them."""
    return list(repository.check(default_model="pipeline"))


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            SOUND | python(),
            [],
            id="sound",
        ),
        pytest.param(
            pipeline({"INPUT": "IN"}, {"OUT": "OUT"}) | python(),
            [("CT332", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["INPUT"]')],
            id="CT332 the only one",
        ),
        pytest.param(
            SOUND | {"model/1/model.py": PYTHON_MODEL},
            [
                ("CT332", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]'),
                ("CT334", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]'),
            ],
            id="CT332 and CT334 without a configuration",
        ),
        pytest.param(
            SOUND | {"model/1/model.py": COMPLETED_PY},
            [],
            id="completed without a configuration",
        ),
        pytest.param(
            SOUND | {"model/1/model.py": PYTHON_MODEL, "cdk-triton.toml": 'produced = ["model/config.pbtxt"]'},
            [],
            id="a configuration that is produced",
        ),
        pytest.param(
            pipeline({"IN": "IN", "LANGUAGE": "IN"}, {"OUT": "OUT"}) | python(),
            [("CT332", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["LANGUAGE"]')],
            id="CT332 and others that are mapped",
        ),
        pytest.param(
            pipeline({"LEFFT": "IN", "RIHGT": "IN"}, {"OUT": "OUT"})
            | python(tensor("input", "LEFT") + tensor("input", "RIGHT") + OUT),
            [
                ("CT332", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["LEFFT"]'),
                ("CT332", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["RIHGT"]'),
            ],
            id="CT332 of two, each like another",
        ),
        pytest.param(
            pipeline({"IN": "IN", "HNIT": "IN"}, {"OUT": "OUT"}) | python(IN + tensor("input", "HINT", OPTIONAL) + OUT),
            [("CT332", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["HNIT"]')],
            id="CT332 like an optional one",
        ),
        pytest.param(
            SOUND | python(""),
            [
                ("CT332", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]'),
                ("CT334", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]'),
            ],
            id="CT332 and CT334 of a Python model that names nothing",
        ),
        pytest.param(
            SOUND | python("", COMPLETED_PY),
            [],
            id="a Python model that names nothing and may say it later",
        ),
        pytest.param(
            SOUND | {"model/config.pbtxt": 'backend: "onnxruntime"', "model/1/model.py": PYTHON_MODEL},
            [("CT120", "model/1/model.onnx", "")],
            id="a model of ONNX Runtime that names nothing, and whose file is reported",
        ),
        pytest.param(
            SOUND,
            [("CT301", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].model_name")],
            id="a model that is not there is reported as such",
        ),
        pytest.param(
            SOUND | python(IN + tensor("input", "MASK") + tensor("input", "HINT", OPTIONAL) + OUT),
            [("CT333", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].input_map")],
            id="CT333 and an optional one",
        ),
        pytest.param(
            pipeline({"INPUT": "IN"}, {"OUT": "OUT"}) | python(source=COMPLETED_PY),
            [("CT333", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].input_map")],
            id="CT333 of a model that may have other inputs",
        ),
        pytest.param(
            pipeline({"IN": "IN"}, {"out": "OUT"}) | python(),
            [("CT334", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["out"]')],
            id="CT334 spelt in another way",
        ),
        pytest.param(
            pipeline({"IN": "IN"}, {"LABEL": "OUT"}, runs="inner")
            | pipeline({"IN": "IN"}, {"OUT": "OUT"}, name="inner")
            | python(),
            [("CT334", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["LABEL"]')],
            id="CT334 of a nested ensemble",
        ),
        pytest.param(
            SOUND | python(IN + OUT + tensor("output", "SPARE")),
            [],
            id="outputs that nobody needs",
        ),
        pytest.param(
            SOUND | python(IN + OUT + OUT),
            [("CT335", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]')],
            id="CT335 of the same type",
        ),
        pytest.param(
            SOUND | python(IN + LABELLED + LABELLED) | {"model/labels.txt": "a\nb\nc\nd\n"},
            [("CT219", "model/config.pbtxt", "output[1].label_filename")],
            id="CT219 before CT335",
        ),
        pytest.param(
            SOUND | python(IN + LABELLED + OUT) | {"model/labels.txt": "a\nb\nc\nd\n"},
            [("CT335", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]')],
            id="CT335 with labels once",
        ),
        pytest.param(
            SOUND | python(IN + OUT + tensor("output", "OUT", "data_type: TYPE_INT32 dims: 4")),
            [("CT335", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]')],
            id="CT335 of different types",
        ),
        pytest.param(
            SOUND | python(IN + OUT + tensor("output", "OUT", "data_type: TYPE_FP32 dims: [ 4, 4 ]")),
            [("CT335", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]')],
            id="CT335 of different shapes",
        ),
        pytest.param(
            {
                name: str(text).replace("input_map", 'input_map { key: "IN" value: "nowhere" } input_map')
                for name, text in SOUND.items()
            }
            | python(),
            [("CT107", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="the last of two entries for one input counts, as it does for the server",
        ),
        pytest.param(
            pipeline({"IN": "IN"}, {"OUT": "OUT"}, tensor("input", "IN", OPTIONAL) + OUT) | python(),
            [("CT342", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT342 left out",
        ),
        pytest.param(
            pipeline({"IN": "IN"}, {"OUT": "OUT"}, tensor("input", "IN", OPTIONAL) + OUT)
            | python(tensor("input", "IN", OPTIONAL) + OUT),
            [],
            id="optional to the end",
        ),
    ],
)
def test_what_is_found(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    assert messages.of(said_of(write(change, base=BASE))) == findings


@pytest.mark.parametrize(
    ("inputs", "codes"),
    [
        pytest.param(IN, {"CT332"}, id="what is named is all that it has"),
        pytest.param("", set(), id="what it has is in the plan"),
    ],
)
def test_a_plan_completes_all_inputs_or_none(write: Write, inputs: str, codes: set[str]) -> None:
    change = pipeline({"INPUT": "IN"}, {"OUT": "OUT"}) | {
        "model/config.pbtxt": f'platform: "tensorrt_plan"\n{inputs}{OUT}',
        "model/1/model.plan": "plan",
    }
    findings = write(change, base=BASE).check(default_model="pipeline")
    assert {finding.code for finding in findings if finding.code.startswith("CT3")} == codes


def test_a_configuration_that_the_server_is_told_to_take_is_not_missing(write: Write) -> None:
    change = SOUND | {"model/1/model.py": PYTHON_MODEL, "model/configs/large.pbtxt": python()["model/config.pbtxt"]}
    told = ContainerEnvironment(additional_args=("--model-config-name=large",))
    findings = write(change, base=BASE).check(default_model="pipeline", environment=told)
    assert not [finding for finding in findings if finding.code in {"CT332", "CT334"}]
