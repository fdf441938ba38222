"""What goes wrong at one call of a poll."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from memory_aws import Call, refusal

__all__ = ["FAULTS", "Fault", "Killed"]

FAULTS = (
    "crash before",
    "crash after",
    "limbo",
    "unsent",
    "lost",
    "late",
    "asked twice",
    "throttled",
    "broken",
    "slow",
)


class Killed(BaseException):
    """The process of the Lambda is gone: no except clause of the handler sees it."""


@dataclass
class Fault:
    """One fault at the call of this number (from 0) of a poll; with `jobs`, of its calls that are not S3's.

    * crash before, crash after: the process dies before the service sees the call, or before the answer comes
    * limbo: the process dies, and the service sees the call later
    * unsent, lost: no connection; no answer
    * late: no answer, and the service sees the call later
    * asked twice: the answer is lost, and boto3 asks again
    * throttled, broken: the service refuses, or says that something is wrong with it
    * slow: the invocation has no time left from here on
    """

    kind: str
    number: int
    jobs: bool = False
    seen: int = 0

    def slow(self) -> bool:
        """Whether the time is up."""
        return self.kind == "slow" and self.seen > self.number

    def around(self, service: str, call: Call, later: Callable[[Call], None]) -> dict[str, Any]:
        """Make the call, or what becomes of it; `later` takes one that stays on its way."""
        if self.jobs and service == "s3":
            return call()
        self.seen += 1
        if self.seen != self.number + 1 or self.kind == "slow":
            return call()
        if self.kind in {"limbo", "late"}:
            later(call)
        if self.kind in {"crash before", "limbo"}:
            raise Killed
        if self.kind == "unsent":
            raise ConnectTimeoutError(endpoint_url=service)
        if self.kind == "throttled":
            raise (
                refusal("SlowDown", status=503) if service == "s3" else refusal("ThrottlingException", "Rate exceeded")
            )
        if self.kind == "broken":
            raise refusal("InternalError", status=500)
        answer = {} if self.kind == "late" else _settled(call)
        if self.kind == "crash after":
            raise Killed
        if self.kind in {"lost", "late"}:
            raise ReadTimeoutError(endpoint_url=service)
        return call() if self.kind == "asked twice" else answer


def _settled(call: Call) -> dict[str, Any]:
    """The answer, or nothing where it is a refusal, which is lost as well."""
    try:
        return call()
    except ClientError:
        return {}
