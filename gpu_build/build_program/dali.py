"""Builds a DALI pipeline: serialises it with the DALI of the image, twice, and loads it once on the GPU.

The loaded pipeline is compared with `config.pbtxt`, as Triton's DALI backend does when it loads the model.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any, Mapping

from .dali_signature import PipelineSignature, signature_fault
from .programs import driver_script, run_driver
from .step import BuildError, Report, Work

__all__ = ["build"]

# Where DALI is before 24.05, the first release whose `python3` finds it by itself (server: build.py of each branch).
_WHEEL = "/opt/tritonserver/backends/dali/wheel/dali"
_CONDA_PYTHON = "/opt/tritonserver/backends/dali/conda/envs/dalienv/bin/python"


def build(step: Mapping[str, Any], work: Work) -> Report:
    """Write `model.dali`, or `dali.py`, which Triton serialises when it loads the model.

    Either way, the pipeline is serialised in two processes, because what differs between them would differ between
    builds. The second process also loads it.

    Args:
        step: `source` (the Python file) and `target` (what is written; None where the source itself is served), both
            relative to the repository; `serialize` (whether the target is `model.dali`); `max_batch_size`, `inputs` and
            `outputs` of `config.pbtxt`.
        work: the step's `Work`.

    Raises:
        BuildError: the file does not have exactly one pipeline, DALI cannot serialise or load it, or it does not fit
            `config.pbtxt`.
    """
    driver_script("dali_signature.py", work)  # beside the driver, which imports it
    files = [work.scratch / name for name in ("first.dali", "second.dali")]
    python, variables = _python_with_dali(is_own=not step["serialize"])
    for file in files:
        answer = run_driver(
            [python],
            "dali_driver.py",
            {
                "name": step["name"],
                "source": step["source"],
                "marked": None if step["serialize"] else step["target"],
                "by_name": step["serialize"],
                "serialized": str(file),
                "load": file is files[-1],
                "max_batch_size": step["max_batch_size"],
            },
            work,
            what="serialising the pipeline" if file is files[0] else "serialising the pipeline again and loading it",
            keep=("PYTHONPATH",),
            directory=work.repository,
            **variables,
        )
    _check_signature(step, answer["signature"])
    _compare(files[0].read_bytes(), files[1].read_bytes(), step["source"], work)
    if step["serialize"]:
        target = work.repository / step["target"]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(files[0]), str(target))
    return {"outputs": [] if step["target"] is None else [step["target"]], "parity": None}


def _python_with_dali(*, is_own: bool) -> tuple[str, dict[str, str]]:
    """The Python that has DALI, and the variables that it needs.

    If Triton serialises the file (`is_own`), this is the Python that Triton starts.
    """
    if not is_own and Path(_WHEEL).is_dir():
        return sys.executable, {"PYTHONPATH": _WHEEL}
    if not is_own and Path(_CONDA_PYTHON).exists():
        return _CONDA_PYTHON, {}
    return sys.executable, {}


def _check_signature(step: Mapping[str, Any], found: Mapping[str, Any] | None) -> None:
    if found is None:
        return
    signature = PipelineSignature.read(found)
    fault = signature_fault(signature, step["inputs"], step["outputs"], step["max_batch_size"])
    if fault is not None:
        raise BuildError(f"{step['name']}: {fault}")


def _compare(first: bytes, second: bytes, source: str, work: Work) -> None:
    if first != second:
        at = next((i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
        work.warn(
            f"two serialisations of the pipeline of {source} differ (from byte {at} on), so each build of the same "
            "sources gives another archive: give random operators a seed, and do not depend on the time or on the "
            "order of a set"
        )
