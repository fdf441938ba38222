"""Commands: their lines, their errors, and an end to everything that they start."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from build_program.commands import run_command
from build_program.log import Log, signs_of_life
from build_program.step import BuildError
from build_program.stop import Stop
from build_program.work import BuildWork, Journal

if TYPE_CHECKING:
    from golden_messages import Messages


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
    assert work.commands == [["sh", "-c", "echo one; echo two >&2; printf 'three\\rfour\\r\\n\\377 five'"]]


def test_a_failure_names_step_command_exit_code_and_the_telling_line(messages: Messages, work: BuildWork) -> None:
    with messages.raises(BuildError) as raised:
        work.run(shell("echo 'ValueError: no'; echo bye; exit 3"), what="building the plan")

    assert raised.value.log == ("ValueError: no", "bye")


def test_pip_is_quoted_with_its_last_error(messages: Messages, work: BuildWork) -> None:
    said = "echo 'WARNING: after NewConnectionError'; echo 'ERROR: No matching distribution found'; echo; exit 1"

    with messages.raises(BuildError):
        work.run(shell(said), what="installing ONNX Runtime")


# In the form of trtexec 10.13 (samples/common/logger.h), with the parser's lines around a node.
UNREADABLE = """
[11/21/2026-17:23:47] [I] Start parsing network model.
[11/21/2026-17:23:47] [E] [TRT] ModelImporter.cpp:948: While parsing node number 0 [Unheard -> "y"]:
[11/21/2026-17:23:47] [E] [TRT] ModelImporter.cpp:950: --- Begin node ---
input: "x"
op_type: "Unheard"
[11/21/2026-17:23:47] [E] [TRT] ModelImporter.cpp:952: --- End node ---
[11/21/2026-17:23:47] [E] [TRT] ModelImporter.cpp:954: ERROR: {here}/tiny/tiny.onnx: No importer for Unheard
[11/21/2026-17:23:47] [E] Failed to parse onnx file
[11/21/2026-17:23:47] [E] Parsing model failed
&&&& FAILED TensorRT.trtexec [TensorRT v101303] [b9] # trtexec --onnx=tiny/tiny.onnx
"""


def test_trtexec_is_quoted_with_what_it_said_first_and_short_paths(
    messages: Messages, work: BuildWork, tmp_path: Path
) -> None:
    (tmp_path / "said").write_text(UNREADABLE.replace("{here}", str(tmp_path)))
    trtexec = tmp_path / "bin" / "trtexec"
    trtexec.parent.mkdir()
    trtexec.write_text('#!/bin/sh\ncat "${0%/*}/../said"; exit 1\n')
    trtexec.chmod(0o755)
    command = [str(trtexec), f"--onnx={tmp_path}/tiny/tiny.onnx", f"--saveEngine={tmp_path}/tiny/1/model.plan"]

    with messages.raises(BuildError) as raised:
        work.run([*command, "--fp16", f"--optShapes={'x' * 300}"], what="building the plan")

    quoted = (
        '[TRT] ModelImporter.cpp:948: While parsing node number 0 [Unheard -> "y"]:; '
        "[TRT] ModelImporter.cpp:954: ERROR: tiny/tiny.onnx: No importer for Unheard; Failed to parse onnx file"
    )
    assert quoted in raised.value.reason
    assert len(raised.value.reason) < 750
    assert work.commands[0][:2] == ["trtexec", "--onnx=tiny/tiny.onnx"]


def test_a_killed_command_says_what_killed_it(messages: Messages, work: BuildWork) -> None:
    with messages.raises(BuildError):
        work.run(shell("kill -9 $$"), what="building the plan")


def test_a_command_that_is_not_there_says_so(messages: Messages, work: BuildWork) -> None:
    with messages.raises(BuildError):
        work.run(["nowhere"], what="building the plan")


def test_a_command_sees_no_credentials(work: BuildWork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    monkeypatch.setenv("HARMLESS", "seen")

    lines = work.run(["env"], what="looking around")

    assert "HARMLESS=seen" in lines
    assert not any(line.startswith("AWS_") for line in lines)
    assert work.run(["/usr/bin/env"], what="looking around", environment={"ALL": "there is"}) == ["ALL=there is"]


def test_an_argument_reaches_its_program_as_it_is(work: BuildWork) -> None:
    argument = "$(exit 1) `exit 1` 'a' \"b\" * ; > & | \\ ~ $HOME"

    assert work.run([sys.executable, "-c", "import sys; print(sys.argv[1])", argument], what="asking") == [argument]


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


def test_silence_gives_a_sign_of_life(tmp_path: Path) -> None:
    # The command ends when it has been said twice that the program still runs.
    fifo = tmp_path / "end"
    os.mkfifo(fifo)

    class Ending(io.StringIO):
        said = 0

        def write(self, line: str) -> int:
            self.said += '"still running"' in line
            if self.said == 2:
                self.said += 1
                fifo.write_text("go on\n")
            return super().write(line)

    stream = Ending()
    log = Log(stream)
    log.about(step="the plan of tiny").event("command")

    with signs_of_life(log, 0.1):
        done = run_command(
            shell(f"cat {fifo}"),
            environment=os.environ,
            directory=tmp_path,
            log=log,
            stop=Stop(time.monotonic() + 60),
        )

    assert done.lines == ["go on"]
    events = [json.loads(line) for line in stream.getvalue().splitlines()][1:3]
    assert [(event["event"], event["step"], event["after"]) for event in events] == [
        ("still running", "the plan of tiny", "command")
    ] * 2


@pytest.mark.slow
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
