"""The stand-in for the backend `pytorch`: results, and what it and the real backend reject."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from golden_messages import Messages

FILES = Path(__file__).parents[3] / "pytorch_models" / "files"
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="the extra torch is not installed")
FOUR = np.arange(4, dtype=np.float32).reshape(1, 4)


def config(inputs: str, outputs: str, kind: str = "FP32", **more: Any) -> Mapping[str, Any]:
    return {
        "name": "m",
        "input": [{"name": name, "data_type": f"TYPE_{kind}"} for name in inputs.split()],
        "output": [{"name": name, "data_type": f"TYPE_{kind}"} for name in outputs.split()],
        **more,
    }


def model(file: str, given: Mapping[str, Any]) -> Any:
    from cdk_triton_local.triton.backends.torch_model import TorchModel

    return TorchModel(FILES / file, given)


@needs_torch
@pytest.mark.parametrize("names", ["x mask", "first second", "INPUT__0 INPUT__1"])
def test_names_lead_to_arguments(names: str) -> None:
    first, second = names.split()
    (found,) = model("traced.pt", config(names, "y")).run({second: FOUR, first: FOUR}, ["y"])
    assert found.tolist() == [[0.0, 0.0]]  # the weights of the corpus are zeros


@needs_torch
def test_a_dictionary_and_a_named_tuple() -> None:
    (found,) = model("dictionary.pt", config("a b", "y")).run({"a": FOUR, "b": FOUR}, ["y"])
    assert found.tolist() == (2 * FOUR).tolist()
    boxes, scores = model("named.pt", config("x", "OUTPUT__0 OUTPUT__1")).run({"x": FOUR}, ["OUTPUT__0", "OUTPUT__1"])
    assert boxes.tolist() == scores.tolist() == FOUR.tolist()


@needs_torch
def test_texts() -> None:
    given = config("names", "", kind="STRING")
    given["output"].append({"name": "lengths", "data_type": "TYPE_INT64"})
    given["output"].append({"name": "texts", "data_type": "TYPE_STRING"})
    lengths, texts = model("texts.pt", given).run({"names": np.array([b"a", b"bcd"], object)}, ["lengths", "texts"])
    assert lengths.tolist() == [1, 3]
    assert texts.tolist() == [b"a", b"bcd"]


@needs_torch
@pytest.mark.parametrize(
    ("file", "given", "words"),
    [
        ("weights.pt", config("x", "y"), "failed locating file constants.pkl"),
        ("old.pt", config("x", "y"), "failed finding central directory"),
        ("encoder.pt", config("x", "y"), "Method 'forward' is not defined"),
        ("optional.pt", config("x", "y"), "An input of type 'Optional"),
        ("traced.pt", config("x", "y"), "configuration expects 1 inputs, model provides 2"),
        ("traced.pt", config("x", "y", sequence_batching={"state": [{}]}), "does not support sequence_batching.state"),
    ],
)
def test_what_is_not_loaded(file: str, given: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model(file, given)


@needs_torch
@pytest.mark.parametrize(
    ("file", "given", "words"),
    [
        ("function.pt", config("x y", "OUTPUT__1"), "This model has 1 outputs"),
        ("function.pt", config("INPUT__0 INPUT__2", "y"), "an index that forward does not have"),
        ("named.pt", config("x", "y", kind="INT32"), "configuration expects datatype TYPE_INT32 for output 'y'"),
        ("number.pt", config("x", "y"), "must be of type Tensor or List"),
    ],
)
def test_what_is_not_answered(file: str, given: Mapping[str, Any], words: str) -> None:
    names = [tensor["name"] for tensor in given["input"]]
    with pytest.raises(ValueError, match=words):
        model(file, given).run(dict.fromkeys(names, FOUR), [tensor["name"] for tensor in given["output"]])


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in as Triton's stub runs it, without PyTorch."""
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", ModuleType("triton_python_backend_utils"))
    from cdk_triton_local.triton import backends
    from cdk_triton_local.triton.backends import pytorch

    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    return pytorch.TritonPythonModel()


@pytest.mark.parametrize("more", [{}, {"platform": "torch_aoti"}], ids=["no PyTorch", "a compiled archive"])
def test_the_reason_lies_in_this_machine(
    messages: Messages, stand_in: Any, tmp_path: Path, more: Mapping[str, str]
) -> None:
    (tmp_path / "model.pt").write_bytes(b"")
    stand_in.config = config("x", "y", **more)
    with messages.raises(ValueError):
        stand_in.load(tmp_path)
