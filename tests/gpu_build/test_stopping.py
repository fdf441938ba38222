"""The program ends itself: what is finished stays, nothing half-written is in the output, nothing runs on."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


# A double for a trtexec that never comes to an end, and leaves a child of its own.
ENDLESS = """
echo '&&&& RUNNING TensorRT.trtexec [TensorRT v101303] [b9] # trtexec'
[ "$1" = --help ] && exit 0
sleep 600 & echo $! > "{pids}"; echo $$ >> "{pids}"
echo 'for ever'; wait
"""


@pytest.fixture
def endless(tmp_path: Path, write_tool: Callable[[str, str], None]) -> Iterator[Path]:
    """The file that gets the numbers of the processes that would not end."""
    pids = tmp_path / "pids"
    write_tool("trtexec", ENDLESS.format(pids=pids))
    yield pids
    for pid in pids.read_text().split() if pids.exists() else ():
        with suppress(psutil.NoSuchProcess):
            psutil.Process(int(pid)).kill()


def is_gone(pids: Path) -> bool:
    """Whether none of the processes runs any more; the last ones of a killed group may take a moment to be reaped."""
    for pid in pids.read_text().split():
        try:
            psutil.Process(int(pid)).wait(10)
        except psutil.NoSuchProcess:
            continue
        except psutil.TimeoutExpired:
            return False
    return True


def add_three(build: Any) -> tuple[str, str, str]:
    """One ensemble that is built at once, one that never is, and one that would come after."""
    small = {"tiny/config.pbtxt": b""}
    done = build.add("done", small, steps=[], remove=[])
    return done, build.add("endless"), build.add("after", small, steps=[], remove=[])


@pytest.mark.slow
def test_a_stopped_job_keeps_what_is_finished(messages: Messages, build: Any, endless: Path) -> None:
    done, stopped, after = add_three(build)
    process = build.start()
    assert process.stdout is not None
    assert any(json.loads(line).get("text") == "for ever" for line in process.stdout)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert process.returncode == 1
    assert build.report(done)["archive"]["size"] > 0
    for key in (stopped, after):
        messages.record("failure.json", build.failure(key)["reason"])
    assert sorted(path.name for path in build.out.iterdir()) == sorted([done, stopped, after])
    assert [path.name for path in build.out.parent.iterdir() if path.name.startswith(".build-")] == []
    assert is_gone(endless)


@pytest.mark.slow
def test_the_deadline_ends_what_runs_and_what_would_come(messages: Messages, build: Any, endless: Path) -> None:
    done, stopped, after = add_three(build)
    build.plan["deadline_seconds"] = 3

    code, _ = build.run()

    assert code == 1
    assert build.report(done)["archive"]["size"] > 0
    for key in (stopped, after):
        messages.record("failure.json", build.failure(key)["reason"])
    assert is_gone(endless)


def test_the_deadline_counts_from_the_start_of_the_codebuild_build(messages: Messages, build: Any) -> None:
    key = build.add("late", {"tiny/config.pbtxt": b""}, steps=[], remove=[])
    build.plan["deadline_seconds"] = 3600
    build.environment["CODEBUILD_START_TIME"] = str(round((time.time() - 3601) * 1000))

    code, _ = build.run()

    # The probe is the first that asks.
    assert code == 2
    messages.record("failure.json", build.failure()["reason"])
    assert not (build.out / key).exists()
