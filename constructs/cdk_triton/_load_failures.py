"""Why models do not load or answer, in one sentence, read from what tritonserver printed or answered.

The program of a GPU build has this file too, by a link, so it is written for Python 3.8.

The server reports one cause up to four times: where the instance fails, where the version fails, for each ensemble that
depends on it, and as the last line. The forms below are those of release 24.10, which is the one that runs here (core
src/model_lifecycle.cc and src/model_repository_manager/model_repository_manager.cc, server src/main.cc). Any
other form is quoted as it is.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["failed_request", "load_failures", "logged_exception", "rejected_load", "rejected_model"]

_ERROR_LINE: Final = re.compile(r'^(?:E\d{4} \S+ \d+ [\w.]+:\d+\] "(?P<logged>.*)"|error: (?P<last>.*))$')
_ROOT_CAUSES: Final = (
    re.compile(r"failed to load '(?P<model>[^']+)' version \d+: (?P<reason>.*)", re.DOTALL),
    re.compile(r"failed to load model '(?P<model>[^']+)': (?P<reason>.*)", re.DOTALL),
    re.compile(r"Poll failed for model directory '(?P<model>[^']+)': (?P<reason>.*)", re.DOTALL),
    re.compile(r"Invalid argument: (?P<reason>in ensemble (?P<model>[^,]+), .*)", re.DOTALL),
)
_CODE: Final = re.compile(
    r"^(Internal|Invalid argument|Not found|Unavailable|Unsupported|Already exists|Unknown): (?!$)"
)
_ANSWERS: Final = (
    re.compile(
        r"Model '(?P<model>[^']+)' loading failed with error: version \d+ is at UNAVAILABLE state: (?P<reason>.*)",
        re.DOTALL,
    ),
    re.compile(
        r"load failed for model '(?P<model>[^']+)': (?:version \d+ is at UNAVAILABLE state: )?(?P<reason>.*)", re.DOTALL
    ),
)
_PARSE_ERROR: Final = re.compile(r"^\[libprotobuf ERROR .*\] Error parsing text-format \S+ (?P<fault>.+)$")
_FRAME: Final = re.compile(r"^ {2}(?P<file>.+)\((?P<line>\d+)\): ", re.MULTILINE)
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_PRINTED_FRAME: Final = re.compile(r' {2}File "(?P<file>.+)", line (?P<line>\d+)')
_FAILED: Final = re.compile(r"Failed to process the request\(s\) for model '[^']+', message: (?P<reason>.*)", re.DOTALL)
"""What a Python model raises in `execute` (python_backend: src/python_be.cc)."""
_ESCAPES: Final = {"\\n": "\n", '\\"': '"', "\\\\": "\\", "\\t": "\t", "\\r": "\r"}
_REPOSITORY: Final = re.compile(r"(?P<directory>/[^'\n]*?)/?::")
"""The server writes the directory of a repository before a model's name: `/opt/ml/models/<hash>/model::text`."""
_QUOTED_LINES: Final = 3
_STACK: Final = re.compile(r" *\d+# ")
"""A line of what the server prints of its own stack when it crashes."""
_MISSING: Final = re.compile(r"ModuleNotFoundError: No module named '(?P<module>\w+(?:\.\w+)*)'")
_TAG: Final = re.compile(r"\.cpython-3(?P<minor>\d+)-")
"""In the name of a module in C: the one Python that can import it (PEP 3149)."""


def load_failures(printed: str, repository: Path) -> str:
    """A clause for each model that the server's output blames, or the last error lines if it blames none.

    Args:
        printed: the server's output, from its start or from the start of the load.
        repository: the directory of the models, which is taken out of names and paths.

    Returns:
        Such as `model 'features' does not load: No module named 'pandas' (features/1/model.py, line 2)`; models that
        only depend on one that failed are not named. Empty where the server printed nothing.
    """
    errors = list(_errors(printed))
    causes: dict[str, str] = {}
    for text in errors:
        for pattern in _ROOT_CAUSES:
            if (found := pattern.fullmatch(text)) and "has no loaded version" not in text:
                model = found["model"].rpartition("::")[2]
                causes.setdefault(model, _reason(found["reason"], repository))
                break
    faults = [found["fault"] for line in printed.splitlines() if (found := _PARSE_ERROR.match(line))]
    if len(causes) == len(faults) == 1:  # with more of them, it is not known which belongs to which
        causes = {model: f"{reason}: {faults[0].rstrip('.')}" for model, reason in causes.items()}
    if causes:
        return "; ".join(f"model '{model}' does not load: {reason}" for model, reason in causes.items())
    last = errors or [line for line in printed.splitlines() if line.strip() and not _STACK.match(line)]
    return "; ".join(_short(line, repository) for line in last[-_QUOTED_LINES:])


def rejected_load(answer: str, repository: Path) -> str:
    """The same clauses, from the server's answer to a request to load a model.

    Args:
        answer: the body, JSON with the member `error`.
        repository: as above.
    """
    try:
        text = str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        text = answer
    return _clause(text, repository) or _short(text, repository)


def rejected_model(text: str) -> str | None:
    """The same clause, from the server's answer to a caller whose model does not load; None for any other answer."""
    found = _REPOSITORY.search(text)
    return _clause(text, Path(found["directory"]) if found else None)


def failed_request(text: str, repository: Path) -> str:
    """Why a request failed, from the message of the server's answer.

    Args:
        text: the message.
        repository: the directory of the models, which is taken out of paths.

    Returns:
        Such as `ValueError: no such row (features/1/model.py, line 12)`.
    """
    found = _FAILED.search(text)
    return _short(text, repository) if found is None else _reason(found["reason"], repository)


def logged_exception(lines: Iterable[str], repository: Path) -> str:
    """The first exception whose traceback a server has printed, such as one that has ended a thread of a Python model.

    Args:
        lines: what the server has printed.
        repository: the directory of the models, which is taken out of paths.

    Returns:
        Such as `ValueError: no such row (features/1/model.py, line 12)`; empty if there is none.
    """
    is_within, place = False, ""
    for line in lines:
        if line == _TRACEBACK:
            is_within, place = True, ""
        elif is_within and _RAISED.match(line):
            return _short(line, repository) + place
        elif is_within and (frame := _PRINTED_FRAME.match(line)) and repository in Path(frame["file"]).parents:
            place = f" ({Path(frame['file']).relative_to(repository)}, line {frame['line']})"
    return ""


def _clause(text: str, repository: Path | None) -> str | None:
    for pattern in _ANSWERS:
        if found := pattern.search(text):
            model = found["model"].rpartition("::")[2]
            return f"model '{model}' does not load: {_reason(found['reason'], repository)}"
    return None


def _errors(printed: str) -> Iterator[str]:
    for line in printed.splitlines():
        if (found := _ERROR_LINE.match(line)) and "CudaDriverHelper" not in line:  # every machine without a GPU
            yield found["last"] or re.sub(r"\\.", lambda each: _ESCAPES.get(each[0], each[0]), found["logged"] or "")


def _reason(text: str, repository: Path | None) -> str:
    """The first paragraph, and the innermost place in the repository that the traceback names."""
    words, _, trace = text.partition("\n\nAt:\n")
    place = ""
    if repository is not None:
        frames = [frame for frame in _FRAME.finditer(trace) if repository in Path(frame["file"]).parents]
        place = f" ({Path(frames[0]['file']).relative_to(repository)}, line {frames[0]['line']})" if frames else ""
    return _short(_CODE.sub("", words), repository) + place + _of_another_python(words, repository)


def _of_another_python(words: str, repository: Path | None) -> str:
    """Why a module is missing whose file is there, on the local AWS; on AWS, the repository is not on this machine."""
    missing = _MISSING.search(words)
    if missing is None or repository is None:
        return ""
    for file in sorted(repository.rglob(f"{missing['module'].replace('.', '/')}.cpython-3*.so")):
        tag = _TAG.search(file.name)
        if tag is not None and int(tag["minor"]) != sys.version_info.minor:
            other = f"{file.relative_to(repository)} is for Python 3.{tag['minor']}"
            own = "the local AWS runs models with the Python that started it"
            return f"; {other}, but {own}: `cdk-triton vendor` installs packages for both"
    return ""


def _short(text: str, repository: Path | None) -> str:
    if repository is not None:
        text = text.replace(f"{repository}/::", "").replace(f"{repository}::", "").replace(f"{repository}/", "")
    return " ".join(text.split()).rstrip(".;")
