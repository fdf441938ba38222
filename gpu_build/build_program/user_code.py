"""Describes what a user's code raised: the step, the exception, and the line of the user's own file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

from .step import BuildError, Work

__all__ = ["raised_error"]

_TEXT_CHARACTERS = 400  # a reason is cut at 1000 on its way through CloudFormation
_LOG_FRAMES = 10


def raised_error(raised: Mapping[str, Any], name: str, work: Work) -> BuildError:
    """The error for what a driver answered as `raised`.

    Its log has the frames in the user's files, outermost first, and ends with the exception. Those of libraries, and
    the drivers' own, are in the log of the job: an excerpt of a few hundred characters would show nothing else.

    Args:
        raised: `what` was run (`bert/export.py:export`), the exception's `type` and `text`, and its `frames`, each a
            file, a line's number, a function and the line.
        name: the step's name.
        work: the step's `Work`.
    """
    directory, _, what = raised["what"].partition("/")
    model = work.repository / directory
    text = raised["text"]
    for place in (model, work.repository, work.scratch):
        text = text.replace(f"{place}/", "")
    exception = raised["type"] + (f": {text}" if text else "")
    lines, where = [], ""
    for file, number, function, line in raised["frames"]:
        shown = _within(work.repository / file, model)
        if shown is not None:
            where = f" ({shown}, line {number})"
            lines += [f'File "{shown}", line {number}, in {function}', f"    {line}"]
    short = exception if len(exception) <= _TEXT_CHARACTERS else f"{exception[:_TEXT_CHARACTERS].rstrip()} ..."
    return BuildError(f"{name}: {what} raised {short}{where}", [*lines[-2 * _LOG_FRAMES :], *exception.splitlines()])


def _within(file: Path, directory: Path) -> str | None:
    try:
        return file.relative_to(directory).as_posix()
    except ValueError:
        return None
