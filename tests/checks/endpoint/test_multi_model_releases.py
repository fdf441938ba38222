"""The rules CT508 and CT509: multi-model endpoints with older releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write


@pytest.mark.parametrize(
    ("release", "findings"),
    [
        pytest.param("22.10", [("CT508", ".", "")], id="CT508 before ensembles"),
        pytest.param("22.12", [("CT509", ".", "")], id="CT509 before namespaces"),
        pytest.param("23.05", [], id="since namespaces"),
    ],
)
def test_loaders_of_older_releases(messages: Messages, write: Write, release: str, findings: list[Place]) -> None:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert messages.of(write().check("multi", platform)) == findings


def test_an_older_loader_takes_a_single_model(write: Write) -> None:
    repository = write({"model/config.pbtxt": 'backend: "python"', "model/1/model.py": PYTHON_MODEL}, base={})
    assert repository.check("multi", ServingPlatform(release="22.10", instance_type="ml.g5.xlarge")) == ()
