"""The tools of a step: directories, commands, and the record for `build.json`."""

from __future__ import annotations

import os
import re
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
# A reason is cut at 1000 characters on its way through CloudFormation; so much is left for both.
_COMMAND_CHARACTERS = 200
_CAUSE_CHARACTERS = 400
# What trtexec begins an error with, and what it puts around the node that it could not read.
_TRTEXEC_ERROR = re.compile(r"(?:\[[^\]]*\] )?\[E\] (?!.*--- (?:Begin|End) node)(?P<cause>.+)")


class Journal(NamedTuple):
    """The record of an ensemble's build for `build.json`."""

    warnings: list[str]
    stand_ins: list[str]


class BuildWork:
    """The `Work` of one step.

    Args:
        name: the step's name, which begins its errors.
        repository: the unpacked repository.
        scratch: an empty directory.
        shared: a directory of all steps of the job; the scratch directory if not given.
        platform: what `plan.json` expects.
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
        self.stop = stop
        self._log = log
        self._journal = journal

    @property
    def stand_ins(self) -> Sequence[str]:
        """See `Work.stand_ins`."""
        return tuple(self._journal.stand_ins)

    def run(
        self,
        command: list[str],
        *,
        what: str,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> list[str]:
        """See `Work.run`."""
        self.commands.append(self._portable(command))
        self._log.event("command", what=what, command=command)
        try:
            done = run_command(
                command,
                environment=without_credentials(os.environ) if environment is None else environment,
                directory=directory or self.scratch,
                log=self._log,
                stop=self.stop,
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
        shown = _cut(" ".join(map(shlex.quote, self._portable(command))), _COMMAND_CHARACTERS)
        cause = _cut(self._without_directories(_cause(lines)), _CAUSE_CHARACTERS)
        return f"{self.name}: {what} failed: `{shown}` {_ended_how(exit_code)}" + (f": {cause}" if cause else "")

    def _portable(self, command: Sequence[str]) -> list[str]:
        """The program's name and short paths, which do not depend on the machine."""
        return [Path(command[0]).name, *map(self._without_directories, command[1:])]

    def _without_directories(self, text: str) -> str:
        for directory in (self.repository, self.scratch, self.shared):
            text = text.replace(f"{directory}{os.sep}", "")
        return text


def stand_in_in(line: str) -> str | None:
    """The name of the stand-in that writes this line: `cdk-triton stand-in for NAME: …`."""
    if not line.startswith(_STAND_IN) or ":" not in line:
        return None
    return line[len(_STAND_IN) :].split(":")[0]


def _ended_how(exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        return "was killed (SIGKILL), often because memory ran out"
    if exit_code < 0:
        return f"was ended by signal {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


def _cause(lines: Sequence[str]) -> str:
    """The lines that explain an error.

    trtexec begins with the cause and ends with its consequences; a Python program ends with its error. For other
    programs this is the last line.
    """
    causes = [found["cause"].strip() for found in map(_TRTEXEC_ERROR.match, lines) if found is not None]
    if causes:
        return "; ".join(dict.fromkeys(causes))
    printed = [line.strip() for line in lines if line.strip() and not line.startswith("&&&&")]
    errors = [line for line in printed if "error" in line.lower()]
    return (errors or printed or [""])[-1]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()} ..."
