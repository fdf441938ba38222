"""Many models in one stack, in an account with ten concurrent executions of Lambda, by the CDK CLI."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from cdk_triton_local.aws import LocalAws
from cdk_triton_local.lambdas.executions import CONCURRENT_EXECUTIONS
from sample_repositories.networks import write_network

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
MODELS = 20
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
SOURCE = """
class TritonPythonModel:
    number = %d

    def execute(self, requests):
        return []
"""


@pytest.fixture(name="repositories")
def _repositories(tmp_path: Path) -> Path:
    return tmp_path / "repositories"


def test_twenty_copies_share_ten_concurrent_executions(tmp_path: Path, repositories: Path) -> None:
    for number in range(MODELS):
        model = repositories / str(number) / "model"
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(CONFIG)
        (model / "1" / "model.py").write_text(SOURCE % number)  # another archive for each

    with deployed(tmp_path, repositories) as aws:
        assert_models(aws)
        assert builds(aws) == []


@pytest.mark.long
def test_twenty_builds_share_ten_concurrent_executions(tmp_path: Path, repositories: Path) -> None:
    for number in range(MODELS):
        write_network(repositories / str(number), "Add", number)

    with deployed(tmp_path, repositories) as aws:
        assert_models(aws)
        assert builds(aws) == ["SUCCEEDED"] * MODELS


@contextmanager
def deployed(directory: Path, repositories: Path) -> Iterator[LocalAws]:
    """A stack with a model of each repository."""
    app = HERE / "crowded_app" / "app.py"
    subprocess.run([sys.executable, app, repositories, ASSETS, directory / "assembly"], check=True)
    quiet = ("--require-approval", "never", "--ci", "--no-notices")
    with LocalAws(directory / "aws", host_factory=lambda _: Mock()) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        command: list[str | Path] = [CDK, "deploy", "--app", directory / "assembly", *quiet]
        environment = {**aws.process_environment(), "NODE_NO_WARNINGS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        yield aws


def assert_models(aws: LocalAws) -> None:
    """Every model is there, and no more functions ran at once than a new account allows."""
    found = aws.client("cloudformation").describe_stack_resources(StackName="Crowded")["StackResources"]
    for kind in ("AWS::SageMaker::Model", "Custom::TritonArtifacts"):
        states = [each["ResourceStatus"] for each in found if each["ResourceType"] == kind]
        assert states == ["CREATE_COMPLETE"] * MODELS
    assert 1 < aws.executions.peak <= CONCURRENT_EXECUTIONS


def builds(aws: LocalAws) -> list[str]:
    """The status of each build."""
    codebuild = aws.client("codebuild")
    (project,) = codebuild.list_projects()["projects"]
    ids = codebuild.list_builds_for_project(projectName=project)["ids"]
    return [each["buildStatus"] for each in codebuild.batch_get_builds(ids=ids)["builds"]] if ids else []
