"""Rehearses: `python3 program.pyz rehearse IN OUT ROOT`.

`IN` has `rehearsal.json`, the bodies of the requests and of the expected answers, and the unpacked repository in
`repository/`. `OUT` gets `rehearsal.json` with the result. `ROOT` stands for `/`: the server finds the repository below
it, where SageMaker would have unpacked it.

Exit code 0: the repository loads and answers as expected; 1: it does not; 2: there was nothing to rehearse.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..files import write_json
from ..log import Log, signs_of_life
from ..stop import Stop, StoppedError, deadline_from
from .comparison import difference, figures_of
from .document import GoldenRequest, RehearsalDocument, read_document
from .server import Answer, RehearsalError, Server, serving
from .tensors import AnswerError, Tensor, read_tensors

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
        result = rehearse(document, folder, out, root, log, stop)
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
) -> dict[str, Any]:
    """Start the server, send the requests, and compare the answers.

    Args:
        document: what to rehearse.
        folder: contains the unpacked repository in `repository/`, which is used up.
        out: gets the answers that are kept.
        root: the directory that stands for `/`.
        log: gets the lines that the server prints.
        stop: ends the rehearsal.
        guarded: the folders of a job, which the server must not read.

    Returns:
        `reason` (None if everything passes, and the first sentence of what does not otherwise) and the figures.
    """
    result: dict[str, Any] = {"reason": None, "load_seconds": None, "requests": []}
    server = Server(document, root, log, stop)
    try:
        with serving(server, folder / "repository"):
            result["load_seconds"] = round(server.load_seconds, 3)
            for number, request in enumerate(document.requests):
                kept = out / f"answer{number}" if document.keep_answers else None
                result["requests"].append(_asked(request, server, kept))
    except (RehearsalError, StoppedError) as error:
        result["reason"] = error.reason
    result["stand_ins"] = list(server.stand_ins)  # the whole output is read now
    failed = [each for each in result["requests"] if each["reason"] is not None]
    if failed and result["reason"] is None:
        result["reason"] = f"{failed[0]['name']}: {failed[0]['reason']}"
    return result


def _asked(request: GoldenRequest, server: Server, kept: Path | None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": request.name, "reason": None, "seconds": None, "largest_differences": {}}
    try:
        answer = server.invoke(request.body.read_bytes(), request.content_type)
        row["seconds"] = round(answer.seconds, 6)
        if answer.status != 200:
            raise AnswerError(f"the server answered with status {answer.status}: {answer.error}")
        if kept is not None:
            kept.write_bytes(answer.body)
            row["content_type"] = answer.content_type
        row.update(_compared(request, answer))
    except AnswerError as error:
        row["reason"] = str(error)
    except RehearsalError as error:  # the others cannot be sent any more
        raise RehearsalError(f"{request.name}: {error.reason}") from error
    return row


def _compared(request: GoldenRequest, answer: Answer) -> Mapping[str, Any]:
    found = read_tensors(answer.body, answer.content_type)
    expected: dict[str, Tensor] | None = None
    if request.expected is not None:
        expected = read_tensors(request.expected.read_bytes(), request.expected_type)
    reason = difference(request.comparison, found, expected)
    if reason is not None or expected is None:
        return {"reason": reason}
    return {"largest_differences": figures_of(found, expected)}
