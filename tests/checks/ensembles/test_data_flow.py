"""The rules CT330, CT331, CT336 and CT337: whether the models of an ensemble fit together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from sample_repositories.one_step import COMPLETED_PY, IN, OUT, RUN, ensemble, python, step, tensor

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Change, Write


BASE: dict[str, str] = {}


def said_of(repository: ModelRepository) -> list[str]:
    """The findings, as one reads them."""
    return [str(finding) for finding in repository.check(default_model="pipeline")]


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            ensemble() | python(),
            [],
            id="sound",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", "INT32") + OUT) | python(),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: error CT330: the tensor 'IN' "
                "is TYPE_INT32 as input of the ensemble and TYPE_FP32 as input 'IN' of 'model', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor IN: inconsistent data type: "
                "TYPE_INT32 is inferred from model pipeline while TYPE_FP32 is inferred from model model; give it"
                " the same data_type everywhere, or convert it in a step between",
            ],
            id="CT330 of an input",
        ),
        pytest.param(
            ensemble(IN + tensor("output", "OUT", "STRING")) | python(),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["OUT"]: error CT330: the tensor '
                "'OUT' is TYPE_STRING as output of the ensemble and TYPE_FP32 as output 'OUT' of 'model', and the"
                " server would not load 'pipeline': in ensemble pipeline, ensemble tensor OUT: inconsistent data "
                "type: TYPE_STRING is inferred from model pipeline while TYPE_FP32 is inferred from model model; "
                "give it the same data_type everywhere, or convert it in a step between",
            ],
            id="CT330 of an output",
        ),
        pytest.param(
            ensemble(steps=step("model", {"IN": "IN"}, {"OUT": "t"}) + step("last", {"IN": "t"}, {"OUT": "OUT"}))
            | python()
            | python(tensor("input", "IN", "INT64", "4, 4") + OUT, "last"),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[1].input_map[\"IN\"]: error CT330: the tensor 't' "
                "is TYPE_FP32 as output 'OUT' of 'model' and TYPE_INT64 as input 'IN' of 'last', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor t: inconsistent data type: "
                "TYPE_FP32 is inferred from model model while TYPE_INT64 is inferred from model last; give it the"
                " same data_type everywhere, or convert it in a step between",
            ],
            id="CT330 between two steps, and nothing of the shape",
        ),
        pytest.param(
            ensemble(
                tensor("input", "IN", "INT32") + OUT + tensor("output", "OUT2"),
                RUN + step("model", {"IN": "IN"}, {"OUT": "OUT2"}),
            )
            | python(),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: error CT330: the tensor 'IN' "
                "is TYPE_INT32 as input of the ensemble and TYPE_FP32 as input 'IN' of 'model', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor IN: inconsistent data type: "
                "TYPE_INT32 is inferred from model pipeline while TYPE_FP32 is inferred from model model; give it"
                " the same data_type everywhere, or convert it in a step between",
            ],
            id="CT330 two readers of one wrong type",
        ),
        pytest.param(
            ensemble() | python(tensor("input", "IN", dims="5") + OUT),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: error CT331: the tensor 'IN' "
                "has the shape [4] as input of the ensemble and [5] as input 'IN' of 'model', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor IN: inconsistent shape: [4] is "
                "inferred from model pipeline while [5] is inferred from model model; give it the same dims "
                "everywhere (-1 where the size varies), or reshape it in a step between",
            ],
            id="CT331 sizes",
        ),
        pytest.param(
            ensemble() | python(tensor("input", "IN", dims="-1, -1") + OUT),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: error CT331: the tensor 'IN' "
                "has the shape [4] as input of the ensemble and [-1,-1] as input 'IN' of 'model', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor IN: inconsistent shape: [4] is "
                "inferred from model pipeline while [-1,-1] is inferred from model model; give it the same dims "
                "everywhere (-1 where the size varies), or reshape it in a step between",
            ],
            id="CT331 numbers of dimensions",
        ),
        pytest.param(
            ensemble("max_batch_size: 8\n" + IN + OUT)
            | python("max_batch_size: 8\n" + IN + tensor("output", "OUT", dims="5")),
            [
                'pipeline/config.pbtxt ensemble_scheduling.step[0].output_map["OUT"]: error CT331: the tensor '
                "'OUT' has the shape [-1,4] as output of the ensemble and [-1,5] as output 'OUT' of 'model', and "
                "the server would not load 'pipeline': in ensemble pipeline, ensemble tensor OUT: inconsistent "
                "shape: [-1,4] is inferred from model pipeline while [-1,5] is inferred from model model; give it"
                " the same dims everywhere (-1 where the size varies), or reshape it in a step between",
            ],
            id="CT331 with batches",
        ),
        pytest.param(
            ensemble(IN + tensor("output", "OUT", dims="-1")) | python(tensor("input", "IN", dims="-1") + OUT),
            [],
            id="any size",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", more="reshape { shape: [ 2, 2 ] }") + OUT)
            | python(tensor("input", "IN", dims="2, 2") + OUT),
            [],
            id="the ensemble's reshape counts",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", more="reshape { shape: [ 2, 2 ] }") + OUT) | python(),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: error CT331: the tensor 'IN' "
                "has the shape [2,2] as input of the ensemble and [4] as input 'IN' of 'model', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor IN: inconsistent shape: [2,2] "
                "is inferred from model pipeline while [4] is inferred from model model; give it the same dims "
                "everywhere (-1 where the size varies), or reshape it in a step between",
            ],
            id="CT331 the ensemble's reshape counts",
        ),
        pytest.param(
            ensemble() | python(tensor("input", "IN", more="reshape { shape: [ 2, 2 ] }") + OUT),
            [],
            id="a model's reshape does not count",
        ),
        pytest.param(
            ensemble("max_batch_size: 8\n" + IN + OUT)
            | python(tensor("input", "IN", dims="-1, 4") + tensor("output", "OUT", dims="-1, 4")),
            [],
            id="the batch is a dimension of a model without batches",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", dims="-1, 4") + tensor("output", "OUT", dims="-1, 4"))
            | python("max_batch_size: 8\n" + IN + OUT),
            [],
            id="the batch is a dimension of an ensemble without batches",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", dims="-1, 4") + OUT) | python(),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: error CT331: the tensor 'IN' "
                "has the shape [-1,4] as input of the ensemble and [4] as input 'IN' of 'model', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor IN: inconsistent shape: [-1,4] "
                "is inferred from model pipeline while [4] is inferred from model model; give it the same dims "
                "everywhere (-1 where the size varies), or reshape it in a step between",
            ],
            id="CT331 and a model that cannot batch",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", dims="-1, 4") + OUT) | python(source=COMPLETED_PY),
            [],
            id="a model that may come to batch",
        ),
        pytest.param(
            ensemble('input { name: "IN" dims: 4 }\n' + OUT) | python(),
            [
                "pipeline/config.pbtxt input[0].data_type: error CT202: input 'IN' has no data type, nothing "
                "fills it in, and the server would not load 'pipeline': inconsistent data type: TYPE_INVALID is "
                "inferred from model; write the type that the model has, for example data_type: TYPE_FP32",
            ],
            id="what a type is missing from, other rules report",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", dims="2, 2") + OUT, step("inner", {"IN": "IN"}, {"OUT": "OUT"}))
            | ensemble(tensor("input", "IN", more="reshape { shape: [ 2, 2 ] }") + OUT, name="inner")
            | python(tensor("input", "IN", dims="2, 2") + OUT),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: error CT331: the tensor 'IN' "
                "has the shape [2,2] as input of the ensemble and [4] as input 'IN' of 'inner', and the server "
                "would not load 'pipeline': in ensemble pipeline, ensemble tensor IN: inconsistent shape: [2,2] "
                "is inferred from model pipeline while [4] is inferred from model inner; give it the same dims "
                "everywhere (-1 where the size varies), or reshape it in a step between",
            ],
            id="CT331 in a nested ensemble, by its dims",
        ),
        pytest.param(
            ensemble(
                "max_batch_size: 8\n" + IN + OUT,
                step("model", {"IN": "IN"}, {"OUT": "t"}) + step("model", {"IN": "t"}, {"OUT": "OUT"}),
            )
            | python("max_batch_size: 4\n" + IN + OUT),
            [
                "pipeline/config.pbtxt max_batch_size: error CT336: max_batch_size is 8 in 'pipeline' and 4 in "
                "'model', which step 0 runs; the server would not load it: ensemble pipeline allows maximum batch"
                " size 8, but it contains model model which only allows maximum batch size to be 4; write "
                "max_batch_size: 4 in the ensemble, or at least 8 in 'model'",
            ],
            id="CT336 of a model that two steps run",
        ),
        pytest.param(
            ensemble("max_batch_size: 4\n" + IN + OUT) | python("max_batch_size: 8\n" + IN + OUT),
            [],
            id="smaller batches than the model allows",
        ),
        pytest.param(
            ensemble("max_batch_size: 8\n" + IN + OUT) | python("max_batch_size: 4\n" + IN + OUT, source=COMPLETED_PY),
            [],
            id="a Python model that may raise its batch size",
        ),
        pytest.param(
            ensemble("max_batch_size: 8\n" + IN + OUT) | python(),
            [
                "pipeline/config.pbtxt ensemble_scheduling.step[0].input_map[\"IN\"]: warning CT337: 'pipeline' "
                "takes batches of up to 8, and 'model' takes single items (its max_batch_size is 0); a request "
                "with more than one would be answered with: unexpected shape for input 'IN' for model 'model'; "
                "write max_batch_size in 'model' too if it can take batches, else leave it out of the ensemble",
            ],
            id="CT337 single items",
        ),
        pytest.param(
            ensemble("max_batch_size: 1\n" + IN + OUT) | python(),
            [],
            id="batches of one",
        ),
    ],
)
def test_what_is_found(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    assert said_of(write(change, base=BASE)) == findings
