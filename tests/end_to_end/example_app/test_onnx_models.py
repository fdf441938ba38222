"""System 2: ResNet-50 and a BERT encoder on the ONNX Runtime backend, deployed by the unmodified CLI and asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from tests.docs.blocks import of_kind

(CALL,) = of_kind("end_to_end/example_app/test_onnx_models.py")
PHOTOGRAPHS = Path(__file__).parents[3] / "examples/photographs"
STACK = "OnnxModels"
PUBLISHED_COSINE = 0.7553  # model card of all-MiniLM-L6-v2
EGYPTIAN_CAT, ESPRESSO = 285, 967


@pytest.fixture(scope="module")
def outputs(deployed: Any) -> dict[str, str]:
    found: dict[str, str] = deployed(STACK)
    return found


def prepared(name: str) -> npt.NDArray[np.float32]:
    """A photograph as the network takes it: BGR, less the mean of ImageNet, channels first."""
    with Image.open(PHOTOGRAPHS / f"{name}.jpg") as image:
        pixels = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR), dtype=np.float32)
    means = np.array([103.939, 116.779, 123.68], dtype=np.float32)
    found: npt.NDArray[np.float32] = (pixels[:, :, ::-1] - means).transpose(2, 0, 1)
    return found


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_photographs_get_their_classes(example_app: Any, outputs: dict[str, str], binary: bool) -> None:
    images = np.stack([prepared("chelsea"), prepared("coffee")]) if binary else prepared("chelsea")[None]
    answer = example_app.ask(
        outputs["EndpointName"],
        "probabilities",
        {"input": images},
        target_model=outputs["ImageModel"],
        binary=binary,
    )
    assert list(answer.argmax(axis=1)) == [EGYPTIAN_CAT, ESPRESSO][: len(images)]
    assert answer.max(axis=1).min() > 0.5


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_sentences_get_their_embeddings(example_app: Any, outputs: dict[str, str], tokens: Any, binary: bool) -> None:
    first, second = example_app.ask(
        outputs["EndpointName"], "output", tokens, target_model=outputs["TextModel"], binary=binary
    )
    assert first @ second == pytest.approx(PUBLISHED_COSINE, abs=5e-5)


def test_the_call_of_the_page_prints_the_class_of_its_comment(run_call: Any, outputs: dict[str, str]) -> None:
    assert run_call(CALL, outputs) == [str(ESPRESSO)]
