"""The rules CT815 to CT817: names and types of the tensors of the backend `fil`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.tree_models import CONFIG, fil, xgboost_json

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

PATH = "model/config.pbtxt"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("input__0", "INPUT__0", [("CT815", PATH, "input[0].name")], id="the input in capital letters"),
        pytest.param("input__0", "input_0", [("CT815", PATH, "input[0].name")], id="the input with one line"),
        pytest.param("output__0", "output", [("CT815", PATH, "output[0].name")], id="the output"),
        pytest.param(
            "output {",
            'input { name: "extra" data_type: TYPE_FP32 dims: 4 }\noutput {',
            [("CT815", PATH, "input[1].name")],
            id="a further input",
        ),
        pytest.param(
            "output {",
            'output { name: "probabilities" data_type: TYPE_FP32 dims: 1 }\noutput {',
            [("CT815", PATH, "output[0].name")],
            id="a further output",
        ),
        pytest.param(
            'input__0" data_type: TYPE_FP32',
            'INPUT" data_type: TYPE_INT16',
            [("CT815", PATH, "input[0].name"), ("CT816", PATH, "input[0].data_type")],
            id="integers of another name",
        ),
        pytest.param(
            'output__0" data_type: TYPE_FP32',
            'OUTPUT" data_type: TYPE_INT16',
            [("CT815", PATH, "output[0].name"), ("CT817", PATH, "output[0].data_type")],
            id="an output of integers of another name",
        ),
        pytest.param("TYPE_FP32 dims: 4", "TYPE_INT32 dims: 4", [("CT816", PATH, "input[0].data_type")], id="integers"),
        pytest.param(
            "TYPE_FP32 dims: 4", "TYPE_FP64 dims: 4", [("CT816", PATH, "input[0].data_type")], id="double precision"
        ),
        pytest.param(
            "TYPE_FP32 dims: 1", "TYPE_INT64 dims: 1", [("CT817", PATH, "output[0].data_type")], id="class numbers"
        ),
        pytest.param(
            "output {",
            'output { name: "treeshap_output" data_type: TYPE_FP32 dims: 5 }\noutput {',
            [],
            id="Shapley values before the predictions",
        ),
    ],
)
def test_names_and_types(messages: Messages, write: Write, old: str, new: str, expected: list[Place]) -> None:
    assert old in CONFIG
    config = fil(CONFIG.replace(old, new))
    repository = write({PATH: config, "model/1/xgboost.json": xgboost_json()}, base={})
    assert messages.of(repository.check()) == expected
