"""The rules CT317 to CT321: whether every tensor of an ensemble is written and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL
from sample_repositories.two_steps import BASE, ENCODER, TOKENIZER, pipeline

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
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


def said_of(repository: ModelRepository) -> list[Finding]:
    """The findings, as one reads them."""
    return list(repository.check(default_model="pipeline"))


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
            [("CT317", "pipeline/config.pbtxt", "input[0].name")],
            id="CT317 spelt in another way",
        ),
        pytest.param(
            pipeline(more='input { name: "language" data_type: TYPE_STRING dims: 1 }'),
            [("CT317", "pipeline/config.pbtxt", "input[1].name")],
            id="CT317 read by nobody",
        ),
        pytest.param(
            pipeline(
                ('input_map { key: "MASK" value: "mask" }', ""),
                ('value: "mask"', 'value: "language"'),
                more='input { name: "language" data_type: TYPE_INT32 dims: -1 }',
            )
            | {"encoder/config.pbtxt": ENCODER.replace('"MASK"', '"MASK" optional: true')},
            [("CT317", "pipeline/config.pbtxt", "input[1].name")],
            id="CT317 written by a step",
        ),
        pytest.param(
            pipeline(more="input { data_type: TYPE_STRING dims: 1 }"),
            [("CT201", "pipeline/config.pbtxt", "input[1].name")],
            id="CT201 an input without a name, which no step can read",
        ),
        pytest.param(
            pipeline(('value: "vector"', 'value: "vektor"')),
            [("CT318", "pipeline/config.pbtxt", "output[0].name")],
            id="CT318 spelt in another way",
        ),
        pytest.param(
            pipeline(more='output { name: "label" data_type: TYPE_STRING dims: 1 }'),
            [("CT318", "pipeline/config.pbtxt", "output[1].name")],
            id="CT318 written by nobody",
        ),
        pytest.param(
            pipeline(
                ('output_map { key: "MASK" value: "mask" }', ""),
                more='output { name: "mask" data_type: TYPE_INT32 dims: -1 }',
            ),
            [("CT318", "pipeline/config.pbtxt", "output[1].name")],
            id="CT318 read by a step",
        ),
        pytest.param(
            pipeline(('input_map { key: "MASK" value: "mask" }', 'input_map { key: "MASK" value: "maks" }')),
            [("CT319", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["MASK"]')],
            id="CT319 spelt in another way",
        ),
        pytest.param(
            pipeline(('input_map { key: "MASK" value: "mask" }', 'input_map { key: "MASK" value: "attention" }')),
            [("CT319", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["MASK"]')],
            id="CT319 under another name",
        ),
        pytest.param(
            pipeline(
                ('input_map { key: "MASK" value: "mask" }', 'input_map { key: "MASK" value: "maks" }'),
                ('input_map { key: "TOKENS" value: "tokens" }', 'input_map { key: "TOKENS" value: "toknes" }'),
            ),
            [
                ("CT319", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["MASK"]'),
                ("CT319", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["TOKENS"]'),
            ],
            id="CT319 twice",
        ),
        pytest.param(
            pipeline(('output_map { key: "MASK" value: "mask" }', "")),
            [("CT319", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["MASK"]')],
            id="CT319 written by nobody",
        ),
        pytest.param(
            pipeline(('output_map { key: "MASK" value: "mask" }', 'output_map { key: "TOKENS" value: "mask" }')),
            [
                ("CT319", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["TOKENS"]'),
                ("CT107", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["TOKENS"]'),
            ],
            id="CT319 in an entry whose key is there again",
        ),
        pytest.param(
            pipeline(steps=step("encoder", {"TOKENS": "tokens", "MASK": "nothing"}, {"VECTOR": "spare"})),
            [
                ("CT319", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["MASK"]'),
                ("CT321", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["VECTOR"]'),
            ],
            id="CT319 by a step that nobody needs",
        ),
        pytest.param(
            pipeline(('"TEXT" value: "text"', '"TEXT" value: "text" } input_map { key: "PAST" value: "tokens"'))
            | {"tokenizer/config.pbtxt": TOKENIZER + 'input { name: "PAST" data_type: TYPE_INT32 dims: -1 }'},
            [("CT320", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["PAST"]')],
            id="CT320 a step that waits for itself",
        ),
        pytest.param(
            pipeline(steps=step("scaler", {"IN": "a"}, {"OUT": "b"}) + step("scaler", {"IN": "b"}, {"OUT": "a"}))
            | SCALER,
            [("CT320", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT320 two steps that nobody needs",
        ),
        pytest.param(
            pipeline(('input_map { key: "MASK" value: "mask" }', ""))
            | {"encoder/config.pbtxt": ENCODER.replace('"MASK"', '"MASK" optional: true')},
            [("CT321", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["MASK"]')],
            id="CT321 read by nobody",
        ),
    ],
)
def test_what_is_found(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    assert messages.of(said_of(write(change, base=BASE))) == findings
