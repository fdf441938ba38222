"""Rehearses: `python3 program.pyz rehearse IN OUT ROOT`.

`IN` has `rehearsal.json`, the bodies of the requests and of the expected answers, and the unpacked repository in
`repository/`. `OUT` gets `rehearsal.json` with the result. `ROOT` stands for `/`: the server finds the repository below
it, where SageMaker would have unpacked it.

Exit code 0: the repository loads and answers as expected; 1: it does not; 2: there was nothing to rehearse.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any, Sequence

from ..files import write_json
from ..log import Log, signs_of_life
from ..stop import BuildError, Stop, deadline_from
from .account import guarded_from, server_account
from .document import RehearsalDocument, read_document
from .server import Server
from .session import Session

__all__ = ["main", "rehearse"]

_PASSED, _FAILED, _NOT_STARTED = 0, 1, 2
_SCHEMA = 1
_MOST_SECONDS = 3600.0


def main(arguments: Sequence[str]) -> int:
    """Rehearse a repository.

    Args:
        arguments: the input folder, the output folder and the root directory.

    Returns:
        The exit code.
    """
    log = Log(sys.stdout)
    if len(arguments) != 3:
        log.event("refused", reason="usage: python3 program.pyz rehearse IN OUT ROOT")
        return _NOT_STARTED
    folder, out, root = (Path(argument).resolve() for argument in arguments)
    out.mkdir(parents=True, exist_ok=True)
    try:
        document = read_document(folder)
    except ValueError as error:
        log.event("refused", reason=str(error))
        return _NOT_STARTED
    stop = Stop(deadline_from(_MOST_SECONDS))
    stop.listen()
    with signs_of_life(log):
        # Whoever rehearses here reads the log here: it has everything.
        result = rehearse(document, folder, out, root, log, stop, private=False)
    write_json(out / "rehearsal.json", {"schema": _SCHEMA, "repository": document.repository, **result})
    log.event("rehearsed", repository=document.repository, reason=result["reason"])
    return _PASSED if result["reason"] is None else _FAILED


def rehearse(
    document: RehearsalDocument,
    folder: Path,
    out: Path,
    root: Path,
    log: Log,
    stop: Stop,
    *,
    guarded: Sequence[Path] = (),
    private: bool = True,
) -> dict[str, Any]:
    """Start the server, send the requests, and compare the answers.

    Args:
        document: what to rehearse.
        folder: contains the unpacked repository in `repository/`, which is used up.
        out: gets the answers that are kept.
        root: the directory that stands for `/`.
        log: gets the lines that the server prints.
        stop: ends the rehearsal.
        guarded: the folders of a job, which the server must not read: it has an account of its own.
        private: whether text of requests stays out of the log.

    Returns:
        `reason` (None if everything passes, and the first sentence of what does not otherwise), `load_seconds`,
        `requests` (for each `name`, `reason`, `seconds`, `largest_differences` by output), `stand_ins`, `server` (its
        `version` and `warnings`), `memory` (see `Memory.figures`), `latency` (see `Latencies.figures`), `skipped`
        (the budgets that could not be checked, with the reason) and `differs` (what is different from the endpoint).
        What was not reached is None or empty.

    Raises:
        BuildError: there are folders to guard, and this process may not change the account of the server.
    """
    session = Session(document, out, log, stop)
    with contextlib.ExitStack() as stack:
        account = None
        if guarded:
            _require_root()
            stack.enter_context(guarded_from(guarded))
            account = stack.enter_context(server_account(root))
        server = Server(document, root, log, stop, account, private=private)
        reason = session.run(server, folder / "repository")
    return {
        **session.result,
        "reason": reason,
        "stand_ins": list(server.stand_ins),  # the whole output is read now
        "server": {"version": server.version, "warnings": list(server.warnings)},
    }


def _require_root() -> None:
    if os.geteuid() != 0:
        raise BuildError(
            f"the image runs the job as user {os.geteuid()}, who cannot keep the server out of the job's folders: "
            "remove USER from the Dockerfile, or deploy with `-c cdk-triton:rehearsal=skip`"
        )
