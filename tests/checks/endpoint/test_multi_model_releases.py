"""The rules CT508 and CT509: multi-model endpoints with older releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories import Write


@pytest.mark.parametrize(
    ("release", "findings"),
    [
        pytest.param(
            "22.10",
            [
                ".: error CT508: the archive has 3 directories, and the server of 22.10 would answer the first"
                " invocation with: More than one version or model directories found. Note that hidden folders are not"
                " allowed and Ensemble models are not supported in SageMaker MME mode.; serve with 22.12 or newer, or"
                " use a single-model endpoint",
            ],
            id="CT508 before ensembles",
        ),
        pytest.param(
            "22.12",
            [
                ".: warning CT509: the server of 22.12 has one name space for all archives, and another archive with"
                " one of these models (bert, preprocess) could not be loaded beside this one: failed to poll model"
                " 'bert': not unique across all model repositories; serve with 23.04 or newer, or give the models names"
                " that no other archive uses",
            ],
            id="CT509 before name spaces",
        ),
        pytest.param("23.05", [], id="since name spaces"),
    ],
)
def test_loaders_of_older_releases(write: Write, release: str, findings: list[str]) -> None:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert [str(finding) for finding in write().check("multi", platform)] == findings


def test_an_older_loader_takes_a_single_model(write: Write) -> None:
    repository = write({"model/config.pbtxt": 'backend: "python"', "model/1/model.py": PYTHON_MODEL}, base={})
    assert repository.check("multi", ServingPlatform(release="22.10", instance_type="ml.g5.xlarge")) == ()
