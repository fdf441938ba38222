"""Builds of the local AWS through the real client: they really run, and end as CodeBuild's do."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.validate import ParamValidator

from cdk_triton_local.jobs.build import Build, BuildRecord, BuildRequest
from cdk_triton_local.jobs.context import LocalContext
from cdk_triton_local.jobs.machine import JobMachine

if TYPE_CHECKING:
    from tests.local_aws.jobs.codebuild.conftest import Builds

    from golden_messages import Messages

# ------------------------------------------------------------------------------------------------- a build


def test_a_build_reads_a_folder_and_writes_a_folder(builds: Builds) -> None:
    folders = builds.folders("one", {"plan.json": "plan", "sources/a.txt": "source"})
    project = builds.project(out=True, build=["mkdir -p out/deep", "cat plan.json sources/a.txt > out/deep/both"])
    build = builds.run(project, **folders, imageOverride="other:25.10", idempotencyToken="one")
    assert build["buildStatus"] == "SUCCEEDED", builds.log(build)
    assert builds.uploaded("one/out/") == {"deep/both": "plansource"}
    assert build["artifacts"]["location"] == "arn:aws:s3:::builds/one/out"
    assert build["environment"]["image"] == "other:25.10"
    ran = ("SUBMITTED", "QUEUED", "PROVISIONING", "DOWNLOAD_SOURCE", "INSTALL", "PRE_BUILD", "BUILD", "POST_BUILD")
    expected = [(name, "SUCCEEDED") for name in (*ran, "UPLOAD_ARTIFACTS", "FINALIZING")]
    assert list(builds.phases(build).items()) == [*expected, ("COMPLETED", None)]
    assert build["currentPhase"] == "COMPLETED"
    assert build["endTime"] >= build["startTime"]


def test_an_answer_has_the_shape_that_the_service_model_says(builds: Builds) -> None:
    build = builds.run(builds.project(build=["true"]))
    report = ParamValidator().validate(build, builds.client.meta.service_model.shape_for("Build"))
    assert not report.has_errors(), report.generate_report()


def test_the_log_is_in_cloudwatch_and_says_what_stands_in(messages: Messages, builds: Builds) -> None:
    logs = {"cloudWatchLogs": {"status": "ENABLED", "groupName": "/own/group"}}
    build = builds.run(builds.project(build=["printf 'no end of line'", "echo ä"], logsConfig=logs))
    where = build["logs"]
    assert where["groupName"] == "/own/group"
    assert where["streamName"] == build["id"].partition(":")[2]
    assert f"log-group/$252Fown$252Fgroup/log-events/{where['streamName']}" in where["deepLink"]
    text = builds.log(build)
    messages.record("build", re.sub(r"^\[Container\] [/\d]+ [:.\d]+ ", "", text.splitlines()[0]))
    assert "Running command printf 'no end of line'\nno end of line" in text
    assert "\nä\n" in text
    assert "Phase complete: BUILD State: SUCCEEDED" in text
    (file,) = (builds.aws.directory / "logs").glob(f"*{where['streamName']}.log")
    assert "no end of line" in file.read_text(encoding="utf-8")


def test_a_project_without_a_log_group_gets_the_one_of_its_name(builds: Builds) -> None:
    project = builds.project(build=["true"])
    started = builds.client.start_build(projectName=project)["build"]
    assert "groupName" not in started["logs"]  # there is none before the machine is there
    assert builds.finished(started["id"])["logs"]["groupName"] == f"/aws/codebuild/{project}"


def test_commands_get_codebuilds_variables_and_nothing_of_the_users(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    own = [{"name": "OWN", "value": "project"}, {"name": "BOTH", "value": "project"}]
    commands = [
        'echo "id=$CODEBUILD_BUILD_ID start=$CODEBUILD_START_TIME url=$AWS_ENDPOINT_URL $OWN $BOTH"',
        'echo "secret=<$SECRET_OF_THE_USER>"; [ "$PWD" = "$CODEBUILD_SRC_DIR" ]',
        "python3 -c 'import sys; print(sys.prefix)'",
    ]
    project = builds.project(build=commands, environment={**builds.machine, "environmentVariables": own})
    build = builds.run(project, environmentVariablesOverride=[{"name": "BOTH", "value": "request"}])
    text = builds.log(build)
    start = int(build["startTime"].timestamp() * 1000)
    assert f"id={build['id']} start={start} url={builds.aws.url} project request" in text
    assert "secret=<>" in text
    assert f"\n{sys.prefix}\n" in text  # its python3 is the one that runs the local AWS
    assert build["buildStatus"] == "SUCCEEDED"


def test_commands_share_their_directory_and_variables_across_phases(builds: Builds) -> None:
    project = builds.project(
        install=["export KEPT='two\nlines'", "mkdir there", "cd there", "local_one=1", 'echo "one=$local_one"'],
        build=["exit 0", 'echo "$KEPT in ${PWD##*/} succeeding=$CODEBUILD_BUILD_SUCCEEDING"'],
    )
    text = builds.log(builds.run(project))
    assert "one=1" in text
    assert "two\nlines in there succeeding=1" in text


def test_a_build_on_a_gpu_gets_the_stand_ins_of_the_image_that_it_names(builds: Builds) -> None:
    dali = "python3 -c 'import nvidia.dali; print(nvidia.dali.__version__)'"
    project = builds.project(
        build=["nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader", "trtexec --help", dali],
        environment={**builds.machine, "type": "LINUX_GPU_CONTAINER"},
    )
    build = builds.run(project, imageOverride="1.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3")
    text = builds.log(build)
    assert build["buildStatus"] == "SUCCEEDED", text
    assert all(each in text.splitlines()[0] for each in ("NVIDIA A10G", "8.6", "TensorRT 10.13.3.9", "DALI 1.51.2"))
    assert "NVIDIA A10G, 8.6" in text
    assert "cdk-triton stand-in for nvidia-smi" in text
    assert "TensorRT.trtexec [TensorRT v101303]" in text
    assert "\n1.51.2" in text


# ------------------------------------------------------------------------------------------------- failures


def test_artifacts_of_a_failed_build_are_uploaded(builds: Builds) -> None:
    project = builds.project(
        out=True,
        build=["mkdir out; echo half > out/half", "echo why >&2; exit 3", "echo never"],
        post_build=['echo "succeeding=$CODEBUILD_BUILD_SUCCEEDING"'],
    )
    build = builds.run(project, **builds.folders("failed", {"x": ""}))
    assert build["buildStatus"] == "FAILED"
    message = "Error while executing command: echo why >&2; exit 3. Reason: exit status 3"
    assert builds.contexts(build) == {"BUILD": ("COMMAND_EXECUTION_ERROR", message)}
    text = builds.log(build)
    assert "succeeding=0" in text
    assert "why" in text
    assert "\nnever" not in text
    assert builds.uploaded("failed/out/") == {"half": "half\n"}


@pytest.mark.parametrize("phase", ["install", "pre_build"])
def test_nothing_runs_after_a_failed_preparation(builds: Builds, phase: str) -> None:
    build = builds.run(builds.project(spec=builds.spec(out=True, build=["true"], **{phase: ["false"]})))
    assert build["buildStatus"] == "FAILED"
    assert list(builds.phases(build))[-3:] == [phase.upper(), "FINALIZING", "COMPLETED"]


def test_a_source_that_is_not_there_fails_the_download(messages: Messages, builds: Builds) -> None:
    build = builds.run(builds.project(build=["true"]), **builds.folders("nowhere"))
    assert record_download_failure(messages, builds, build) == "CLIENT_ERROR"


def test_a_key_cannot_lead_out_of_the_source(messages: Messages, builds: Builds) -> None:
    folders = builds.folders("escape", {"../../outside": "x"})
    build = builds.run(builds.project(build=["true"]), **folders)
    assert record_download_failure(messages, builds, build) == "CLIENT_ERROR"


def record_download_failure(messages: Messages, builds: Builds, build: Mapping[str, Any]) -> str:
    """Record why the download failed, the only phase that did; its status code."""
    ((phase, (code, message)),) = builds.contexts(build).items()
    assert phase == "DOWNLOAD_SOURCE"
    messages.record(code, message)
    return code


def test_missing_artifacts_fail_the_upload(builds: Builds) -> None:
    build = builds.run(builds.project(out=True, build=["true"]), **builds.folders("empty", {"x": ""}))
    assert build["buildStatus"] == "FAILED"
    message = "no matching base directory path found for out"
    assert builds.contexts(build) == {"UPLOAD_ARTIFACTS": ("CLIENT_ERROR", message)}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("{", id="no YAML"),
        pytest.param("version: 0.1\nphases: {}", id="version"),
        pytest.param("version: 0.2\nphases: {build: {commands: [true]}}", id="command"),
        pytest.param("version: 0.2\nphases: {}\ncache: {}", id="section"),
        pytest.param("version: 0.2\nphases: {}\nenv: {shell: sh}", id="shell"),
    ],
)
def test_a_buildspec_is_read_strictly(messages: Messages, builds: Builds, spec: str) -> None:
    build = builds.run(builds.project(spec=spec))
    assert record_download_failure(messages, builds, build) == "YAML_FILE_ERROR"


# ------------------------------------------------------------------------------------------------- ends


def test_a_build_can_be_stopped_and_uploads_nothing(builds: Builds) -> None:
    project = builds.project(out=True, build=["mkdir out; touch out/x", "sleep 4242.1 & sleep 4242.1"])
    identifier = builds.start(project, **builds.folders("stopped", {"x": ""}))
    builds.runs(identifier, "sleep 4242.1")
    builds.client.stop_build(id=identifier)
    build = builds.finished(identifier)
    assert build["buildStatus"] == "STOPPED"
    assert builds.phases(build)["BUILD"] == "STOPPED"
    assert builds.uploaded("stopped/out/") == {}
    assert builds.processes("sleep 4242.1") == []
    assert builds.client.stop_build(id=identifier)["build"]["buildStatus"] == "STOPPED"


def test_a_build_whose_time_is_up_is_timed_out(builds: Builds, tmp_path: Path) -> None:
    """CodeBuild's shortest timeout is five minutes, so this goes past its API."""
    aws = builds.aws
    spec = builds.spec(out=True, build=["mkdir out; touch out/x; sleep 4242.2"])
    members = {
        "id": "p:1",
        "arn": "arn:aws:codebuild:us-east-1:123456789012:build/p:1",
        "buildNumber": 1,
        "initiator": "test",
        "queuedTimeoutInMinutes": 480,
        "environment": builds.machine,
        "source": {"type": "NO_SOURCE", "buildspec": spec},
    }
    request = BuildRequest(
        members=members,
        artifacts={"type": "S3", "location": builds.bucket, "path": "late", "name": "out"},
        machine=JobMachine(),
        seconds=1,
        variables={},
        log_group="late",
        log_stream="1",
    )
    context = LocalContext(tmp_path, aws.region, aws.account, {}, aws.client, lambda line: None)
    record = BuildRecord(members, context.now)
    Build(request, record, context, tmp_path / "work").run()
    build = record.describe()
    assert build["buildStatus"] == "TIMED_OUT"
    (timed_out,) = builds.contexts(build, "TIMED_OUT").values()
    assert timed_out == ("BUILD_TIMED_OUT", "Build has timed out. ")
    assert "UPLOAD_ARTIFACTS" not in builds.phases(build)
    assert builds.uploaded("late/") == {}
    assert builds.processes("sleep 4242.2") == []
    assert not (tmp_path / "work").exists()


def test_builds_end_with_the_local_aws(builds: Builds, tmp_path: Path) -> None:
    """Also what a build has started in the background is gone when the local AWS has stopped."""
    spec = builds.spec(build=["sleep 4242.3 & sleep 4242.3"])
    code = f"""
import pathlib, time
from unittest.mock import Mock
import psutil
from cdk_triton_local.aws import LocalAws
with LocalAws(pathlib.Path({str(tmp_path)!r}), host_factory=lambda aws: Mock()) as aws:
    client = aws.client("codebuild")
    client.create_project(name="pp", serviceRole={builds.role!r}, environment={dict(builds.machine)!r},
        source={{"type": "NO_SOURCE", "buildspec": {spec!r}}}, artifacts={{"type": "NO_ARTIFACTS"}})
    client.start_build(projectName="pp")
    while sum("sleep" in each.name() for each in psutil.Process().children(recursive=True)) < 2:
        time.sleep(0.02)
print(psutil.Process().children(recursive=True))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
    assert builds.processes("sleep 4242.3") == []
