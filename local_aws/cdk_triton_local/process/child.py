"""Starts processes that never outlive this one.

Whatever the local AWS starts (a tritonserver, a build command) is started here, below a guardian process (see
`cdk_triton_local.process._guardian`). When this process ends, even by SIGKILL, the child and everything that it started
are killed; when the child ends, so is whatever it left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from cdk_triton.errors import LocalError

__all__ = ["INHERITED_VARIABLES", "Child", "child_environment", "start"]

INHERITED_VARIABLES: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
)
"""The variables of our environment that a child gets. Credentials, proxies, `LD_*` and `PYTHON*` are not among them."""

_GUARDIAN: Final = Path(__file__).with_name("_guardian.py")


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment for a child: the variables of `INHERITED_VARIABLES` that are set here, then `extra`."""
    inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return inherited | dict(extra or {})


def start(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    directory: Path | None = None,
    output: IO[bytes] | int = subprocess.DEVNULL,
    errors: IO[bytes] | int = subprocess.STDOUT,
    leftovers: str = "",
    listed: str | Path = "",
) -> Child:
    """Start a process that ends when this one does.

    Args:
        command: the program, as a path or a name on the `PATH` of `environment`, and its arguments.
        environment: the whole environment of the child; see `child_environment`.
        directory: the working directory of the child; by default that of this process.
        output: where its standard output goes: a file, `subprocess.PIPE` (then read `Child.stdout`) or nothing.
        errors: the same for its standard error, which by default goes where the output goes.
        leftovers: a glob pattern of files that are removed when the child and all of its descendants have ended,
            because those that are killed cannot do it.
        listed: a file in which the child writes the directories that are removed in the same way, one in each line.

    Raises:
        LocalError: the program does not exist or cannot be executed.
    """
    arguments = [str(part) for part in command]
    program = shutil.which(arguments[0], path=environment.get("PATH", os.defpath))
    if program is None:
        raise LocalError(f"{arguments[0]!r} cannot be started, because this machine has no such program; install it")
    lifeline, held = os.pipe()
    try:
        guardian = subprocess.Popen(
            # -I -S: neither the user's site-packages nor PYTHON* variables meant for the child touch the guardian.
            [
                sys.executable,
                "-I",
                "-S",
                _GUARDIAN,
                str(lifeline),
                leftovers,
                str(listed),
                Path(program).absolute(),
                *arguments[1:],
            ],
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            pass_fds=[lifeline],
            start_new_session=True,  # a Ctrl-C in the terminal is for us; we then stop the child in order
        )
    except OSError as error:
        os.close(held)
        raise LocalError(f"{arguments[0]!r} cannot be started: {error.strerror}: {error.filename}") from error
    finally:
        os.close(lifeline)
    return Child(guardian, held)


class Child:
    """A process started by `start`, with everything that it started itself.

    Attributes:
        pid: the guardian's process id; the process itself is the guardian's only child at first.
        stdout: the read end of the child's output if it was started with `output=subprocess.PIPE`, else None.
    """

    def __init__(self, guardian: subprocess.Popen[bytes], lifeline: int) -> None:
        self.pid = guardian.pid
        self.stdout = guardian.stdout
        self._guardian = guardian
        self._lifeline = lifeline
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """The exit status (128 + n for signal n), or None while the child runs."""
        status = self._guardian.poll()
        return None if status is None else self._ended(status)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the child and all of its descendants have ended, and return the child's exit status.

        Raises:
            TimeoutError: the process is still running after `timeout` seconds.
        """
        try:
            status = self._guardian.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} s") from None
        return self._ended(status)

    def stop(self, *, grace: float = 10.0) -> int:
        """Ask the child to end (SIGTERM), wait `grace` seconds, then kill it and all of its descendants.

        Returns:
            The exit status; 137 (SIGKILL) means that the child did not end when asked to. Stopping a child that has
            ended is not an error.
        """
        # Popen.send_signal checks that the process has not been reaped, so it cannot hit a stranger.
        self._guardian.send_signal(signal.SIGTERM)
        try:
            return self.wait(grace)
        except TimeoutError:
            return self.kill()

    def kill(self) -> int:
        """Kill the child and all of its descendants at once; returns when they are gone."""
        self._cut_lifeline()
        return self.wait()

    def _ended(self, status: int) -> int:
        self._cut_lifeline()
        return status if status >= 0 else 128 - status  # negative: the guardian itself was killed

    def _cut_lifeline(self) -> None:
        with self._lock:
            if self._lifeline >= 0:
                os.close(self._lifeline)
                self._lifeline = -1
