"""What a step of the build program works with, and a Python that finds the stand-in for DALI."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cdk_triton_local
from build_program.log import Log
from build_program.stop import Stop
from build_program.work import BuildWork, Journal

Python = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def log() -> io.StringIO:
    """What the program logs."""
    return io.StringIO()


@pytest.fixture
def journal() -> Journal:
    """What goes into build.json."""
    return Journal([], [])


@pytest.fixture
def make_work(tmp_path: Path, log: io.StringIO, journal: Journal) -> Callable[..., BuildWork]:
    """Makes the work of a step, with a scratch directory of its own."""
    made = 0

    def make(repository: Path, *, python: str = Python) -> BuildWork:
        nonlocal made
        made += 1
        scratch = tmp_path / f"scratch{made}"
        scratch.mkdir()
        return BuildWork(
            "the step",
            repository=repository,
            scratch=scratch,
            platform={"python": python},
            probed={"gpu": "NVIDIA A10G", "python": python},
            log=Log(log),
            stop=Stop(time.monotonic() + 120),
            journal=journal,
        )

    return make


@pytest.fixture
def events(log: io.StringIO) -> Callable[[], list[dict[str, Any]]]:
    """The lines logged so far."""
    return lambda: [json.loads(line) for line in log.getvalue().splitlines()]


@pytest.fixture
def dali_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets Python find the stand-in for DALI, as the local build runner does."""
    tools = Path(cdk_triton_local.__path__[0]) / "build_tools" / "python"
    monkeypatch.setenv("PYTHONPATH", str(tools))
