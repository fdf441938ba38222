"""Answers and expected answers: read as the client writes and reads them, and compared as numpy compares them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from build_program.rehearsal.comparison import difference
from build_program.rehearsal.tensors import AnswerError, Tensor, read_tensors
from cdk_triton.client.payload import decode
from cdk_triton.errors import ConfigurationError
from cdk_triton.rehearsal.files import golden_answer

pytestmark = pytest.mark.slow  # generated inputs

NUMBERS = ["bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def body_of(values: dict[str, Any]) -> tuple[bytes, str]:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "answer.npz"
        np.savez(file, **values)
        return golden_answer(file)


def tensors(**values: Any) -> dict[str, Tensor]:
    return read_tensors(*body_of(values))


@given(st.data(), st.sampled_from(NUMBERS))
def test_tensors_are_read_as_the_client_reads_them(data: st.DataObject, dtype: str) -> None:
    shape = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    array = data.draw(arrays.arrays(np.dtype(dtype), shape))
    body, content_type = body_of({"y": array})
    (found,) = read_tensors(body, content_type).values()
    expected = decode(body, content_type)["y"]
    assert found.shape == list(expected.shape)
    np.testing.assert_array_equal(np.array(found.values, dtype=dtype).reshape(array.shape), expected)


@given(st.lists(st.binary(max_size=5).filter(lambda each: not each.endswith(b"\0")), min_size=1, max_size=4))
def test_texts_are_read_as_they_were_written(texts: list[bytes]) -> None:
    assert list(tensors(y=np.array(texts, dtype="S"))["y"].values) == texts


@given(st.binary(max_size=60), st.sampled_from(["application/json", "text/plain", "binary"]))
def test_no_bytes_crash_it(body: bytes, kind: str) -> None:
    content_type = f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(body) // 2}"
    with pytest.raises(AnswerError):
        read_tensors(body, content_type if kind == "binary" else kind)


@given(
    arrays.arrays(np.dtype("f4"), 6, elements=st.floats(width=32)),
    arrays.arrays(np.dtype("f4"), 6, elements=st.floats(width=32)),
    st.floats(0, 1e6),
    st.floats(0, 2),
)
def test_a_tolerance_is_that_of_numpy(one: Any, other: Any, absolute: float, relative: float) -> None:
    finite = np.abs(other[np.isfinite(other)].astype("f8"))
    allowed = absolute + relative * float(finite.max(initial=0.0))
    comparison = {"how": "tolerance", "absolute": absolute, "relative": relative}
    passes = difference(comparison, tensors(y=one), tensors(y=other)) is None
    assert passes == np.allclose(one.astype("f8"), other.astype("f8"), rtol=0, atol=allowed, equal_nan=True)


@pytest.mark.parametrize(
    ("how", "found", "expected", "passes"),
    [
        ({"how": "any"}, [1.0], [2.0], True),
        ({"how": "cosine", "least": 0.99}, [1.0, 2.0], [2.0, 4.0], True),
        ({"how": "cosine", "least": 0.99}, [1.0, 2.0], [2.0, -4.0], False),
        ({"how": "cosine", "least": 0.99}, [0.0, 0.0], [0.0, 0.0], True),
        ({"how": "top1"}, [[0.1, 0.7, 0.2]], [[0.3, 0.4, 0.3]], True),
        ({"how": "top1"}, [[0.1, 0.7, 0.2], [1.0, 0.0, 0.0]], [[0.3, 0.4, 0.3], [0.0, 1.0, 0.0]], False),
        ({"how": "top1"}, [[float("nan"), 0.0]], [[9.0, 4.0]], False),
        ({"how": "top1"}, [[float("nan"), 0.0]], [[float("nan"), 0.0]], True),
        ({"how": "label", "label": "cat"}, np.array([b"0.9:281:cat", b"0.1:2:dog"]), [0.0], True),
        ({"how": "label", "label": "cat"}, np.array([b"cat"]), [0.0], True),
        ({"how": "label", "label": "cat"}, np.array([b"0.9:2:dog", b"0.1:281:cat"]), [0.0], False),
        ({"how": "label", "label": "cat"}, [1.0], [0.0], False),
        ({"how": "tolerance", "absolute": 0.1, "relative": 0.0}, np.array([1, 2]), np.array([1, 2]), True),
        ({"how": "tolerance", "absolute": 5.0, "relative": 0.0}, np.array([1, 3]), np.array([1, 2]), False),
    ],
)
def test_ways_of_comparing(how: dict[str, Any], found: Any, expected: Any, passes: bool) -> None:
    compared = None if how["how"] == "label" else tensors(y=np.array(expected))
    assert (difference(how, tensors(y=np.array(found)), compared) is None) is passes


def test_a_difference_of_text_tells_no_text() -> None:
    exactly = {"how": "tolerance", "absolute": 0.0, "relative": 0.0}
    secret = tensors(y=np.array([[b"a", b"secret"]]))
    told = difference(exactly, tensors(y=np.array([[b"a", b"other"]])), secret)
    assert told == ("the output 'y' differs in 1 of 2 values, first at [0, 1]: a text of 5 bytes instead of one of 6")


def test_shapes_types_and_missing_outputs_differ() -> None:
    exactly = {"how": "tolerance", "absolute": 0.0, "relative": 0.0}
    for found in ({"y": np.ones((2, 1), "f4")}, {"y": np.ones(2, "f8")}, {"z": np.ones(2, "f4")}):
        assert difference(exactly, tensors(**found), tensors(y=np.ones(2, "f4"))) is not None


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ([], "has no outputs: write them"),
        (
            [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [float("nan"), 1.0]}],
            "has a NaN in the output 'y', so top1",
        ),
    ],
)
def test_an_expected_answer_that_every_answer_would_pass(tmp_path: Path, outputs: list[Any], reason: str) -> None:
    (tmp_path / "answer.json").write_text(json.dumps({"outputs": outputs}))
    with pytest.raises(ConfigurationError, match=reason):
        golden_answer(tmp_path / "answer.json", top1=True)
