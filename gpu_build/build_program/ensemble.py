"""Builds one ensemble: unpacks it, runs its steps, and packs it."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any, Mapping, Sequence

from .files import digest_of, is_safe_path, write_json
from .log import Log, utc_time
from .pack import pack
from .plan import BuildPlan, Ensemble
from .probe import check_tensorrt
from .product import Machine, make_product
from .step import BuildError
from .steps import build_step
from .stop import Stop, StoppedError
from .unpack import unpack
from .work import BuildWork, Journal

__all__ = ["build_ensemble"]

_SCHEMA = 1


def build_ensemble(ensemble: Ensemble, plan: BuildPlan, machine: Machine) -> bool:
    """Build one ensemble into `OUT/<artifact key>`; whatever goes wrong ends up as its `failure.json`.

    Returns:
        Whether it was built.
    """
    make = partial(_build, ensemble, plan, machine)
    return make_product("ensemble", ensemble.repository, ensemble.artifact_key, machine, make)


def _build(ensemble: Ensemble, plan: BuildPlan, machine: Machine, workspace: Path, log: Log) -> None:
    started, begin = utc_time(), time.monotonic()
    check_tensorrt(ensemble, machine.probed.get("tensorrt"))
    journal = Journal(list(machine.warnings), list(machine.stand_ins))
    repository = workspace / "repository"
    repository.mkdir()
    unpack(ensemble, machine.folder, repository, machine.stop)
    log.event("unpacked", files=len(ensemble.files), inputs=len(ensemble.inputs))
    steps = [
        _step(step, workspace / f"step{index}", repository, plan, machine, log, journal)
        for index, step in enumerate(ensemble.steps)
    ]
    paths = _packed_paths(ensemble, steps, repository, log)
    log.event("packing", files=len(paths))
    archive = pack(repository, paths, workspace / "out" / "model.tar.gz", machine.stop)
    write_json(
        workspace / "out" / "build.json",
        {
            "schema": _SCHEMA,
            "build": plan.build,
            "repository": ensemble.repository,
            "artifact_key": ensemble.artifact_key,
            "started": started,
            "seconds": round(time.monotonic() - begin, 3),
            "sources": ensemble.sources,
            "inputs": _inputs_beside_archive(ensemble),
            "expected": plan.platform,
            "probed": dict(machine.probed),
            "warnings": journal.warnings,
            "stand_ins": journal.stand_ins,
            "steps": steps,
            "archive": archive,
        },
    )


def _step(
    step: Mapping[str, Any],
    scratch: Path,
    repository: Path,
    plan: BuildPlan,
    machine: Machine,
    log: Log,
    journal: Journal,
) -> dict[str, Any]:
    log = log.about(step=step["name"])
    log.event("step started", recipe=step["recipe"])
    started = time.monotonic()
    scratch.mkdir()
    work = BuildWork(
        step["name"],
        repository=repository,
        scratch=scratch,
        platform=plan.platform,
        probed=machine.probed,
        log=log,
        stop=machine.stop,
        journal=journal,
        shared=machine.workspace / "shared",
    )
    work.shared.mkdir(exist_ok=True)
    try:
        report = build_step(step, work)
    except StoppedError:
        raise
    except BuildError as error:
        if error.reason.startswith(f"{step['name']}: "):
            raise
        raise BuildError(f"{step['name']}: {error.reason}", error.log) from error
    outputs = [_output(path, step["name"], repository, machine.stop) for path in sorted(report["outputs"])]
    shutil.rmtree(scratch, ignore_errors=True)
    seconds = round(time.monotonic() - started, 3)
    log.event("step finished", seconds=seconds, outputs=outputs, parity=report.get("parity"))
    return {
        "recipe": step["recipe"],
        "name": step["name"],
        "seconds": seconds,
        "commands": work.commands,
        "outputs": outputs,
        "parity": report.get("parity"),
        "speed": report.get("speed"),
    }


def _inputs_beside_archive(ensemble: Ensemble) -> dict[str, str]:
    """Files that only the build reads, and files from S3, each with its SHA-256."""
    only_read = {path: ensemble.files[path] for path in ensemble.remove if path in ensemble.files}
    return {**only_read, **{entry.to: entry.sha256 for entry in ensemble.inputs}}


def _output(path: str, name: str, repository: Path, stop: Stop) -> dict[str, Any]:
    file = repository / path
    if not is_safe_path(path) or file.is_symlink() or not file.is_file():
        raise BuildError(f"{name}: it reports that it wrote {path}, which is not a regular file of the repository")
    return {"path": path, "size": file.stat().st_size, "sha256": digest_of(file, stop)}


def _packed_paths(ensemble: Ensemble, steps: Sequence[Mapping[str, Any]], repository: Path, log: Log) -> list[str]:
    """Sources, inputs and outputs of the steps, without the files to remove.

    Anything else that a step has written is litter.
    """
    paths = set(ensemble.files) | {entry.to for entry in ensemble.inputs}
    paths.update(output["path"] for step in steps for output in step["outputs"])
    missing = sorted(set(ensemble.remove) - paths)
    if missing:
        raise BuildError(
            f"the plan is damaged, because it removes the file {missing[0]!r}, which is neither in the sources nor "
            "built; deploy again"
        )
    litter = {path.relative_to(repository).as_posix() for path in repository.rglob("*") if not path.is_dir()} - paths
    if litter:
        log.event("left out", files=sorted(litter))
    return sorted(paths - set(ensemble.remove))
