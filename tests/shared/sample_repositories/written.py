"""Writes the repositories of tests: the sound one with a change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from cdk_triton.triton import ModelRepository
from sample_repositories.builds import BuiltPlans, is_built
from sample_repositories.files import content_of
from sample_repositories.sound import SOUND

__all__ = ["Change", "Write", "ensemble_of", "sound", "write"]

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
        """Take `base`, or the sound repository, with a change of some files; `a/` is an empty directory.

        An ONNX file may be written in ONNX's text form, and a `.tar.gz` is written as the list of its members. Where
        `model.onnx` or `model.py` has the text "", it is a sound one; a plan with the text "plan" will be built.
        """


@pytest.fixture
def sound() -> Mapping[str, str]:
    """The files of a repository without a finding: preprocess → bert, and the ensemble."""
    return SOUND


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_repository(change: Mapping[str, Change] = {}, *, base: Mapping[str, str] = SOUND) -> ModelRepository:
        root = tmp_path / "repository"
        root.mkdir()
        built: dict[str, str] = {}
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
            elif isinstance(content, str) and is_built(name, content):
                built[name] = content
            elif content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content_of(name, str(content)))
        return ModelRepository.from_directory(root, recipes=[BuiltPlans(built)] * bool(built))

    return write_repository
