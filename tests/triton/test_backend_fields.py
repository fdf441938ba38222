"""What the server makes of a configuration that leaves out `platform` or `backend`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cdk_triton.triton import parse_model_config
from cdk_triton.triton.backend_fields import completed_pair


@pytest.mark.parametrize(
    ("config", "entries", "pair"),
    [
        pytest.param('platform: "tensorrt_plan"', {}, ("tensorrt_plan", "tensorrt"), id="platform"),
        pytest.param('backend: "pytorch"', {"model.pt2": False}, ("pytorch_libtorch", "pytorch"), id="backend"),
        pytest.param('platform: "torch_aoti"', {}, ("torch_aoti", "pytorch"), id="PyTorch's other platform"),
        pytest.param("", {"model.pt2": False}, ("torch_aoti", "pytorch"), id="PyTorch's other file"),
        pytest.param("", {"model.pt2": False, "model.pt": False}, ("pytorch_libtorch", "pytorch"), id="both files"),
        pytest.param("", {"model.onnx": True}, ("onnxruntime_onnx", "onnxruntime"), id="a directory for ONNX"),
        pytest.param("", {"model.plan": True}, ("", ""), id="a directory for TensorRT"),
        pytest.param("", {"model.savedmodel": True}, ("tensorflow_savedmodel", "tensorflow"), id="saved model"),
        pytest.param("", {"model.savedmodel": False}, ("", ""), id="saved model that is a file"),
        pytest.param(
            'backend: "tensorflow"', {"model.graphdef": False}, ("tensorflow_graphdef", "tensorflow"), id="graph"
        ),
        pytest.param('default_model_filename: "model.xml"', {}, ("", "openvino"), id="file name"),
        pytest.param('default_model_filename: "x.onnx"', {"model.onnx": False}, ("", ""), id="another file name"),
        pytest.param('platform: "x"', {"model.py": False}, ("x", ""), id="a platform of nobody"),
        pytest.param('platform: "x" default_model_filename: "model.py"', {}, ("x", "python"), id="file beside it"),
    ],
)
def test_pairs(config: str, entries: Mapping[str, bool], pair: tuple[str, str]) -> None:
    assert completed_pair(parse_model_config(config), "model", lambda: entries) == pair


def test_a_name_that_tells_the_backend() -> None:
    assert completed_pair(parse_model_config(""), "model.identity", dict) == ("", "identity")


def test_a_release_without_pytorchs_other_platform() -> None:
    config = parse_model_config('platform: "torch_aoti"')
    assert completed_pair(config, "model", dict, knows_aoti=False) == ("torch_aoti", "")
