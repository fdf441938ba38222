"""Builds on CodeBuild: each build overrides source, artifacts, image and timeout of the store's project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from protocol import layout

from ..failure import ArtifactError, QuotaUsedUpError, error_code
from .builder import NO_CAPACITY, Job, Progress, address_of_log
from .cloudwatch import last_lines

__all__ = ["CodeBuildBuilder"]

MAX_IDS = 100
"""The most ids that BatchGetBuilds takes (API reference)."""

_BEFORE_IT_RUNS = ("QUEUED", "PROVISIONING")
"""The phases of a build that has no machine yet (API reference, `BuildPhase`)."""

_USED_UP = re.compile(r"more than [1-9]\d* builds")
"""In the message of `AccountLimitExceededException` (API reference, `StartBuild`): "Cannot have more than 1 builds in
queue for the account". No other build can give back a quota of 0."""

CLOCKS_DIFFER_SECONDS = 10 * 60
"""The assumed difference between the service's clock and this one, in a search for a build by its age."""


class CodeBuildBuilder:
    """A CodeBuild project as a builder.

    Args:
        client: a boto3 client of CodeBuild.
        logs: a boto3 client of CloudWatch Logs.
        bucket: the store's bucket.
        project: the project's name.
        log_group: its log group.
    """

    def __init__(self, client: Any, logs: Any, bucket: str, *, project: str, log_group: str) -> None:
        self._client = client
        self._logs = logs
        self._bucket = bucket
        self._project = project
        self._log_group = log_group

    def start(self, job: Job) -> str:
        """See `JobService`. The token makes a repeated request the same build for 5 minutes (API reference)."""
        try:
            answer = self._client.start_build(
                projectName=self._project,
                idempotencyToken=job.build,
                sourceTypeOverride="S3",
                sourceLocationOverride=self._source(job.build),
                artifactsOverride={
                    "type": "S3",
                    "location": self._bucket,
                    "path": layout.build_prefix(job.build).removesuffix("/"),
                    "name": "out",
                    "namespaceType": "NONE",
                    "packaging": "NONE",
                },
                imageOverride=job.image,
                imagePullCredentialsTypeOverride="SERVICE_ROLE",
                timeoutInMinutesOverride=job.timeout_minutes,
            )
        except ClientError as error:
            _explain(error, self._project)
            raise
        return str(answer["build"]["id"])

    def find(self, build: str, since: float) -> str | None:
        """See `JobService`. CodeBuild does not keep the token; the source's location is the build's own."""
        for ids in self._newest_first():
            builds = self._get(ids)
            for found in builds:
                if found["source"].get("location") == self._source(build):
                    return str(found["id"])
            if any(found["startTime"].timestamp() < since - CLOCKS_DIFFER_SECONDS for found in builds):
                return None
        return None

    def describe(self, jobs: Sequence[str]) -> dict[str, Progress]:
        """See `JobService`."""
        pages = (jobs[first : first + MAX_IDS] for first in range(0, len(jobs), MAX_IDS))
        return {found["id"]: self._progress(found) for ids in pages for found in self._get(ids)}

    def log_tail(self, progress: Progress) -> list[str]:
        """See `JobService`."""
        return [] if progress.log is None else last_lines(self._logs, *progress.log)

    def _progress(self, build: Mapping[str, Any]) -> Progress:
        progress = _progress(build)
        link = address_of_log(self._client, progress.link, f"codebuild-{progress.job.replace(':', '-')}")
        return replace(progress, link=link) if progress.link else progress

    def _source(self, build: str) -> str:
        return f"{self._bucket}/{layout.build_inputs_prefix(build)}"

    def _newest_first(self) -> Iterator[Sequence[str]]:
        more: dict[str, str] = {}
        while True:
            page = self._client.list_builds_for_project(projectName=self._project, sortOrder="DESCENDING", **more)
            if page.get("ids"):
                yield page["ids"]
            if not page.get("nextToken"):
                return
            more = {"nextToken": page["nextToken"]}

    def _get(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        return list(self._client.batch_get_builds(ids=list(ids)).get("builds", []))


def _progress(build: Mapping[str, Any]) -> Progress:
    # FAILED, FAULT, STOPPED, SUCCEEDED and TIMED_OUT are ends, IN_PROGRESS is not (API reference, Build.buildStatus).
    # The files that a failed build wrote are uploaded in a later phase, so the end of all phases counts as well.
    status, ended = build["buildStatus"], build.get("endTime")
    logs = build.get("logs", {})
    group, stream = logs.get("groupName"), logs.get("streamName")
    phases = build.get("phases", [])
    messages = [
        context["message"]
        for phase in phases
        if phase.get("phaseStatus", "SUCCEEDED") != "SUCCEEDED"
        for context in phase.get("contexts", [])
        if context.get("message")
    ]
    if any(each.get("phaseType") in _BEFORE_IT_RUNS and each.get("phaseStatus") == "TIMED_OUT" for each in phases):
        messages = [f"{'; '.join(messages)} ({NO_CAPACITY})".strip()]
    return Progress(
        job=build["id"],
        status=status,
        over=status != "IN_PROGRESS" and build.get("buildComplete", True),
        at=None if ended is None else ended.timestamp(),
        message="; ".join(messages),
        link=logs.get("deepLink", "") if group and stream else "",  # before, it names the group "null"
        log=(group, stream) if group and stream else None,
        again=status == "FAULT",
    )


def _explain(error: ClientError, project: str) -> None:
    if error_code(error) == "AccountLimitExceededException":
        reason = (
            f"CodeBuild does not start a build: {error}. The CodeBuild quota 'Concurrently running builds for Linux "
            "GPU Small environment' (L-F1FE1B52) is 0 in many accounts; request an increase in Service Quotas (or, if "
            "the quota is not 0, wait until other builds end), and deploy again"
        )
        raise (QuotaUsedUpError if _USED_UP.search(str(error)) else ArtifactError)(reason) from error
    if error_code(error) == "ResourceNotFoundException":
        raise ArtifactError(
            f"CodeBuild cannot find the project {project} ({error}); update the stack of the artifact store"
        ) from error
