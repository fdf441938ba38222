"""OnnxExport: what it makes, and what it refuses before anything is built."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdk_triton import ModelRepository, OnnxExport, ServingPlatform, TensorRTPlan
from cdk_triton.artifacts import ensemble_document
from cdk_triton.errors import ConfigurationError

WriteFiles = Callable[[Path, Mapping[str, bytes]], Path]
Read = Callable[..., ModelRepository]

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
HASH = "0123456789abcdef" * 4
REQUIREMENTS = f"onnx==1.19.1 --hash=sha256:{HASH}\ntorch==2.9.0 --hash=sha256:{HASH}\n"
CONFIG = """
backend: "tensorrt"
max_batch_size: 16
input { name: "ids" data_type: TYPE_INT32 dims: 128 }
output { name: "hidden" data_type: TYPE_FP32 dims: [128, 384] }
"""
ENTRY = "import torch\n\ndef export(path):\n    ...\n"


def export(**changes: Any) -> OnnxExport:
    given = {"entry": "export.py:export", "onnx": "bert.onnx", "requirements": "requirements.txt", **changes}
    return OnnxExport("bert", **given)


@pytest.fixture
def read(tmp_path: Path, write_files: WriteFiles) -> Read:
    """Reads a repository of one model with recipes."""

    def make(
        *recipes: Any, entry: str = ENTRY, requirements: str = REQUIREMENTS, config: str = CONFIG, **files: str
    ) -> ModelRepository:
        standard = {
            "export.py": entry,
            "requirements.txt": requirements,
            "config.pbtxt": config,
            "1/.keep": "",
            **files,
        }
        contents = {f"bert/{name}": text.encode() for name, text in standard.items()}
        return ModelRepository.from_directory(write_files(tmp_path / "repository", contents), recipes=recipes)

    return make


def test_an_export_is_read_by_a_plan(read: Read) -> None:
    plan = TensorRTPlan("bert", onnx="bert.onnx")
    repository = read(plan, export())
    document = ensemble_document(repository, PLATFORM)
    steps: Any = document["steps"]
    assert [step["recipe"] for step in steps] == ["onnx_export", "tensorrt_plan"]
    assert steps[0] == {
        "recipe": "onnx_export",
        "name": "the ONNX export of bert",
        "source": "bert/export.py",
        "function": "export",
        "target": "bert/bert.onnx",
        "requirements": "bert/requirements.txt",
        "outputs": ["hidden"],
        "integer_inputs": None,
    }
    assert document["remove"] == ["bert/bert.onnx", "bert/export.py", "bert/requirements.txt"]


def test_what_only_the_export_reads_is_left_out(read: Read) -> None:
    recipe = export(sources=["weights.safetensors"])
    assert recipe.consumes == ("bert/export.py", "bert/requirements.txt", "bert/weights.safetensors")
    with pytest.raises(ConfigurationError, match=r"reads bert/weights\.safetensors, which .* does not have"):
        ensemble_document(read(recipe), PLATFORM)
    ensemble_document(read(recipe, **{"weights.safetensors": "…"}), PLATFORM)


def test_every_choice_is_in_the_key() -> None:
    recipes = [
        export(),
        export(entry="other.py:export"),
        export(entry="export.py:other"),
        export(onnx="1/model.onnx"),
        export(requirements="other.txt"),
        export(outputs=["hidden"]),
        export(integer_inputs="int32"),
        export(sources=["weights.bin"]),
    ]
    assert len({str(recipe.parameters()) for recipe in recipes}) == len(recipes)
    assert export(outputs=["a"]) == export(outputs=("a",))


@pytest.mark.parametrize(
    ("recipe", "changes", "said"),
    [
        (export(entry="exports.py:export"), {}, r"there is no bert/exports.py \(did you mean 'bert/export.py'\?\) in "),
        (export(requirements="pins.txt"), {}, r"the requirements file of OnnxExport\('bert'\) is missing"),
        (export(entry="export.py:run"), {}, "bert/export.py has no function 'run', it has export: correct entry"),
        (export(), {"entry": "def export(:\n"}, "bert/export.py, line 1, is no Python"),
        (
            export(),
            {"requirements": "onnx\ntorch==2.9.0\n"},
            re.escape(
                "does not pin every package with its hash: line 1: onnx has no pinned version; line 2: torch has no "
                "hash; write it with `uv pip compile --generate-hashes requirements.in -o requirements.txt`"
            ),
        ),
        (export(), {"requirements": "a\n" * 7}, "line 5: a has no pinned version; and 2 more; write it with"),
        (export(), {"requirements": f"torch==2.9.0 --hash=sha256:{HASH}\n"}, "has no onnx, with which the export is"),
        (export(), {"config": 'backend: "tensorrt"\n'}, r"bert/config.pbtxt names none: write outputs=\['…'\]"),
        (
            export(integer_inputs="int32"),
            {"config": CONFIG.replace("TYPE_INT32", "TYPE_INT64")},
            "bert/config.pbtxt has the input 'ids' of TYPE_INT64: write TYPE_INT32 there, or leave integer_inputs out",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(read: Read, recipe: OnnxExport, changes: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        recipe.validate(read(recipe, **changes), PLATFORM)


def test_declared_outputs_count_instead_of_the_configuration(read: Read) -> None:
    recipe = export(outputs=["hidden", "pooled"])
    step = recipe.step(read(recipe, config='backend: "tensorrt"\n'), PLATFORM)
    assert step["outputs"] == ["hidden", "pooled"]


def test_a_function_that_comes_from_elsewhere_is_left_to_the_build(read: Read) -> None:
    recipe = export()
    recipe.validate(read(recipe, entry="from beside import export\n"), PLATFORM)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"entry": "export.py"}, "entry of .* is 'export.py' and must name a file and a function of it"),
        ({"entry": "export:run"}, "must name a file and a function of it, such as 'export.py:export'"),
        ({"entry": "../export.py:run"}, "must be the path of a file in the directory of the model 'bert'"),
        ({"integer_inputs": "int16"}, "integer_inputs of .* is 'int16' and must be 'int32' or None"),
        ({"outputs": "hidden"}, "outputs of .* is 'hidden', a str: use a list of texts, none of them empty, such as"),
        ({"outputs": 1}, "outputs of .* is 1, an int: use a list of texts"),
        ({"outputs": []}, r"outputs of .* is \[\] and must name each output once"),
        ({"outputs": ["a", "a"]}, "must name each output once"),
        ({"sources": [""]}, "sources of .* holds '', a str: use a list of texts, none of them empty"),
        ({"sources": None}, "sources of .* is None: use a list of texts"),
        ({"onnx": "export.py"}, "would write bert/export.py, which it reads: give onnx another name"),
    ],
)
def test_values_that_no_repository_could_fix(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        export(**changes)
