"""Rehearsals from the `cdk` CLI to the local AWS: a server answers golden requests before the endpoint changes.

One fleet goes through it, in one test per deployment; they build on each other and stop at the first that fails. The
handlers and the build program are those that AWS would run, and the server of a job is the real tritonserver.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdk_triton.client import TritonClient
from cdk_triton_local.aws import LocalAws
from sample_repositories.networks import write_network

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
ALONE = "--exclusively"  # the store is as it was

PYTHON_CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 3 }
output { name: "y" data_type: TYPE_FP32 dims: 3 }
"""
PYTHON_MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy() + 2)]
            )
            for request in requests
        ]
"""


class Deployment:
    """Deploys variants of the app, and looks at what came of it."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies

    def deploy(self, variant: str, *flags: str, ok: bool = True) -> str:
        """Deploy the fleet; the store, which it depends on, too, unless flags say otherwise."""
        quiet = ("--require-approval", "never", "--progress", "events", "--no-notices", "--ci")
        done = subprocess.run(
            [CDK, "deploy", "Fleet", "--app", self._assemblies / variant, *quiet, *flags],
            env={**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def jobs(self) -> list[tuple[list[str], list[str]]]:
        """What each job so far has built and rehearsed, oldest first."""
        codebuild, s3 = self.aws.client("codebuild"), self.aws.client("s3")
        (project,) = codebuild.list_projects()["projects"]
        ids = codebuild.list_builds_for_project(projectName=project, sortOrder="ASCENDING")["ids"]
        found = []
        for build in codebuild.batch_get_builds(ids=ids)["builds"]:
            bucket, _, prefix = build["source"]["location"].partition("/")
            plan = json.loads(s3.get_object(Bucket=bucket, Key=f"{prefix}plan.json")["Body"].read())
            built, rehearsed = (
                sorted(each["repository"] for each in plan[name]) for name in ("ensembles", "rehearsals")
            )
            found.append((built, rehearsed))
        return found

    def processing_jobs(self) -> list[dict[str, Any]]:
        """Each Processing job, newest first."""
        found: list[dict[str, Any]] = self.aws.client("sagemaker").list_processing_jobs()["ProcessingJobSummaries"]
        return found

    def passes(self) -> dict[str, dict[str, Any]]:
        """Every pass of the store, by object key."""
        s3, bucket = self.aws.client("s3"), self.bucket()
        keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix="artifacts/")["Contents"]]
        passes = [key for key in keys if "/rehearsals/" in key]
        return {key: json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in passes}

    def forget_passes(self) -> None:
        for key in self.passes():
            self.aws.client("s3").delete_object(Bucket=self.bucket(), Key=key)

    def bucket(self) -> str:
        names = [str(each["Name"]) for each in self.aws.client("s3").list_buckets()["Buckets"]]
        return next(name for name in names if name.startswith("home-"))

    def stack(self) -> dict[str, Any]:
        found: dict[str, Any] = self.aws.client("cloudformation").describe_stacks(StackName="Fleet")["Stacks"][0]
        return found

    def answers(self) -> None:
        """Both models answer with what they compute."""
        outputs = {each["OutputKey"]: each["OutputValue"] for each in self.stack()["Outputs"]}
        client = TritonClient(outputs["EndpointName"], self.aws.client("sagemaker-runtime"))
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for name, added in (("Alpha", 1), ("Beta", 2)):
            np.testing.assert_allclose(client.infer({"x": x}, target_model=outputs[name])["y"], x + added)


def write_golden(directory: Path, name: str, x: float, y: float) -> None:
    """Write a golden request, and the answer that is expected."""
    golden = directory / "golden"
    golden.mkdir(exist_ok=True)
    inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [x] * 3}]
    (golden / f"{name}.json").write_text(json.dumps({"inputs": inputs}))
    np.savez(golden / f"{name}.npz", y=np.full((1, 3), y, np.float32))


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("rehearsal")
    alpha, beta = (directory / "models" / name for name in ("alpha", "beta"))
    write_network(alpha, "Add", 1.0)
    (beta / "net/1").mkdir(parents=True)
    (beta / "net/config.pbtxt").write_text(PYTHON_CONFIG)
    (beta / "net/1/model.py").write_text(PYTHON_MODEL)
    for name, x, y in (("first", 1.0, 2.0), ("other", 5.0, 6.0), ("wrong", 1.0, 3.5)):
        write_golden(alpha, name, x, y)
    write_golden(beta, "first", 1.0, 3.0)
    app = HERE / "rehearsal_app" / "app.py"
    subprocess.run([sys.executable, app, directory / "models", ASSETS, directory / "assemblies"], check=True)
    with LocalAws(tmp_path_factory.mktemp("aws")) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        yield Deployment(aws, directory / "assemblies")


@pytest.fixture(autouse=True)
def in_order(request: pytest.FixtureRequest) -> None:
    """These tests tell one story: after a failure the rest of it means nothing."""
    if request.session.testsfailed and getattr(request.module, "_began_clean", 0) != request.session.testsfailed:
        pytest.skip("an earlier step failed")


@pytest.fixture(scope="module", autouse=True)
def failures_before(request: pytest.FixtureRequest) -> None:
    request.module._began_clean = request.session.testsfailed


def test_one_job_builds_and_rehearses_before_the_endpoint_exists(deployment: Deployment) -> None:
    deployment.deploy("first")

    assert deployment.jobs() == [(["alpha"], ["alpha", "beta"])]
    results = [each["result"] for each in deployment.passes().values()]
    assert len(results) == 2
    assert all(each["load_seconds"] > 0 and each["requests"][0]["reason"] is None for each in results)
    assert all("serve" in each["stand_ins"] for each in results)
    deployment.answers()


def test_what_has_passed_is_not_rehearsed_again(deployment: Deployment) -> None:
    deployment.deploy("again", ALONE)

    assert len(deployment.jobs()) == 1


def test_another_golden_request_is_rehearsed_and_nothing_is_built(deployment: Deployment) -> None:
    deployment.deploy("other request", ALONE)

    assert deployment.jobs()[1:] == [([], ["alpha"])]
    assert len(deployment.passes()) == 3


def test_a_wrong_answer_fails_the_deployment_and_the_endpoint_answers_on(deployment: Deployment) -> None:
    deployment.forget_passes()  # the rollback returns to a plan whose rehearsals have no pass any more

    output = deployment.deploy("wrong answer", ALONE, ok=False)

    (reason, *_) = (line for line in output.splitlines() if "the rehearsal of 'alpha'" in line)
    assert "golden/wrong.json: the output 'y' differs in 3 of 3 values" in reason
    assert "2 instead of 3.5" in reason
    assert "cdk-triton local logs --source " in reason
    assert deployment.stack()["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert deployment.jobs()[2:] == [([], ["alpha"])]  # the output of an earlier job still has the pass of beta
    assert [each["repository"] for each in deployment.passes().values()] == ["beta"]
    deployment.answers()


def test_a_processing_job_builds_and_rehearses_for_another_gpu(deployment: Deployment) -> None:
    codebuild, before = deployment.jobs(), deployment.passes()

    output = deployment.deploy("wrong answer on another GPU", ALONE, ok=False)

    assert "the rehearsal of 'alpha' for 25.09-l4 failed: golden/wrong.json: the output 'y' differs" in output
    deployment.answers()
    deployment.deploy("another GPU", ALONE)

    assert [each["ProcessingJobStatus"] for each in deployment.processing_jobs()] == ["Completed", "Failed"]
    assert deployment.jobs() == codebuild
    new = [each for key, each in deployment.passes().items() if key not in before]
    assert sorted(each["repository"] for each in new) == ["alpha", "beta"]
    assert all("serve" in each["result"]["stand_ins"] for each in new)
    deployment.answers()
