"""The rules CT310 to CT316: what an ensemble and its steps are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL
from sample_repositories.two_steps import BASE, ENCODER, TOKENIZER, pipeline

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Change, Write


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
            pipeline(('platform: "ensemble"', "")) | {"pipeline/1/model.py": PYTHON_MODEL},
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
