"""Rehearses the archives of a job, after all of them are packed: a model's code must not run before that.

An archive is one that this job has built, or one of the input folder. It is unpacked into a workspace, from which the
server gets it (`rehearsal`).
"""

from __future__ import annotations

import os
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

from .files import digest_of, is_safe_path, write_json
from .log import Log
from .plan import Rehearsal
from .product import Machine, make_product
from .rehearsal.document import document_of
from .rehearsal.run import rehearse
from .step import BuildError
from .unpack import unpack_archive

__all__ = ["rehearse_archive"]

_SCHEMA = 1

_ROOT = "CDK_TRITON_STAND_IN_ROOT"
"""The directory that stands for `/`, where a stand-in for the server looks for models."""


def rehearse_archive(rehearsal: Rehearsal, machine: Machine) -> bool:
    """Rehearse one archive into `OUT/<key>/pass.json`; what does not pass ends up as its `failure.json`.

    Returns:
        Whether it has passed.
    """
    make = partial(_rehearse, rehearsal, machine)
    return make_product("rehearsal", rehearsal.repository, rehearsal.key, machine, make)


def _rehearse(rehearsal: Rehearsal, machine: Machine, workspace: Path, log: Log) -> None:
    archive = _archive(rehearsal, machine)
    folder, out = workspace / "in", workspace / "out"
    (folder / "repository").mkdir(parents=True)
    rehearsed = {"size": archive.stat().st_size, "sha256": digest_of(archive, machine.stop)}
    unpack_archive(archive, folder / "repository", machine.stop)
    _unpack_golden(machine.folder / rehearsal.golden, folder)
    try:
        document = document_of(rehearsal.document, folder)
    except ValueError as error:
        raise BuildError(str(error)) from error
    root = Path(os.environ.get(_ROOT, "/"))
    guarded = (machine.folder, machine.out, machine.workspace)
    result: dict[str, Any] = rehearse(document, folder, out, root, log, machine.stop, guarded=guarded)
    reason = result.pop("reason")
    if reason is not None:
        raise BuildError(reason)
    write_json(
        out / "pass.json", {"schema": _SCHEMA, "repository": rehearsal.repository, "archive": rehearsed, **result}
    )


def _archive(rehearsal: Rehearsal, machine: Machine) -> Path:
    if rehearsal.archive is not None:
        return machine.folder / rehearsal.archive
    built = machine.out / rehearsal.artifact_key / "model.tar.gz"
    if not built.exists():
        raise BuildError("the archive was not built")
    return built


def _unpack_golden(file: Path, folder: Path) -> None:
    """Unpack the bodies of the requests and of the expected answers."""
    try:
        with zipfile.ZipFile(str(file)) as golden:
            for name in golden.namelist():
                if not is_safe_path(name):
                    raise BuildError(f"the golden requests contain the path {name!r}, which leaves their folder")
                golden.extract(name, str(folder))
    except (OSError, zipfile.BadZipFile) as error:
        raise BuildError(f"the golden requests {file.name} cannot be unpacked: {error}; deploy again") from error
