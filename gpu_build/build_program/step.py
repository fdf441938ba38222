"""The input and the result of a step of a build."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, Protocol, Sequence

from .stop import BuildError, Stop

__all__ = ["BuildError", "Report", "Work"]


class Work(Protocol):
    """The tools and directories of a step.

    Attributes:
        repository: the unpacked repository; steps read and write files here.
        scratch: an empty directory of this step's own, removed afterwards.
        shared: a directory of all steps of the job, for what is worth making once.
        platform: what `plan.json` expects (its `platform`).
        probed: what the machine has: gpu, compute_capability, driver, tensorrt, dali, python; None where not found.
        stop: checked between the blocks of long work in this process.
        stand_ins: the stand-ins that the build has met so far; none where it runs in an image.
    """

    repository: Path
    scratch: Path
    shared: Path
    platform: Mapping[str, Any]
    probed: Mapping[str, str | None]
    stop: Stop

    @property
    def stand_ins(self) -> Sequence[str]:
        """The stand-ins that the build has met so far."""

    def run(
        self,
        command: list[str],
        *,
        what: str,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> list[str]:
        """Run a command to its end and return the lines that it printed (both streams, merged).

        The command is recorded for `build.json`, its paths as they are in the repository or in a directory of the step.

        Args:
            command: the program and its arguments; no shell is involved.
            what: what it does, for the sentence of an error: "building the plan".
            environment: all its variables; if not given, those of this process that do not begin with `AWS_`.
            directory: where it works; the step's scratch directory if not given.

        Raises:
            BuildError: the command failed: step, what, command, exit code and its last lines; or the program has to
                end.
        """

    def warn(self, text: str) -> None:
        """Record a warning: a log line, and an entry of the ensemble's `build.json`."""

    def stand_in(self, name: str) -> None:
        """Record that a stand-in did the work of `name`.

        Not needed for one that prints `cdk-triton stand-in for NAME: …` on a line of its own: `run` finds that.
        """


Report = Dict[str, Any]
"""The result of a step: `outputs` (paths relative to the repository, with `/`), and `parity` and `speed` (figures) or
None.

Commands, sizes, hashes and times are recorded by the frame.
"""
