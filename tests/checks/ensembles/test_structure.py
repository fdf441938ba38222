"""The rules CT310 to CT316: what an ensemble and its steps are made of."""

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
            {"pipeline/config.pbtxt": 'platform: "ensemble" instance_group { }'},
            [("CT310", "pipeline/config.pbtxt", "platform"), ("CT312", "pipeline/config.pbtxt", "instance_group")],
            id="CT310 and CT312 without steps",
        ),
        pytest.param(
            {"pipeline/config.pbtxt": 'platform: "ensemble" dynamic_batching { }'},
            [("CT310", "pipeline/config.pbtxt", "platform")],
            id="CT310 another scheduler",
        ),
        pytest.param(
            pipeline(('"ensemble"', '"ensembel"')),
            [("CT311", "pipeline/config.pbtxt", "ensemble_scheduling")],
            id="CT311 platform misspelt",
        ),
        pytest.param(
            pipeline(('platform: "ensemble"', "")),
            [("CT311", "pipeline/config.pbtxt", "ensemble_scheduling")],
            id="CT311 no platform and no backend",
        ),
        pytest.param(
            pipeline(('platform: "ensemble"', "")) | {"pipeline/1/model.py": PYTHON_MODEL},
            [("CT311", "pipeline/config.pbtxt", "ensemble_scheduling")],
            id="CT311 no platform and a file that tells the backend",
        ),
        pytest.param(
            pipeline(('platform: "ensemble"', 'default_model_filename: "x"')),
            [("CT311", "pipeline/config.pbtxt", "ensemble_scheduling")],
            id="CT311 no platform and a file that tells nothing",
        ),
        pytest.param(
            pipeline(more='instance_group { } optimization { } model_warmup { name: "x" }'),
            [
                ("CT312", "pipeline/config.pbtxt", "instance_group"),
                ("CT312", "pipeline/config.pbtxt", "model_warmup"),
                ("CT312", "pipeline/config.pbtxt", "optimization"),
            ],
            id="CT312 all of them",
        ),
        pytest.param(
            {"pipeline/config.pbtxt": 'platform: "ensemble" ensemble_scheduling { }'},
            [("CT313", "pipeline/config.pbtxt", "ensemble_scheduling")],
            id="CT313 no steps",
        ),
        pytest.param(
            pipeline(('model_name: "tokenizer"', "")),
            [("CT314", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].model_name")],
            id="CT314 no model",
        ),
        pytest.param(
            pipeline(
                ('input_map { key: "TEXT" value: "text" }', ""),
                ('output_map { key: "TOKENS" value: "tokens" }', ""),
                ('output_map { key: "MASK" value: "mask" }', ""),
            ),
            [
                ("CT314", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].input_map"),
                ("CT314", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].output_map"),
            ],
            id="CT314 no map at all, and nothing is said of what follows",
        ),
        pytest.param(
            pipeline(('"VECTOR" value: "vector"', '"VECTOR" value: "mask"')),
            [("CT315", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].output_map["VECTOR"]')],
            id="CT315 by two steps",
        ),
        pytest.param(
            pipeline(('output_map { key: "MASK" value: "mask" }', 'output_map { key: "MASK" value: "tokens" }')),
            [("CT315", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["TOKENS"]')],
            id="CT315 by two outputs of a step",
        ),
        pytest.param(
            pipeline(
                ('"TEXT" value: "text"', '"TEXT" value: "text" } input_map { key: "PAST" value: "tokens"'),
                ('"ensemble"', '"ensemble" input { name: "tokens" data_type: TYPE_INT32 dims: -1 }'),
            )
            | {"tokenizer/config.pbtxt": TOKENIZER + 'input { name: "PAST" data_type: TYPE_INT32 dims: -1 }'},
            [("CT316", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["TOKENS"]')],
            id="CT316 an input of the ensemble",
        ),
    ],
)
def test_what_is_found(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    assert messages.of(said_of(write(change, base=BASE))) == findings


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
