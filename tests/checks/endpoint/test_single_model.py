"""The rules CT401 to CT406: whether a single-model container starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "additional_models", "default_model", "findings"),
    [
        pytest.param(
            {"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None},
            [],
            None,
            [
                ".: error CT403: the repository has several models (bert, preprocess) and no ensemble, so"
                " that the default model is open, and the container would end with: More than 1 model"
                " directory found in model repository; name the model in default_model_name of the"
                " container's environment, or for the command by --default-model",
            ],
            id="CT403 several models",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None, "scripts/build.sh": "make"},
            [],
            None,
            [
                ".: error CT403: the repository has several models (bert, preprocess) and no ensemble, so"
                " that the default model is open, and the container would end with: More than 1 model"
                " directory found in model repository; name the model in default_model_name of the"
                " container's environment, or for the command by --default-model",
            ],
            id="CT403 several models and a directory that is none",
        ),
        pytest.param(
            {"a/config.pbtxt": {"model": "bert", "given": "token_ids", "result": "embedding"}, "a/1/.gitkeep": ""},
            [],
            None,
            [
                ".: error CT403: the repository has several models (a, bert, ensemble, preprocess) and"
                " several ensembles (a, ensemble), so that the default model is open, and the container would"
                " end with: More than 1 model directory found in model repository; name the model in"
                " default_model_name of the container's environment, or for the command by --default-model",
            ],
            id="CT403 several ensembles",
        ),
        pytest.param(
            {},
            ["nowhere"],
            "nobody",
            [
                ".: error CT404: the additional model 'nowhere' is not among the models (bert, ensemble,"
                " preprocess), and the server would end with: failed to poll model 'nowhere': model not found"
                " in any model repository; name models of the repository in additional_models",
                ".: error CT404: the default model 'nobody' is not among the models (bert, ensemble,"
                " preprocess), and the container would end with: Directory with provided"
                " SAGEMAKER_TRITON_DEFAULT_MODEL_NAME nobody does not exist; name one of the models in"
                " default_model_name",
            ],
            id="CT404 names of nobody",
        ),
        pytest.param(
            {
                "outer/config.pbtxt": {"model": "ensemble", "given": "INPUT0", "result": "finaloutput"},
                "outer/1/.gitkeep": "",
            },
            [],
            None,
            [],
            id="a nested ensemble",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ('platform: "ensemble"', "platform : 'ensemble'")},
            [],
            None,
            [],
            id="an ensemble by any spelling",
        ),
    ],
)
def test_start(
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
            {"config.pbtxt": 'backend: "python"', "1/model.py": PYTHON_MODEL},
            [
                "config.pbtxt: error CT401: the configuration is at the top of the repository, and the"
                " container would end with: Incorrect directory structure. Model directory needs to contain"
                " the top level folder; move everything into a directory, for example repository/config.pbtxt",
            ],
            id="CT401 config.pbtxt at the top",
        ),
        pytest.param(
            {"README.md": ""},
            [
                ".: error CT402: there is no directory in the repository, and the container would end with:"
                " No model found in model repository; put each model into a directory of its own, with its"
                " config.pbtxt and a version directory",
            ],
            id="CT402 files only",
        ),
        pytest.param(
            {"my model/config.pbtxt": 'backend: "python"', "my model/1/model.py": PYTHON_MODEL},
            [
                "my model: error CT405: the name 'my model' holds ' ', at which the container's start script would"
                " split it in --load-model; rename the model, with letters, digits, '_', '-' and '.'",
            ],
            id="CT405 a blank in the name",
        ),
        pytest.param(
            {"*/config.pbtxt": 'backend: "identity"', "*/1/.gitkeep": ""},
            [
                "*: error CT405: the name '*' stands for all models in the --load-model of the container's start"
                " script; rename the model, with letters, digits, '_', '-' and '.'",
            ],
            id="CT405 the name of all models",
        ),
        *(
            pytest.param({f"{name}/config.pbtxt": 'backend: "identity"', f"{name}/1/.gitkeep": ""}, [], id=name)
            for name in ("model[1]", "a?b", "a*b", "a\\b")  # which match no file, and stay as they are
        ),
    ],
)
def test_start_of_other_layouts(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    repository = write(change, base={})
    assert [str(finding) for finding in repository.check("single")] == findings


@pytest.mark.parametrize(
    ("release", "findings"),
    [
        pytest.param(
            "23.06",
            [
                "helper: error CT406: 'helper' is to be loaded besides, by a variable that the start script reads from"
                " 23.07 on and that of 23.06 ignores; a call from another model would fail: Model 'helper' is not"
                " ready; serve with 23.07 or newer, or make the model a step of an ensemble",
            ],
            id="before the variable",
        ),
        pytest.param("23.07", [], id="since the variable"),
    ],
)
def test_models_that_are_loaded_besides(write: Write, release: str, findings: list[str]) -> None:
    repository = write({"helper/config.pbtxt": 'backend: "python"', "helper/1/model.py": PYTHON_MODEL})
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert [str(finding) for finding in repository.check("single", platform, additional_models=["helper"])] == findings


def test_a_thousand_models_are_not_all_listed(write: Write) -> None:
    files = {f"m{number:04}/config.pbtxt": 'backend: "python"' for number in range(1000)}
    finding = next(found for found in write(files, base={}).check() if found.code == "CT403")
    assert "(m0000, m0001, m0002, m0003, m0004, m0005, m0006, m0007 and 992 more)" in finding.message
