"""DaliPipeline: what it makes, and what it refuses before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cdk_triton import DaliPipeline, ModelRepository, ServingPlatform
from cdk_triton.artifacts import ensemble_document
from cdk_triton.errors import ConfigurationError

WriteFiles = Callable[[Path, Mapping[str, bytes]], Path]
Read = Callable[..., ModelRepository]

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
OLD = ServingPlatform(release="24.03", instance_type="ml.g5.xlarge")

CONFIG = b'backend: "dali"\nmax_batch_size: 8\n'
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
    ("recipe", "files", "config", "platform", "said"),
    [
        (
            DaliPipeline("preproces"),
            None,
            CONFIG,
            PLATFORM,
            r"'preproces' \(did you mean 'preprocess'\?\), and the repository",
        ),
        (
            DaliPipeline("preprocess"),
            None,
            b'backend: "python"\n',
            PLATFORM,
            "backend 'python': write backend: \"dali\"",
        ),
        (DaliPipeline("preprocess"), None, CONFIG, OLD, "and 24.03 cannot: .* write serialize=True"),
        (
            DaliPipeline("preprocess"),
            {"1/dalli.py": DEFINITION},
            CONFIG,
            PLATFORM,
            "did you mean 'preprocess/1/dalli.py'",
        ),
        (DaliPipeline("preprocess"), {"1/dali.py": b"def f(:"}, CONFIG, PLATFORM, "dali.py, line 1, is no Python: "),
        (
            DaliPipeline("preprocess"),
            {"1/dali.py": b"\xff"},
            CONFIG,
            PLATFORM,
            "1/dali.py, is no UTF-8 text: save it as",
        ),
        (
            DaliPipeline("preprocess"),
            {"1/dali.py": DEFINITION.replace(b"autoserialize", b"other")},
            CONFIG,
            PLATFORM,
            "has no function with @autoserialize: .* or write serialize=True",
        ),
        (
            DaliPipeline("preprocess", pipeline="pipeline.py"),
            {"pipeline.py": b"x = 1"},
            CONFIG,
            PLATFORM,
            "has no function with @pipeline_def: decorate the one that defines the pipeline with @pipeline_def",
        ),
        (
            DaliPipeline("preprocess", pipeline="1/pipe.py"),
            {"1/pipe.py": DEFINITION},
            CONFIG,
            PLATFORM,
            "would be served from pipe.py, and the backend looks for model.dali and dali.py only",
        ),
        (
            DaliPipeline("preprocess"),
            {"1/dali.py": DEFINITION, "1/model.dali": b"serialised"},
            CONFIG,
            PLATFORM,
            "would not be served, because the backend takes preprocess/1/model.dali first: remove that file",
        ),
        (
            DaliPipeline("preprocess", serialize=True),
            None,
            CONFIG + b'default_model_filename: "dali.py"\n',
            PLATFORM,
            "would be served from model.dali, and the backend looks for dali.py and dali.py only",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(
    read: Read,
    recipe: DaliPipeline,
    files: Mapping[str, bytes] | None,
    config: bytes,
    platform: ServingPlatform,
    said: str,
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        recipe.validate(read(recipe, files, config), platform)


def test_an_old_release_takes_a_serialised_pipeline(read: Read) -> None:
    recipe = DaliPipeline("preprocess", serialize=True)
    recipe.validate(read(recipe), OLD)


def test_a_file_that_the_configuration_names_is_served(read: Read) -> None:
    recipe = DaliPipeline("preprocess", pipeline="1/pipe.py")
    named = CONFIG + b'default_model_filename: "pipe.py"\n'
    recipe.validate(read(recipe, {"1/pipe.py": DEFINITION}, named), PLATFORM)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pipeline": "../dali.py"}, "must be the path of a file in the directory of the model 'preprocess'"),
        ({"pipeline": "1/model.dali"}, "must be a Python file, such as '1/dali.py'"),
        ({"version": 0}, "version of DaliPipeline.'preprocess'. is 0 and must be a whole number from 1"),
        ({"serialize": "yes"}, "serialize of DaliPipeline.'preprocess'. is 'yes', a str: write True or False"),
    ],
)
def test_values_that_no_repository_could_fix(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        DaliPipeline("preprocess", **arguments)  # type: ignore[arg-type]  # on purpose


def test_the_reference_ensemble_is_checked_by_its_recipe() -> None:
    directory = Path(__file__).parents[2] / "model_assets" / "image_classification"
    recipe = DaliPipeline("preprocess")
    recipe.validate(ModelRepository.from_directory(directory, recipes=[recipe]), PLATFORM)
