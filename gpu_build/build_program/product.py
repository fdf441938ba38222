"""Makes a product of the job, an archive or a pass, and moves its complete directory into the output."""

from __future__ import annotations

import shutil
import time
import traceback
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Sequence

from .files import write_json
from .log import Log
from .step import BuildError
from .stop import Stop

__all__ = ["Machine", "make_product"]

_SCHEMA = 1

Make = Callable[[Path, Log], None]
"""Makes a product in the directory `out` of a workspace."""


class Machine(NamedTuple):
    """The data that all products of a run share.

    Attributes:
        folder: the input folder.
        out: the output folder.
        workspace: a directory on the file system of `out`, so that a finished directory can be moved there at once.
        probed: what the machine has.
        warnings: what the probe found worth a warning.
        stand_ins: stand-ins that the probe met.
        log: the log.
        stop: when to end.
    """

    folder: Path
    out: Path
    workspace: Path
    probed: Mapping[str, str | None]
    warnings: Sequence[str]
    stand_ins: Sequence[str]
    log: Log
    stop: Stop


def make_product(kind: str, repository: str, key: str, machine: Machine, make: Make) -> bool:
    """Make a product into `OUT/<key>`; whatever goes wrong ends up as its `failure.json`.

    A product that is not started, because the program has to end, has `started: false` there: another job can make it.

    Args:
        kind: the word for the log.
        repository: the name of its repository.
        key: its key.
        machine: the machine.
        make: makes it.

    Returns:
        Whether it was made.
    """
    log = machine.log.about(repository=repository)
    workspace = machine.workspace / key
    began, is_started = time.monotonic(), False
    failure: BuildError | None
    log.event(f"{kind} started", key=key)
    try:
        machine.stop.check()
        is_started = True
        (workspace / "out").mkdir(parents=True)
        make(workspace, log)
        _move_to_output(workspace / "out", machine.out / key, workspace)
    except BuildError as error:
        failure = error
    except Exception as error:  # one product's surprise must not cost the others
        reason = (
            f"the build failed unexpectedly: {type(error).__name__}: {error}; deploy again, and report the "
            "failure if it comes back"
        )
        failure = BuildError(reason, traceback.format_exc().splitlines())
    else:
        failure = None
    # First, because the disk may be full of it.
    shutil.rmtree(workspace, ignore_errors=True)
    if failure is not None:
        _write_failure(repository, key, machine, failure, is_started=is_started)
        log.event(f"{kind} failed", reason=failure.reason)
        return False
    log.event(f"{kind} finished", seconds=round(time.monotonic() - began, 1))
    return True


def _write_failure(repository: str, key: str, machine: Machine, failure: BuildError, *, is_started: bool) -> None:
    aside = machine.workspace / f"{key}.failed"
    aside.mkdir(parents=True)
    document = {
        "schema": _SCHEMA,
        "repository": repository,
        "started": is_started,
        "reason": failure.reason,
        "log": list(failure.log),
    }
    write_json(aside / "failure.json", document)
    _move_to_output(aside, machine.out / key, machine.workspace)


def _move_to_output(directory: Path, target: Path, workspace: Path) -> None:
    """A directory of an earlier run is replaced."""
    if target.exists():
        target.rename(workspace / f"{target.name}.old")
    directory.rename(target)
