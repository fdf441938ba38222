"""What an ONNX file says of the types that it computes with."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest

from cdk_triton.onnx_models.reader.types import NetworkTypes, network_types
from cdk_triton.triton.unreadable import Unreadable

PLAIN = "network (float[4] x) => (float[4] y) { y = Relu (x) }"
BOTH = """network (float[4] x) => (float[4] y) <float[1] a = {1.0}, float16[1] b = {16384}, int64[1] c = {4}> {
    d = Cast <to = 1> (b) e = Add (x, a) y = Mul (e, d)
}"""
QUANTISED = "network (float[4] x, float s) => (float[4] y) { q = QuantizeLinear (x, s) y = DequantizeLinear (q, s) }"


@pytest.mark.parametrize(
    ("graph", "types"),
    [
        (PLAIN, NetworkTypes(frozenset(), is_quantized=False)),
        (BOTH, NetworkTypes(frozenset({"FP32", "FP16"}), is_quantized=False)),
        (QUANTISED, NetworkTypes(frozenset(), is_quantized=True)),
    ],
)
def test_the_types_of_weights_and_the_quantising_operators_are_found(
    tmp_path: Path, graph: str, types: NetworkTypes
) -> None:
    file = tmp_path / "model.onnx"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{graph}')
    file.write_bytes(model.SerializeToString())
    assert network_types(file) == types


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x3a\xff\xff\xff\xff\x0f"])
def test_what_is_no_network_is_unreadable(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    assert isinstance(network_types(file), Unreadable)
    assert isinstance(network_types(tmp_path / "none.onnx"), Unreadable)
