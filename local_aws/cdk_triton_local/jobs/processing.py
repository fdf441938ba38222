"""SageMaker Processing of the local AWS: jobs that really run.

Its source is CreateProcessingJob in SageMaker's API reference, with the pages that it refers to. botocore's model
of it is the source for what a request may hold. The words of errors are those of answers that others have seen.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Mapping
from typing import Any

from botocore import xform_name

from cdk_triton_local.jobs.context import LocalContext
from cdk_triton_local.jobs.processing_job import ROOT, JobRecord, ProcessingJob
from cdk_triton_local.wire import JsonApi, JsonApiError

__all__ = ["OPERATIONS", "Processing"]

OPERATIONS = ("CreateProcessingJob", "DescribeProcessingJob", "ListProcessingJobs", "StopProcessingJob")
"""The operations of Processing; those of endpoints are answered elsewhere, SageMaker's others by moto."""

LOG_GROUP = "/aws/sagemaker/ProcessingJobs"
_DAY = 86_400
_PAGE = 10
"""Names of one list unless the request sets another number (ListProcessingJobs, `MaxResults`)."""


class Processing:
    """Answers the API of Processing and runs jobs.

    Args:
        context: the local AWS.
    """

    def __init__(self, context: LocalContext) -> None:
        self._context = context
        self._records: dict[str, JobRecord] = {}
        self._running: dict[str, tuple[ProcessingJob, threading.Thread]] = {}
        self._closed = False
        self._lock = threading.RLock()
        answers = {name: getattr(self, f"_{xform_name(name)}") for name in OPERATIONS}
        self.api = JsonApi("sagemaker", answers, "ValidationException")

    def close(self) -> None:
        """End every job, and accept no new one."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for job, _ in running:
            job.stop()
        for _, thread in running:
            thread.join()

    def _create_processing_job(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["ProcessingJobName"]
        arn = self._context.arn("sagemaker", f"processing-job/{name}")
        with self._lock:
            if name in self._records:
                raise JsonApiError(
                    "Job name must be unique within an AWS account and region, and a job with this name already exists "
                    f"({arn})",
                    "ResourceInUse",
                )
            if self._closed:
                raise JsonApiError("the local AWS is being stopped")
            _check(request)
            stopping = {"MaxRuntimeInSeconds": _DAY, **request.get("StoppingCondition", {})}
            wanted = {**request, "StoppingCondition": stopping}
            record = JobRecord({**_description(wanted), "ProcessingJobArn": arn}, self._context.now)
            context = self._context.with_role(request["RoleArn"])
            job = ProcessingJob(wanted, record, context, LOG_GROUP, f"{name}/algo-1-{int(time.time())}")
            self._records[name] = record

            def run() -> None:
                job.run()
                with self._lock:
                    self._running.pop(name, None)

            thread = threading.Thread(target=run, name=f"processing-{name}", daemon=True)
            self._running[name] = (job, thread)
            thread.start()
        return {"ProcessingJobArn": arn}

    def _describe_processing_job(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._record(request["ProcessingJobName"]).describe()

    def _stop_processing_job(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["ProcessingJobName"]
        record = self._record(name)
        with self._lock:
            running = self._running.get(name)
        if running is None or not record.begin_to_stop():
            status = record.describe()["ProcessingJobStatus"]
            raise JsonApiError(f"The request was rejected because the processing job is in status {status}.")
        running[0].stop()
        return {}

    def _list_processing_jobs(self, request: dict[str, Any]) -> dict[str, Any]:
        if foreign := sorted(set(request) - {"MaxResults", "NameContains", "NextToken", "StatusEquals"}):
            raise JsonApiError(f"{foreign[0]} of ListProcessingJobs is not modelled by the local AWS")
        with self._lock:
            jobs = [record.describe() for record in reversed(self._records.values())]
        found = [
            job
            for job in jobs
            if request.get("NameContains", "") in job["ProcessingJobName"]
            and request.get("StatusEquals") in (None, job["ProcessingJobStatus"])
        ]
        first, size = int(request.get("NextToken", 0)), request.get("MaxResults", _PAGE)
        more = {"NextToken": str(first + size)} if len(found) > first + size else {}
        return {"ProcessingJobSummaries": found[first : first + size], **more}

    def _record(self, name: str) -> JobRecord:
        record = self._records.get(name)
        if record is None:
            # The API reference promises ResourceNotFound; the service answers this.
            raise JsonApiError(f"Could not find requested job with name: {name}")
        return record


def _description(request: Mapping[str, Any]) -> dict[str, Any]:
    """DescribeProcessingJob does not return tags."""
    described = copy.deepcopy({name: value for name, value in request.items() if name != "Tags"})
    return {**described, "ProcessingJobStatus": "InProgress"}


def _check(request: Mapping[str, Any]) -> None:
    """Reject what the service rejects in addition to its model, and what is not modelled here."""
    if "ExperimentConfig" in request:
        raise JsonApiError("ExperimentConfig of a processing job is not modelled by the local AWS")
    cluster = request["ProcessingResources"]["ClusterConfig"]
    if cluster.get("InstanceCount") != 1 or "InstanceType" not in cluster:
        raise JsonApiError("a processing job of the local AWS needs InstanceCount 1 and an InstanceType")
    if "ContainerEntrypoint" not in request["AppSpecification"]:
        raise JsonApiError(
            "a processing job of the local AWS needs a ContainerEntrypoint, because the local AWS does not run images"
        )
    inputs = [_s3(each, "S3Input") for each in request.get("ProcessingInputs", [])]
    outputs = [_s3(each, "S3Output") for each in request.get("ProcessingOutputConfig", {}).get("Outputs", [])]
    for each in inputs:
        modelled = {
            "S3CompressionType": "None",
            "S3DataDistributionType": "FullyReplicated",
            "S3DataType": "S3Prefix",
            "S3InputMode": "File",
        }
        for name, value in modelled.items():
            if each.get(name, value) != value:
                raise JsonApiError(f"{name} {each[name]} is not modelled by the local AWS, which models {value}")
    paths = [each.get("LocalPath", "") for each in (*inputs, *outputs)]
    for path in paths:
        if not f"{path}/".startswith(f"{ROOT}/processing/") or ".." in path.split("/"):
            raise JsonApiError(f"LocalPath {path!r} must be below {ROOT}/processing")
    if len({path.rstrip("/") for path in paths}) != len(paths):
        raise JsonApiError(
            "two inputs or outputs of the processing job have the same LocalPath; give each its own LocalPath"
        )


def _s3(member: Mapping[str, Any], name: str) -> dict[str, Any]:
    if name not in member or member.get("AppManaged"):
        raise JsonApiError(f"a processing job's inputs and outputs have to be in S3 ({name}), not managed by the job")
    found: dict[str, Any] = member[name]
    if not found["S3Uri"].startswith("s3://"):
        raise JsonApiError(f"S3Uri {found['S3Uri']!r} is not modelled by the local AWS, which models s3://")
    return found
