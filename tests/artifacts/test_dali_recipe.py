"""DaliPipeline: what it makes, and what it rejects before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton import DaliPipeline, ModelRepository, ServingPlatform
from cdk_triton.artifacts import ensemble_document
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages


WriteFiles = Callable[[Path, Mapping[str, bytes]], Path]
Read = Callable[..., ModelRepository]

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
OLD = ServingPlatform(release="24.03", instance_type="ml.g5.xlarge")

CONFIG = b"""
backend: "dali"
max_batch_size: 8
input { name: "IN" data_type: TYPE_UINT8 dims: -1 }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
"""
DEFINITION = b"""
import nvidia.dali as dali
from nvidia.dali.plugin.triton import autoserialize

@autoserialize
@dali.pipeline_def
def preprocess(): ...
"""


@pytest.fixture
def read(tmp_path: Path, write_files: WriteFiles) -> Read:
    """Reads a repository of one DALI model with a recipe."""

    def make(recipe: DaliPipeline, files: Mapping[str, bytes] | None = None, config: bytes = CONFIG) -> ModelRepository:
        given = {"1/dali.py": DEFINITION} if files is None else files
        root = write_files(tmp_path / "repository", {f"preprocess/{name}": content for name, content in given.items()})
        write_files(root, {"preprocess/config.pbtxt": config})
        return ModelRepository.from_directory(root, recipes=[recipe])

    return make


def test_the_file_that_triton_serialises_is_tried_and_kept(read: Read) -> None:
    recipe = DaliPipeline("preprocess")
    repository = read(recipe)
    recipe.validate(repository, PLATFORM)
    assert (recipe.produces, recipe.consumes, recipe.s3_files) == ((), (), {})
    assert recipe.step(repository, PLATFORM) == {
        "recipe": "dali_pipeline",
        "name": "the DALI pipeline of preprocess",
        "source": "preprocess/1/dali.py",
        "target": None,
        "serialize": False,
        "max_batch_size": 8,
        "inputs": [{"name": "IN", "data_type": "TYPE_UINT8", "dims": [-1]}],
        "outputs": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [3, 224, 224]}],
    }


@pytest.mark.parametrize(
    ("recipe", "produced"),
    [
        (DaliPipeline("preprocess", pipeline="pipeline.py"), "preprocess/1/dali.py"),
        (DaliPipeline("preprocess", pipeline="pipeline.py", version=3), "preprocess/3/dali.py"),
        (DaliPipeline("preprocess", pipeline="pipeline.py", serialize=True), "preprocess/1/model.dali"),
    ],
)
def test_a_file_elsewhere_is_only_read_by_the_build(read: Read, recipe: DaliPipeline, produced: str) -> None:
    repository = read(recipe, {"pipeline.py": DEFINITION})
    recipe.validate(repository, PLATFORM)
    assert recipe.produces == (produced,)
    assert recipe.consumes == ("preprocess/pipeline.py",)
    assert ensemble_document(repository, PLATFORM)["remove"] == ["preprocess/pipeline.py"]


def test_a_serialised_pipeline_takes_the_place_of_the_python_file(read: Read) -> None:
    recipe = DaliPipeline("preprocess", serialize=True)
    read(recipe)
    assert recipe.produces == ("preprocess/1/model.dali",)
    assert recipe.consumes == ("preprocess/1/dali.py",)


def test_every_choice_is_in_the_key() -> None:
    recipes = [
        DaliPipeline("preprocess"),
        DaliPipeline("preprocess", serialize=True),
        DaliPipeline("preprocess", version=2),
        DaliPipeline("preprocess", pipeline="pipeline.py"),
        DaliPipeline("other"),
    ]
    assert len({str(recipe.parameters()) for recipe in recipes}) == len(recipes)
    assert DaliPipeline("preprocess", pipeline="1/dali.py").parameters() == DaliPipeline("preprocess").parameters()


@pytest.mark.parametrize(
    ("recipe", "files", "config", "platform"),
    [
        pytest.param(DaliPipeline("preproces"), None, CONFIG, PLATFORM, id="another model"),
        pytest.param(DaliPipeline("preprocess"), None, b'backend: "python"\n', PLATFORM, id="another backend"),
        pytest.param(DaliPipeline("preprocess"), None, CONFIG, OLD, id="an old release"),
        pytest.param(DaliPipeline("preprocess"), {"1/dalli.py": DEFINITION}, CONFIG, PLATFORM, id="another file"),
        pytest.param(DaliPipeline("preprocess"), {"1/dali.py": b"\xff"}, CONFIG, PLATFORM, id="no UTF-8"),
        pytest.param(
            DaliPipeline("preprocess", pipeline="1/pipe.py"),
            {"1/pipe.py": DEFINITION},
            CONFIG,
            PLATFORM,
            id="a file that the backend does not look for",
        ),
        pytest.param(
            DaliPipeline("preprocess"),
            {"1/dali.py": DEFINITION, "1/model.dali": b"serialised"},
            CONFIG,
            PLATFORM,
            id="model.dali beside it",
        ),
        pytest.param(
            DaliPipeline("preprocess", serialize=True),
            None,
            CONFIG + b'default_model_filename: "dali.py"\n',
            PLATFORM,
            id="default_model_filename",
        ),
    ],
)
def test_what_cannot_be_served_is_rejected(
    messages: Messages,
    read: Read,
    recipe: DaliPipeline,
    files: Mapping[str, bytes] | None,
    config: bytes,
    platform: ServingPlatform,
) -> None:
    with messages.raises(ConfigurationError):
        recipe.validate(read(recipe, files, config), platform)


def test_an_old_release_takes_a_serialised_pipeline(read: Read) -> None:
    recipe = DaliPipeline("preprocess", serialize=True)
    recipe.validate(read(recipe), OLD)


def test_a_file_that_the_configuration_names_is_served(read: Read) -> None:
    recipe = DaliPipeline("preprocess", pipeline="1/pipe.py")
    named = CONFIG + b'default_model_filename: "pipe.py"\n'
    recipe.validate(read(recipe, {"1/pipe.py": DEFINITION}, named), PLATFORM)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"pipeline": "../dali.py"}, id="pipeline outside"),
        pytest.param({"pipeline": "1/model.dali"}, id="pipeline serialised"),
        pytest.param({"version": 0}, id="version"),
        pytest.param({"serialize": "yes"}, id="serialize"),
    ],
)
def test_values_that_no_repository_could_fix(messages: Messages, arguments: dict[str, object]) -> None:
    with messages.raises(ConfigurationError):
        DaliPipeline("preprocess", **arguments)  # type: ignore[arg-type]  # on purpose


def test_the_reference_ensemble_is_checked_by_its_recipe() -> None:
    directory = Path(__file__).parents[2] / "model_assets" / "image_classification"
    recipe = DaliPipeline("preprocess")
    recipe.validate(ModelRepository.from_directory(directory, recipes=[recipe]), PLATFORM)
