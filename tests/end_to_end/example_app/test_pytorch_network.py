"""A PyTorch network of its own on a single-model endpoint, deployed by the unmodified CLI and asked."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from tests.docs.blocks import of_kind

from examples.reference_systems.pytorch_network import NETWORK

(CALL,) = of_kind("end_to_end/example_app/test_pytorch_network.py")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: uv pip install torch==2.13.0"),
]


@pytest.fixture(scope="module")
def outputs(deployed: Any) -> dict[str, str]:
    found: dict[str, str] = deployed("PyTorchNetwork")
    return found


@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated:DeprecationWarning")
def test_the_answers_are_those_of_pytorch(example_app: Any, outputs: dict[str, str]) -> None:
    import torch

    points = np.random.default_rng(0).uniform(-1, 1, (32, 2)).astype(np.float32)
    with torch.inference_mode():
        expected = torch.jit.load(str(NETWORK))(torch.from_numpy(points)).numpy()
    for binary in (True, False):
        answer = example_app.ask(outputs["EndpointName"], "probabilities", {"input": points}, binary=binary)
        assert np.allclose(answer, expected, rtol=0, atol=1e-5)


def test_the_call_of_the_page_prints_the_spiral_of_its_comment(run_call: Any, outputs: dict[str, str]) -> None:
    assert run_call(CALL, outputs) == ["1"]
