"""Builds a DALI pipeline: serialises it with the DALI of the image, twice, and loads it once on the GPU."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any, Mapping

from .programs import run_driver
from .step import BuildError, Report, Work

__all__ = ["build"]

# Where DALI is before 24.05, the first release whose `python3` finds it by itself (server: build.py of each branch).
_WHEEL = "/opt/tritonserver/backends/dali/wheel/dali"
_CONDA_PYTHON = "/opt/tritonserver/backends/dali/conda/envs/dalienv/bin/python"

_MARK = """

from nvidia.dali.plugin.triton import autoserialize as _cdk_triton_autoserialize

_cdk_triton_autoserialize({name})
"""


def build(step: Mapping[str, Any], work: Work) -> Report:
    """Write `model.dali`, or `dali.py`, which Triton serialises when it loads the model.

    Args:
        step: `source` (the Python file) and `target` (what is written; None where the source itself is served), both
            relative to the repository; `serialize` (whether the target is `model.dali`); `max_batch_size`.
        work: the step's.

    Raises:
        BuildError: the file has not exactly one pipeline, or DALI cannot serialise or load it.
    """
    asking = _Dali(step["source"], work, is_own_python=not step["serialize"])
    found = asking.ask("reading the pipeline definition", action="find")
    name = _pipeline_in(step["source"], found)
    source, target = step["source"], step["target"]
    if target is not None and not step["serialize"]:
        _write_marked(work.repository / source, work.repository / target, name, is_marked=bool(found["marked"]))
        asking.source = target
    serialized = asking.serialized(name if step["serialize"] else None)
    asking.ask(
        "loading the pipeline",
        action="load",
        serialized=str(serialized),
        max_batch_size=step["max_batch_size"],
    )
    if target is None:
        return {"outputs": [], "parity": None}
    if step["serialize"]:
        (work.repository / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(serialized), str(work.repository / target))
    return {"outputs": [target], "parity": None}


class _Dali:
    """A Python with DALI, asked about one file."""

    def __init__(self, source: str, work: Work, *, is_own_python: bool) -> None:
        self.source = source
        self._work = work
        self._python = sys.executable
        self._variables: dict[str, str] = {}
        # A file that Triton will serialise has to work with the very Python that Triton will start.
        if not is_own_python and Path(_WHEEL).is_dir():
            self._variables["PYTHONPATH"] = _WHEEL
        elif not is_own_python and Path(_CONDA_PYTHON).exists():
            self._python = _CONDA_PYTHON

    def ask(self, what: str, **question: Any) -> dict[str, Any]:
        return run_driver(
            [self._python],
            "dali_driver.py",
            {"source": self.source, **question},
            self._work,
            what=what,
            keep=("PYTHONPATH",),
            directory=self._work.repository,
            **self._variables,
        )

    def serialized(self, function: str | None) -> Path:
        """Serialise in two processes, because what differs between them would differ between builds."""
        files = [self._work.scratch / name for name in ("first.dali", "second.dali")]
        for file in files:
            self.ask("serialising the pipeline", action="serialize", function=function, target=str(file))
        first, second = (file.read_bytes() for file in files)
        if first != second:
            at = next((i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
            self._work.warn(
                f"the pipeline of {self.source} is serialised to other bytes each time (from byte {at} on), so that "
                "another build of the same sources gives another archive: it depends on the time, on random numbers or "
                "on the order of a set; give random operators a seed"
            )
        return files[0]


def _pipeline_in(source: str, found: Mapping[str, Any]) -> str:
    marked, defined = found["marked"], found["pipelines"]
    if len(marked) > 1:
        raise BuildError(
            f"{source} has {len(marked)} functions with @autoserialize ({', '.join(marked)}) and Triton serialises "
            "exactly one: take the decorator from the others"
        )
    if marked:
        return str(marked[0])
    if len(defined) != 1:
        names = f" ({', '.join(defined)})" if defined else ""
        raise BuildError(
            f"{source} has {len(defined)} functions with @pipeline_def{names} and none with @autoserialize: keep one, "
            "or mark the one to serve with @autoserialize of nvidia.dali.plugin.triton"
        )
    return str(defined[0])


def _write_marked(source: Path, target: Path, name: str, *, is_marked: bool) -> None:
    """Write the file that Triton serialises: the source, marked with `@autoserialize` unless it is already."""
    text = source.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if is_marked else text + _MARK.format(name=name).encode("utf-8"))
