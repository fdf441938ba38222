"""The parts of the local AWS that every job needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["LocalContext"]


@dataclass(frozen=True)
class LocalContext:
    """The local AWS that jobs run in.

    Attributes:
        directory: the directory in which jobs run and logs are written.
        environment: the variables that lead AWS clients to it.
        client: gives a boto3 client of it.
        log: called with one line per event.
    """

    directory: Path
    region: str
    account: str
    environment: Mapping[str, str]
    client: Callable[[str], Any]
    log: Callable[[str], None]

    def arn(self, service: str, resource: str) -> str:
        """An ARN in this account and region."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"
