"""`cdk-triton.toml`: files that recipes of an app will add, for whoever reads the repository without the app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cdk_triton.triton import ModelRepository

Write = Callable[..., ModelRepository]

PLAN = """
backend: "tensorrt"
max_batch_size: 8
input [ { name: "ids" data_type: TYPE_INT32 dims: [ 4 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
WITHOUT_ITS_PLAN = {"bert/config.pbtxt": PLAN, "bert/1/": ""}


@dataclass(frozen=True)
class Builds:
    """A recipe."""

    produces: tuple[str, ...]


def errors(repository: ModelRepository) -> list[str]:
    return [finding.code for finding in repository.check() if finding.severity == "error"]


def test_a_promised_file_is_not_missing(write: Write) -> None:
    missing = write(WITHOUT_ITS_PLAN, base={})
    assert errors(missing) != []
    (missing.root / "cdk-triton.toml").write_text('produced = ["bert/1/model.plan"]')
    promised = ModelRepository.from_directory(missing.root)
    assert errors(promised) == []
    assert [recipe.produces for recipe in promised.recipes] == [("bert/1/model.plan",)]


def test_a_file_that_is_there_needs_no_promise(write: Write) -> None:
    files = {**WITHOUT_ITS_PLAN, "bert/1/model.plan": "ftrt", "cdk-triton.toml": 'produced = ["bert/1/model.plan"]'}
    assert ModelRepository.from_directory(write(files, base={}).root).recipes == ()


@pytest.mark.parametrize("promised", [(), ("bert/1/model.plan",)])
def test_what_a_recipe_produces_needs_no_promise(write: Write, promised: tuple[str, ...]) -> None:
    written = write({**WITHOUT_ITS_PLAN, "cdk-triton.toml": f"produced = {list(promised)}"}, base={})
    recipe = Builds(("bert/1/model.plan",))
    assert ModelRepository.from_directory(written.root, recipes=[recipe]).recipes == (recipe,)
