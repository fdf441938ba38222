"""Runs programs from outside the library: a user's code, and what pip or micromamba has installed."""

from __future__ import annotations

import json
import os
import pkgutil
from pathlib import Path
from typing import Any, Mapping, Sequence

from .step import BuildError, Work
from .user_code import raised_error

__all__ = ["driver_script", "isolated", "run_driver"]

# What a program needs of the image to find its libraries and the GPU. Everything else stays out: CODEBUILD_ and
# SageMaker variables, tokens of package indices, whatever a job's definition adds.
_KEPT = (
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)

_LOG_LINES = 40


def isolated(work: Work, *, keep: Sequence[str] = (), **variables: str) -> dict[str, str]:
    """The environment of a user's program: some variables of the image, and a home directory in `scratch`.

    It keeps credentials and tokens from code that does not look for them. It is not a sandbox, because the program runs
    as the same user as the build.

    Args:
        work: the step's `Work`.
        keep: further variables to keep.
        variables: variables to set.
    """
    home = work.scratch / "home"
    temporary = work.scratch / "tmp"
    for directory in (home, temporary):
        directory.mkdir(exist_ok=True)
    environment = {name: os.environ[name] for name in (*_KEPT, *keep) if name in os.environ}
    # The seed: sets of text have another order in every process otherwise, and with them what is built.
    environment.update(
        HOME=str(home),
        TMPDIR=str(temporary),
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONHASHSEED="0",
        PYTHONNOUSERSITE="1",
        PYTHONUNBUFFERED="1",
    )
    environment.update(variables)
    return environment


def driver_script(name: str, work: Work) -> Path:
    """A file of this package, written into `scratch`: a program in a zip archive cannot be run by another Python."""
    content = pkgutil.get_data(__package__ or "", name)
    if content is None:
        raise BuildError(f"the build program lacks its file {name}: it was packed by another version of cdk-triton")
    path = work.scratch / name
    path.write_bytes(content)
    return path


def run_driver(
    python: Sequence[str],
    name: str,
    question: Mapping[str, Any],
    work: Work,
    *,
    what: str,
    keep: Sequence[str] = (),
    directory: Path | None = None,
    **variables: str,
) -> dict[str, Any]:
    """Ask a program of this package that runs in another Python: JSON in, JSON out.

    Raises:
        BuildError: the other program failed, did not answer, answered with an `error`, or the user's code `raised`;
            then `question` has the `name` of the step.
    """
    asked, answered = work.scratch / "question.json", work.scratch / "answer.json"
    asked.write_text(json.dumps(question), encoding="utf-8")
    if answered.exists():
        answered.unlink()
    command = [*python, str(driver_script(name, work)), str(asked), str(answered)]
    lines = work.run(command, what=what, environment=isolated(work, keep=keep, **variables), directory=directory)
    if not answered.exists():
        raise BuildError(
            f"{what} returned no result: your code ended the process itself; remove the call that does this, such as "
            "os._exit()",
            lines[-_LOG_LINES:],
        )
    answer: dict[str, Any] = json.loads(answered.read_text(encoding="utf-8"))
    if "error" in answer:
        raise BuildError(answer["error"])
    if "raised" in answer:
        raise raised_error(answer["raised"], question["name"], work)
    return answer
