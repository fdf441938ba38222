"""Runs a command, yields its lines as they come, and ends it with all that it has started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple

from .log import Log
from .step import BuildError
from .stop import Stop

__all__ = ["Finished", "end_group", "exit_status", "has_ended", "run_command", "without_credentials"]

_KEPT_LINES = 100_000
_LOOK_SECONDS = 0.5
_GRACE_SECONDS = 10.0
_BLOCK_BYTES = 1 << 16


class Finished(NamedTuple):
    """A command that ended: its lines, both streams merged, and its exit code (negative: the signal that killed it)."""

    lines: list[str]
    exit_code: int


def without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for commands: a build needs no AWS, and runs code that its user wrote."""
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}


def run_command(
    command: list[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    log: Log,
    stop: Stop,
) -> Finished:
    """Run a command to its end.

    When this returns or raises, nothing of it runs any more: a command is the leader of its own process group, and the
    group is ended with it.

    Raises:
        BuildError: the command cannot be started.
        StoppedError: the program has to end.
    """
    stop.check()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=str(directory),
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        raise BuildError(f"`{command[0]}` cannot be started: {error.strerror}") from error
    lines: deque[str] = deque(maxlen=_KEPT_LINES)
    try:
        for line in _lines(process, stop):
            log.event("output", text=line)
            lines.append(line)
        pause = _LOOK_SECONDS / 50
        while not has_ended(process):  # it closed its output: it is about to end, or goes on in silence
            stop.check()
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_SECONDS)
    finally:
        end_group(process, _GRACE_SECONDS)
        if process.stdout is not None:
            process.stdout.close()
    return Finished(list(lines), process.returncode)


def _lines(process: subprocess.Popen[bytes], stop: Stop) -> Iterator[str]:
    """End with the output, or when the process has ended and its remaining children print nothing."""
    assert process.stdout is not None  # for the type checker: it is a pipe
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            stop.check()
            # Asked first: what a process wrote before it ended is read below.
            ended = has_ended(process)
            if selector.select(0.0 if ended else _LOOK_SECONDS):
                block = os.read(process.stdout.fileno(), _BLOCK_BYTES)
                if not block:
                    break
                *complete, rest = (rest + block).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in complete)
            elif ended:
                break
    if rest:
        yield rest.decode("utf-8", "replace")


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended. It is not reaped, so its process group keeps its number."""
    return exit_status(process) is not None


def exit_status(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a process that has ended, or the number of the signal that ended it; it is not reaped."""
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if ended is None else ended.si_status


def end_group(process: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """End the leader of a process group: SIGTERM first, then SIGKILL for the whole group."""
    if not has_ended(process):
        os.killpg(process.pid, signal.SIGTERM)
        patience = time.monotonic() + grace_seconds
        while not has_ended(process) and time.monotonic() < patience:
            time.sleep(_LOOK_SECONDS / 10)
    os.killpg(process.pid, signal.SIGKILL)  # at least the process itself is in it: it is not reaped yet
    process.wait()
