"""Doubles of the Parameter Store and of the clock, and waiting for the threads that refresh names."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError


@dataclass
class Ssm:
    """A Parameter Store below `/search`, which counts calls."""

    values: dict[str, str]
    calls: list[list[str]] = field(default_factory=list)
    fault: Exception | None = None
    denied: frozenset[str] = frozenset()
    asked: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event | None = None

    def get_parameters(self, *, Names: list[str]) -> dict[str, Any]:  # noqa: N803 - boto3's name
        assert 1 <= len(Names) <= 10
        names = [name.removeprefix("/search/") for name in Names]
        self.calls.append(names)
        self.asked.set()
        if self.gate is not None:
            assert self.gate.wait(30)
        if self.fault is not None:
            raise self.fault
        if self.denied & set(names):
            raise fault("AccessDeniedException")
        return {"Parameters": [{"Name": f"/search/{n}", "Value": self.values[n]} for n in names if n in self.values]}


def fault(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "Why."}}, "GetParameters")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ssm() -> Ssm:
    return Ssm(
        {"endpoint-name": "fleet", "target-models/text": "text-1.tar.gz", "target-models/image": "image-1.tar.gz"}
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


def until(holds: Callable[[], bool]) -> None:
    """Wait for another thread, which has been asked to do something short."""
    for thread in threading.enumerate():
        if thread.name in ("cdk-triton-parameters", "cdk-triton-catalogue"):
            thread.join(30)
    assert holds()
