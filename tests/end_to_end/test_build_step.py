"""The build step from the `cdk` CLI to the answer of a real server, on the local AWS: what is built, and when.

One fleet goes through it, in one test per deployment; they build on each other and stop at the first that fails. The
handlers, the buildspec and the build program are those that AWS would run; `trtexec` and the GPU are stand-ins.
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
ADDED = {"alpha": 1.0, "beta": 2.0}


class Deployment:
    """Deploys variants of the app, and looks at what came of it."""

    def __init__(self, aws: LocalAws, assemblies: Path, gate: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies
        self._gate = gate

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

    def let_builds_go_on(self) -> None:
        self._gate.touch()

    def builds(self) -> list[dict[str, Any]]:
        """Every build so far, oldest first."""
        codebuild = self.aws.client("codebuild")
        (project,) = codebuild.list_projects()["projects"]
        ids = codebuild.list_builds_for_project(projectName=project, sortOrder="ASCENDING")["ids"]
        return codebuild.batch_get_builds(ids=ids)["builds"] if ids else []

    def built_by(self, build: dict[str, Any]) -> list[str]:
        """The repositories of a build's plan."""
        bucket, _, prefix = build["source"]["location"].partition("/")
        plan = self.aws.client("s3").get_object(Bucket=bucket, Key=f"{prefix}plan.json")["Body"].read()
        return sorted(each["repository"] for each in json.loads(plan)["ensembles"])

    def objects(self) -> dict[str, str]:
        """Every object of the store but what is staged for builds: name and version."""
        s3 = self.aws.client("s3")
        (bucket,) = (each["Name"] for each in s3.list_buckets()["Buckets"] if each["Name"].startswith("home-"))
        found = s3.list_object_versions(Bucket=bucket).get("Versions", [])
        return {each["Key"]: each["VersionId"] for each in found if not each["Key"].startswith("staging/")}

    def artifacts(self) -> list[str]:
        return sorted(name for name in self.objects() if name.endswith("/manifest.json"))

    def status(self) -> str:
        stacks = self.aws.client("cloudformation").describe_stacks()["Stacks"]
        return next(str(each["StackStatus"]) for each in stacks if each["StackName"] == "Fleet")

    def outputs(self) -> dict[str, str]:
        stack = self.aws.client("cloudformation").describe_stacks(StackName="Fleet")["Stacks"][0]
        return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}

    def reasons(self) -> str:
        events = self.aws.client("cloudformation").describe_stack_events(StackName="Fleet")["StackEvents"]
        return "\n".join(each.get("ResourceStatusReason", "") for each in events)

    def answers(self) -> None:
        """Both models answer with what their networks compute."""
        outputs = self.outputs()
        client = TritonClient(outputs["EndpointName"], self.aws.client("sagemaker-runtime"))
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for name, added in ADDED.items():
            result = client.infer({"x": x}, target_model=outputs[name.capitalize()])
            np.testing.assert_allclose(result["y"], x + added)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("build")
    for name, added in ADDED.items():
        write_network(directory / "sound" / name, "Add", added)
    write_network(
        directory / "broken" / "beta", "EfficientNMS_TRT", 0
    )  # ONNX Runtime knows its name, and cannot run it
    gate, assemblies = directory / "gate", directory / "assemblies"
    subprocess.run([sys.executable, HERE / "build_app" / "app.py", directory, gate, ASSETS, assemblies], check=True)
    with LocalAws(tmp_path_factory.mktemp("aws")) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        yield Deployment(aws, assemblies, gate)


@pytest.fixture(autouse=True)
def in_order(request: pytest.FixtureRequest) -> None:
    """These tests tell one story: after a failure the rest of it means nothing."""
    if request.session.testsfailed and getattr(request.module, "_began_clean", 0) != request.session.testsfailed:
        pytest.skip("an earlier step failed")


@pytest.fixture(scope="module", autouse=True)
def failures_before(request: pytest.FixtureRequest) -> None:
    request.module._began_clean = request.session.testsfailed


def test_a_first_deployment_that_times_out_is_rolled_back_and_its_build_runs_on(deployment: Deployment) -> None:
    deployment.deploy("impatient", ok=False)
    assert deployment.status() == "ROLLBACK_COMPLETE"
    (build,) = deployment.builds()
    assert build["buildStatus"] == "IN_PROGRESS"
    assert deployment.built_by(build) == ["alpha", "beta"]
    assert deployment.artifacts() == []


def test_the_next_deployment_attaches_to_that_build(deployment: Deployment) -> None:
    deployment.let_builds_go_on()
    deployment.deploy("patient", ALONE)
    (build,) = deployment.builds()
    assert build["buildStatus"] == "SUCCEEDED"
    assert len(deployment.artifacts()) == 2
    deployment.answers()


def test_where_something_else_changed_nothing_is_built_or_written(deployment: Deployment) -> None:
    before = deployment.objects()
    deployment.deploy("impatient", ALONE)  # the handler is asked, with another timeout and the same plan
    assert len(deployment.builds()) == 1
    assert deployment.objects() == before


def test_one_changed_recipe_builds_one_artifact(deployment: Deployment) -> None:
    before = deployment.artifacts()
    deployment.deploy("one recipe", ALONE)
    _, build = deployment.builds()
    assert deployment.built_by(build) == ["alpha"]
    (new,) = set(deployment.artifacts()) - set(before)
    assert new.startswith("artifacts/alpha/")
    deployment.answers()


def test_another_gpu_is_built_for_by_a_processing_job(deployment: Deployment) -> None:
    deployment.deploy("other GPU", ALONE)
    (job,) = deployment.aws.client("sagemaker").list_processing_jobs()["ProcessingJobSummaries"]
    assert job["ProcessingJobStatus"] == "Completed"
    assert len(deployment.artifacts()) == 5
    assert len(deployment.builds()) == 2
    deployment.answers()


def test_a_network_that_cannot_be_built_fails_with_a_sentence_and_the_endpoint_answers_on(
    deployment: Deployment,
) -> None:
    before = deployment.artifacts()
    output = deployment.deploy("broken", ALONE, ok=False)
    for told in (deployment.reasons(), output):
        (reason, *_) = (line for line in told.splitlines() if "trtexec --onnx=net/model.onnx" in line)
        assert "'beta' for " in reason
        assert " could not be built" in reason
        assert "EfficientNMS_TRT" in reason, "the cause is cut off"
        assert "(cdk-triton local logs --source " in reason
    assert "console.aws" not in deployment.reasons()
    assert deployment.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert deployment.artifacts() == before
    deployment.answers()
