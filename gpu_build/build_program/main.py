"""The program: `python3 program.pyz IN OUT`, and `python3 program.pyz rehearse IN OUT ROOT` (see `rehearsal.run`).

Exit code 0: every ensemble is built, and every rehearsal has passed; 1: some failed, each with its `failure.json`; 2:
it ended before any work, and `OUT/failure.json` contains the reason.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Sequence

from .ensemble import build_ensemble
from .files import write_json
from .log import Log, signs_of_life
from .plan import BuildPlan, PlanError, read_plan
from .probe import check, probe
from .product import Machine
from .rehearsal.run import main as rehearse
from .rehearsals import rehearse_archives
from .step import BuildError
from .stop import Stop, deadline_from
from .work import BuildWork, Journal

__all__ = ["main"]

_DONE, _SOME_FAILED, _NOT_STARTED = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """Follow the `plan.json` in a folder, or rehearse.

    Args:
        arguments: the input folder, which holds `plan.json`, and the output folder; or `rehearse` and the arguments of
            `rehearsal.run`.

    Returns:
        The exit code.
    """
    if arguments and arguments[0] == "rehearse":
        return rehearse(arguments[1:])
    log = Log(sys.stdout)
    if len(arguments) != 2:
        log.event("refused", reason="usage: python3 program.pyz IN OUT")
        return _NOT_STARTED
    folder, out = (Path(argument).resolve() for argument in arguments)
    out.mkdir(parents=True, exist_ok=True)
    if (out / "failure.json").exists():  # of an earlier run
        (out / "failure.json").unlink()
    try:
        with signs_of_life(log):
            return _follow(folder, out, log)
    except PlanError as error:
        return _fail(out, log, str(error), ())
    except BuildError as error:
        return _fail(out, log, error.reason, error.log)
    except Exception as error:  # products have their own; what is left is the machine: a full or read-only disk
        reason = (
            f"the build program failed unexpectedly: {type(error).__name__}: {error}; deploy again, and report "
            "the failure if it comes back"
        )
        return _fail(out, log, reason, traceback.format_exc().splitlines())


def _follow(folder: Path, out: Path, log: Log) -> int:
    plan = read_plan(folder / "plan.json")
    stop = Stop(deadline_from(plan.deadline_seconds))
    stop.listen()
    workspace = _workspace(out)
    try:
        return _run(plan, folder, out, workspace, log, stop)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _run(plan: BuildPlan, folder: Path, out: Path, workspace: Path, log: Log, stop: Stop) -> int:
    ensembles, rehearsals = ([each.repository for each in some] for some in (plan.ensembles, plan.rehearsals))
    log.event("started", build=plan.build, ensembles=ensembles, rehearsals=rehearsals)
    journal = Journal([], [])
    scratch = workspace / "probe"
    scratch.mkdir()
    work = BuildWork(
        "the probe",
        repository=scratch,
        scratch=scratch,
        platform=plan.platform,
        probed={},
        log=log,
        stop=stop,
        journal=journal,
    )
    probed = probe(work)
    log.event("probed", expected=plan.platform, probed=probed)
    for text in check(plan, probed, journal.stand_ins):
        work.warn(text)
    machine = Machine(folder, out, workspace, probed, journal.warnings, journal.stand_ins, log, stop)
    started = time.monotonic()
    built = [build_ensemble(ensemble, plan, machine) for ensemble in plan.ensembles]
    passed = rehearse_archives(plan.rehearsals, machine)
    seconds = round(time.monotonic() - started, 1)
    log.event("finished", built=sum(built), passed=sum(passed), failed=[*built, *passed].count(False), seconds=seconds)
    return _DONE if all(built) and all(passed) else _SOME_FAILED


def _fail(out: Path, log: Log, reason: str, lines: Sequence[str]) -> int:
    log.event("refused", reason=reason)
    write_json(out / "failure.json", {"schema": 1, "reason": reason, "log": list(lines)})
    return _NOT_STARTED


def _workspace(out: Path) -> Path:
    """A directory from which a file can be renamed into the output: beside the output if possible, else in it.

    Beside it is better, because a Processing job uploads what appears in the output while the job runs. If the output
    is its own mount, a rename from a directory beside it fails.
    """
    beside = Path(tempfile.mkdtemp(prefix=".build-", dir=str(out.parent)))
    try:
        probe_directory = beside / "moved"
        probe_directory.mkdir()
        probe_directory.rename(out / ".moved")
        (out / ".moved").rmdir()
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=".build-", dir=str(out)))
    return beside
