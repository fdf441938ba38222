"""The rules CT332 to CT335 and CT342: whether steps map the inputs and outputs that their models have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories.one_step import COMPLETED_PY
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Change, Write


def tensor(side: str, name: str, more: str = "data_type: TYPE_FP32 dims: 4") -> str:
    """An input or output."""
    return f'{side} {{ name: "{name}" {more} }}\n'


IN, OUT = tensor("input", "IN"), tensor("output", "OUT")
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


def said_of(repository: ModelRepository) -> list[str]:
    """The findings, as one reads them."""
    return [str(finding) for finding in repository.check(default_model="pipeline")]


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
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["INPUT"]: error CT332: step 0 maps '
                "'INPUT', and 'model' has the input 'IN'; the server would not load 'pipeline': in ensemble "
                "pipeline, ensemble tensor IN is mapping to non-existing input INPUT in model model; write 'IN' "
                "for the key if that is meant",
            ],
            id="CT332 the only one",
        ),
        pytest.param(
            SOUND | {"model/1/model.py": PYTHON_MODEL},
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["IN"]: error CT332: step 0 maps '
                "'IN', and 'model' has no inputs; the server would not load 'pipeline': in ensemble pipeline, "
                "ensemble tensor IN is mapping to non-existing input IN in model model; write the inputs of 'model' "
                "into model/config.pbtxt",
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["OUT"]: error CT334: step 0 maps '
                "'OUT', and 'model' has no outputs; the server would not load 'pipeline': in ensemble pipeline, "
                "ensemble tensor OUT is mapped from non-existing output OUT in model model; write the outputs of "
                "'model' into model/config.pbtxt",
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
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["LANGUAGE"]: error CT332: step 0 '
                "maps 'LANGUAGE', and 'model' has the input 'IN'; the server would not load 'pipeline': in "
                "ensemble pipeline, ensemble tensor IN is mapping to non-existing input LANGUAGE in model model; "
                "take the entry out, or name an input of the model",
            ],
            id="CT332 and others that are mapped",
        ),
        pytest.param(
            pipeline({"LEFFT": "IN", "RIHGT": "IN"}, {"OUT": "OUT"})
            | python(tensor("input", "LEFT") + tensor("input", "RIGHT") + OUT),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["LEFFT"]: error CT332: step 0 maps '
                "'LEFFT', and 'model' has the inputs 'LEFT', 'RIGHT'; the server would not load 'pipeline': in "
                "ensemble pipeline, ensemble tensor IN is mapping to non-existing input LEFFT in model model; "
                "write 'LEFT' for the key if that is meant",
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["RIHGT"]: error CT332: step 0 maps '
                "'RIHGT', and 'model' has the inputs 'LEFT', 'RIGHT'; the server would not load 'pipeline': in "
                "ensemble pipeline, ensemble tensor IN is mapping to non-existing input RIHGT in model model; "
                "write 'RIGHT' for the key if that is meant",
            ],
            id="CT332 of two, each like another",
        ),
        pytest.param(
            pipeline({"IN": "IN", "HNIT": "IN"}, {"OUT": "OUT"}) | python(IN + tensor("input", "HINT", OPTIONAL) + OUT),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["HNIT"]: error CT332: step 0 '
                "maps 'HNIT', and 'model' has the inputs 'IN', 'HINT'; the server would not load 'pipeline': in "
                "ensemble pipeline, ensemble tensor IN is mapping to non-existing input HNIT in model model; "
                "write 'HINT' for the key if that is meant",
            ],
            id="CT332 like an optional one",
        ),
        pytest.param(
            SOUND | python(""),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["IN"]: error CT332: step 0 maps '
                "'IN', and 'model' has no inputs; the server would not load 'pipeline': in ensemble pipeline, "
                "ensemble tensor IN is mapping to non-existing input IN in model model; write the inputs of "
                "'model' into model/config.pbtxt",
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["OUT"]: error CT334: step 0 maps '
                "'OUT', and 'model' has no outputs; the server would not load 'pipeline': in ensemble pipeline, "
                "ensemble tensor OUT is mapped from non-existing output OUT in model model; write the outputs of "
                "'model' into model/config.pbtxt",
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
            [
                "model/1/model.onnx: error CT120: the file is missing, and the server would not load 'model': "
                "unable to find 'model/1/model.onnx' for model instance 'model'; add the file, or name another "
                "one in default_model_filename",
            ],
            id="a model of ONNX Runtime that names nothing, and whose file is reported",
        ),
        pytest.param(
            SOUND,
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].model_name: error CT301: step 0 runs the model"
                " 'model', for which the repository has no directory: ensemble pipeline contains models that are "
                "not available or ambiguous: model; add the model, or correct the name",
            ],
            id="a model that is not there is reported as such",
        ),
        pytest.param(
            SOUND | python(IN + tensor("input", "MASK") + tensor("input", "HINT", OPTIONAL) + OUT),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map: error CT333: step 0 maps nothing to"
                " the input 'MASK' of 'model', which is not optional; the server would not load 'pipeline': in "
                "ensemble pipeline, input MASK in model model is not mapped to any ensemble tensors; map a tensor"
                " to it, or make it optional: true in the model if the model can do without",
            ],
            id="CT333 and an optional one",
        ),
        pytest.param(
            pipeline({"INPUT": "IN"}, {"OUT": "OUT"}) | python(source=COMPLETED_PY),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map: error CT333: step 0 maps nothing to"
                " the input 'IN' of 'model', which is not optional; the server would not load 'pipeline': in "
                "ensemble pipeline, input IN in model model is not mapped to any ensemble tensors; map a tensor "
                "to it, or make it optional: true in the model if the model can do without",
            ],
            id="CT333 of a model that may have other inputs",
        ),
        pytest.param(
            pipeline({"IN": "IN"}, {"out": "OUT"}) | python(),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["out"]: error CT334: step 0 maps '
                "'out', and 'model' has the output 'OUT'; the server would not load 'pipeline': in ensemble "
                "pipeline, ensemble tensor OUT is mapped from non-existing output out in model model; write 'OUT'"
                " for the key if that is meant",
            ],
            id="CT334 spelt in another way",
        ),
        pytest.param(
            pipeline({"IN": "IN"}, {"LABEL": "OUT"}, runs="inner")
            | pipeline({"IN": "IN"}, {"OUT": "OUT"}, name="inner")
            | python(),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["LABEL"]: error CT334: step 0 maps '
                "'LABEL', and 'inner' has the output 'OUT'; the server would not load 'pipeline': in ensemble "
                "pipeline, ensemble tensor OUT is mapped from non-existing output LABEL in model inner; write "
                "'OUT' for the key if that is meant",
            ],
            id="CT334 of a nested ensemble",
        ),
        pytest.param(
            SOUND | python(IN + OUT + tensor("output", "SPARE")),
            [],
            id="outputs that nobody needs",
        ),
        pytest.param(
            SOUND | python(IN + OUT + OUT),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["OUT"]: error CT335: step 0 maps '
                "'OUT', which 'model' lists 2 times; the server would not load 'pipeline': in ensemble pipeline, "
                "multiple outputs in model model are mapped to the same ensemble tensor OUT; list 'OUT' once in "
                "model/config.pbtxt",
            ],
            id="CT335 of the same type",
        ),
        pytest.param(
            SOUND | python(IN + OUT + tensor("output", "OUT", "data_type: TYPE_INT32 dims: 4")),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["OUT"]: error CT335: step 0 maps '
                "'OUT', which 'model' lists 2 times; the server would not load 'pipeline': in ensemble pipeline, "
                "ensemble tensor OUT: inconsistent data type; list 'OUT' once in model/config.pbtxt",
            ],
            id="CT335 of different types",
        ),
        pytest.param(
            SOUND | python(IN + OUT + tensor("output", "OUT", "data_type: TYPE_FP32 dims: [ 4, 4 ]")),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["OUT"]: error CT335: step 0 maps '
                "'OUT', which 'model' lists 2 times; the server would not load 'pipeline': in ensemble pipeline, "
                "ensemble tensor OUT: inconsistent shape; list 'OUT' once in model/config.pbtxt",
            ],
            id="CT335 of different shapes",
        ),
        pytest.param(
            {
                name: str(text).replace("input_map", 'input_map { key: "IN" value: "nowhere" } input_map')
                for name, text in SOUND.items()
            }
            | python(),
            [],
            id="the last of two entries for one input counts, as it does for the server",
        ),
        pytest.param(
            pipeline({"IN": "IN"}, {"OUT": "OUT"}, tensor("input", "IN", OPTIONAL) + OUT) | python(),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: warning CT342: the input 'IN'"
                " of 'pipeline' is optional, and the input 'IN' of 'model', which reads it, is not; a request "
                "without it would be answered with: missing required input(s) ['IN']; make the input of the model"
                " optional: true if the model can do without, else require it in the ensemble",
            ],
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
def test_what_is_found(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    assert said_of(write(change, base=BASE)) == findings


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
