"""The rules CT301 to CT304: whether the server can load the models that an ensemble names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"ensemble/config.pbtxt": ('model_name: "bert"', 'model_name: "brt"')},
            [
                "ensemble/config.pbtxt ensemble_scheduling.step[1].model_name: error CT301: step 1 runs the"
                " model 'brt', for which the repository has no directory: ensemble ensemble contains models"
                " that are not available or ambiguous: brt; write 'bert' if that is meant, or add the model",
            ],
            id="CT301 misspelt",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ('model_name: "bert"', 'model_name: "zzz"')},
            [
                "ensemble/config.pbtxt ensemble_scheduling.step[1].model_name: error CT301: step 1 runs the"
                " model 'zzz', for which the repository has no directory: ensemble ensemble contains models"
                " that are not available or ambiguous: zzz; add the model, or correct the name",
            ],
            id="CT301 missing",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ("model_version: -1", "")},
            [
                "ensemble/config.pbtxt ensemble_scheduling.step[0].model_version: error CT303: step 0 says no"
                " version, which means version 0, and the server would load version 1 of 'preprocess':"
                " ensemble 'ensemble' depends on 'preprocess' whose required version 0 is not loaded; write"
                " model_version: -1 for the latest version",
                "ensemble/config.pbtxt ensemble_scheduling.step[1].model_version: error CT303: step 1 says no"
                " version, which means version 0, and the server would load version 1 of 'bert': ensemble"
                " 'ensemble' depends on 'bert' whose required version 0 is not loaded; write model_version:"
                " -1 for the latest version",
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
                "ensemble/config.pbtxt ensemble_scheduling.step[0].model_version: error CT303: step 0 asks"
                " for version 1, and the server would load version 2 of 'preprocess': ensemble 'ensemble'"
                " depends on 'preprocess' whose required version 1 is not loaded; write model_version: -1 for"
                " the latest version",
                "ensemble/config.pbtxt ensemble_scheduling.step[1].model_version: error CT303: step 1 asks"
                " for version 1, and the server would load version 2 of 'bert': ensemble 'ensemble' depends"
                " on 'bert' whose required version 1 is not loaded; write model_version: -1 for the latest"
                " version",
            ],
            id="CT303 an older version",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_steps(
    write: Write, change: Mapping[str, Change], findings: list[str], mode: Literal["single", "multi"]
) -> None:
    repository = write(change)
    assert [str(finding) for finding in repository.check(mode)] == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"a/config.pbtxt": {"model": "a", "given": "x", "result": "y"}, "a/1/.gitkeep": ""},
            [
                "a/config.pbtxt ensemble_scheduling.step: error CT302: the ensembles run each other in a"
                " circle (a → a), and the server would load none of them: circular dependency between"
                " ensembles: a -> ... -> a -> a; take one of the steps out",
            ],
            id="CT302 an ensemble that runs itself",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_circle(
    write: Write, change: Mapping[str, Change], findings: list[str], mode: Literal["single", "multi"]
) -> None:
    repository = write(change, base={})
    assert [str(finding) for finding in repository.check(mode)] == findings


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
            [
                ".: error CT403: the repository has several models (a, b) and several ensembles (a, b), so"
                " that the default model is open, and the container would end with: More than 1 model"
                " directory found in model repository; name the model in default_model_name of the"
                " container's environment, or for the command by --default-model",
                "a/config.pbtxt ensemble_scheduling.step: error CT302: the ensembles run each other in a"
                " circle (a → b → a), and the server would load none of them: circular dependency between"
                " ensembles: a -> ... -> b -> a; take one of the steps out",
            ],
            id="CT302 two ensembles",
        ),
    ],
)
def test_circle_of_two(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    repository = write(change, base={})
    assert [str(finding) for finding in repository.check("single")] == findings


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


def test_a_circle_that_is_reached_from_outside(write: Write) -> None:
    (finding,) = write(runs(a="c", b="d", c="b", d="c"), base={}).check(default_model="a")
    assert str(finding) == (
        "b/config.pbtxt ensemble_scheduling.step: error CT302: the ensembles run each other in a circle"
        " (b → d → c → b), and the server would crash where 'a' leads it there; take one of the steps out"
    )


def test_every_circle_is_reported_once(write: Write) -> None:
    findings = write(runs(a="b", b="a", c="d", d="c", e="e", f="e"), base={}).check(additional_models=["a", "c"])
    assert [finding.path for finding in findings if finding.code == "CT302"] == [
        "a/config.pbtxt",
        "c/config.pbtxt",
        "e/config.pbtxt",
    ]


@pytest.mark.timeout(60)  # it takes a second or two, most of it for the files
def test_a_thousand_ensembles_that_run_each_other(write: Write) -> None:
    names = [f"e{n:04}" for n in range(1000)]
    circle = dict(zip(names, [*names[1:], names[0]], strict=True))
    findings = write(runs(**circle), base={}).check(default_model=names[0])
    assert [finding.code for finding in findings] == ["CT302"]


@pytest.mark.parametrize(
    ("change", "additional_models", "default_model", "findings"),
    [
        pytest.param(
            {"extra/config.pbtxt": 'backend: "python"', "extra/1/model.py": ""},
            [],
            None,
            [
                "extra: warning CT304: nothing loads 'extra', because the entry model 'ensemble' does not run"
                " it as a step; a call from another model would fail: Model 'extra' is not ready; its files were"
                " not checked; remove it, or"
                " name it in additional_models if a model calls it (BLS)",
            ],
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
            [
                "ensemble: warning CT304: nothing loads 'ensemble', because the entry model 'a' does not run"
                " it as a step; a call from another model would fail: Model 'ensemble' is not ready; its files"
                " were not checked; remove it,"
                " or name it in additional_models if a model calls it (BLS)",
                "preprocess: warning CT304: nothing loads 'preprocess', because the entry model 'a' does not"
                " run it as a step; a call from another model would fail: Model 'preprocess' is not ready; its"
                " files were not checked; remove it, or name it in additional_models if a model calls it (BLS)",
            ],
            id="CT304 beside the default model",
        ),
        pytest.param(
            {"scripts/build.sh": "make"},
            [],
            None,
            [
                "scripts: warning CT304: 'scripts' is in the archive and is no model: it has neither a config.pbtxt nor"
                " a version directory, and nothing loads it; move it out of the repository, or into the directory of"
                " the model that reads its files",
            ],
            id="CT304 no model",
        ),
    ],
)
def test_models_that_nothing_loads(
    write: Write,
    change: Mapping[str, Change],
    additional_models: list[str],
    default_model: str | None,
    findings: list[str],
) -> None:
    repository = write(change)
    assert [
        str(finding)
        for finding in repository.check("single", additional_models=additional_models, default_model=default_model)
    ] == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"extra/config.pbtxt": 'backend: "python"', "extra/1/model.py": ""},
            [
                "extra: warning CT304: nothing loads 'extra', because the entry model 'ensemble' does not run"
                " it as a step; a call from another model would fail: Model 'extra' is not ready; its files were"
                " not checked; remove it; a"
                " model that is called (BLS) has to be a step of the ensemble, or run on its own endpoint",
            ],
            id="CT304 no step",
        ),
    ],
)
def test_models_that_nothing_loads_in_a_multi_model_endpoint(
    write: Write, change: Mapping[str, Change], findings: list[str]
) -> None:
    repository = write(change)
    assert [str(finding) for finding in repository.check("multi")] == findings


def test_a_misspelt_step_hides_no_fault_of_the_model_that_is_meant(write: Write) -> None:
    step = {"model": "brt", "given": "token_ids", "result": "embedding"}
    found = write({"ensemble/config.pbtxt": step, "bert/config.pbtxt": "max_batch_siz: 8"}).check()
    assert {(finding.code, finding.path) for finding in found} >= {
        ("CT301", "ensemble/config.pbtxt"),
        ("CT101", "bert/config.pbtxt"),
    }
