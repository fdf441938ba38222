"""SageMaker Processing in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_aws.client import refusal
from memory_aws.clock import Clock
from memory_aws.jobs import Program

__all__ = ["Processing"]

STATUS = {"SUCCEEDED": "Completed", "FAILED": "Failed", "FAULT": "Failed", "STOPPED": "Stopped", "TIMED_OUT": "Stopped"}


@dataclass
class _Job:
    request: dict[str, Any]
    started: float
    status: str = "InProgress"
    ended: float | None = None
    message: str = ""
    began: bool = True


class Processing:
    """A job runs until a test ends it or its time is up.

    Attributes:
        room: how many jobs may run.
        asked: the jobs whose status was asked for.
        refusals: what the next calls of CreateProcessingJob are refused with.
        after_start: what comes instead of the answer of the next jobs that are created.
        stuck: whether jobs run on when their time is up.
    """

    def __init__(self, clock: Clock, program: Program) -> None:
        self._clock = clock
        self._program = program
        self._jobs: dict[str, _Job] = {}
        self.room = 10
        self.refusals: list[Exception] = []
        self.after_start: list[Exception] = []
        self.stuck = False
        self.asked: list[str] = []

    # -- what a test does

    def live(self) -> dict[str, str]:
        """Id of each running job to its build."""
        self._expire()
        return {name: name for name, job in self._jobs.items() if job.ended is None}

    def end(self, job: str, status: str, message: str = "", *, began: bool = True) -> None:
        """End a job, with CodeBuild's word for it; it may never have begun on its instance."""
        found = self._jobs[job]
        found.began = began
        found.status, found.ended = STATUS[status], self._clock.now
        found.message = "InternalServerError: We encountered an internal error." if status == "FAULT" else message

    def decide(self, job: str, status: str) -> None:
        """Give a job a status, with which it runs on."""
        self._jobs[job].status = status

    def vanish(self, job: str) -> None:
        """Forget a job."""
        del self._jobs[job]

    def knows(self, job: str) -> bool:
        """Whether there is or was such a job."""
        return job in self._jobs

    def age(self, job: str) -> float:
        """Seconds since a job was started."""
        return self._clock.now - self._jobs[job].started

    def requests(self) -> list[dict[str, Any]]:
        """What each job was asked for with."""
        return [found.request for found in self._jobs.values()]

    # -- what the handlers call

    def create_processing_job(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """Names are unique."""
        self._expire()
        name = p["ProcessingJobName"]
        if self.refusals:
            raise self.refusals.pop(0)
        if name in self._jobs:
            raise refusal("ResourceInUse", "Job name must be unique within an AWS account and region")
        if len(self.live()) >= self.room:
            kind = p["ProcessingResources"]["ClusterConfig"]["InstanceType"]
            raise refusal(
                "ResourceLimitExceeded",
                f"The account-level service limit '{kind} for processing job usage' is {self.room} Instances, with "
                f"current utilization of {len(self.live())} Instances and a request delta of 1 Instances",
            )
        self._jobs[name] = _Job(dict(p), self._clock.now)
        self._program.begin(name)
        if self.after_start:
            raise self.after_start.pop(0)
        return {"ProcessingJobArn": _arn(name)}

    def describe_processing_job(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """The service answers a validation error where the model names ResourceNotFound."""
        self._expire()
        name = p["ProcessingJobName"]
        self.asked.append(name)
        if name not in self._jobs:
            raise refusal("ValidationException", f"Could not find requested job with name: {name}")
        job, clock = self._jobs[name], Clock()
        clock.now = job.started
        described = {
            "ProcessingJobName": name,
            "ProcessingJobArn": _arn(name),
            "ProcessingJobStatus": job.status,
            "AppSpecification": job.request["AppSpecification"],
            "ProcessingResources": job.request["ProcessingResources"],
            "CreationTime": clock.date(),
        }
        if job.began:
            described["ProcessingStartTime"] = clock.date()
        if job.ended is not None:
            clock.now = job.ended
            described["ProcessingEndTime"] = clock.date()
            if job.message:
                described["FailureReason"] = job.message
        return described

    def _expire(self) -> None:
        for job in self._jobs.values():
            until = job.started + job.request["StoppingCondition"]["MaxRuntimeInSeconds"]
            if job.ended is None and self._clock.now >= until and not self.stuck:
                job.status, job.ended, job.message = "Stopped", until, "MaxRuntimeExceeded"


def _arn(name: str) -> str:
    return f"arn:aws:sagemaker:us-east-1:123456789012:processing-job/{name}"
