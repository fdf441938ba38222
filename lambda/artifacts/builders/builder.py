"""The interface of a builder: its requests and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..failure import BEFOREHAND

__all__ = ["LOG_LINES", "NO_CAPACITY", "Job", "JobService", "Progress", "address_of_log"]

LOG_LINES = 8
"""Lines of a log that fit into a reason of at most 1000 characters."""

NO_CAPACITY = f"the service has no free machine with this GPU now; deploy again later{BEFOREHAND}"
"""The advice if a service has no machine for a job."""


@dataclass(frozen=True)
class Job:
    """A job to run.

    Attributes:
        build: the build's id; the service recognises a repeated request by it.
        image: the image's URI.
        timeout_minutes: the time after which the service ends it.
        instance_type: the instance type of a Processing job; None for CodeBuild.
        volume_gb: the volume size of a Processing job; None for CodeBuild.
    """

    build: str
    image: str
    timeout_minutes: int
    instance_type: str | None = None
    volume_gb: int | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of a job.

    Attributes:
        job: the service's id of the job.
        status: the service's status.
        over: whether it has ended, with any status.
        at: when it ended, in seconds since 1970; None while it runs, or if the service does not report it.
        message: the service's text about a failure; may be empty.
        link: the address of its log.
        log: log group and stream, if there is one.
        again: whether it failed through the service's own fault.
    """

    job: str
    status: str
    over: bool
    at: float | None
    message: str
    link: str
    log: tuple[str, str] | None
    again: bool


def address_of_log(client: Any, console: str, source: str) -> str:
    """The console's address of a log; on the local AWS, which has no console, the command that prints the log.

    Args:
        client: a boto3 client of the service that runs the job.
        console: the address in AWS's console.
        source: the name of the log on the local AWS.
    """
    host = urlsplit(client.meta.endpoint_url).hostname
    return f"cdk-triton local logs --source {source}" if host == "127.0.0.1" else console


class JobService(Protocol):
    """A service that runs builds: it reads `staging/<build id>/in/` and writes `staging/<build id>/out/`."""

    def start(self, job: Job) -> str:
        """Start a job and return its id; if it was started before, return the id of that job.

        Raises:
            QuotaUsedUpError: other jobs use up the quota.
            ArtifactError: the service rejects the request for a reason that this builder can explain.
            ClientError: the service rejects the request for another reason.
        """

    def find(self, build: str, since: float) -> str | None:
        """The id of the job of a build that was started at `since` (seconds since 1970) or later, if there is one."""

    def describe(self, jobs: Sequence[str]) -> dict[str, Progress]:
        """The progress of these jobs; jobs that the service does not list are absent."""

    def log_tail(self, progress: Progress) -> list[str]:
        """The last lines of a job's log; empty if it cannot be read."""
