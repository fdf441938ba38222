"""CodeBuild in memory."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_aws.client import refusal
from memory_aws.clock import Clock
from memory_aws.jobs import Program

__all__ = ["CodeBuild"]

TOKEN_SECONDS = 5 * 60
LISTED_SECONDS = 60


@dataclass
class _Build:
    id: str
    request: dict[str, Any]
    started: float
    status: str = "IN_PROGRESS"
    ended: float | None = None
    message: str = ""
    in_queue: bool = False


class CodeBuild:
    """One project. A build runs until a test ends it or its time is up.

    Attributes:
        room: how many builds may run.
        asked: the jobs whose status was asked for, but not by looking through a page of the list.
        refusals: what the next calls of StartBuild are refused with.
        after_start: what comes instead of the answer of the next builds that are started.
        stuck: whether builds run on when their time is up.
    """

    def __init__(self, project: str, clock: Clock, program: Program) -> None:
        self._project = project
        self._clock = clock
        self._program = program
        self._numbers = itertools.count(1)
        self._builds: dict[str, _Build] = {}
        self.room = 10
        self.refusals: list[Exception] = []
        self.after_start: list[Exception] = []
        self.stuck = False
        self.asked: list[str] = []
        self._page: list[str] = []

    # -- what a test does

    def live(self) -> dict[str, str]:
        """Id of each running job to its build."""
        self._expire()
        running = [build for build in self._builds.values() if build.ended is None]
        return {build.id: build.request["idempotencyToken"] for build in running}

    def end(self, job: str, status: str, message: str = "", *, in_queue: bool = False) -> None:
        """End a job; in the queue, it never had a machine."""
        build = self._builds[job]
        build.status, build.ended, build.message, build.in_queue = status, self._clock.now, message, in_queue

    def decide(self, job: str, status: str) -> None:
        """Give a job its status, while what it wrote is still being uploaded."""
        self._builds[job].status = status

    def vanish(self, job: str) -> None:
        """Forget a job."""
        del self._builds[job]

    def knows(self, job: str) -> bool:
        """Whether there is or was such a job."""
        return job in self._builds

    def age(self, job: str) -> float:
        """Seconds since a job was started."""
        return self._clock.now - self._builds[job].started

    def requests(self) -> list[dict[str, Any]]:
        """What each job was asked for with."""
        return [found.request for found in self._builds.values()]

    # -- what the handlers call

    def start_build(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """One build per token within five minutes."""
        self._expire()
        if self.refusals:
            raise self.refusals.pop(0)
        if p["projectName"] != self._project:
            raise refusal("ResourceNotFoundException", f"Project cannot be found: {p['projectName']}")
        for build in self._builds.values():
            same = build.request["idempotencyToken"] == p["idempotencyToken"]
            if same and self._clock.now - build.started < TOKEN_SECONDS:
                if build.request != dict(p):
                    raise refusal("InvalidInputException", "Parameter mismatch for the idempotency token")
                return {"build": self._described(build)}
        if len(self.live()) >= self.room:
            raise refusal(
                "AccountLimitExceededException", f"Cannot have more than {self.room} builds in queue for the account"
            )
        build = _Build(f"{self._project}:{next(self._numbers)}", dict(p), self._clock.now)
        self._builds[build.id] = build
        self._program.begin(p["idempotencyToken"])
        if self.after_start:
            raise self.after_start.pop(0)
        return {"build": self._described(build)}

    def batch_get_builds(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """Those that exist."""
        self._expire()
        found = [self._builds[job] for job in p["ids"] if job in self._builds]
        if p["ids"] != self._page:
            self.asked += p["ids"]
        lost = [job for job in p["ids"] if job not in self._builds]
        answer: dict[str, Any] = {"builds": [self._described(build) for build in found]}
        return answer | {"buildsNotFound": lost} if lost else answer

    def list_builds_for_project(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """Newest first, without those of the last minute."""
        if p["projectName"] != self._project:
            raise refusal("ResourceNotFoundException", f"Project cannot be found: {p['projectName']}")
        listed = [b.id for b in self._builds.values() if self._clock.now - b.started >= LISTED_SECONDS]
        self._page = listed[::-1][:100]
        return {"ids": self._page} if listed else {}

    def _expire(self) -> None:
        for build in self._builds.values():
            until = build.started + build.request["timeoutInMinutesOverride"] * 60
            if build.ended is None and self._clock.now >= until and not self.stuck:
                build.status, build.ended, build.message = "TIMED_OUT", until, "Build has timed out"

    def _described(self, build: _Build) -> dict[str, Any]:
        clock = Clock()
        clock.now = build.started
        described: dict[str, Any] = {
            "id": build.id,
            "arn": f"arn:aws:codebuild:us-east-1:123456789012:build/{build.id}",
            "startTime": clock.date(),
            "currentPhase": "BUILD" if build.ended is None else "COMPLETED",
            "buildStatus": build.status,
            "projectName": self._project,
            "source": {"type": "S3", "location": build.request["sourceLocationOverride"]},
            "logs": {
                "groupName": "/builds",
                "streamName": build.id.partition(":")[2],
                "deepLink": f"https://console/{build.id}",
            },
            "buildComplete": build.ended is not None,
        }
        if build.ended is not None:
            clock.now = build.ended
            described["endTime"] = clock.date()
            failed = {"statusCode": build.status, "message": build.message}
            last = {"phaseStatus": build.status, "contexts": [failed] if build.message else []}
            queue, work = {"phaseType": "QUEUED"}, {"phaseType": "BUILD"}
            phases = [queue | last] if build.in_queue else [queue | {"phaseStatus": "SUCCEEDED"}, work | last]
            described["phases"] = [*phases, {"phaseType": "COMPLETED"}]
        return described
