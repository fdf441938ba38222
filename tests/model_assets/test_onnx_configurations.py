"""The configurations of the ONNX models: what the published ones lack, or have in a form without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdk_triton import ModelRepository
from cdk_triton.triton.schema import ModelConfig

CUDA_OPTIONS = {"cudnn_conv_algo_search", "gpu_mem_limit", "arena_extend_strategy", "do_copy_in_default_stream"}
ASSETS = Path(__file__).parents[2] / "model_assets"


def configuration(repository: str) -> ModelConfig:
    (model,) = ModelRepository.from_directory(ASSETS / "onnx_models" / repository).models
    assert model.config is not None
    return model.config


@pytest.mark.parametrize("repository", ["images", "texts"])
def test_requests_are_joined_and_the_first_one_waits_for_nothing(repository: str) -> None:
    config = configuration(repository)
    assert config.HasField("dynamic_batching")
    assert config.max_batch_size > 1
    assert config.model_warmup


def test_the_options_of_cuda_have_equal_values_in_both_places() -> None:
    config = configuration("images")
    assert set(config.parameters) >= CUDA_OPTIONS
    (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "cuda"
    assert set(accelerator.parameters) == CUDA_OPTIONS
    found = ModelRepository.from_directory(ASSETS / "onnx_models/images").check("multi")
    assert "CT290" not in {each.code for each in found}
