"""The local AWS with a publisher, and repositories to publish; for the tests of the commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Outcome

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.artifacts import source_key
from cdk_triton.protocol import layout
from cdk_triton_local.aws import LocalAws
from deployed_fleet import DeployedFleet

__all__ = ["CONFIG", "FLEET", "PLATFORM", "Account", "Run", "account", "administrator", "deployed"]

PLATFORM = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = "class TritonPythonModel:\n    def execute(self, requests): ...\n\n"


class Account(DeployedFleet):
    """The local AWS with a publisher, and a directory of repositories."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        super().__init__(aws, directory, PLATFORM)
        self._directory = directory

    def write(self, ensemble: str, content: str, config: str = CONFIG) -> Path:
        """Write the repository of an ensemble; returns the directory of all of them."""
        model = self._directory / "tenants" / ensemble / "model"
        (model / "1").mkdir(parents=True, exist_ok=True)
        (model / "config.pbtxt").write_text(config)
        (model / "1" / "model.py").write_text(MODEL + content)
        return model.parents[1]

    def manifest(self, *ensembles: str) -> Path:
        """Write the repositories of ensembles, and a manifest of these alone."""
        for ensemble in ensembles:
            self.write(ensemble, f"# {ensemble}")
        manifest = self._directory / f"{ensembles[0]}.json"
        manifest.write_text(json.dumps([{"ensemble": each, "repository": f"tenants/{each}"} for each in ensembles]))
        return manifest

    def target(self, ensemble: str) -> str:
        """The target model of the repository as it is now."""
        repository = ModelRepository.from_directory(self._directory / "tenants" / ensemble)
        return layout.target_model(ensemble, source_key(repository))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("publisher")
    with LocalAws(directory / "aws", faults=["full-log-policy"]) as aws:
        account = Account(aws, directory)
        aws.inject()
        yield account


@pytest.fixture
def account(deployed: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The deployed publisher, to which the environment of this process leads, as somebody who may publish."""
    deployed.lead_publisher(monkeypatch)
    return deployed


@pytest.fixture
def administrator(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of this process leads to the deployed publisher as somebody who may read every stack."""
    for name, value in account.aws.environment().items():
        monkeypatch.setenv(name, value)


Run = Callable[..., Outcome]
FLEET = ("--fleet", "Serving/Fleet")
