"""What a step works with: directories, commands, and what is recorded for `build.json`."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

from .commands import run_command, without_credentials
from .log import Log
from .step import BuildError
from .stop import Stop, StoppedError

__all__ = ["BuildWork", "Journal", "stand_in_in"]

_STAND_IN = "cdk-triton stand-in for "
_LOG_LINES = 40
_SHOWN_CHARACTERS = 400


class Journal(NamedTuple):
    """What an ensemble's build gathers for `build.json`."""

    warnings: list[str]
    stand_ins: list[str]


class BuildWork:
    """The `Work` of one step.

    Args:
        name: the step's name, which begins its errors.
        repository: the unpacked repository.
        scratch: an empty directory.
        shared: a directory of all steps of the job; the scratch directory if not given.
        platform: what the plan expects.
        probed: what the machine has.
        log: gets the lines of commands.
        stop: ends commands.
        journal: the ensemble's.
    """

    def __init__(
        self,
        name: str,
        *,
        repository: Path,
        scratch: Path,
        platform: Mapping[str, Any],
        probed: Mapping[str, str | None],
        log: Log,
        stop: Stop,
        journal: Journal,
        shared: Path | None = None,
    ) -> None:
        self.name = name
        self.repository = repository
        self.scratch = scratch
        self.shared = shared or scratch
        self.platform = platform
        self.probed = probed
        self.commands: list[list[str]] = []
        self._log = log
        self._stop = stop
        self._journal = journal

    def run(
        self,
        command: list[str],
        *,
        what: str,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> list[str]:
        """See `Work.run`."""
        self.commands.append(list(command))
        self._log.event("command", what=what, command=command)
        try:
            done = run_command(
                command,
                environment={**without_credentials(os.environ), **(environment or {})},
                directory=directory or self.scratch,
                log=self._log,
                stop=self._stop,
            )
        except StoppedError:
            raise
        except BuildError as error:
            raise BuildError(f"{self.name}: {what} failed: {error.reason}") from error
        for name in filter(None, map(stand_in_in, done.lines)):
            self.stand_in(name)
        if done.exit_code != 0:
            raise BuildError(self._why(command, what, done.exit_code, done.lines), done.lines[-_LOG_LINES:])
        return done.lines

    def warn(self, text: str) -> None:
        """See `Work.warn`."""
        self._log.event("warning", text=text)
        if text not in self._journal.warnings:
            self._journal.warnings.append(text)

    def stand_in(self, name: str) -> None:
        """See `Work.stand_in`."""
        if name not in self._journal.stand_ins:
            self._journal.stand_ins.append(name)

    def _why(self, command: Sequence[str], what: str, exit_code: int, lines: Sequence[str]) -> str:
        shown = " ".join(shlex.quote(part) for part in command)
        if len(shown) > _SHOWN_CHARACTERS:
            shown = f"{shown[:_SHOWN_CHARACTERS]} …"
        said = _telling_line(lines)
        return f"{self.name}: {what} failed: `{shown}` {_ended_how(exit_code)}" + (f": {said}" if said else "")


def stand_in_in(line: str) -> str | None:
    """The name of the stand-in that says so on this line: `cdk-triton stand-in for NAME: …`."""
    if not line.startswith(_STAND_IN) or ":" not in line:
        return None
    return line[len(_STAND_IN) :].split(":")[0]


def _ended_how(exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        return "was killed (SIGKILL), often because memory ran out"
    if exit_code < 0:
        return f"was ended by signal {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


def _telling_line(lines: Sequence[str]) -> str:
    """The last line that tells an error, or the last one: trtexec's very last says `FAILED` and its arguments."""
    said = [line.strip() for line in lines if line.strip() and not line.startswith("&&&&")]
    errors = [line for line in said if "[E]" in line or "rror" in line]
    return (errors or said or [""])[-1][:_SHOWN_CHARACTERS]
