"""The types and shapes of numpy's arrays that literals show, with numpy as the judge."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from tritonclient.utils import np_to_triton_dtype

from cdk_triton.python_models.reader.arrays import array_shape, array_type


@pytest.mark.parametrize(
    "text",
    [
        "np.array([0.5, 1])",
        "np.array([[1, -2]])",
        "np.array([-0.5])",
        "np.array(3)",
        "np.array([True, False])",
        "np.array([[0.5]] * 3)",
        "np.array([0.5], np.float32)",
        "np.asarray([1, 2], dtype='int32')",
        "np.array([1], dtype=float)",
        "np.zeros(4)",
        "np.ones((2, 2), np.uint8)",
        "np.empty(4, dtype=np.bool_)",
        "np.full(4, 0.5)",
        "np.full((2, 2), 1, np.int16)",
        "np.array([0.5]).astype(np.float16)",
        "np.array([0.5]).astype(dtype=np.float16)",
        "np.zeros(4).reshape(2, 2)",
        "np.expand_dims(np.array([1]), 0)",
        "np.array([0.5])[None]",
    ],
)
def test_the_type_is_that_of_numpy(text: str) -> None:
    made = eval(text, {"np": np})
    assert array_type(ast.parse(text, mode="eval").body, lambda value: value) == np_to_triton_dtype(made.dtype)


@pytest.mark.parametrize(
    "text",
    [
        "np.array(given)",
        "np.array([0.5, given])",
        "np.array([1, 2], kind)",
        "np.array(['text'])",
        "np.array([1, True])",
        "np.array([])",
        "np.zeros(4, **more)",
        "np.load('file.npy')",
        "given.astype(kind)",
        "[0.5]",
    ],
)
def test_nothing_is_claimed_of_other_arrays(text: str) -> None:
    assert array_type(ast.parse(text, mode="eval").body, lambda value: value) is None


@pytest.mark.parametrize(
    "text",
    [
        "np.zeros(4)",
        "np.ones((2, 3), np.uint8)",
        "np.full([2, 2], 0.5)",
        "np.array([[1, -2], [3, 4]])",
        "np.array('text', dtype=np.object_)",
        "np.zeros(4).astype(np.float16)",
        "np.zeros(4).reshape(2, 2)",
        "np.reshape(np.zeros(4), (1, 4))",
        "np.expand_dims(np.zeros(4), axis=1)",
        "np.zeros(4)[None]",
    ],
)
def test_the_shape_is_that_of_numpy(text: str) -> None:
    assert array_shape(ast.parse(text, mode="eval").body, lambda value: value) == eval(text, {"np": np}).shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("np.zeros((len(given), 4))", (-1, 4)),
        ("given.reshape(1, -1)", (1, -1)),
        ("given.reshape(-1)", (-1,)),
        ("np.zeros(given)", None),
        ("np.zeros((*given, 4))", None),
        ("given.reshape(given.shape)", None),
        ("given.reshape()", None),
        ("np.reshape(given)", None),
        ("np.array([given, given])", None),
        ("np.array([[1], 2])", None),
        ("np.expand_dims(given, 0)", None),
        ("np.zeros(4)[0]", None),
    ],
)
def test_a_shape_of_which_a_part_is_not_known(text: str, shape: tuple[int, ...] | None) -> None:
    assert array_shape(ast.parse(text, mode="eval").body, lambda value: value) == shape
