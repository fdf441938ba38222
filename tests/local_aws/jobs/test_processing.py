"""SageMaker Processing of the local AWS through the real client: jobs really run, and end as SageMaker's do."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local_aws.conftest import Rejected

    from golden_messages import Messages

BUCKET = "jobs"
IN, OUT = "/opt/ml/processing/input", "/opt/ml/processing/output"


@pytest.fixture(scope="module")
def s3(local_aws: LocalAws) -> Any:
    client = local_aws.client("s3")
    client.create_bucket(Bucket=BUCKET)
    client.put_object(Bucket=BUCKET, Key="in/plan.json", Body=b"plan")
    client.put_object(Bucket=BUCKET, Key="in/deep/a", Body=b"a")
    return client


@pytest.fixture(scope="module")
def sagemaker(local_aws: LocalAws, s3: Any) -> Any:
    return local_aws.client("sagemaker")


def request(script: str, *, mode: str = "EndOfJob", seconds: int = 600, **more: Any) -> dict[str, Any]:
    name = f"job-{uuid.uuid4().hex[:12]}"
    output = {"S3Uri": f"s3://{BUCKET}/{name}/out", "LocalPath": OUT, "S3UploadMode": mode}
    return {
        "ProcessingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/jobs",
        "AppSpecification": {"ImageUri": "triton:25.09", "ContainerEntrypoint": ["bash", "-c", script]},
        "ProcessingResources": {
            "ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.xlarge", "VolumeSizeInGB": 30}
        },
        "ProcessingInputs": [
            {
                "InputName": "in",
                "S3Input": {
                    "S3Uri": f"s3://{BUCKET}/in/",
                    "LocalPath": IN,
                    "S3DataType": "S3Prefix",
                    "S3InputMode": "File",
                    "S3DataDistributionType": "FullyReplicated",
                },
            }
        ],
        "ProcessingOutputConfig": {"Outputs": [{"OutputName": "out", "S3Output": output}]},
        "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
        **more,
    }


def ended(sagemaker: Any, name: str) -> dict[str, Any]:
    while True:
        job: dict[str, Any] = sagemaker.describe_processing_job(ProcessingJobName=name)
        if job["ProcessingJobStatus"] not in ("InProgress", "Stopping"):
            return job
        threading.Event().wait(0.02)


def run(sagemaker: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    sagemaker.create_processing_job(**wanted)
    return ended(sagemaker, wanted["ProcessingJobName"])


def uploaded(s3: Any, job: str) -> dict[str, str]:
    prefix = f"{job}/out/"
    return {
        each["Key"].removeprefix(prefix): s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read().decode()
        for each in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    }


def log(local_aws: LocalAws, job: str) -> str:
    logs, group = local_aws.client("logs"), "/aws/sagemaker/ProcessingJobs"
    (stream,) = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{job}/")["logStreams"]
    events = logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True)
    return "\n".join(each["message"] for each in events["events"])


def commands(marker: str) -> list[psutil.Process]:
    def found(process: psutil.Process) -> bool:
        try:
            return marker in " ".join(process.cmdline())
        except psutil.Error:
            return False

    return [each for each in psutil.process_iter() if found(each)]


# ------------------------------------------------------------------------------------------------- a job


def test_a_job_reads_its_inputs_and_writes_its_outputs(
    messages: Messages, local_aws: LocalAws, s3: Any, sagemaker: Any
) -> None:
    script = f'mkdir {OUT}/deep; cat {IN}/plan.json {IN}/deep/a > {OUT}/deep/both; echo "has $OWN"'
    wanted = request(script, Environment={"OWN": f"value and {IN}"})
    job = run(sagemaker, wanted)
    name = wanted["ProcessingJobName"]
    assert job["ProcessingJobStatus"] == "Completed", log(local_aws, name)
    assert uploaded(s3, name) == {"deep/both": "plana"}
    assert "FailureReason" not in job
    assert job["AppSpecification"] == wanted["AppSpecification"]
    assert job["CreationTime"] <= job["ProcessingStartTime"] <= job["ProcessingEndTime"]
    text = log(local_aws, name)
    messages.record("processing job", text.partition("\n")[0])
    assert f"processing/{name}/opt/ml/processing/input" in text.rpartition("has value and ")[2]


def test_an_answer_has_the_shape_that_the_service_model_says(sagemaker: Any) -> None:
    job = run(sagemaker, request("echo why > /opt/ml/output/message; exit 1"))
    shape = sagemaker.meta.service_model.operation_model("DescribeProcessingJob").output_shape
    job.pop("ResponseMetadata")
    report = ParamValidator().validate(job, shape)
    assert not report.has_errors(), report.generate_report()


def test_a_job_that_fails_says_why(local_aws: LocalAws, s3: Any, sagemaker: Any) -> None:
    wanted = request(f"echo x > {OUT}/x; echo 'the plan is wrong' > /opt/ml/output/message; echo told; exit 2")
    job = run(sagemaker, wanted)
    assert job["ProcessingJobStatus"] == "Failed"
    assert job["FailureReason"] == "AlgorithmError: See job logs for more information"
    assert job["ExitMessage"] == "the plan is wrong\n"
    assert "told" in log(local_aws, wanted["ProcessingJobName"])
    assert uploaded(s3, wanted["ProcessingJobName"]) == {}


def test_continuous_outputs_are_uploaded_while_the_job_runs_and_after_it_has_failed(s3: Any, sagemaker: Any) -> None:
    wanted = request(
        f"echo early > {OUT}/early; until [ -e {OUT}/go ]; do sleep 0.02; done; echo late > {OUT}/late; exit 1"
    )
    wanted["ProcessingOutputConfig"]["Outputs"][0]["S3Output"]["S3UploadMode"] = "Continuous"
    name = wanted["ProcessingJobName"]
    sagemaker.create_processing_job(**wanted)
    while "early" not in uploaded(s3, name):
        assert sagemaker.describe_processing_job(ProcessingJobName=name)["ProcessingJobStatus"] == "InProgress"
        threading.Event().wait(0.05)
    (command,) = commands(f"{name}/opt/ml/processing/output/early")[-1:]
    (job_directory,) = {part.partition("echo early > ")[2].partition("/early")[0] for part in command.cmdline()[2:3]}
    with open(f"{job_directory}/go", "w", encoding="utf-8"):  # noqa: PTH123
        pass
    assert ended(sagemaker, name)["ProcessingJobStatus"] == "Failed"
    assert uploaded(s3, name) == {"early": "early\n", "go": "", "late": "late\n"}


def test_a_job_whose_time_is_up_is_stopped(sagemaker: Any) -> None:
    job = run(sagemaker, request("sleep 4343.1 & sleep 4343.1", seconds=1))
    assert job["ProcessingJobStatus"] == "Stopped"
    assert commands("sleep 4343.1") == []


def test_a_job_can_be_stopped(sagemaker: Any) -> None:
    wanted = request("sleep 4343.2 & sleep 4343.2")
    name = wanted["ProcessingJobName"]
    sagemaker.create_processing_job(**wanted)
    while len(commands("sleep 4343.2")) < 3:
        threading.Event().wait(0.02)
    sagemaker.stop_processing_job(ProcessingJobName=name)
    assert ended(sagemaker, name)["ProcessingJobStatus"] == "Stopped"
    assert commands("sleep 4343.2") == []
    with pytest.raises(ClientError, match="is in status Stopped"):
        sagemaker.stop_processing_job(ProcessingJobName=name)


def test_an_input_that_is_not_there_fails_the_job(messages: Messages, sagemaker: Any) -> None:
    wanted = request("true")
    wanted["ProcessingInputs"][0]["S3Input"]["S3Uri"] = f"s3://{BUCKET}/nowhere/"
    job = run(sagemaker, wanted)
    assert job["FailureReason"].startswith("ClientError: ")
    messages.record("processing job", job["FailureReason"])


def test_an_entrypoint_that_is_not_there_fails_the_job(messages: Messages, sagemaker: Any) -> None:
    wanted = request("true")
    wanted["AppSpecification"]["ContainerEntrypoint"] = ["no-such-program"]
    job = run(sagemaker, wanted)
    assert job["FailureReason"].startswith("AlgorithmError: 'no-such-program' ")
    messages.record("processing job", job["FailureReason"])


# ------------------------------------------------------------------------------------------------- the API


def test_a_name_is_taken_for_ever(sagemaker: Any) -> None:
    wanted = request("true")
    run(sagemaker, wanted)
    with pytest.raises(ClientError, match=r"\(ResourceInUse\).*a job with this name already exists"):
        sagemaker.create_processing_job(**wanted)


def test_a_job_that_there_is_not(sagemaker: Any) -> None:
    with pytest.raises(ClientError, match=r"\(ValidationException\).*Could not find requested job with name: none"):
        sagemaker.describe_processing_job(ProcessingJobName="none")


def test_jobs_are_listed_newest_first(sagemaker: Any) -> None:
    names = [run(sagemaker, request("true"))["ProcessingJobName"] for _ in range(2)]
    first = sagemaker.list_processing_jobs(NameContains="job-", StatusEquals="Completed", MaxResults=1)
    second = sagemaker.list_processing_jobs(NameContains="job-", NextToken=first["NextToken"], MaxResults=1)
    found = [page["ProcessingJobSummaries"][0]["ProcessingJobName"] for page in (first, second)]
    assert found == names[::-1]


def change(*path: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def apply(wanted: dict[str, Any]) -> None:
        place: Any = wanted
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return apply


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            change("ProcessingResources", "ClusterConfig", "InstanceType", to="ml.g5.9xlarge"),
            "Value 'ml.g5.9xlarge' at 'ProcessingResources.ClusterConfig.InstanceType' failed to satisfy constraint",
        ),
        (change("ProcessingJobName", to="under_score"), "Member must satisfy regular expression pattern"),
        (change("StoppingCondition", "MaxRuntimeInSeconds", to=777_601), "less than or equal to 777600"),
    ],
    ids=["enumeration", "pattern", "range"],
)
def test_a_request_is_checked_by_the_service_model(
    sagemaker: Any, edit: Callable[[dict[str, Any]], None], reason: str
) -> None:
    wanted = request("true")
    edit(wanted)
    with pytest.raises(ClientError) as caught:
        sagemaker.create_processing_job(**wanted)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert reason in caught.value.response["Error"]["Message"]


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(change("ProcessingResources", "ClusterConfig", "InstanceCount", to=2), id="two instances"),
        pytest.param(change("AppSpecification", to={"ImageUri": "i"}), id="no entrypoint"),
        pytest.param(change("ProcessingInputs", 0, "S3Input", "S3InputMode", to="Pipe"), id="pipe"),
        pytest.param(change("ProcessingInputs", 0, "S3Input", "LocalPath", to="/tmp/in"), id="path elsewhere"),
        pytest.param(change("ProcessingInputs", 0, "S3Input", "LocalPath", to=OUT), id="path twice"),
    ],
)
def test_a_request_that_is_not_modelled_is_rejected(
    sagemaker: Any, rejected: Rejected, edit: Callable[[dict[str, Any]], None]
) -> None:
    wanted = request("true")
    edit(wanted)
    with rejected("ValidationException"):
        sagemaker.create_processing_job(**wanted)


def test_a_job_gets_the_gpu_of_its_instance_type(local_aws: LocalAws, sagemaker: Any) -> None:
    wanted = request("nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader")
    wanted["ProcessingResources"]["ClusterConfig"]["InstanceType"] = "ml.g6.xlarge"
    job = run(sagemaker, wanted)
    text = log(local_aws, wanted["ProcessingJobName"])
    assert job["ProcessingJobStatus"] == "Completed", text
    assert "NVIDIA L4, 8.9" in text
