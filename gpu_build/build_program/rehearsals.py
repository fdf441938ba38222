"""Rehearses the archives of a job, after all of them are packed: a model's code must not run before that.

An archive is one that this job has built, or one of the input folder. It is unpacked into a workspace, from which the
server gets it (`rehearsal`).
"""

from __future__ import annotations

import os
import zipfile
from functools import partial
from pathlib import Path
from typing import Any, Sequence

from .files import digest_of, write_json
from .log import Log
from .plan import RehearsalEntry
from .product import Machine, make_product
from .rehearsal.document import RehearsalDocument, document_of
from .rehearsal.run import rehearse
from .step import BuildError
from .stop import Stop
from .unpack import unpack_archive

__all__ = ["rehearse_archives", "unpack_golden"]

_SCHEMA = 1

_LEAST_SECONDS = 10.0
"""A rehearsal with less time is not started: it would fail for this reason alone."""

_MOST_BYTES = 100_000_000
"""The most that the bodies may have together (`cdk_triton.rehearsal.requests`)."""

_MOST_NAMES_BYTES = 10_000_000
"""The most that the names and the rest of the ZIP file may have."""

_ROOT = "CDK_TRITON_STAND_IN_ROOT"
"""The directory that stands for `/`, where a stand-in for the server looks for models."""


def rehearse_archives(rehearsals: Sequence[RehearsalEntry], machine: Machine) -> list[bool]:
    """Rehearse each archive into `OUT/<key>/pass.json`; what does not pass ends up as its `failure.json`.

    Each has an equal share of the time that is left, so that one that hangs does not take the others with it. What a
    rehearsal does not need is left to those that follow.

    Returns:
        Which have passed.
    """
    passed = []
    for number, each in enumerate(rehearsals):
        limited = machine._replace(stop=_limited(machine.stop, len(rehearsals) - number))
        make = partial(_rehearse, each, limited)
        passed.append(make_product("rehearsal", each.repository, each.key, limited, make))
    return passed


def _limited(stop: Stop, count: int) -> Stop:
    """The limit of the first of some rehearsals that are left."""
    left = stop.seconds_left
    if left < _LEAST_SECONDS:
        return stop.within(0.0, "the builder's timeout left no time for this rehearsal: deploy again, or raise it")
    seconds = max(left / count, _LEAST_SECONDS)
    return stop.within(
        seconds,
        f"the rehearsal was not finished after {seconds:.0f} s, its share of the builder's timeout: make the models "
        "load and answer faster, or raise the timeout",
    )


def _rehearse(rehearsal: RehearsalEntry, machine: Machine, workspace: Path, log: Log) -> None:
    archive = _archive(rehearsal, machine)
    folder, bodies, out = workspace / "in", workspace / "golden", workspace / "out"
    (folder / "repository").mkdir(parents=True)
    bodies.mkdir()
    rehearsed = {"size": archive.stat().st_size, "sha256": digest_of(archive, machine.stop)}
    unpack_archive(archive, folder / "repository", machine.stop)
    try:
        document = document_of(rehearsal.document, bodies)
    except ValueError as error:
        raise BuildError(str(error)) from error
    unpack_golden(machine.folder / rehearsal.golden, document, bodies)
    root = Path(os.environ.get(_ROOT, "/"))
    guarded = () if _ROOT in os.environ else (machine.folder, machine.out, machine.workspace)
    result: dict[str, Any] = rehearse(document, folder, out, root, log, machine.stop, guarded=guarded)
    reason = result.pop("reason")
    if reason is not None:
        raise BuildError(reason)
    write_json(
        out / "pass.json", {"schema": _SCHEMA, "repository": rehearsal.repository, "archive": rehearsed, **result}
    )


def _archive(rehearsal: RehearsalEntry, machine: Machine) -> Path:
    if rehearsal.archive is not None:
        return machine.folder / rehearsal.archive
    built = machine.out / rehearsal.artifact_key / "model.tar.gz"
    if not built.exists():
        raise BuildError("the archive was not built")
    return built


def unpack_golden(file: Path, document: RehearsalDocument, folder: Path) -> None:
    """Unpack the bodies of the requests and of the expected answers, which are all that the file may have.

    Raises:
        BuildError: the file is damaged or too large, or has other files.
    """
    bodies = [body for each in document.requests for body in (each.body, each.expected) if body is not None]
    try:
        _require_size(file, file.stat().st_size, _MOST_BYTES + _MOST_NAMES_BYTES)
        with zipfile.ZipFile(str(file)) as golden:
            if sorted(golden.namelist()) != sorted(body.relative_to(folder).as_posix() for body in bodies):
                raise BuildError(f"the golden requests {file.name} have other files than their document: deploy again")
            # zipfile reads no more than this
            _require_size(file, sum(entry.file_size for entry in golden.infolist()), _MOST_BYTES)
            golden.extractall(str(folder))
    except BuildError:
        raise
    except Exception as error:  # for damaged files, zipfile raises errors without a common root
        raise BuildError(f"the golden requests {file.name} cannot be unpacked: {error}; deploy again") from error


def _require_size(file: Path, size: int, most: int) -> None:
    if size > most:
        raise BuildError(
            f"the golden requests {file.name} have {size:,} bytes, but {most:,} are allowed: keep the requests that "
            "show most"
        )
