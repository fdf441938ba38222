"""Finds the machine's GPU and versions, and compares them with `plan.json`."""

from __future__ import annotations

import re
import sys
from typing import Any, Iterable, Mapping, Sequence

from .gpu_names import compare_gpu_names
from .plan import BuildPlan, Ensemble
from .step import BuildError, Work
from .stop import StoppedError
from .trtexec import find_trtexec, version_in

__all__ = ["check", "check_tensorrt", "probe"]

_QUERY = "--query-gpu=name,compute_cap,driver_version"
_QUERY_WITHOUT_CAPABILITY = "--query-gpu=name,driver_version"
_GPU = re.compile(r"(?P<name>[^,]+), (?P<capability>\d+\.\d+), (?P<driver>[\d.]+)")
_GPU_WITHOUT_CAPABILITY = re.compile(r"(?P<name>[^,]+), (?P<driver>[\d.]+)")
_PACKAGE = re.compile(r"libnvinfer\d+ (\d+(?:\.\d+)+)")
_DALI = re.compile(r"DALI (\d+(?:\.\d+)+\S*)")
_WORDS = {"tensorrt": "TensorRT", "dali": "DALI", "python": "Python"}
_SAME_GPU = "build on an instance with the endpoint's GPU"


def probe(work: Work) -> dict[str, str | None]:
    """Read the machine's GPU and versions; None for a value that cannot be found.

    Args:
        work: runs the commands.
    """
    probed: dict[str, str | None] = dict.fromkeys(("gpu", "compute_capability", "driver"))
    probed.update(_gpu(work))
    probed["tensorrt"] = _tensorrt(work)
    # Not fatal: images before 24.05 have DALI elsewhere, and not every plan needs it.
    lines = _try(work, [sys.executable, "-c", "import nvidia.dali; print('DALI', nvidia.dali.__version__)"], "DALI")
    probed["dali"] = _first(_DALI, lines)
    probed["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
    return probed


def check(plan: BuildPlan, probed: Mapping[str, str | None], stand_ins: Sequence[str] = ()) -> list[str]:
    """Reject a machine that would build something other than `plan.json` requires.

    Args:
        plan: the content of `plan.json`, with its platform.
        probed: the machine's values.
        stand_ins: the stand-ins that probing met: where there are any, no image is run that the table of releases could
            be wrong about.

    Returns:
        Warnings about smaller differences.

    Raises:
        BuildError: the machine has a different GPU or compute capability.
    """
    warnings = _check_gpu(plan.platform, probed)
    for name in ("tensorrt", "dali", "python"):
        expected, found = plan.platform[name], probed[name]
        agree = expected is None or found is None or _same_version(expected, found)
        if not agree and not stand_ins:
            warnings.append(
                f"the image has {_WORDS[name]} {found}, but cdk-triton's table of releases has {expected}: the build "
                "uses the image's version; please report the difference"
            )
    return warnings


def check_tensorrt(ensemble: Ensemble, version: str | None) -> None:
    """Reject an ensemble whose steps are for another TensorRT; the other ensembles continue.

    Args:
        ensemble: the ensemble.
        version: the version of the machine's TensorRT; None if it has none.

    Raises:
        BuildError: the machine has no trtexec, or not the major version of TensorRT that a step needs.
    """
    for step in ensemble.steps:
        major = step.get("tensorrt_major")
        if major is None:
            continue
        if version is None or find_trtexec() is None:
            raise BuildError(
                f"{step['name']} needs trtexec, but this image does not have trtexec on PATH, in "
                "/usr/src/tensorrt/bin or in /opt/tensorrt/bin: build in the endpoint's Triton image"
            )
        if version.split(".")[0] != str(major):
            raise BuildError(
                f"{step['name']} has flags for TensorRT {major}, but this image has {version}: correct the "
                "platform's release or image; if both are right, report an error in cdk-triton's table of releases"
            )


def _gpu(work: Work) -> dict[str, str | None]:
    lines = _try(work, ["nvidia-smi", _QUERY, "--format=csv,noheader"], "the GPU")
    found = next(filter(None, map(_GPU.fullmatch, lines)), None)
    if found is not None:
        return {"gpu": found["name"], "compute_capability": found["capability"], "driver": found["driver"]}
    # Drivers of the 470 branch do not know the field compute_cap.
    lines = _try(work, ["nvidia-smi", _QUERY_WITHOUT_CAPABILITY, "--format=csv,noheader"], "the GPU")
    found = next(filter(None, map(_GPU_WITHOUT_CAPABILITY.fullmatch, lines)), None)
    return {} if found is None else {"gpu": found["name"], "driver": found["driver"]}


def _tensorrt(work: Work) -> str | None:
    trtexec = find_trtexec()
    if trtexec is not None:
        version = version_in(_try(work, [trtexec, "--help"], "TensorRT"))
        if version is not None:
            return version
    listing = ["dpkg-query", "--show", "--showformat=${Package} ${Version}\\n", "libnvinfer[0-9]*"]
    return _first(_PACKAGE, _try(work, listing, "TensorRT"))


def _try(work: Work, command: list[str], what: str) -> Sequence[str]:
    try:
        return work.run(command, what=f"looking for {what}")
    except StoppedError:
        raise
    except BuildError:
        return []


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> str | None:
    found = next(filter(None, map(pattern.match, lines)), None)
    return None if found is None else found.group(1)


def _check_gpu(platform: Mapping[str, Any], probed: Mapping[str, str | None]) -> list[str]:
    expected, gpu = str(platform["gpu"]), probed["gpu"]
    capability, found = platform["compute_capability"], probed["compute_capability"]
    wanted = f"the artifacts are for {expected} (compute capability {capability})"
    if gpu is None:
        raise BuildError(
            f"{wanted}, but this machine shows no GPU, because nvidia-smi is missing or failed: {_SAME_GPU}"
        )
    comparison = compare_gpu_names(expected, gpu)
    if comparison == "other" or (found is not None and found != capability):
        raise BuildError(
            f"{wanted}, but this machine has {gpu} (compute capability {found or 'unknown'}); a TensorRT plan runs "
            f"only on the kind of GPU that built it: {_SAME_GPU}"
        )
    if found is None and comparison == "unknown":
        raise BuildError(
            f"{wanted}, but this machine has {gpu}, whose driver {probed['driver']} does not report the compute "
            f"capability: {_SAME_GPU}"
        )
    if found is None:
        return [f"the driver {probed['driver']} does not report the compute capability of {gpu}; the name matches"]
    if comparison == "unknown":
        return [f"the GPU's name is {gpu}, but {expected} was expected; the compute capability {found} matches"]
    return []


def _same_version(expected: str, found: str) -> bool:
    """Compares the components that both versions have."""
    return all(one == other for one, other in zip(expected.split("."), found.split(".")))
