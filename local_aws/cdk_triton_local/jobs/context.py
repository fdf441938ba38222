"""The parts of the local AWS that every job needs."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdk_triton_local.process import ITSELF

__all__ = ["LocalContext"]


def _no_credentials(principal: str) -> Mapping[str, str]:
    return {}


def _at_once(service: str) -> float:
    return 0.0


@dataclass(frozen=True)
class LocalContext:
    """The local AWS that jobs run in.

    Attributes:
        directory: the directory in which jobs run and logs are written.
        variables: the variables that lead AWS clients to it.
        client_as: gives a boto3 client of a service that calls as a principal (`process.Principals`).
        log: called with one line per event.
        credentials: gives the variables with the credentials of a principal.
        principal: who calls: the role of a job.
        clock: returns the time of jobs, in seconds since 1970.
        start_seconds: how long a job of a service waits for a machine; other than 0 only because of a fault.
        working: surrounds what a job does on its machine.
    """

    directory: Path
    region: str
    account: str
    variables: Mapping[str, str]
    client_as: Callable[[str, str], Any]
    log: Callable[[str], None]
    credentials: Callable[[str], Mapping[str, str]] = _no_credentials
    principal: str = ITSELF
    clock: Callable[[], float] = time.time
    start_seconds: Callable[[str], float] = _at_once
    working: Callable[[], AbstractContextManager[None]] = nullcontext

    def now(self) -> datetime.datetime:
        """The time of jobs, with its zone."""
        return datetime.datetime.fromtimestamp(self.clock(), datetime.UTC)

    def with_role(self, role: str) -> LocalContext:
        """The same local AWS for a job with this role."""
        return replace(self, principal=role)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that lead the AWS clients of a job to the local AWS, with the credentials of its role."""
        return {**self.variables, **self.credentials(self.principal)}

    def client(self, service: str) -> Any:
        """A boto3 client that calls with the role of the job."""
        return self.client_as(service, self.principal)

    def arn(self, service: str, resource: str) -> str:
        """An ARN in this account and region."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"
