"""Runs a user's export to ONNX, and makes sure that the file is what was declared."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Mapping

from .programs import run_driver
from .python_env import pinned_python
from .step import BuildError, Report, Work

__all__ = ["build"]

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*==\s*(?P<version>[^\s;\\]+)", re.MULTILINE)
_URL = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?\s*@", re.MULTILINE)


def build(step: Mapping[str, Any], work: Work) -> Report:
    """Call the function, compare the outputs, change the integer inputs, and write one file.

    Args:
        step: `name`, `source`, `function`, `requirements` and `target` (paths relative to the repository), `outputs`
            (all names) and `integer_inputs` ("int32" or None).
        work: the step's `Work`.

    Raises:
        BuildError: the requirements cannot be installed, the function fails or writes no file, or what it wrote is not
            what was declared.
    """
    python = _python((work.repository / step["requirements"]).read_text(encoding="utf-8"), work)
    # Of its own: what an export leaves beside its file is not part of the repository.
    directory = work.scratch / "export"
    directory.mkdir()
    exported = directory / Path(step["target"]).name
    run_driver(
        [python],
        "onnx_driver.py",
        {
            "action": "export",
            "name": step["name"],
            "source": str(work.repository / step["source"]),
            "shown": step["source"],
            "function": step["function"],
            "exported": str(exported),
        },
        work,
        what="running the export",
        directory=directory,
    )
    target = work.repository / step["target"]
    target.parent.mkdir(parents=True, exist_ok=True)
    run_driver(
        [python],
        "onnx_driver.py",
        {
            "action": "finish",
            "shown": step["source"],
            "exported": str(exported),
            "target": str(target),
            "outputs": step["outputs"],
            "integer_inputs": step["integer_inputs"],
        },
        work,
        what="comparing what was exported",
        directory=directory,
    )
    if not target.is_file():
        raise BuildError(f"the export of {step['source']} wrote no {step['target']}")
    return {"outputs": [step["target"]], "parity": None}


def _python(requirements: str, work: Work) -> str:
    """This Python if it has all pinned versions, else one of a new environment."""
    pins = [(found["name"], found["version"]) for found in _PIN.finditer(requirements)]
    if pins and not _URL.search(requirements) and all(_installed(name) == version for name, version in pins):
        return sys.executable
    return str(pinned_python(work, requirements, name="the export"))


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
