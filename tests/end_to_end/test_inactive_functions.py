"""Commands after weeks in which nobody called the store's functions: Lambda has to activate each of them first.

The CDK CLI deploys to the local AWS, where the handlers are the real ones. No server runs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.cli.conftest import run
from tests.end_to_end.publisher_account import CONFIG, Run

from cdk_triton.cli.artifacts import running
from cdk_triton_local.aws import LocalAws

__all__ = ["run"]

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


class Account:
    """The local AWS, and the cloud assemblies of a store and of a scaled endpoint whose changes wait for it."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self.assemblies = assemblies

    def cdk(self, app: str, *command: str) -> None:
        environment = {**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"}
        arguments = [str(CDK), *command, "--all", "--app", str(self.assemblies / app), "--no-notices", "--ci"]
        done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def deploy(self, app: str) -> None:
        self.cdk(app, "deploy", "--require-approval", "never")

    def endpoint_config(self) -> str:
        sagemaker = self.aws.client("sagemaker")
        (found,) = sagemaker.list_endpoints()["Endpoints"]
        return str(sagemaker.describe_endpoint(EndpointName=found["EndpointName"])["EndpointConfigName"])


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("inactive")
    version = directory / "text" / "net" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    (version / "model.py").write_text(MODEL)
    app = HERE / "scaled_app" / "app.py"
    subprocess.run([sys.executable, app, directory / "text", ASSETS, directory / "assemblies"], check=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock()) as aws:
        account = Account(aws, directory / "assemblies")
        aws.client("s3").create_bucket(Bucket=ASSETS)
        for name in ("home", "first"):
            account.deploy(name)
        yield account


def test_a_change_is_deployed_and_the_stack_is_destroyed(account: Account) -> None:
    before = account.endpoint_config()
    account.aws.inject("inactive-functions")
    account.deploy("changed")
    assert account.endpoint_config() != before

    account.aws.inject("inactive-functions")
    account.cdk("changed", "destroy", "--force")
    assert account.aws.client("sagemaker").list_endpoints()["Endpoints"] == []


def test_artifacts_are_built_beforehand(account: Account, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in account.aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(running, "_CALL_PAUSE_SECONDS", 0.5)
    account.aws.inject("inactive-functions")

    outcome = run("artifacts", "build", "Served", "--store", "Home", "--app", account.assemblies / "first")

    assert outcome.status == 0
    assert "calling again for up to" in outcome.err
