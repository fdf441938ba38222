"""Random inputs: the same ones everywhere, of the declared type, inside the declared range."""

from __future__ import annotations

import hashlib
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from build_program.step import BuildError
from build_program.stop import Stop, StoppedError
from build_program.tensors import Tensor, write_random, write_shape

if TYPE_CHECKING:
    from golden_messages import Messages


NEVER = Stop(math.inf)


def test_floats_are_standard_normal(tmp_path: Path) -> None:
    tensor = Tensor("x", "TYPE_FP32", (100, 1000), tmp_path / "x")

    write_random(tensor, NEVER, seed="0", bounds=None)

    values = np.fromfile(tensor.file, "<f4")
    assert values.size == 100_000
    assert abs(float(values.mean())) < 0.02
    assert abs(float(values.std()) - 1) < 0.02


@pytest.mark.parametrize(
    ("data_type", "dtype"),
    [("TYPE_INT64", "<i8"), ("TYPE_INT32", "<i4"), ("TYPE_INT8", "i1"), ("TYPE_UINT8", "u1"), ("TYPE_BOOL", "?")],
)
def test_integers_are_zeros_and_ones_unless_a_range_is_declared(tmp_path: Path, data_type: str, dtype: str) -> None:
    tensor = Tensor("ids", data_type, (500,), tmp_path / "ids")

    write_random(tensor, NEVER, seed="0", bounds=None)
    assert set(np.fromfile(tensor.file, dtype).tolist()) == {0, 1}

    if data_type != "TYPE_BOOL":
        write_random(tensor, NEVER, seed="0", bounds=[3, 9])
        assert set(np.fromfile(tensor.file, dtype).tolist()) == set(range(3, 10))


def test_half_precisions_are_roundings_of_the_same_numbers(tmp_path: Path) -> None:
    full, half, brain = (Tensor("x", f"TYPE_{name}", (64,), tmp_path / name) for name in ("FP32", "FP16", "BF16"))
    for tensor in (full, half, brain):
        write_random(tensor, NEVER, seed="0", bounds=None)

    expected = np.fromfile(full.file, "<f4")
    assert np.allclose(np.fromfile(half.file, "<f2"), expected, rtol=1e-3, atol=1e-4)
    found = (np.fromfile(brain.file, "<u2").astype(np.uint32) << 16).view(np.float32)
    assert np.allclose(found, expected, rtol=1 / 128)


def test_the_same_seed_gives_the_same_file_with_every_python(tmp_path: Path) -> None:
    tensor = Tensor("x", "TYPE_FP32", (3,), tmp_path / "x")

    write_random(tensor, NEVER, seed="0/0/x", bounds=None)

    # Seen with Python 3.8 and 3.12 as well.
    assert (
        hashlib.sha256(tensor.file.read_bytes()).hexdigest()
        == "22a33845ffbb3ef3f90f63095ba7503cd2d083fda832e978541c70d306b11395"
    )


def test_a_shape_tensor_gets_its_values(tmp_path: Path) -> None:
    tensor = Tensor("shape", "TYPE_INT64", (2,), tmp_path / "shape", (7, 9))

    write_shape(tensor)

    assert np.fromfile(tensor.file, "<i8").tolist() == [7, 9]


def test_text_cannot_be_tried(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(BuildError):
        write_random(Tensor("text", "TYPE_STRING", (1,), tmp_path / "x"), NEVER, seed="0", bounds=None)


def test_the_deadline_ends_a_large_one(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        write_random(
            Tensor("x", "TYPE_FP32", (1 << 40,), tmp_path / "x"), Stop(time.monotonic()), seed="0", bounds=None
        )
