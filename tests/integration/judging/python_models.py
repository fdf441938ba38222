"""Repositories with one Python model, for NVIDIA's own Python backend."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cdk_triton.triton import ModelRepository

PYTHON = """
backend: "python"
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
"""
CLASS = "class TritonPythonModel:\n"
EXECUTE = "    def execute(self, requests): return []\n"
SOURCE = CLASS + EXECUTE

Files = Mapping[str, str]


def write(root: Path, files: Files) -> ModelRepository:
    for name, content in {"config.pbtxt": PYTHON, "1/model.py": SOURCE, **files}.items():
        (root / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "model" / name).write_text(content)
    return ModelRepository.from_directory(root)


def model(source: str, **others: str) -> Files:
    return {"1/model.py": source, **others}


def named(file: str, place: str | None = None) -> Files:
    return {"config.pbtxt": f"{PYTHON} default_model_filename: '{file}'", f"1/{place or file}": SOURCE}
