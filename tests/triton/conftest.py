"""Repositories for tests: a sound one, and a way to break it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from cdk_triton.triton import ModelRepository

PREPROCESS = """
name: "preprocess"
backend: "python"
max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "token_ids" data_type: TYPE_INT32 dims: -1 }
"""

BERT = """
name: "bert"
platform: "onnxruntime_onnx"
max_batch_size: 8
input { name: "token_ids" data_type: TYPE_INT32 dims: -1 }
output { name: "embedding" data_type: TYPE_FP32 dims: 384 }
"""

ENSEMBLE = """
name: "ensemble"
platform: "ensemble"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_STRING dims: 1 }
output { name: "finaloutput" data_type: TYPE_FP32 dims: 384 }
ensemble_scheduling {
  step {
    model_name: "preprocess"
    model_version: -1
    input_map { key: "TEXT" value: "INPUT0" }
    output_map { key: "token_ids" value: "ids" }
  }
  step {
    model_name: "bert"
    model_version: -1
    input_map { key: "token_ids" value: "ids" }
    output_map { key: "embedding" value: "finaloutput" }
  }
}
"""

SOUND: Mapping[str, str] = {
    "preprocess/config.pbtxt": PREPROCESS,
    "preprocess/1/model.py": "",
    "bert/config.pbtxt": BERT,
    "bert/1/model.onnx": "weights",
    "ensemble/config.pbtxt": ENSEMBLE,
    "ensemble/1/.gitkeep": "",
}


Change = str | bytes | tuple[str, str] | Mapping[str, str] | None
"""A file's content, a replacement (old, new) in the sound one, arguments of `ensemble_of`, or None to leave it out."""


def ensemble_of(*, model: str, given: str, result: str) -> str:
    """An ensemble with one step, which has one tensor in and one out; the rest of it agrees with the sound models."""
    kinds = {"INPUT0": "TYPE_STRING dims: 1", "token_ids": "TYPE_INT32 dims: -1"}
    return f"""
        platform: "ensemble"
        max_batch_size: 8
        input {{ name: "{given}" data_type: {kinds.get(given, "TYPE_FP32 dims: 1")} }}
        output {{ name: "{result}" data_type: TYPE_FP32 dims: 384 }}
        ensemble_scheduling {{
          step {{
            model_name: "{model}"
            model_version: -1
            input_map {{ key: "{given}" value: "{given}" }}
            output_map {{ key: "{result}" value: "{result}" }}
          }}
        }}
    """


class Write(Protocol):
    """Writes a repository and reads it."""

    def __call__(self, change: Mapping[str, Change] = ..., *, base: Mapping[str, str] = ...) -> ModelRepository:
        """Take `base`, or the sound repository, with a change of some files; `a/` is an empty directory."""


@pytest.fixture
def sound() -> Mapping[str, str]:
    """The files of a repository without a finding: preprocess → bert, and the ensemble."""
    return SOUND


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_repository(change: Mapping[str, Change] = {}, *, base: Mapping[str, str] = SOUND) -> ModelRepository:
        root = tmp_path / "repository"
        root.mkdir()
        for name, given in {**base, **change}.items():
            path = root / name
            content = given
            if isinstance(given, Mapping):
                content = ensemble_of(**given)
            elif isinstance(given, tuple):
                assert given[0] in base[name], f"{given[0]!r} is not in {name}"
                content = base[name].replace(*given)
            if name.endswith("/"):
                path.mkdir(parents=True)
            elif content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else str(content).encode())
        return ModelRepository.from_directory(root)

    return write_repository
