"""The table of the operators that ONNX Runtime registers, from its wheels: SOURCES/onnxruntime.

The folder has one wheel of each minor version, as `pip download --no-deps onnxruntime==<version>` writes it. Each is
unpacked, and a process of its own asks it for its operators. A wheel for processors has those for GPUs as well, because
ONNX Runtime registers definitions apart from kernels. The table is checked by its hash where there are no wheels.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools.generate import Files, GenerateError, Generator
from tools.generate._tables import canonical, checked_files, content_sha256, existing

TABLE = "constructs/cdk_triton/onnx_models/reader/data/onnxruntime_operators.json"
ABOUT = (
    "The operators that ONNX Runtime registers in domains of its own: domain -> operator -> the first of `versions` "
    "that has it. No version of the table has lost an operator."
)
SOURCES = [
    "https://pypi.org/project/onnxruntime: the wheels of these versions, asked by get_all_operator_schema()",
    "https://github.com/microsoft/onnxruntime: onnxruntime/core/graph/contrib_ops/collective_defs.cc (built_with_nccl)",
]
# Domains of ONNX, which the distribution `onnx` defines.
ONNX = ("", "ai.onnx.ml")
# `RegisterCollectiveOps`, which builds with NCCL alone have.
NCCL = (
    *("AllGather", "AllReduce", "AllToAll", "DistributedExpand", "DistributedMatMul", "DistributedReduceMax"),
    *("DistributedReduceMean", "DistributedReduceMin", "DistributedReduceSum", "DistributedReshape"),
    *("DistributedSlice", "DistributedSqueeze", "DistributedUnsqueeze", "ShardedMoE"),
)
_ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
print(json.dumps(sorted({(each.domain, each.name) for each in get_all_operator_schema()})))
"""


def table_of(folder: Path, committed: Mapping[str, Any]) -> dict[str, Any]:
    """Read the operators of every wheel of a folder.

    Args:
        folder: the folder with the wheels.
        committed: the table as it is. Its date is kept if the wheels give the same operators.

    Raises:
        GenerateError: the folder has no wheel, a wheel does not answer, or a version lacks an operator of an older one.
    """
    wheels = {_minor(wheel): wheel for wheel in folder.glob("onnxruntime-*.whl")}
    if not wheels:
        raise GenerateError(
            f"{folder} has no wheels of onnxruntime: put one wheel of each minor version into this folder"
        )
    versions = sorted(wheels, key=lambda version: int(version.partition(".")[2]))
    known = {version: _operators(wheels[version]) for version in versions}
    for older, newer in pairwise(versions):
        if lost := known[older] - known[newer]:
            raise GenerateError(
                f"onnxruntime {newer} does not have {sorted(lost)} any more, but the table has only the first version "
                "of each operator: give the table ranges of versions"
            )
    found: dict[str, dict[str, str]] = {}
    for domain, name in sorted(known[versions[-1]]):
        since = next(version for version in versions if (domain, name) in known[version])
        found.setdefault(domain, {})[name] = since
    data = {
        "versions": versions,
        "domains": found,
        "built_with_nccl": list(NCCL),
    }
    digest = content_sha256(data)
    is_same = committed.get("content_sha256") == digest
    return {
        "about": ABOUT,
        "retrieved": committed["retrieved"] if is_same else datetime.now(UTC).date().isoformat(),
        "sources": SOURCES,
        "generator": "tools/generate/onnxruntime_operators.py",
        "input_sha256": hashlib.sha256(canonical({name: sorted(known[name]) for name in versions})).hexdigest(),
        "content_sha256": digest,
        **data,
    }


def _minor(wheel: Path) -> str:
    return ".".join(wheel.name.split("-")[1].split(".")[:2])


def _operators(wheel: Path) -> set[tuple[str, str]]:
    """Domain and name of each operator that a wheel registers."""
    with tempfile.TemporaryDirectory() as unpacked:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        done = subprocess.run([sys.executable, "-c", _ASK, unpacked], capture_output=True, text=True)
    if done.returncode != 0:
        raise GenerateError(f"{wheel.name} does not answer: {done.stderr.strip()}")
    return {(domain, name) for domain, name in json.loads(done.stdout) if domain not in ONNX}


def _from_wheels(folder: Path) -> Files:
    return {TABLE: canonical(table_of(folder, existing(TABLE)))}


GENERATOR = Generator(partial(checked_files, TABLE), source="onnxruntime", from_source=_from_wheels)
