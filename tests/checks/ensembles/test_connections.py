"""The rules CT317 to CT321: whether every tensor of an ensemble is written and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL
from sample_repositories.two_steps import BASE, ENCODER, TOKENIZER, pipeline

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Change, Write


SCALER = {
    "scaler/config.pbtxt": """
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 8 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 8 }
    """,
    "scaler/1/model.py": PYTHON_MODEL,
}


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
