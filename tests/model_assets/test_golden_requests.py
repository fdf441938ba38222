"""The golden requests of the reference ensembles: right answers, and those that a server gives."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from cdk_triton.cli.rehearsal.running import rehearse_or_say_why
from cdk_triton.triton import ContainerEnvironment, ModelRepository
from examples.reference_systems.tree_models import TENANTS

SENTENCES = ["A man is eating food.", "A man is eating a piece of bread."]


def recorded(file: Path) -> npt.NDArray[np.float64]:
    """The one output in a golden file."""
    with np.load(file, allow_pickle=False) as arrays:
        (name,) = arrays.files
        found: npt.NDArray[np.float64] = arrays[name].astype(np.float64)
    return found


@pytest.mark.slow
def test_the_embeddings_are_those_of_the_published_model(
    model_assets: Path, embed: Callable[[list[str]], npt.NDArray[np.float64]]
) -> None:
    expected = embed(SENTENCES)
    for name in ("sentence_embedding", "tensorrt_tenants", "onnx_models/texts"):
        found = recorded(model_assets / name / "golden/embeddings.npz")
        assert np.allclose(found, expected, atol=1e-3), name


def test_the_cat_is_a_cat(model_assets: Path) -> None:
    labels = (model_assets / "image_classification/resnet50/labels.txt").read_text(encoding="utf-8").splitlines()
    (probabilities,) = recorded(model_assets / "image_classification/golden/classes.npz")
    assert labels[int(probabilities.argmax())] == "Egyptian cat"


@pytest.mark.server
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("image_classification", "single"), ("onnx_models/images", "multi"), ("onnx_models/texts", "multi")),
        *((f"tree_models/{tenant}", "multi") for tenant in TENANTS),
        pytest.param(
            "pytorch_network",
            "single",
            marks=pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed"),
        ),
    ],
)
def test_a_repository_without_recipes_answers_as_recorded(
    model_assets: Path, name: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with recipes are rehearsed by the deployments of the example app."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    repository = ModelRepository.from_directory(model_assets / name)
    for _ in range(2):  # on a busy machine, the server of 24.10 ends by a lock_exception now and then
        found = rehearse_or_say_why(repository, "multi" if mode == "multi" else "single", ContainerEnvironment())
        if "lock_exception" not in (found.reason or ""):
            break
    assert (found.reason, len(found.requests)) == (None, 1)
