"""CodeBuild of the local AWS through the real client: builds really run, and end as CodeBuild's do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from cdk_triton.local.aws import LocalAws
from cdk_triton.local.jobs.build import Build, BuildRecord, BuildRequest
from cdk_triton.local.jobs.codebuild import CodeBuild
from cdk_triton.local.jobs.machine import Machine, Place

BUCKET = "builds"
ROLE = "arn:aws:iam::123456789012:role/builds"


@pytest.fixture(scope="module")
def s3(local_aws: LocalAws) -> Any:
    client = local_aws.client("s3")
    client.create_bucket(Bucket=BUCKET)
    return client


@pytest.fixture(scope="module")
def codebuild(local_aws: LocalAws, s3: Any) -> Any:
    return local_aws.client("codebuild")


def buildspec(artifacts: Mapping[str, Any] | None = None, **phases: list[str]) -> str:
    spec: dict[str, Any] = {"version": "0.2", "phases": {name: {"commands": each} for name, each in phases.items()}}
    return json.dumps(spec | ({"artifacts": artifacts} if artifacts else {}))


OUT = {"base-directory": "out", "files": ["**/*"]}


@pytest.fixture
def project(codebuild: Any) -> Callable[..., str]:
    def make(spec: str, **more: Any) -> str:
        name = f"project-{uuid.uuid4().hex[:8]}"
        request = {
            "name": name,
            "serviceRole": ROLE,
            "source": {"type": "NO_SOURCE", "buildspec": spec},
            "artifacts": {"type": "NO_ARTIFACTS"},
            "environment": {"type": "LINUX_CONTAINER", "image": "triton:25.09", "computeType": "BUILD_GENERAL1_SMALL"},
            **more,
        }
        codebuild.create_project(**request)
        return name

    return make


def finished(codebuild: Any, identifier: str) -> dict[str, Any]:
    while True:
        (build,) = codebuild.batch_get_builds(ids=[identifier])["builds"]
        if build["buildComplete"]:
            return build  # type: ignore[no-any-return]
        threading.Event().wait(0.02)


def run(codebuild: Any, name: str, **overrides: Any) -> dict[str, Any]:
    return finished(codebuild, codebuild.start_build(projectName=name, **overrides)["build"]["id"])


def phases(build: Mapping[str, Any]) -> dict[str, str | None]:
    return {each["phaseType"]: each.get("phaseStatus") for each in build["phases"]}


def log(local_aws: LocalAws, build: Mapping[str, Any]) -> str:
    where = build["logs"]
    events = local_aws.client("logs").get_log_events(
        logGroupName=where["groupName"], logStreamName=where["streamName"], startFromHead=True
    )["events"]
    return "\n".join(each["message"] for each in events)


def s3_job(folder: str, name: str = "out") -> dict[str, Any]:
    return {
        "sourceTypeOverride": "S3",
        "sourceLocationOverride": f"{BUCKET}/{folder}/in/",
        "artifactsOverride": {
            "type": "S3",
            "location": BUCKET,
            "path": folder,
            "name": name,
            "namespaceType": "NONE",
            "packaging": "NONE",
        },
    }


def uploaded(s3: Any, prefix: str) -> dict[str, str]:
    found = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return {
        each["Key"].removeprefix(prefix): s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read().decode()
        for each in found
    }


# ------------------------------------------------------------------------------------------------- a build


def test_a_build_reads_a_folder_and_writes_a_folder(
    local_aws: LocalAws, s3: Any, codebuild: Any, project: Callable[..., str]
) -> None:
    s3.put_object(Bucket=BUCKET, Key="one/in/plan.json", Body=b"plan")
    s3.put_object(Bucket=BUCKET, Key="one/in/sources/a.txt", Body=b"source")
    name = project(buildspec(OUT, build=["mkdir -p out/deep", "cat plan.json sources/a.txt > out/deep/both"]))
    build = run(codebuild, name, **s3_job("one"), imageOverride="other:25.10", idempotencyToken="one")
    assert build["buildStatus"] == "SUCCEEDED", log(local_aws, build)
    assert uploaded(s3, "one/out/") == {"deep/both": "plansource"}
    assert build["artifacts"]["location"] == f"arn:aws:s3:::{BUCKET}/one/out"
    assert build["environment"]["image"] == "other:25.10"
    assert list(phases(build).items()) == [
        *(
            (name, "SUCCEEDED")
            for name in (
                *("SUBMITTED", "QUEUED", "PROVISIONING", "DOWNLOAD_SOURCE", "INSTALL", "PRE_BUILD", "BUILD"),
                *("POST_BUILD", "UPLOAD_ARTIFACTS", "FINALIZING"),
            )
        ),
        ("COMPLETED", None),
    ]
    assert build["currentPhase"] == "COMPLETED"
    assert build["endTime"] >= build["startTime"]


def test_an_answer_has_the_shape_that_the_service_model_says(codebuild: Any, project: Callable[..., str]) -> None:
    build = run(codebuild, project(buildspec(build=["true"])))
    shape = codebuild.meta.service_model.shape_for("Build")
    report = ParamValidator().validate(build, shape)
    assert not report.has_errors(), report.generate_report()


def test_the_log_is_in_cloudwatch_and_says_what_stands_in(
    local_aws: LocalAws, codebuild: Any, project: Callable[..., str]
) -> None:
    name = project(
        buildspec(build=["printf 'no end of line'", "echo ä"]),
        logsConfig={"cloudWatchLogs": {"status": "ENABLED", "groupName": "/own/group"}},
    )
    build = run(codebuild, name)
    assert build["logs"]["groupName"] == "/own/group"
    assert build["logs"]["streamName"] == build["id"].partition(":")[2]
    assert f"log-group/$252Fown$252Fgroup/log-events/{build['logs']['streamName']}" in build["logs"]["deepLink"]
    text = log(local_aws, build)
    assert "stand-in for CodeBuild" in text.splitlines()[0]
    assert "Running command printf 'no end of line'\nno end of line" in text
    assert "\nä\n" in text
    assert "Phase complete: BUILD State: SUCCEEDED" in text
    files = [path for path in (local_aws.directory / "logs").iterdir() if build["logs"]["streamName"] in path.name]
    assert "no end of line" in files[0].read_text(encoding="utf-8")


def test_a_project_without_a_log_group_gets_the_one_of_its_name(codebuild: Any, project: Callable[..., str]) -> None:
    name = project(buildspec(build=["true"]))
    started = codebuild.start_build(projectName=name)["build"]
    assert "groupName" not in started["logs"]  # there is none before the machine is there
    assert finished(codebuild, started["id"])["logs"]["groupName"] == f"/aws/codebuild/{name}"


def test_commands_get_codebuilds_variables_and_nothing_of_the_users(
    local_aws: LocalAws, codebuild: Any, project: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    environment = {"type": "LINUX_CONTAINER", "image": "i", "computeType": "BUILD_GENERAL1_SMALL"}
    own = [{"name": "OWN", "value": "project"}, {"name": "BOTH", "value": "project"}]
    name = project(
        buildspec(
            build=[
                'echo "id=$CODEBUILD_BUILD_ID start=$CODEBUILD_START_TIME url=$AWS_ENDPOINT_URL $OWN $BOTH"',
                'echo "secret=<$SECRET_OF_THE_USER>"; [ "$PWD" = "$CODEBUILD_SRC_DIR" ]',
                "python3 -c 'import sys; print(sys.prefix)'",
            ]
        ),
        environment={**environment, "environmentVariables": own},
    )
    build = run(codebuild, name, environmentVariablesOverride=[{"name": "BOTH", "value": "request"}])
    text = log(local_aws, build)
    start = int(build["startTime"].timestamp() * 1000)
    assert f"id={build['id']} start={start} url={local_aws.url} project request" in text
    assert "secret=<>" in text
    assert build["buildStatus"] == "SUCCEEDED"
    assert f"\n{sys.prefix}\n" in text  # its python3 is the one that runs the local AWS


def test_commands_share_their_directory_and_variables_across_phases(
    local_aws: LocalAws, codebuild: Any, project: Callable[..., str]
) -> None:
    name = project(
        buildspec(
            install=["export KEPT='two\nlines'", "mkdir there", "cd there", "local_one=1", 'echo "one=$local_one"'],
            build=["exit 0", 'echo "$KEPT in ${PWD##*/} succeeding=$CODEBUILD_BUILD_SUCCEEDING"'],
        )
    )
    text = log(local_aws, run(codebuild, name))
    assert "one=1" in text
    assert "two\nlines in there succeeding=1" in text


# ------------------------------------------------------------------------------------------------- failures


def test_artifacts_of_a_failed_build_are_uploaded(
    local_aws: LocalAws, s3: Any, codebuild: Any, project: Callable[..., str]
) -> None:
    s3.put_object(Bucket=BUCKET, Key="failed/in/x", Body=b"x")
    name = project(
        buildspec(
            OUT,
            build=["mkdir out; echo half > out/half", "echo why >&2; exit 3", "echo never"],
            post_build=['echo "succeeding=$CODEBUILD_BUILD_SUCCEEDING"'],
        )
    )
    build = run(codebuild, name, **s3_job("failed"))
    assert build["buildStatus"] == "FAILED"
    (failed,) = [each for each in build["phases"] if each.get("phaseStatus") == "FAILED"]
    assert failed["phaseType"] == "BUILD"
    assert failed["contexts"] == [
        {
            "statusCode": "COMMAND_EXECUTION_ERROR",
            "message": "Error while executing command: echo why >&2; exit 3. Reason: exit status 3",
        }
    ]
    text = log(local_aws, build)
    assert "succeeding=0" in text
    assert "why" in text
    assert "\nnever" not in text
    assert uploaded(s3, "failed/out/") == {"half": "half\n"}


@pytest.mark.parametrize("phase", ["install", "pre_build"])
def test_nothing_runs_after_a_failed_preparation(codebuild: Any, project: Callable[..., str], phase: str) -> None:
    build = run(codebuild, project(buildspec(OUT, **{phase: ["false"], "build": ["true"]})))
    assert build["buildStatus"] == "FAILED"
    assert list(phases(build))[-3:] == [phase.upper(), "FINALIZING", "COMPLETED"]


def test_a_source_that_is_not_there_fails_the_download(codebuild: Any, project: Callable[..., str]) -> None:
    build = run(codebuild, project(buildspec(build=["true"])), **s3_job("nowhere"))
    (failed,) = [each for each in build["phases"] if each.get("phaseStatus") == "FAILED"]
    assert failed["phaseType"] == "DOWNLOAD_SOURCE"
    assert failed["contexts"][0]["message"] == f"NoSuchKey: there is no object below {BUCKET}/nowhere/in/"


def test_missing_artifacts_fail_the_upload(s3: Any, codebuild: Any, project: Callable[..., str]) -> None:
    s3.put_object(Bucket=BUCKET, Key="empty/in/x", Body=b"x")
    build = run(codebuild, project(buildspec(OUT, build=["true"])), **s3_job("empty"))
    assert build["buildStatus"] == "FAILED"
    assert phases(build)["UPLOAD_ARTIFACTS"] == "FAILED"
    assert "no matching base directory path found for out" in json.dumps(build["phases"], default=str)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("{", "the buildspec is not YAML"),
        ("version: 0.1\nphases: {}", "the buildspec's version is 0.1, and only 0.2 is modelled by the local AWS"),
        ("version: 0.2\nphases: {build: {commands: [true]}}", "phases.build.commands is [True] and must be a list"),
        ("version: 0.2\nphases: {}\ncache: {}", "the buildspec has 'cache', which is not modelled by the local AWS"),
        ("version: 0.2\nphases: {}\nenv: {shell: sh}", "env.shell is 'sh', and only bash is modelled"),
    ],
)
def test_a_buildspec_is_read_strictly(codebuild: Any, project: Callable[..., str], spec: str, reason: str) -> None:
    build = run(codebuild, project(spec))
    (failed,) = [each for each in build["phases"] if each.get("phaseStatus") == "FAILED"]
    assert failed["contexts"][0]["statusCode"] == "YAML_FILE_ERROR"
    assert failed["contexts"][0]["message"].startswith(reason)


# ------------------------------------------------------------------------------------------------- ends


def children(marker: str) -> list[psutil.Process]:
    def found(process: psutil.Process) -> bool:
        try:
            return marker in " ".join(process.cmdline())
        except psutil.Error:
            return False

    return [each for each in psutil.process_iter() if found(each)]


def running(codebuild: Any, identifier: str, marker: str) -> None:
    """Wait until the build's command runs."""
    while not children(marker):
        assert not codebuild.batch_get_builds(ids=[identifier])["builds"][0]["buildComplete"]
        threading.Event().wait(0.02)


def test_a_build_can_be_stopped_and_uploads_nothing(s3: Any, codebuild: Any, project: Callable[..., str]) -> None:
    s3.put_object(Bucket=BUCKET, Key="stopped/in/x", Body=b"x")
    name = project(buildspec(OUT, build=["mkdir out; touch out/x", "sleep 4242.1 & sleep 4242.1"]))
    identifier = codebuild.start_build(projectName=name, **s3_job("stopped"))["build"]["id"]
    running(codebuild, identifier, "sleep 4242.1")
    codebuild.stop_build(id=identifier)
    build = finished(codebuild, identifier)
    assert build["buildStatus"] == "STOPPED"
    assert phases(build)["BUILD"] == "STOPPED"
    assert uploaded(s3, "stopped/out/") == {}
    assert children("sleep 4242.1") == []
    assert codebuild.stop_build(id=identifier)["build"]["buildStatus"] == "STOPPED"


def a_place(local_aws: LocalAws, directory: Path) -> Place:
    return Place(directory, local_aws.region, local_aws.account, {}, local_aws.client, lambda line: None)


def test_a_build_whose_time_is_up_is_timed_out(local_aws: LocalAws, s3: Any, tmp_path: Path) -> None:
    """CodeBuild's shortest timeout is five minutes, so this goes past its API."""
    members = {
        "id": "p:1",
        "arn": "arn:aws:codebuild:us-east-1:123456789012:build/p:1",
        "buildNumber": 1,
        "initiator": "test",
        "environment": {"type": "LINUX_CONTAINER", "image": "i", "computeType": "BUILD_GENERAL1_SMALL"},
        "source": {"type": "NO_SOURCE", "buildspec": buildspec(OUT, build=["mkdir out; touch out/x; sleep 4242.2"])},
    }
    request = BuildRequest(
        members=members,
        artifacts={"type": "S3", "location": BUCKET, "path": "late", "name": "out"},
        machine=Machine(),
        seconds=0.5,
        variables={},
        log_group="late",
        log_stream="1",
    )
    record = BuildRecord(members)
    Build(request, record, a_place(local_aws, tmp_path), tmp_path / "work").run()
    build = record.describe()
    assert build["buildStatus"] == "TIMED_OUT"
    assert phases(build)["BUILD"] == "TIMED_OUT"
    assert [each["contexts"] for each in build["phases"] if each.get("phaseStatus") == "TIMED_OUT"] == [
        [{"statusCode": "BUILD_TIMED_OUT", "message": "Build has timed out. "}]
    ]
    assert "UPLOAD_ARTIFACTS" not in phases(build)
    assert uploaded(s3, "late/") == {}
    assert children("sleep 4242.2") == []
    assert not (tmp_path / "work").exists()


def test_builds_end_with_the_local_aws(tmp_path: Path) -> None:
    """Also what a build has started in the background is gone when the local AWS has stopped."""
    code = f"""
import json, pathlib, sys, time
from unittest.mock import Mock
from cdk_triton.local.aws import LocalAws
import psutil
with LocalAws(pathlib.Path({str(tmp_path)!r}), host_factory=lambda aws: Mock()) as aws:
    builds = aws.client("codebuild")
    spec = json.dumps({{"version": "0.2", "phases": {{"build": {{"commands": ["sleep 4242.3 & sleep 4242.3"]}}}}}})
    builds.create_project(name="pp", serviceRole={ROLE!r}, source={{"type": "NO_SOURCE", "buildspec": spec}},
        artifacts={{"type": "NO_ARTIFACTS"}},
        environment={{"type": "LINUX_CONTAINER", "image": "i", "computeType": "BUILD_GENERAL1_SMALL"}})
    builds.start_build(projectName="pp")
    while sum("sleep" in each.name() for each in psutil.Process().children(recursive=True)) < 2:
        time.sleep(0.02)
print(psutil.Process().children(recursive=True))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
    assert children("sleep 4242.3") == []


# ------------------------------------------------------------------------------------------------- the API


def test_a_token_starts_one_build(codebuild: Any, project: Callable[..., str]) -> None:
    name = project(buildspec(build=["true"]))
    first = codebuild.start_build(projectName=name, idempotencyToken="t")["build"]
    finished(codebuild, first["id"])
    assert codebuild.start_build(projectName=name, idempotencyToken="t")["build"]["id"] == first["id"]
    assert codebuild.start_build(projectName=name, idempotencyToken="u")["build"]["id"] != first["id"]
    with pytest.raises(ClientError, match=r"\(InvalidInputException\).*Parameter mismatch"):
        codebuild.start_build(projectName=name, idempotencyToken="t", imageOverride="other")
    assert len(codebuild.list_builds_for_project(projectName=name)["ids"]) == 2


def test_a_token_holds_for_five_minutes(local_aws: LocalAws, tmp_path: Path) -> None:
    now = [0.0]
    service = CodeBuild(a_place(local_aws, tmp_path), clock=lambda: now[0])

    def ask(operation: str, **members: Any) -> Any:
        reply = service.api.answer(operation, json.dumps(members).encode())
        return json.loads(reply.body)

    ask(
        "CreateProject",
        name="pp",
        serviceRole=ROLE,
        source={"type": "NO_SOURCE", "buildspec": buildspec(build=["true"])},
        artifacts={"type": "NO_ARTIFACTS"},
        environment={"type": "LINUX_CONTAINER", "image": "i", "computeType": "BUILD_GENERAL1_SMALL"},
    )
    found = []
    for moment in (0, 299, 301):
        now[0] = moment
        found.append(ask("StartBuild", projectName="pp", idempotencyToken="t")["build"]["id"])
    service.close()
    assert found[0] == found[1] != found[2]


@pytest.fixture
def refused(codebuild: Any) -> Callable[..., str]:
    def call(operation: str, **members: Any) -> str:
        with pytest.raises(ClientError) as caught:
            getattr(codebuild, operation)(**members)
        details = caught.value.response["Error"]
        return f"{details['Code']}: {details['Message']}"

    return call


def test_errors_have_the_services_codes(refused: Callable[..., str], project: Callable[..., str]) -> None:
    name = project(buildspec(build=["true"]))
    there_is_none = "Project cannot be found: arn:aws:codebuild:us-east-1:123456789012:project/none"
    assert refused("start_build", projectName="none") == f"ResourceNotFoundException: {there_is_none}"
    assert refused("stop_build", id="p:none") == "ResourceNotFoundException: Build p:none cannot be found"
    assert refused("start_build", projectName=name, timeoutInMinutesOverride=2161).startswith(
        "InvalidInputException: 1 validation error detected: Value '2161' at 'timeoutInMinutesOverride' failed to "
        "satisfy constraint: Member must have value less than or equal to 2160"
    )
    assert "Member must satisfy enum value set" in refused("start_build", projectName=name, sourceTypeOverride="FLOPPY")
    assert refused("start_build", projectName=name, hostKernelOverride="LINUX_KERNEL_6") == (
        "InvalidInputException: hostKernelOverride of StartBuild is not modelled by the local AWS"
    )
    assert "is an archive" in refused(
        "start_build", projectName=name, sourceTypeOverride="S3", sourceLocationOverride="bucket/key.zip"
    )
    assert "environment LINUX_GPU_CONTAINER BUILD_GENERAL1_LARGE is not modelled" in refused(
        "start_build",
        projectName=name,
        environmentTypeOverride="LINUX_GPU_CONTAINER",
        computeTypeOverride="BUILD_GENERAL1_LARGE",
    )
    assert re.match(r"InvalidInputException: codebuild's ListReports is not modelled", refused("list_reports"))


def test_what_is_unknown_is_told_apart(codebuild: Any, project: Callable[..., str]) -> None:
    name = project(buildspec(build=["true"]))
    build = run(codebuild, name)
    answer = codebuild.batch_get_builds(ids=[build["arn"], "p:none"])
    assert [each["id"] for each in answer["builds"]] == [build["id"]]
    assert answer["buildsNotFound"] == ["p:none"]
    projects = codebuild.batch_get_projects(names=[name, "none"])
    assert projects["projects"][0]["source"]["buildspec"] == buildspec(build=["true"])
    assert projects["projectsNotFound"] == ["none"]
    assert name in codebuild.list_projects()["projects"]


# ------------------------------------------------------------------------------------------------- CloudFormation


def test_a_stack_makes_changes_and_deletes_a_project(deployer: Any, codebuild: Any) -> None:
    properties: dict[str, Any] = {
        "Artifacts": {"Type": "NO_ARTIFACTS"},
        "Description": "first",
        "Environment": {
            "ComputeType": "BUILD_GENERAL1_SMALL",
            "Image": "triton:25.09",
            "ImagePullCredentialsType": "SERVICE_ROLE",
            "PrivilegedMode": False,
            "Type": "LINUX_GPU_CONTAINER",
        },
        "LogsConfig": {"CloudWatchLogs": {"GroupName": "g", "Status": "ENABLED"}},
        "ServiceRole": ROLE,
        "Source": {"BuildSpec": buildspec(build=["true"]), "Type": "NO_SOURCE"},
        "TimeoutInMinutes": "65",
    }
    outputs = {"Name": {"Value": {"Ref": "P"}}, "Arn": {"Value": {"Fn::GetAtt": ["P", "Arn"]}}}

    def template(**changes: Any) -> dict[str, Any]:
        kept = {name: value for name, value in {**properties, **changes}.items() if value is not None}
        return {"Resources": {"P": {"Type": "AWS::CodeBuild::Project", "Properties": kept}}, "Outputs": outputs}

    name = deployer.new_name()
    assert deployer.deploy(template(), name) == "CREATE_COMPLETE", deployer.raw_events(name)
    told = {each["OutputKey"]: each["OutputValue"] for each in deployer.describe(name)["Outputs"]}
    (project,) = codebuild.batch_get_projects(names=[told["Name"]])["projects"]
    assert project["arn"] == told["Arn"]
    assert project["timeoutInMinutes"] == 65
    assert project["logsConfig"]["cloudWatchLogs"]["groupName"] == "g"
    assert deployer.deploy(template(Description=None, TimeoutInMinutes=10), name) == "UPDATE_COMPLETE"
    (project,) = codebuild.batch_get_projects(names=[told["Name"]])["projects"]
    assert (project["description"], project["timeoutInMinutes"]) == ("", 10)
    deployer.delete(name)
    assert codebuild.batch_get_projects(names=[told["Name"]])["projects"] == []


def test_a_property_that_is_not_modelled_fails_loudly(deployer: Any) -> None:
    properties = {"ConcurrentBuildLimit": 1}
    template = {"Resources": {"P": {"Type": "AWS::CodeBuild::Project", "Properties": properties}}}
    with pytest.raises(ClientError):
        deployer.deploy(template, deployer.new_name())


# ------------------------------------------------------------------------------------------------- stand-ins


def test_a_build_on_a_gpu_gets_the_stand_ins_of_the_image_that_it_names(
    local_aws: LocalAws, codebuild: Any, project: Callable[..., str]
) -> None:
    dali = "python3 -c 'import nvidia.dali; print(nvidia.dali.__version__)'"
    name = project(
        buildspec(build=["nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader", "trtexec --help", dali]),
        environment={"type": "LINUX_GPU_CONTAINER", "image": "i", "computeType": "BUILD_GENERAL1_SMALL"},
    )
    build = run(codebuild, name, imageOverride="1.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3")
    text = log(local_aws, build)
    assert build["buildStatus"] == "SUCCEEDED", text
    assert "it is told that there is NVIDIA A10G (compute capability 8.6), TensorRT 10.13.3.9 and DALI 1.51.2" in text
    assert "NVIDIA A10G, 8.6" in text
    assert "cdk-triton stand-in for nvidia-smi" in text
    assert "TensorRT.trtexec [TensorRT v101303]" in text
    assert "\n1.51.2" in text
