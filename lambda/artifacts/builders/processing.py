"""Builds on SageMaker: one Processing job per build, named after it, on the endpoint's own kind of machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from protocol import layout

from ..failure import ArtifactError, QuotaUsedUpError, error_code
from .builder import NO_CAPACITY, Job, Progress, address_of_log
from .cloudwatch import last_lines

__all__ = ["ProcessingBuilder"]

LOG_GROUP = "/aws/sagemaker/ProcessingJobs"
"""The log group of all Processing jobs, with streams `<job name>/…` (SageMaker developer guide, "CloudWatch Logs")."""

_USED_UP = re.compile(r"current utilization of [1-9]")
"""In the message of `ResourceLimitExceeded` (API reference, `CreateProcessingJob`): "The account-level service limit
'ml.g5.2xlarge for processing job usage' is 1 Instances, with current utilization of 1 Instances and a request delta of
1 Instances". If nothing is in use, the request alone is above the limit, and waiting does not help."""

_ROLE_OR_NETWORK = (
    "SageMaker also answers so if the job's role, subnets or security groups do not let it use the VPC; CloudTrail "
    "shows the calls that were denied"
)
"""For a job in a VPC that ended before its instance had started (aws/sagemaker-python-sdk#3026)."""

INPUT, OUTPUT = "/opt/ml/processing/input", "/opt/ml/processing/output"
DEFAULT_VOLUME_GB = 100


class ProcessingBuilder:
    """SageMaker Processing as a builder.

    Args:
        client: a boto3 client of SageMaker.
        logs: a boto3 client of CloudWatch Logs.
        s3: a boto3 client of S3.
        bucket: the store's bucket, whose tags the jobs get.
        role: the ARN of the jobs' role.
        subnets: their subnets; none for SageMaker's own network.
        security_groups: their security groups.
        kms_key: the key that encrypts their output; None for the bucket's own default.
        volume_key_families: the families of instance types whose volumes get this key too, such as `ml.p3`. Instances
            with local storage encrypt it by hardware and reject a key (API reference, `ProcessingClusterConfig`).
    """

    def __init__(
        self,
        client: Any,
        logs: Any,
        s3: Any,
        bucket: str,
        *,
        role: str,
        subnets: Sequence[str],
        security_groups: Sequence[str],
        kms_key: str | None,
        volume_key_families: Sequence[str],
    ) -> None:
        self._client = client
        self._logs = logs
        self._s3 = s3
        self._bucket = bucket
        self._role = role
        self._network = {"Subnets": list(subnets), "SecurityGroupIds": list(security_groups)} if subnets else None
        self._kms_key = kms_key
        self._volume_key_families = volume_key_families

    def start(self, job: Job) -> str:
        """See `JobService`. Job names are unique. If SageMaker rejects a repeated request, the first job counts."""
        try:
            self._client.create_processing_job(**self._request(job))
        except ClientError as error:
            if error_code(error) == "ResourceLimitExceeded":
                reason = (
                    f"SageMaker does not start a Processing job: {error}. The SageMaker quota is '{job.instance_type} "
                    "for processing job usage' (endpoints have another quota); request an increase in Service Quotas, "
                    "and deploy again"
                )
                raise (QuotaUsedUpError if _USED_UP.search(str(error)) else ArtifactError)(reason) from error
            if error_code(error) != "ResourceInUse":
                raise
        return job.build

    def find(self, build: str, since: float) -> str | None:
        """See `JobService`."""
        return build if build in self.describe([build]) else None

    def describe(self, jobs: Sequence[str]) -> dict[str, Progress]:
        """See `JobService`."""
        found = {job: self._describe(job) for job in jobs}
        return {job: progress for job, progress in found.items() if progress is not None}

    def log_tail(self, progress: Progress) -> list[str]:
        """See `JobService`. The stream's name ends in the name of an instance."""
        try:
            found = self._logs.describe_log_streams(
                logGroupName=LOG_GROUP, logStreamNamePrefix=f"{progress.job}/", limit=1
            )
        except (ClientError, BotoCoreError):
            return []
        streams = [stream["logStreamName"] for stream in found.get("logStreams", [])]
        return [line for stream in streams for line in last_lines(self._logs, LOG_GROUP, stream)]

    def _request(self, job: Job) -> dict[str, Any]:
        folder = f"s3://{self._bucket}/{layout.build_prefix(job.build)}"
        output: dict[str, Any] = {
            "Outputs": [
                {
                    "OutputName": "out",
                    "S3Output": {"S3Uri": f"{folder}out", "LocalPath": OUTPUT, "S3UploadMode": "Continuous"},
                }
            ]
        }
        if self._kms_key is not None:
            output["KmsKeyId"] = self._kms_key
        request = {
            "ProcessingJobName": job.build,
            "RoleArn": self._role,
            "AppSpecification": {
                "ImageUri": job.image,
                "ContainerEntrypoint": ["python3", f"{INPUT}/program.pyz", INPUT, OUTPUT],
            },
            "ProcessingInputs": [
                {
                    "InputName": "in",
                    "S3Input": {
                        "S3Uri": f"{folder}in",
                        "LocalPath": INPUT,
                        "S3DataType": "S3Prefix",
                        "S3InputMode": "File",
                        "S3DataDistributionType": "FullyReplicated",
                    },
                }
            ],
            "ProcessingOutputConfig": output,
            "ProcessingResources": {"ClusterConfig": self._machine(job)},
            "StoppingCondition": {"MaxRuntimeInSeconds": job.timeout_minutes * 60},
        }
        if tags := self._tags():
            request["Tags"] = tags
        return request if self._network is None else request | {"NetworkConfig": {"VpcConfig": self._network}}

    def _machine(self, job: Job) -> dict[str, Any]:
        machine: dict[str, Any] = {
            "InstanceCount": 1,
            "InstanceType": job.instance_type,
            "VolumeSizeInGB": DEFAULT_VOLUME_GB if job.volume_gb is None else job.volume_gb,
        }
        if str(job.instance_type).rpartition(".")[0] in self._volume_key_families:
            machine["VolumeKmsKeyId"] = self._kms_key
        return machine

    def _tags(self) -> list[dict[str, str]]:
        """The bucket's tags, which CloudFormation keeps equal to the stack's, without the reserved ones of AWS."""
        try:
            found = self._s3.get_bucket_tagging(Bucket=self._bucket)["TagSet"]
        except ClientError as error:
            if error_code(error) == "NoSuchTagSet":
                return []
            raise
        return [tag for tag in found if not tag["Key"].startswith("aws:")]

    def _describe(self, job: str) -> Progress | None:
        try:
            found = self._client.describe_processing_job(ProcessingJobName=job)
        except ClientError as error:
            # The model names ResourceNotFound; the service answers ValidationException, "Could not find requested job".
            if error_code(error) == "ResourceNotFound" or "Could not find" in str(error):
                return None
            raise
        # InProgress and Stopping run on; Completed, Failed and Stopped are ends (API reference, ProcessingJobStatus).
        status, ended = found["ProcessingJobStatus"], found.get("ProcessingEndTime")
        message = "; ".join(found[name] for name in ("FailureReason", "ExitMessage") if found.get(name))
        detail = f"{message} ({NO_CAPACITY})" if message.startswith("CapacityError") else message
        again = message.startswith(("InternalServerError", "CapacityError"))
        if message.startswith("InternalServerError") and self._network and not found.get("ProcessingStartTime"):
            again, detail = False, f"{message} ({_ROLE_OR_NETWORK})"
        return Progress(
            job=job,
            status=status,
            over=status not in {"InProgress", "Stopping"},
            at=None if ended is None else ended.timestamp(),
            message=detail,
            link=address_of_log(self._client, _console(self._client.meta.region_name, job), f"processing-{job}"),
            log=None,
            again=again,
        )


def _console(region: str, job: str) -> str:
    domain = "console.amazonaws.cn" if region.startswith("cn-") else "console.aws.amazon.com"
    group = LOG_GROUP.replace("/", "$252F")
    return (
        f"https://{region}.{domain}/cloudwatch/home?region={region}#logsV2:log-groups/log-group/{group}"
        f"$3FlogStreamNameFilter$3D{job}"
    )
