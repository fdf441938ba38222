"""The page for contributors that adds a recipe: its example works as it stands."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from tests.docs.blocks import of_kind

from build_program.step import BuildError
from build_program.steps import STEPS, build_step
from build_program.work import BuildWork
from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.artifacts import artifact_key, ensemble_document

if TYPE_CHECKING:
    from golden_messages import Messages


RECIPE, STEP, ENTRY, *TESTS = of_kind("gpu_build/steps/test_recipe_page.py")
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")

Make = Callable[..., BuildWork]


def module(path: str, source: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file of the page, as a module of the library."""
    name = path.removesuffix(".py").replace("/", ".")
    made = ModuleType(name)
    made.__package__ = name.rpartition(".")[0]
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(source, path, "exec"), vars(made))
    return made


@pytest.fixture
def gunzipped(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The recipe of the page, whose step the build program knows."""
    module("build_program/gunzip.py", STEP.text, monkeypatch)
    monkeypatch.setitem(STEPS, "gunzipped_file", "gunzip")
    return module("cdk_triton/artifacts/recipes/gunzip.py", RECIPE.text, monkeypatch).GunzippedFile


def model(root: Path, content: bytes) -> Path:
    (root / "bert").mkdir()
    (root / "bert" / "config.pbtxt").write_text('backend: "onnxruntime"\n')
    (root / "bert" / "model.onnx.gz").write_bytes(content)
    return root


def test_the_step_follows_what_the_recipe_writes_down(gunzipped: Any, make_work: Make, tmp_path: Path) -> None:
    recipe = gunzipped("bert", file="model.onnx.gz")
    repository = ModelRepository.from_directory(model(tmp_path, gzip.compress(b"a network")), recipes=[recipe])
    document: dict[str, Any] = ensemble_document(repository, PLATFORM)

    reports = [build_step(step, make_work(tmp_path)) for step in document["steps"]]

    assert [report["outputs"] for report in reports] == [list(recipe.produces)]
    assert (tmp_path / "bert/1/model.onnx").read_bytes() == b"a network"
    assert document["remove"] == ["bert/model.onnx.gz"]


@pytest.mark.parametrize("content", [b"not packed", gzip.compress(b"a network")[:-9]], ids=["not gzip", "cut off"])
def test_a_file_that_cannot_be_unpacked_ends_the_build(
    messages: Messages, gunzipped: Any, make_work: Make, tmp_path: Path, content: bytes
) -> None:
    recipe = gunzipped("bert", file="model.onnx.gz")
    repository = ModelRepository.from_directory(model(tmp_path, content), recipes=[recipe])
    with messages.raises(BuildError):
        build_step(recipe.step(repository, PLATFORM), make_work(tmp_path))


def test_every_choice_is_in_the_key(gunzipped: Any, tmp_path: Path) -> None:
    model(tmp_path, b"packed")
    recipes = [
        gunzipped("bert", file="model.onnx.gz"),
        gunzipped("bert", file="other.onnx.gz"),
        gunzipped("bert", file="model.onnx.gz", to="2/model.onnx"),
    ]
    repositories = [ModelRepository.from_directory(tmp_path, recipes=[recipe]) for recipe in recipes]
    assert len({artifact_key(repository, PLATFORM) for repository in repositories}) == len(recipes)


def test_the_tests_of_the_page_pass(gunzipped: Any, make_work: Make, tmp_path: Path) -> None:
    names: dict[str, Any] = {"GunzippedFile": gunzipped, "gzip": gzip}
    names["build"] = sys.modules["build_program.gunzip"].build
    for each in TESTS:
        exec(f"from __future__ import annotations\n{each.text}", names)

    shown = {name: names[name] for name in names if name.startswith("test_")}
    assert len(shown) == len(TESTS)
    shown["test_every_choice_is_in_the_key"]()
    shown["test_the_file_is_unpacked"](make_work, tmp_path)


def test_the_page_enters_the_step_that_the_recipe_names(gunzipped: Any) -> None:
    entry = re.findall(r'^ +"(\w+)": "gunzip",$', ENTRY.text, re.MULTILINE)
    assert entry == ["gunzipped_file"]
    assert entry[0] in STEPS
