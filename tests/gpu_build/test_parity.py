"""The comparison with ONNX Runtime: what is measured, and when it does not hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from build_program.engine_run import exported_values
from build_program.parity import compare_with_tolerance
from build_program.parity_driver import answer
from build_program.step import BuildError

if TYPE_CHECKING:
    from golden_messages import Messages


X = np.array([[1, -2, 3, 4], [5, 6, 7, 8]], np.float32)
IDS = np.array([[10], [20]], np.int32)
Y = (2 * X + IDS).astype(np.float32)
TOLERANCE = {"absolute": 0.01, "relative": 0.02}


@pytest.fixture
def ask(tmp_path: Path, network: Callable[..., bytes]) -> Callable[..., dict[str, Any]]:
    """Compares an answer of a plan with that of the tiny network; returns the figures of its output, or the error."""
    onnx = tmp_path / "tiny.onnx"
    onnx.write_bytes(network())

    def compare(found: NDArray[Any], data_type: str = "fp32", dims: list[int] | None = None) -> dict[str, Any]:
        for name, values in (("x", X), ("ids", IDS), ("y", found)):
            (tmp_path / name).write_bytes(values.tobytes())
        inputs = [
            {"name": "x", "data_type": "TYPE_FP32", "dims": [2, 4], "file": str(tmp_path / "x")},
            {"name": "ids", "data_type": "TYPE_INT32", "dims": [2, 1], "file": str(tmp_path / "ids")},
        ]
        output = {"name": "y", "data_type": data_type, "dims": dims or [2, 4], "file": str(tmp_path / "y")}
        answered = answer({"action": "compare", "onnx": str(onnx), "inputs": inputs, "outputs": [output]})
        figures: dict[str, Any] = answered["outputs"][0] if "outputs" in answered else answered
        return figures

    return compare


def test_the_largest_difference_is_measured(ask: Callable[..., dict[str, Any]]) -> None:
    found = Y.copy()
    found[1, 2] += 0.25

    assert ask(found) == {
        "name": "y",
        "elements": 8,
        "max_absolute_error": 0.25,
        "largest_magnitude": 36.0,
        "special_values_differ": 0,
    }


def test_answers_of_half_precision_are_read(ask: Callable[..., dict[str, Any]]) -> None:
    brain = (Y.astype(np.float32).view(np.uint32) >> 16).astype("<u2")

    assert ask(Y.astype(np.float16), "fp16")["max_absolute_error"] == 0
    assert ask(brain, "bf16")["max_absolute_error"] == 0


def test_a_nan_or_an_infinity_of_one_side_only_is_counted(ask: Callable[..., dict[str, Any]]) -> None:
    found = Y.copy()
    found[0, 0], found[0, 1] = np.nan, np.inf

    assert ask(found)["special_values_differ"] == 2


def test_another_shape_is_no_comparison(ask: Callable[..., dict[str, Any]]) -> None:
    assert ask(Y, dims=[4, 2]) == {"name": "y", "shape": [4, 2], "reference_shape": [2, 4]}


def test_a_network_that_onnx_runtime_cannot_run_is_an_error(messages: Messages, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x08no")

    answered = answer({"action": "describe", "onnx": str(tmp_path / "bad.onnx")})

    messages.record("error of ONNX Runtime", answered["error"].partition(":")[0])  # the rest is ONNX Runtime's


def test_the_inputs_of_a_network_are_described(tmp_path: Path, network: Callable[..., bytes]) -> None:
    (tmp_path / "tiny.onnx").write_bytes(network())

    assert answer({"action": "describe", "onnx": str(tmp_path / "tiny.onnx")}) == {
        "inputs": [
            {"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 4]},
            {"name": "ids", "data_type": "TYPE_INT32", "dims": [-1, 1]},
        ]
    }


def figures(error: float, magnitude: float, special: int = 0) -> dict[str, Any]:
    return {
        "name": "y",
        "elements": 8,
        "max_absolute_error": error,
        "largest_magnitude": magnitude,
        "special_values_differ": special,
    }


def test_a_difference_is_measured_against_the_largest_magnitude() -> None:
    held = compare_with_tolerance("the plan of tiny", figures(0.21, 10.0), TOLERANCE)

    assert held["max_relative_error"] == pytest.approx(0.021)
    assert held["allowed_absolute_error"] == pytest.approx(0.21)
    assert compare_with_tolerance("the plan of tiny", figures(0.0, 0.0), TOLERANCE)["max_relative_error"] == 0.0


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param(figures(0.22, 10.0), id="difference"),
        pytest.param(figures(0.0, 10.0, special=3), id="special values"),
        pytest.param({"name": "y", "shape": [4, 2], "reference_shape": [2, 4]}, id="another shape"),
    ],
)
def test_what_does_not_hold_fails_with_the_figures(messages: Messages, measured: dict[str, Any]) -> None:
    with messages.raises(BuildError):
        compare_with_tolerance("the plan of tiny", measured, TOLERANCE)


def test_exported_outputs_are_read_as_cpp_prints_them(tmp_path: Path) -> None:
    # samples/common/sampleReporting.cpp, exportJSONOutput
    (tmp_path / "outputs.json").write_text(
        '[\n  { "name" : "nan"\n  , "dimensions" : "2x2"\n  , "values" : [ 1, -2.5e-06, -nan, inf ]\n  }\n'
        ', { "name" : "y"\n  , "dimensions" : "1"\n  , "values" : [ -inf ]\n  }\n]\n'
    )

    found = exported_values(tmp_path / "outputs.json")

    assert found["y"] == [-np.inf]
    assert np.array_equal(found["nan"], [1, -2.5e-6, np.nan, np.inf], equal_nan=True)
