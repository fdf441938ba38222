"""The configurations of all systems: batches, profiles and packages, as the published ones do not have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdk_triton.triton import Model, ModelRepository
from cdk_triton.triton.schema import ModelConfig
from examples.reference_systems.bert import BERT, SHAPES
from examples.reference_systems.tree_models import TENANTS

ASSETS = Path(__file__).parents[2] / "model_assets"
REPOSITORIES = (
    "image_classification",
    "sentence_embedding",
    "onnx_models/images",
    "onnx_models/texts",
    "tensorrt_tenants",
    "text_generation",
)
TREES = tuple(f"tree_models/{tenant}" for tenant in TENANTS)
NEVER_JOINED = {"ensemble", "preprocess"}
"""An ensemble joins no requests, its steps do. One damaged image fails the whole batch of DALI."""
LONGEST_DELAY = 10_000
FLOAT = 4


def models(repository: str) -> list[tuple[Model, ModelConfig]]:
    found = []
    for model in ModelRepository.from_directory(ASSETS / repository).models:
        assert model.config is not None
        found.append((model, model.config))
    return found


@pytest.mark.parametrize("repository", [*REPOSITORIES, *TREES, "pytorch_network"])
def test_requests_are_joined_and_none_waits_long_for_others(repository: str) -> None:
    for model, config in models(repository):
        assert config.HasField("dynamic_batching") == (model.name not in NEVER_JOINED), model.name
        # A preferred size below the largest holds requests back, or leaves the delay without effect.
        assert not config.dynamic_batching.preferred_batch_size
        assert config.dynamic_batching.max_queue_delay_microseconds <= LONGEST_DELAY


@pytest.mark.parametrize("repository", REPOSITORIES)
def test_a_model_reserves_memory_for_batches_that_occur(repository: str) -> None:
    assert {config.max_batch_size for _, config in models(repository)} <= {8, 16}


def test_a_full_batch_of_images_takes_10_megabytes_between_the_steps() -> None:
    (preprocess,) = (config for model, config in models("image_classification") if model.name == "preprocess")
    channels, height, width = preprocess.output[0].dims
    assert preprocess.max_batch_size * channels * height * width * FLOAT < 10e6


@pytest.mark.parametrize("repository", ["sentence_embedding", "tensorrt_tenants"])
def test_the_profile_of_the_plan_ends_at_the_largest_batch(repository: str) -> None:
    (config,) = (config for model, config in models(repository) if model.name == BERT.model)
    assert max(texts for texts, _ in SHAPES) == config.max_batch_size
    assert BERT.precision == "fp16"


def test_the_profile_of_the_engine_ends_at_the_largest_batch() -> None:
    ((_, config),) = models("onnx_models/texts")
    (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    largest = [shape.partition(":")[2] for shape in accelerator.parameters["trt_profile_max_shapes"].split(",")]
    assert {int(shape.split("x")[0]) for shape in largest} == {config.max_batch_size}


def test_the_one_python_step_of_the_text_ensemble_has_its_package_and_no_environment(model_assets: Path) -> None:
    (step,) = (each for each in models("sentence_embedding") if each[1].backend == "python")
    assert step[0].name == "tokenizer"
    assert not step[1].parameters
    directory = model_assets / "sentence_embedding/tokenizer"
    assert sum(file.stat().st_size for file in directory.rglob("*") if "__pycache__" not in file.parts) < 13e6
    assert [each.name for each in (directory / "1/vendor").iterdir() if each.suffix == ""] == ["tokenizers"]
