"""OnnxExport: what it makes, and what it rejects before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton import ModelRepository, OnnxExport, ServingPlatform, TensorRTPlan
from cdk_triton.artifacts import ensemble_document
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages


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


def test_what_only_the_export_reads_is_left_out(messages: Messages, read: Read) -> None:
    recipe = export(sources=["weights.safetensors"])
    assert recipe.consumes == ("bert/export.py", "bert/requirements.txt", "bert/weights.safetensors")
    with messages.raises(ConfigurationError):
        ensemble_document(read(recipe), PLATFORM)
    ensemble_document(read(recipe, **{"weights.safetensors": "…"}), PLATFORM)


def test_files_are_named_one_by_one(messages: Messages, read: Read) -> None:
    with messages.raises(ConfigurationError):
        ensemble_document(read(export(sources=["checkpoint"]), **{"checkpoint/weights.safetensors": "…"}), PLATFORM)


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
    ("recipe", "changes"),
    [
        pytest.param(export(entry="exports.py:export"), {}, id="no entry"),
        pytest.param(export(requirements="pins.txt"), {}, id="no requirements"),
        pytest.param(export(entry="export.py:run"), {}, id="no function"),
        pytest.param(export(), {"entry": "def export(:\n"}, id="no Python"),
        pytest.param(export(), {"requirements": "onnx\ntorch==2.9.0\n"}, id="pins"),
        pytest.param(export(), {"requirements": "a\n" * 7}, id="many pins"),
        pytest.param(export(), {"requirements": f"torch==2.9.0 --hash=sha256:{HASH}\n"}, id="no onnx"),
        pytest.param(export(), {"config": 'backend: "tensorrt"\n'}, id="no outputs"),
        pytest.param(
            export(integer_inputs="int32"), {"config": CONFIG.replace("TYPE_INT32", "TYPE_INT64")}, id="integer_inputs"
        ),
    ],
)
def test_what_cannot_be_exported_is_rejected(messages: Messages, read: Read, recipe: OnnxExport, changes: Any) -> None:
    with messages.raises(ConfigurationError):
        recipe.validate(read(recipe, **changes), PLATFORM)


def test_declared_outputs_count_instead_of_the_configuration(read: Read) -> None:
    recipe = export(outputs=["hidden", "pooled"])
    step = recipe.step(read(recipe, config='backend: "tensorrt"\n'), PLATFORM)
    assert step["outputs"] == ["hidden", "pooled"]


def test_a_function_that_comes_from_elsewhere_is_left_to_the_build(read: Read) -> None:
    recipe = export()
    recipe.validate(read(recipe, entry="from beside import export\n"), PLATFORM)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"entry": "export.py"}, id="entry without a function"),
        pytest.param({"entry": "export:run"}, id="entry without a file"),
        pytest.param({"entry": "../export.py:run"}, id="entry outside"),
        pytest.param({"integer_inputs": "int16"}, id="integer_inputs"),
        pytest.param({"outputs": "hidden"}, id="outputs a text"),
        pytest.param({"outputs": 1}, id="outputs a number"),
        pytest.param({"outputs": []}, id="no outputs"),
        pytest.param({"outputs": ["a", "a"]}, id="an output twice"),
        pytest.param({"sources": [""]}, id="sources with an empty one"),
        pytest.param({"sources": None}, id="no sources"),
        pytest.param({"onnx": "export.py"}, id="onnx is the entry"),
    ],
)
def test_values_that_no_repository_could_fix(messages: Messages, changes: dict[str, Any]) -> None:
    with messages.raises(ConfigurationError):
        export(**changes)
