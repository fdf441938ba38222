"""The rules CT301 to CT304: whether the server can load the models that an ensemble names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"ensemble/config.pbtxt": ('model_name: "bert"', 'model_name: "brt"')},
            [("CT301", "ensemble/config.pbtxt", "ensemble_scheduling.step[1].model_name")],
            id="CT301 misspelt",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ('model_name: "bert"', 'model_name: "zzz"')},
            [("CT301", "ensemble/config.pbtxt", "ensemble_scheduling.step[1].model_name")],
            id="CT301 missing",
        ),
        pytest.param(
            {
                "ensemble/config.pbtxt": ('model_name: "bert"', 'model_name: "./bert/"'),
                "bert/config.pbtxt": ('name: "bert"', ""),
            },
            [],
            id="a path",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ('model_name: "bert"', 'model_name: "absent/../bert"')},
            [("CT301", "ensemble/config.pbtxt", "ensemble_scheduling.step[1].model_name")],
            id="CT301 a path to nothing",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ("model_version: -1", "")},
            [
                ("CT303", "ensemble/config.pbtxt", "ensemble_scheduling.step[0].model_version"),
                ("CT303", "ensemble/config.pbtxt", "ensemble_scheduling.step[1].model_version"),
            ],
            id="CT303 no version",
        ),
        pytest.param(
            {
                "ensemble/config.pbtxt": ("model_version: -1", "model_version: 1"),
                "bert/2/model.onnx": "",
                "preprocess/2/model.py": "",
            },
            [
                ("CT303", "ensemble/config.pbtxt", "ensemble_scheduling.step[0].model_version"),
                ("CT303", "ensemble/config.pbtxt", "ensemble_scheduling.step[1].model_version"),
            ],
            id="CT303 an older version",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_steps(
    messages: Messages,
    write: Write,
    change: Mapping[str, Change],
    findings: list[Place],
    mode: Literal["single", "multi"],
) -> None:
    repository = write(change)
    assert messages.of(repository.check(mode)) == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"a/config.pbtxt": {"model": "a", "given": "x", "result": "y"}, "a/1/.gitkeep": ""},
            [("CT302", "a/config.pbtxt", "ensemble_scheduling.step")],
            id="CT302 an ensemble that runs itself",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_circle(
    messages: Messages,
    write: Write,
    change: Mapping[str, Change],
    findings: list[Place],
    mode: Literal["single", "multi"],
) -> None:
    repository = write(change, base={})
    assert messages.of(repository.check(mode)) == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {
                "a/config.pbtxt": {"model": "b", "given": "x", "result": "y"},
                "a/1/.gitkeep": "",
                "b/config.pbtxt": {"model": "a", "given": "x", "result": "y"},
                "b/1/.gitkeep": "",
            },
            [("CT403", ".", ""), ("CT302", "a/config.pbtxt", "ensemble_scheduling.step")],
            id="CT302 two ensembles",
        ),
    ],
)
def test_circle_of_two(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    repository = write(change, base={})
    assert messages.of(repository.check("single")) == findings


def runs(**steps: str) -> dict[str, Change]:
    """Ensembles, each with the model that it runs."""
    return {
        name: content
        for ensemble, model in steps.items()
        for name, content in {
            f"{ensemble}/config.pbtxt": ensemble_of(model),
            f"{ensemble}/1/.gitkeep": "",
        }.items()
    }


def ensemble_of(model: str) -> str:
    return f"""
        platform: "ensemble"
        input {{ name: "x" data_type: TYPE_FP32 dims: 1 }}
        output {{ name: "y" data_type: TYPE_FP32 dims: 1 }}
        ensemble_scheduling {{
          step {{
            model_name: "{model}" model_version: -1
            input_map {{ key: "x" value: "x" }} output_map {{ key: "y" value: "y" }}
          }}
        }}
    """


def test_a_circle_that_is_reached_from_outside(messages: Messages, write: Write) -> None:
    assert messages.of(write(runs(a="c", b="d", c="b", d="c"), base={}).check(default_model="a")) == [
        ("CT302", "b/config.pbtxt", "ensemble_scheduling.step")
    ]


def test_every_circle_is_reported_once(write: Write) -> None:
    findings = write(runs(a="b", b="a", c="d", d="c", e="e", f="e"), base={}).check(additional_models=["a", "c"])
    assert [finding.path for finding in findings if finding.code == "CT302"] == [
        "a/config.pbtxt",
        "c/config.pbtxt",
        "e/config.pbtxt",
    ]


@pytest.mark.slow
@pytest.mark.timeout(60)  # it takes a second or two, most of it for the files
def test_a_thousand_ensembles_that_run_each_other(write: Write) -> None:
    names = [f"e{n:04}" for n in range(1000)]
    circle = dict(zip(names, [*names[1:], names[0]], strict=True))
    findings = write(runs(**circle), base={}).check(default_model=names[0])
    assert [finding.code for finding in findings] == ["CT302"]


USES_COMMON = """
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "common"))
import tool


class TritonPythonModel:
    def execute(self, requests):
        return []
"""


@pytest.mark.parametrize(
    ("change", "additional_models", "default_model", "findings"),
    [
        pytest.param(
            {"extra/config.pbtxt": 'backend: "python"', "extra/1/model.py": ""},
            [],
            None,
            [("CT304", "extra", "")],
            id="CT304 no step",
        ),
        pytest.param(
            {"extra/config.pbtxt": 'backend: "python"', "extra/1/model.py": ""},
            ["extra"],
            None,
            [],
            id="loaded besides",
        ),
        pytest.param(
            {"a/config.pbtxt": {"model": "bert", "given": "token_ids", "result": "embedding"}, "a/1/.gitkeep": ""},
            [],
            "a",
            [("CT304", "ensemble", ""), ("CT304", "preprocess", "")],
            id="CT304 beside the default model",
        ),
        pytest.param({"scripts/build.sh": "make"}, [], None, [("CT304", "scripts", "")], id="CT304 no model"),
        pytest.param(
            {"common/tool.py": "", "preprocess/1/model.py": USES_COMMON}, [], None, [], id="files that a model uses"
        ),
    ],
)
def test_models_that_nothing_loads(
    messages: Messages,
    write: Write,
    change: Mapping[str, Change],
    additional_models: list[str],
    default_model: str | None,
    findings: list[Place],
) -> None:
    repository = write(change)
    assert (
        messages.of(repository.check("single", additional_models=additional_models, default_model=default_model))
        == findings
    )


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"extra/config.pbtxt": 'backend: "python"', "extra/1/model.py": ""},
            [("CT304", "extra", "")],
            id="CT304 no step",
        ),
    ],
)
def test_models_that_nothing_loads_in_a_multi_model_endpoint(
    messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]
) -> None:
    repository = write(change)
    assert messages.of(repository.check("multi")) == findings


def test_a_misspelt_step_hides_no_fault_of_the_model_that_is_meant(write: Write) -> None:
    step = {"model": "brt", "given": "token_ids", "result": "embedding"}
    found = write({"ensemble/config.pbtxt": step, "bert/config.pbtxt": "max_batch_siz: 8"}).check()
    assert {(finding.code, finding.path) for finding in found} >= {
        ("CT301", "ensemble/config.pbtxt"),
        ("CT101", "bert/config.pbtxt"),
    }
