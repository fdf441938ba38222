"""The rule CT828: the shape of FIL's output in an ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.tree_models import CONFIG, fil, xgboost_json

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write

STEP = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: DIMS }
output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: 4 }
output { name: "Y" data_type: TYPE_FP32 dims: 1 }
ensemble_scheduling {
  step { model_name: "forest" model_version: -1
    input_map { key: "input__0" value: "X" } output_map { key: "output__0" value: "p" } }
  step { model_name: "step" model_version: -1
    input_map { key: "IN" value: "p" } output_map { key: "OUT" value: "Y" } }
}
"""
LAST = """
platform: "ensemble"
max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: 4 }
output { name: "Y" data_type: TYPE_FP32 dims: 1 }
ensemble_scheduling {
  step { model_name: "forest" model_version: -1
    input_map { key: "input__0" value: "X" } output_map { key: "output__0" value: "Y" } }
}
"""
FIELD = 'ensemble_scheduling.step[1].input_map["IN"]'


@pytest.mark.parametrize(
    ("output", "read", "classes", "is_found"),
    [
        pytest.param("dims: 1", "1", 0, True, id="one value"),
        pytest.param("dims: 1", "-1", 0, True, id="a variable dimension"),
        pytest.param("dims: 1 reshape { shape: 1 }", "1", 0, False, id="reshaped"),
        pytest.param("dims: 3", "3", 3, False, id="three values"),
        pytest.param("dims: [ 1, 3 ]", "[ 1, 3 ]", 3, True, id="a row of three values"),
    ],
)
def test_a_dimension_of_1_is_removed(
    messages: Messages, write: Write, output: str, read: str, classes: int, is_found: bool
) -> None:
    objective = "multi:softprob" if classes else "binary:logistic"
    files: dict[str, Change] = {
        "forest/config.pbtxt": fil(CONFIG.replace("dims: 1", output)),
        "forest/1/xgboost.json": xgboost_json(classes=classes, objective=objective),
        "step/config.pbtxt": STEP.replace("DIMS", read),
        "step/1/model.py": "",
        "pipeline/config.pbtxt": ENSEMBLE,
        "pipeline/1/.gitkeep": "",
    }
    found = messages.of(write(files, base={}).check())
    assert found == [("CT828", "pipeline/config.pbtxt", FIELD)] * is_found


def test_the_last_step_may_have_it(messages: Messages, write: Write) -> None:
    files: dict[str, Change] = {
        "forest/config.pbtxt": fil(),
        "forest/1/xgboost.json": xgboost_json(),
        "pipeline/config.pbtxt": LAST,
        "pipeline/1/.gitkeep": "",
    }
    assert messages.of(write(files, base={}).check()) == []
