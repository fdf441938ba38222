"""The rules CT310 to CT321: whether an ensemble says what it has to say, and whether its tensors are connected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Change, Write

MODEL_PY = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""

TOKENIZER = """
backend: "python"
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "TOKENS" data_type: TYPE_INT32 dims: -1 }
output { name: "MASK" data_type: TYPE_INT32 dims: -1 }
"""

ENCODER = """
backend: "python"
input { name: "TOKENS" data_type: TYPE_INT32 dims: -1 }
input { name: "MASK" data_type: TYPE_INT32 dims: -1 }
output { name: "VECTOR" data_type: TYPE_FP32 dims: 8 }
"""

PIPELINE = """
platform: "ensemble"
input { name: "text" data_type: TYPE_STRING dims: 1 }
output { name: "vector" data_type: TYPE_FP32 dims: 8 }
ensemble_scheduling {
  step {
    model_name: "tokenizer"
    model_version: -1
    input_map { key: "TEXT" value: "text" }
    output_map { key: "TOKENS" value: "tokens" }
    output_map { key: "MASK" value: "mask" }
  }
  step {
    model_name: "encoder"
    model_version: -1
    input_map { key: "TOKENS" value: "tokens" }
    input_map { key: "MASK" value: "mask" }
    output_map { key: "VECTOR" value: "vector" }
  }
}
"""

BASE: Mapping[str, str] = {
    "tokenizer/config.pbtxt": TOKENIZER,
    "tokenizer/1/model.py": MODEL_PY,
    "encoder/config.pbtxt": ENCODER,
    "encoder/1/model.py": MODEL_PY,
    "pipeline/config.pbtxt": PIPELINE,
    "pipeline/1/.gitkeep": "",
}


SCALER = {
    "scaler/config.pbtxt": """
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 8 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 8 }
    """,
    "scaler/1/model.py": MODEL_PY,
}


def pipeline(*changes: tuple[str, str], steps: str = "", more: str = "") -> dict[str, str | None]:
    """The ensemble with some texts replaced, each of which it has, with steps put in front, and something added."""
    text = PIPELINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return {"pipeline/config.pbtxt": text.replace("  step {", f"{steps}  step {{", 1) + more}


def step(model: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """A step that runs the latest version of a model."""
    maps = "".join(f' input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items())
    maps += "".join(f' output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items())
    return f'step {{ model_name: "{model}" model_version: -1{maps} }}\n'


def said_of(repository: ModelRepository) -> list[str]:
    """The findings, as one reads them."""
    return [str(finding) for finding in repository.check(default_model="pipeline")]


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {},
            [],
            id="sound",
        ),
        pytest.param(
            {"pipeline/config.pbtxt": 'platform: "ensemble" instance_group { }'},
            [
                "pipeline/config.pbtxt platform: error CT310: 'pipeline' is an ensemble without steps, and the "
                "server would not load it: ensemble scheduling must be set for ensemble pipeline whose platform "
                "is ensemble; add ensemble_scheduling with the steps, or name the backend that runs the model "
                "instead of the platform",
                "pipeline/config.pbtxt instance_group: error CT312: 'pipeline' is an ensemble and has "
                "instance_group, and the server would not load it: instance group should not be specified for "
                "ensemble 'pipeline'; take instance_group out, and write it into the models that the steps run if"
                " they need it",
            ],
            id="CT310 and CT312 without steps",
        ),
        pytest.param(
            {"pipeline/config.pbtxt": 'platform: "ensemble" dynamic_batching { }'},
            [
                "pipeline/config.pbtxt platform: error CT310: 'pipeline' is an ensemble without steps, and the "
                "server would not load it: ensemble scheduling must be set for ensemble pipeline whose platform "
                "is ensemble; add ensemble_scheduling with the steps, or name the backend that runs the model "
                "instead of the platform",
            ],
            id="CT310 another scheduler",
        ),
        pytest.param(
            pipeline(('"ensemble"', '"ensembel"')),
            [
                "pipeline/config.pbtxt ensemble_scheduling: error CT311: 'pipeline' has the steps of an ensemble "
                "and its platform is 'ensembel', so that the server would not load it: unexpected platform type "
                "'ensembel' for pipeline; write platform: \"ensemble\" and no backend, or take ensemble_scheduling "
                "out",
            ],
            id="CT311 platform misspelt",
        ),
        pytest.param(
            pipeline(('platform: "ensemble"', "")),
            [
                "pipeline/config.pbtxt ensemble_scheduling: error CT311: 'pipeline' has the steps of an ensemble "
                "and its platform is '', so that the server would not load it: Could not determine backend for "
                "model 'pipeline' with no backend in model configuration; write platform: \"ensemble\" and no "
                "backend, or take ensemble_scheduling out",
            ],
            id="CT311 no platform and no backend",
        ),
        pytest.param(
            pipeline(('platform: "ensemble"', "")) | {"pipeline/1/model.py": MODEL_PY},
            [
                "pipeline/config.pbtxt ensemble_scheduling: error CT311: 'pipeline' has the steps of an ensemble "
                "and its platform is '', so that the server would not load it: ensemble scheduling cannot be set "
                "for model 'pipeline' whose platform is not ensemble; write platform: \"ensemble\" and no backend, "
                "or take ensemble_scheduling out",
            ],
            id="CT311 no platform and a file that tells the backend",
        ),
        pytest.param(
            pipeline(('platform: "ensemble"', 'default_model_filename: "x"')),
            [
                "pipeline/config.pbtxt ensemble_scheduling: error CT311: 'pipeline' has the steps of an ensemble "
                "and its platform is '', so that the server would not load it: unexpected platform type '' for "
                'pipeline; write platform: "ensemble" and no backend, or take ensemble_scheduling out',
            ],
            id="CT311 no platform and a file that tells nothing",
        ),
        pytest.param(
            pipeline(more='instance_group { } optimization { } model_warmup { name: "x" }'),
            [
                "pipeline/config.pbtxt instance_group: error CT312: 'pipeline' is an ensemble and has "
                "instance_group, and the server would not load it: instance group should not be specified for "
                "ensemble 'pipeline'; take instance_group out, and write it into the models that the steps run if"
                " they need it",
                "pipeline/config.pbtxt model_warmup: error CT312: 'pipeline' is an ensemble and has model_warmup,"
                " and the server would not load it: model_warmup can not be specified for ensemble 'pipeline'; "
                "take model_warmup out, and write it into the models that the steps run if they need it",
                "pipeline/config.pbtxt optimization: error CT312: 'pipeline' is an ensemble and has optimization,"
                " and the server would not load it: optimization should not be specified for ensemble 'pipeline';"
                " take optimization out, and write it into the models that the steps run if they need it",
            ],
            id="CT312 all of them",
        ),
        pytest.param(
            {"pipeline/config.pbtxt": 'platform: "ensemble" ensemble_scheduling { }'},
            [
                "pipeline/config.pbtxt ensemble_scheduling: error CT313: the ensemble_scheduling of 'pipeline' is"
                " empty, and the server would not load it: must specify 'step' for ensemble 'pipeline'; add a "
                "step for every model that the ensemble runs",
            ],
            id="CT313 no steps",
        ),
        pytest.param(
            pipeline(('model_name: "tokenizer"', "")),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].model_name: error CT314: step 0 has no "
                "model_name, and the server would not load 'pipeline': must specify 'model_name' in step 0 of "
                "ensemble 'pipeline'; name the model that the step runs",
            ],
            id="CT314 no model",
        ),
        pytest.param(
            pipeline(
                ('input_map { key: "TEXT" value: "text" }', ""),
                ('output_map { key: "TOKENS" value: "tokens" }', ""),
                ('output_map { key: "MASK" value: "mask" }', ""),
            ),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map: error CT314: step 0 has no "
                "input_map, and the server would not load 'pipeline': must specify 'input_map' in step 0 of "
                "ensemble 'pipeline'; map every input of the model to a tensor of the ensemble",
                "pipeline/config.pbtxt ensemble_scheduling.step[0].output_map: error CT314: step 0 has no "
                "output_map, and the server would not load 'pipeline': must specify 'output_map' in step 0 of "
                "ensemble 'pipeline'; map the outputs of the model that the ensemble needs",
            ],
            id="CT314 no map at all, and nothing is said of what follows",
        ),
        pytest.param(
            pipeline(('"VECTOR" value: "vector"', '"VECTOR" value: "mask"')),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[1].output_map["VECTOR"]: error CT315: step 1 '
                "writes 'mask', which step 0 writes already, and the server would not load 'pipeline': ensemble "
                "tensor 'mask' can appear in an output map only once for ensemble 'pipeline' step 1; write "
                "'vector', which nothing writes, in one of the two places",
            ],
            id="CT315 by two steps",
        ),
        pytest.param(
            pipeline(('output_map { key: "MASK" value: "mask" }', 'output_map { key: "MASK" value: "tokens" }')),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["TOKENS"]: error CT315: step 0 '
                "writes 'tokens', which another of its outputs writes already, and the server would not load "
                "'pipeline': ensemble tensor 'tokens' can appear in an output map only once for ensemble "
                "'pipeline' step 0; write 'mask', which nothing writes, in one of the two places",
            ],
            id="CT315 by two outputs of a step",
        ),
        pytest.param(
            pipeline(
                ('"TEXT" value: "text"', '"TEXT" value: "text" } input_map { key: "PAST" value: "tokens"'),
                ('"ensemble"', '"ensemble" input { name: "tokens" data_type: TYPE_INT32 dims: -1 }'),
            )
            | {"tokenizer/config.pbtxt": TOKENIZER + 'input { name: "PAST" data_type: TYPE_INT32 dims: -1 }'},
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["TOKENS"]: warning CT316: step 0 '
                "writes 'tokens', which is an input of the ensemble 'pipeline'; the server would run the steps "
                "that read it for the request's tensor and again for this one, perhaps without an end; give the "
                "output a tensor of its own",
            ],
            id="CT316 an input of the ensemble",
        ),
        pytest.param(
            pipeline(('value: "text"', 'value: "Text"')),
            [
                "pipeline/config.pbtxt input[0].name: error CT317: no step reads the input 'text' of the ensemble"
                " 'pipeline', and step 0 reads 'Text', which nothing writes; the server would not load it: "
                "ensemble input 'text' for ensemble pipeline' is not used; write the same name in both places if "
                "they are meant to be connected",
            ],
            id="CT317 spelt in another way",
        ),
        pytest.param(
            pipeline(more='input { name: "language" data_type: TYPE_STRING dims: 1 }'),
            [
                "pipeline/config.pbtxt input[1].name: error CT317: no step reads the input 'language' of the "
                "ensemble 'pipeline'; the server would not load it: ensemble input 'language' for ensemble "
                "pipeline' is not used; map it to an input of a step, or leave it out",
            ],
            id="CT317 read by nobody",
        ),
        pytest.param(
            pipeline(
                ('input_map { key: "MASK" value: "mask" }', ""),
                ('value: "mask"', 'value: "language"'),
                more='input { name: "language" data_type: TYPE_INT32 dims: -1 }',
            )
            | {"encoder/config.pbtxt": ENCODER.replace('"MASK"', '"MASK" optional: true')},
            [
                "pipeline/config.pbtxt input[1].name: error CT317: no step reads the input 'language' of the "
                "ensemble 'pipeline'; the server would not load it: ensemble tensor 'language' is unused in "
                "ensemble 'pipeline'; map it to an input of a step, or leave it out",
            ],
            id="CT317 written by a step",
        ),
        pytest.param(
            pipeline(('value: "vector"', 'value: "vektor"')),
            [
                "pipeline/config.pbtxt output[0].name: error CT318: no step writes the output 'vector' of the "
                "ensemble 'pipeline', and step 1 writes 'vektor', which nothing reads; the server would not load "
                "it: ensemble output 'vector' for ensemble pipeline' is not used; write the same name in both "
                "places if they are meant to be connected",
            ],
            id="CT318 spelt in another way",
        ),
        pytest.param(
            pipeline(more='output { name: "label" data_type: TYPE_STRING dims: 1 }'),
            [
                "pipeline/config.pbtxt output[1].name: error CT318: no step writes the output 'label' of the "
                "ensemble 'pipeline'; the server would not load it: ensemble output 'label' for ensemble "
                "pipeline' is not used; map an output of a step to it, or leave it out",
            ],
            id="CT318 written by nobody",
        ),
        pytest.param(
            pipeline(
                ('output_map { key: "MASK" value: "mask" }', ""),
                more='output { name: "mask" data_type: TYPE_INT32 dims: -1 }',
            ),
            [
                "pipeline/config.pbtxt output[1].name: error CT318: no step writes the output 'mask' of the "
                "ensemble 'pipeline'; the server would not load it: output 'mask' for ensemble 'pipeline' is not "
                "written; map an output of a step to it, or leave it out",
            ],
            id="CT318 read by a step",
        ),
        pytest.param(
            pipeline(('input_map { key: "MASK" value: "mask" }', 'input_map { key: "MASK" value: "maks" }')),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[1].input_map["MASK"]: error CT319: step 1 reads '
                "'maks', which nothing writes, and step 0 writes 'mask', which nothing reads; the server would "
                "not load 'pipeline': output 'vector' for ensemble 'pipeline' is not written: at least one of its"
                " depending tensors, 'maks', is not connected; write the same name in both places if they are "
                "meant to be connected",
            ],
            id="CT319 spelt in another way",
        ),
        pytest.param(
            pipeline(('input_map { key: "MASK" value: "mask" }', 'input_map { key: "MASK" value: "attention" }')),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[1].input_map["MASK"]: error CT319: step 1 reads '
                "'attention', which nothing writes, and step 0 writes 'mask', which nothing reads; the server "
                "would not load 'pipeline': output 'vector' for ensemble 'pipeline' is not written: at least one "
                "of its depending tensors, 'attention', is not connected; write the same name in both places if "
                "they are meant to be connected",
            ],
            id="CT319 under another name",
        ),
        pytest.param(
            pipeline(
                ('input_map { key: "MASK" value: "mask" }', 'input_map { key: "MASK" value: "maks" }'),
                ('input_map { key: "TOKENS" value: "tokens" }', 'input_map { key: "TOKENS" value: "toknes" }'),
            ),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[1].input_map["MASK"]: error CT319: step 1 reads '
                "'maks', which nothing writes, and step 0 writes 'mask', which nothing reads; the server would "
                "not load 'pipeline': output 'vector' for ensemble 'pipeline' is not written; write the same name"
                " in both places if they are meant to be connected",
                'pipeline/config.pbtxt ensemble_scheduling.step[1].input_map["TOKENS"]: error CT319: step 1 reads'
                " 'toknes', which nothing writes, and step 0 writes 'tokens', which nothing reads; the server "
                "would not load 'pipeline': output 'vector' for ensemble 'pipeline' is not written; write the "
                "same name in both places if they are meant to be connected",
            ],
            id="CT319 twice",
        ),
        pytest.param(
            pipeline(('output_map { key: "MASK" value: "mask" }', "")),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[1].input_map["MASK"]: error CT319: step 1 reads '
                "'mask', which nothing writes; the server would not load 'pipeline': output 'vector' for ensemble"
                " 'pipeline' is not written: at least one of its depending tensors, 'mask', is not connected; "
                "write it in an earlier step, or make it an input of the ensemble",
            ],
            id="CT319 written by nobody",
        ),
        pytest.param(
            pipeline(steps=step("encoder", {"TOKENS": "tokens", "MASK": "nothing"}, {"VECTOR": "spare"})),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["MASK"]: error CT319: step 0 reads '
                "'nothing', which nothing writes; the server would not load 'pipeline': ensemble tensor 'nothing' is "
                "unused in ensemble 'pipeline'; write it in an earlier step, or make it an input of the ensemble",
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["VECTOR"]: error CT321: step 0 '
                "writes 'spare', which nothing reads, and the server would not load 'pipeline': ensemble tensor "
                "'spare' is unused in ensemble 'pipeline'; leave 'VECTOR' out of the output_map, or make the "
                "tensor an output of the ensemble",
            ],
            id="CT319 by a step that nobody needs",
        ),
        pytest.param(
            pipeline(('"TEXT" value: "text"', '"TEXT" value: "text" } input_map { key: "PAST" value: "tokens"'))
            | {"tokenizer/config.pbtxt": TOKENIZER + 'input { name: "PAST" data_type: TYPE_INT32 dims: -1 }'},
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["PAST"]: error CT320: each of these '
                "steps waits for the one before it: step 0 (tokenizer) → step 0 (tokenizer); the server would not"
                " load 'pipeline': output 'vector' for ensemble 'pipeline' is not written; take one of the "
                "connections out; a loop belongs into a model that calls the others (BLS)",
            ],
            id="CT320 a step that waits for itself",
        ),
        pytest.param(
            pipeline(steps=step("scaler", {"IN": "a"}, {"OUT": "b"}) + step("scaler", {"IN": "b"}, {"OUT": "a"}))
            | SCALER,
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].input_map["IN"]: error CT320: each of these '
                "steps waits for the one before it: step 0 (scaler) → step 1 (scaler) → step 0 (scaler); the "
                "server would not load 'pipeline': ensemble tensor 'a' is unused in ensemble 'pipeline'; take one"
                " of the connections out; a loop belongs into a model that calls the others (BLS)",
            ],
            id="CT320 two steps that nobody needs",
        ),
        pytest.param(
            pipeline(('input_map { key: "MASK" value: "mask" }', ""))
            | {"encoder/config.pbtxt": ENCODER.replace('"MASK"', '"MASK" optional: true')},
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["MASK"]: error CT321: step 0 writes'
                " 'mask', which nothing reads, and the server would not load 'pipeline': ensemble tensor 'mask' "
                "is unused in ensemble 'pipeline'; leave 'MASK' out of the output_map, or make the tensor an "
                "output of the ensemble",
            ],
            id="CT321 read by nobody",
        ),
    ],
)
def test_what_is_found(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    assert said_of(write(change, base=BASE)) == findings


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"pipeline/config.pbtxt": 'platform: "ensemble" backend: "python"'}, "CT285", id="a backend"),
        pytest.param(pipeline(('"encoder"', '"pipeline"')), "CT302", id="a step that runs its own ensemble"),
        pytest.param(
            pipeline(more="max_batch_size: -1")
            | {"tokenizer/config.pbtxt": TOKENIZER + "max_batch_size: 8"}
            | {"encoder/config.pbtxt": ENCODER.replace("dims: -1", "dims: [ -1, -1 ]").replace("8", "[ -1, 8 ]")},
            "CT230",
            id="a negative batch",
        ),
    ],
)
def test_one_cause_is_reported_once(write: Write, change: Mapping[str, Change], code: str) -> None:
    """The other rules do not repeat it in their own words."""
    findings = write(change, base=BASE).check(default_model="pipeline")
    assert [finding.code for finding in findings if finding.severity == "error"] == [code]
