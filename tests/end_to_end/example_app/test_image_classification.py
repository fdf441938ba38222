"""System 0: the image ensemble on an endpoint of its own, deployed by the unmodified CLI and asked for a photograph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.docs.blocks import of_kind
from tritonclient.http import InferRequestedOutput

(CALL,) = of_kind("end_to_end/example_app/test_image_classification.py")
PHOTOGRAPHS = Path(__file__).parents[3] / "examples/photographs"
STACK = "ImageClassification"
EGYPTIAN_CAT, ESPRESSO = 285, 967


@pytest.fixture(scope="module")
def endpoint(deployed: Any) -> str:
    found: str = deployed(STACK)["EndpointName"]
    return found


def files(*names: str) -> npt.NDArray[np.uint8]:
    """Photographs as one tensor: the shorter files are filled up with zeros."""
    contents = [(PHOTOGRAPHS / f"{name}.jpg").read_bytes() for name in names]
    longest = max(map(len, contents))
    return np.stack([np.frombuffer(each.ljust(longest, b"\0"), dtype=np.uint8) for each in contents])


def test_the_classes_of_a_photograph_have_names(example_app: Any, endpoint: str) -> None:
    wanted = [InferRequestedOutput("OUTPUT", class_count=3)]
    answer = example_app.ask(endpoint, "OUTPUT", {"INPUT": files("chelsea")}, outputs=wanted)
    probability, number, label = answer.ravel()[0].decode().split(":")
    assert (int(number), label) == (EGYPTIAN_CAT, "Egyptian cat")
    assert float(probability) > 0.9


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_photographs_of_unequal_size_share_a_request(example_app: Any, endpoint: str, binary: bool) -> None:
    answer = example_app.ask(endpoint, "OUTPUT", {"INPUT": files("chelsea", "coffee")}, binary=binary)
    assert list(answer.argmax(axis=1)) == [EGYPTIAN_CAT, ESPRESSO]


def test_the_call_of_the_page_prints_the_class_of_its_comment(run_call: Any, endpoint: str) -> None:
    (best, *_) = run_call(CALL, {"EndpointName": endpoint})
    assert best.startswith("[[b'0.95")
    assert ":285:Egyptian cat'" in best
