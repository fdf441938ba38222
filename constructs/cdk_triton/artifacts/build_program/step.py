"""What a step of a build gets and gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, Protocol

__all__ = ["BuildError", "Work"]


class BuildError(Exception):
    """Ends an ensemble's build; its text is the one sentence that the user reads."""


class Work(Protocol):
    """What a step works with.

    Attributes:
        repository: the unpacked repository; steps read and write files here.
        scratch: an empty directory of this step's own, removed afterwards.
        platform: what the plan expects (`platform` of the plan).
        probed: what the machine has: gpu, compute_capability, driver, tensorrt, dali, python; None where not found.
    """

    repository: Path
    scratch: Path
    platform: Mapping[str, Any]
    probed: Mapping[str, str | None]

    def run(
        self,
        command: list[str],
        *,
        what: str,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> list[str]:
        """Run a command to its end and return the lines that it printed (both streams, merged).

        Raises:
            BuildError: it failed: recipe, command, exit code and its last lines; or the deadline has come.
        """

    def warn(self, text: str) -> None:
        """Record a warning: a log line, and an entry of the ensemble's `build.json`."""

    def stand_in(self, name: str) -> None:
        """Record that a stand-in did the work of `name`."""


Report = Dict[str, Any]
"""What a step answers: `commands` (argument lists), `outputs` (paths relative to the repository), `parity` or None."""
