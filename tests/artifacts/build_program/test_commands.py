"""Commands: their lines, their errors, and an end to everything that they start."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cdk_triton.artifacts.build_program.commands import run_command
from cdk_triton.artifacts.build_program.log import Log
from cdk_triton.artifacts.build_program.step import BuildError
from cdk_triton.artifacts.build_program.stop import Stop
from cdk_triton.artifacts.build_program.work import BuildWork, Journal


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def work(tmp_path: Path, stream: io.StringIO) -> BuildWork:
    return BuildWork(
        "the plan of tiny",
        repository=tmp_path,
        scratch=tmp_path,
        platform={},
        probed={},
        log=Log(stream),
        stop=Stop(time.monotonic() + 60),
        journal=Journal([], []),
    )


def test_both_streams_come_as_lines_and_are_logged(work: BuildWork, stream: io.StringIO) -> None:
    lines = work.run(shell("echo one; echo two >&2; printf 'three\\rfour\\r\\n\\377 five'"), what="counting")

    assert lines == ["one", "two", "three", "four", "\ufffd five"]
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["text"] for event in events if event["event"] == "output"] == lines
    assert work.commands == [shell("echo one; echo two >&2; printf 'three\\rfour\\r\\n\\377 five'")]


def test_a_failure_names_step_command_exit_code_and_the_telling_line(work: BuildWork) -> None:
    script = "echo '[E] Failed to parse onnx file'; echo '&&&& FAILED TensorRT.trtexec'; exit 3"

    with pytest.raises(BuildError) as raised:
        work.run(shell(script), what="building the plan")

    assert raised.value.reason.startswith("the plan of tiny: building the plan failed: `/bin/sh -c ")
    assert raised.value.reason.endswith("` ended with exit code 3: [E] Failed to parse onnx file")
    assert raised.value.log == ("[E] Failed to parse onnx file", "&&&& FAILED TensorRT.trtexec")


def test_a_killed_command_says_what_killed_it(work: BuildWork) -> None:
    with pytest.raises(BuildError, match=r"was killed \(SIGKILL\), often because memory ran out"):
        work.run(shell("kill -9 $$"), what="building the plan")


def test_a_command_that_is_not_there_says_so(work: BuildWork) -> None:
    with pytest.raises(
        BuildError, match="the plan of tiny: building the plan failed: nowhere cannot be started: No such"
    ):
        work.run(["nowhere"], what="building the plan")


def test_a_command_sees_no_credentials(work: BuildWork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    monkeypatch.setenv("HARMLESS", "seen")

    lines = work.run(["env"], what="looking around", environment={"MORE": "added"})

    assert {"HARMLESS=seen", "MORE=added"} <= set(lines)
    assert not any(line.startswith("AWS_") for line in lines)


def test_a_stand_in_that_says_so_is_recorded(work: BuildWork, tmp_path: Path) -> None:
    journal = Journal([], [])
    work = BuildWork(
        "a step",
        repository=tmp_path,
        scratch=tmp_path,
        platform={},
        probed={},
        log=Log(io.StringIO()),
        stop=Stop(time.monotonic() + 60),
        journal=journal,
    )

    work.run(shell("echo 'cdk-triton stand-in for trtexec: no plan'; echo 'a cdk-triton stand-in for x: y'"), what="it")

    assert journal.stand_ins == ["trtexec"]


def test_a_silent_command_gives_a_sign_of_life(tmp_path: Path) -> None:
    stream = io.StringIO()
    # The command ends when it has been said twice that it still runs.
    fifo = tmp_path / "end"
    os.mkfifo(fifo)

    class Ending(Log):
        said = 0

        def event(self, event: str, **fields: object) -> None:
            super().event(event, **fields)
            if event == "still running":
                self.said += 1
                if self.said == 2:
                    fifo.write_text("go on\n")

    done = run_command(
        shell(f"cat {fifo}"),
        environment=os.environ,
        directory=tmp_path,
        log=Ending(stream),
        stop=Stop(time.monotonic() + 60),
        progress_seconds=0.1,
    )

    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert done.lines == ["go on"]
    assert [(event["event"], event.get("command")) for event in events[:2]] == [("still running", "sh")] * 2


def test_what_a_command_leaves_behind_is_ended(work: BuildWork) -> None:
    # It keeps the output open, which must not keep anybody waiting.
    (pid,) = work.run(shell("sleep 600 & echo $!"), what="leaving something")

    with suppress(psutil.NoSuchProcess):
        left = psutil.Process(int(pid))
        try:
            left.wait(10)
        except psutil.TimeoutExpired:
            left.kill()
            raise


def test_a_command_without_output_is_waited_for(work: BuildWork, tmp_path: Path) -> None:
    script = "import os; os.close(1); os.close(2); sum(range(3_000_000)); open('done', 'w').close()"

    assert work.run([sys.executable, "-c", script], what="working in silence") == []

    assert (tmp_path / "done").exists()
