"""Runs the commands of one job, one after the other, until they end, their time is up, or somebody stops them."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cdk_triton_local.process import Child, start

__all__ = ["JobEndedError", "JobStoppedError", "JobTimedOutError", "Runner"]

_GRACE_SECONDS = 2.0
"""How long a command that is to end may take before it is killed."""

_PAUSE_SECONDS = 0.02


class JobEndedError(Exception):
    """The job ends before its commands do."""


class JobStoppedError(JobEndedError):
    """The job was stopped."""


class JobTimedOutError(JobEndedError):
    """The job has reached its timeout."""


class Runner:
    """Runs commands, each in a process group with everything that it starts, which ends with the command.

    Args:
        seconds: how long all of them may take, from now on.
        output: gets their standard output and error, in the order in which they print.
    """

    def __init__(self, seconds: float, output: Callable[[bytes], None]) -> None:
        self._output = output
        self._child: Child | None = None
        self._ended: type[JobEndedError] | None = None
        self._lock = threading.Lock()
        self._pausing = threading.Event()
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._end, [JobTimedOutError])
        self._timer.daemon = True
        self._timer.start()

    def run(self, command: Sequence[str | Path], *, environment: Mapping[str, str], directory: Path) -> int:
        """Run a command and return its exit status.

        Raises:
            JobEndedError: the job was ended before the command had finished; the command is stopped.
            LocalError: there is no such program.
        """
        with self._lock:
            self.raise_if_ended()
            child = self._child = start(
                command, environment=environment, directory=directory, output=subprocess.PIPE, errors=subprocess.STDOUT
            )
        assert child.stdout is not None  # a pipe was asked for
        try:
            with child.stdout as pipe:
                while data := os.read(pipe.fileno(), 65536):
                    self._output(data)
        except BaseException:
            child.kill()
            raise
        status = child.wait()
        with self._lock:
            self._child = None
            self.raise_if_ended()
        return status

    def raise_if_ended(self) -> None:
        """Raise `JobEndedError` if the job is to end."""
        if self._ended is not None:
            raise self._ended

    def pause(self) -> None:
        """Wait a moment for something other than a command.

        Raises:
            JobEndedError: the job is to end.
        """
        self.raise_if_ended()
        self._pausing.wait(_PAUSE_SECONDS)

    def stop(self) -> None:
        """End the job, if it is still running."""
        self._end(JobStoppedError)

    def close(self) -> None:
        """Run no further commands."""
        self._timer.cancel()

    def _end(self, reason: type[JobEndedError]) -> None:
        with self._lock:
            self._ended = self._ended or reason
            self._pausing.set()
            child = self._child
        if child is not None:
            child.stop(grace=_GRACE_SECONDS)
