"""The rules CT401 to CT406: whether a single-model container starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, ModelRepository
from sample_repositories.sound import ENSEMBLE, PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "additional_models", "default_model", "findings"),
    [
        pytest.param(
            {"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None},
            [],
            None,
            [("CT403", ".", "")],
            id="CT403 several models",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None, "scripts/build.sh": "make"},
            [],
            None,
            [("CT403", ".", "")],
            id="CT403 several models and a directory that is none",
        ),
        pytest.param(
            {"a/config.pbtxt": {"model": "bert", "given": "token_ids", "result": "embedding"}, "a/1/.gitkeep": ""},
            [],
            None,
            [("CT403", ".", "")],
            id="CT403 several ensembles",
        ),
        pytest.param({}, ["nowhere"], "nobody", [("CT404", ".", ""), ("CT404", ".", "")], id="CT404 names of nobody"),
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
            {"config.pbtxt": 'backend: "python"', "1/model.py": PYTHON_MODEL},
            [("CT401", "config.pbtxt", "")],
            id="CT401 config.pbtxt at the top",
        ),
        pytest.param({"README.md": ""}, [("CT402", ".", "")], id="CT402 files only"),
        pytest.param(
            {"my model/config.pbtxt": 'backend: "python"', "my model/1/model.py": PYTHON_MODEL},
            [("CT405", "my model", "")],
            id="CT405 a blank in the name",
        ),
        pytest.param(
            {"*/config.pbtxt": 'backend: "identity"', "*/1/.gitkeep": ""},
            [("CT405", "*", "")],
            id="CT405 the name of all models",
        ),
        *(
            pytest.param({f"{name}/config.pbtxt": 'backend: "identity"', f"{name}/1/.gitkeep": ""}, [], id=name)
            for name in ("model[1]", "a?b", "a*b", "a\\b")  # which match no file, and stay as they are
        ),
    ],
)
def test_start_of_other_layouts(
    messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]
) -> None:
    repository = write(change, base={})
    assert messages.of(repository.check("single")) == findings


@pytest.mark.parametrize(
    ("release", "findings"),
    [
        pytest.param("23.06", [("CT406", "helper", "")], id="before the variable"),
        pytest.param("23.07", [], id="since the variable"),
    ],
)
def test_models_that_are_loaded_besides(messages: Messages, write: Write, release: str, findings: list[Place]) -> None:
    repository = write({"helper/config.pbtxt": 'backend: "python"', "helper/1/model.py": PYTHON_MODEL})
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert messages.of(repository.check("single", platform, additional_models=["helper"])) == findings


def test_a_model_that_an_argument_loads(messages: Messages, write: Write) -> None:
    repository = write({"helper/config.pbtxt": 'backend: "python"', "helper/1/model.py": PYTHON_MODEL})
    environment = ContainerEnvironment(additional_args=("--load-model=helper",))
    findings = repository.check("single", "23.06/ml.g5.xlarge", additional_models=["helper"], environment=environment)
    (finding,) = [each for each in findings if each.code == "CT406"]
    messages.of([finding])
    assert finding.message.startswith("additional_args names 'helper'")


def test_the_directory_of_a_model_leads_to_the_repository_above(messages: Messages, write: Write) -> None:
    root = write({"bert/1/config.pbtxt": "", "ensemble/backup/config.pbtxt": ""}).root
    for model in ("bert", "ensemble"):
        found = ModelRepository.from_directory(root / model).check()
        (finding,) = (each for each in found if each.code == "CT401")
        assert finding.fix.endswith(f": {root}")
        assert messages.of([finding]) == [("CT401", "config.pbtxt", "")]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None}, id="moved"),
        pytest.param({}, id="a copy"),
        pytest.param({"config.pbtxt": 'backend: "python"', "1/model.py": PYTHON_MODEL}, id="with its version"),
        pytest.param({"config.pbtxt": "backend"}, id="unreadable"),
    ],
)
def test_a_configuration_above_other_models_is_one_mistake(
    messages: Messages, write: Write, change: Mapping[str, Change]
) -> None:
    """Public report: server#2687."""
    repository = write({"config.pbtxt": ENSEMBLE, **change})
    assert {each.code for each in repository.check("multi")} - {"CT101"} == {"CT506"}
    found = [each for each in repository.check("single") if each.code != "CT101"]
    assert messages.of(found) == [("CT401", "config.pbtxt", "")]


def test_a_thousand_models_are_not_all_listed(messages: Messages, write: Write) -> None:
    files = {f"m{number:04}/config.pbtxt": 'backend: "python"' for number in range(1000)}
    found = [finding for finding in write(files, base={}).check() if finding.code == "CT403"]
    assert messages.of(found) == [("CT403", ".", "")]
    assert "992 more" in found[0].message
