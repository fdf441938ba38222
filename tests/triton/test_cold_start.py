"""What a check does not wait for: nothing heavy is imported, whatever the repository holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sample_repositories import Write

PROGRAM = """
import sys
from cdk_triton.triton import ModelRepository
ModelRepository.from_directory(sys.argv[1]).check()
heavy = {"aws_cdk", "boto3", "grpc", "numpy", "onnx", "subprocess", "tensorrt_rtx", "tritonclient"}
print(sorted(heavy & {*sys.modules}))
"""


def test_a_check_imports_no_framework(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = write().root
    loaded = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", PROGRAM, root], check=True, capture_output=True, text=True)
        loaded.append(done.stdout.strip())
    # The first check of an ONNX file starts the process that judges its graph; what it found is kept.
    assert loaded == ["['subprocess']", "[]"]
