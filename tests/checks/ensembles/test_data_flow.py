"""The rules CT330, CT331, CT336 and CT337: whether the models of an ensemble fit together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from sample_repositories.one_step import COMPLETED_PY, IN, OUT, RUN, ensemble, python, step, tensor

BATCH = "max_batch_size: 8\n"
VARIABLE = tensor("input", "IN", dims="-1")
BATCHER = "dynamic_batching {}\n"
RAGGED = tensor("input", "IN", dims="-1", more="allow_ragged_batch: true")

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


BASE: dict[str, str] = {}
TWICE = RUN.replace("output_map", 'output_map { key: "OUT" value: "lost" } output_map')


def said_of(repository: ModelRepository) -> list[Finding]:
    """The findings, as one reads them."""
    return list(repository.check(default_model="pipeline"))


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
            [("CT330", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT330 of an input",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", dims="2, 0") + OUT) | python(),
            [("CT204", "pipeline/config.pbtxt", "input[0].dims")],
            id="CT204 a shape with one wrong dimension is not compared",
        ),
        pytest.param(
            ensemble(IN + tensor("output", "OUT", "STRING")) | python(),
            [("CT330", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]')],
            id="CT330 of an output",
        ),
        pytest.param(
            ensemble(steps=step("model", {"IN": "IN"}, {"OUT": "t"}) + step("last", {"IN": "t"}, {"OUT": "OUT"}))
            | python()
            | python(tensor("input", "IN", "INT64", "4, 4") + OUT, "last"),
            [("CT330", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["IN"]')],
            id="CT330 between two steps, and nothing of the shape",
        ),
        pytest.param(
            ensemble(
                tensor("input", "IN", "INT32") + OUT + tensor("output", "OUT2"),
                RUN + step("model", {"IN": "IN"}, {"OUT": "OUT2"}),
            )
            | python(),
            [("CT330", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT330 two readers of one wrong type",
        ),
        pytest.param(
            ensemble() | python(tensor("input", "IN", dims="5") + OUT),
            [("CT331", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT331 sizes",
        ),
        pytest.param(
            ensemble(IN + tensor("output", "OUT", dims="5"), TWICE) | python(),
            [
                ("CT331", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]'),
                ("CT107", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]'),
            ],
            id="CT331 of an output that is there twice",
        ),
        pytest.param(
            ensemble(IN + tensor("output", "OUT", "INT64"), TWICE) | python(),
            [
                ("CT330", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]'),
                ("CT107", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]'),
            ],
            id="CT330 of an output that is there twice",
        ),
        pytest.param(
            ensemble() | python(tensor("input", "IN", dims="-1, -1") + OUT),
            [("CT331", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT331 numbers of dimensions",
        ),
        pytest.param(
            ensemble("max_batch_size: 8\n" + IN + OUT)
            | python("max_batch_size: 8\n" + IN + tensor("output", "OUT", dims="5")),
            [("CT331", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].output_map["OUT"]')],
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
            [("CT331", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
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
            [("CT331", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT331 and a model that cannot batch",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", dims="-1, 4") + OUT) | python(source=COMPLETED_PY),
            [],
            id="a model that may come to batch",
        ),
        pytest.param(
            ensemble('input { name: "IN" dims: 4 }\n' + OUT) | python(),
            [("CT202", "pipeline/config.pbtxt", "input[0].data_type")],
            id="what a type is missing from, other rules report",
        ),
        pytest.param(
            ensemble(tensor("input", "IN", dims="2, 2") + OUT, step("inner", {"IN": "IN"}, {"OUT": "OUT"}))
            | ensemble(tensor("input", "IN", more="reshape { shape: [ 2, 2 ] }") + OUT, name="inner")
            | python(tensor("input", "IN", dims="2, 2") + OUT),
            [("CT331", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT331 in a nested ensemble, by its dims",
        ),
        pytest.param(
            ensemble(
                "max_batch_size: 8\n" + IN + OUT,
                step("model", {"IN": "IN"}, {"OUT": "t"}) + step("model", {"IN": "t"}, {"OUT": "OUT"}),
            )
            | python("max_batch_size: 4\n" + IN + OUT),
            [("CT336", "pipeline/config.pbtxt", "max_batch_size")],
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
            [("CT337", "pipeline/config.pbtxt", 'ensemble_scheduling.step[0].input_map["IN"]')],
            id="CT337 single items",
        ),
        pytest.param(
            ensemble("max_batch_size: 1\n" + IN + OUT) | python(),
            [],
            id="batches of one",
        ),
        pytest.param(
            ensemble(BATCH + RAGGED + OUT) | python(BATCH + VARIABLE + OUT + BATCHER),
            [("CT344", "pipeline/config.pbtxt", "input[0].allow_ragged_batch")],
            id="CT344 ragged batches of an ensemble",
        ),
        pytest.param(
            ensemble(BATCH + RAGGED + OUT) | python(BATCH + VARIABLE + OUT), [], id="a model that joins no requests"
        ),
        pytest.param(ensemble(BATCH + RAGGED + OUT) | python(BATCH + IN + OUT + BATCHER), [], id="fixed dims"),
        pytest.param(ensemble(BATCH + RAGGED + OUT) | python(BATCH + RAGGED + OUT), [], id="ragged batches of both"),
        pytest.param(ensemble(BATCH + VARIABLE + OUT) | python(BATCH + RAGGED + OUT), [], id="of the model"),
        pytest.param(
            ensemble(BATCH + RAGGED + OUT, step("inner", {"IN": "IN"}, {"OUT": "OUT"}))
            | ensemble(BATCH + VARIABLE + OUT, name="inner")
            | python(BATCH + RAGGED + OUT),
            [],
            id="of a nested ensemble's model",
        ),
    ],
)
def test_what_is_found(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    assert messages.of(said_of(write(change, base=BASE))) == findings
