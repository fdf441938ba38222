"""The client's requests and answers are, byte for byte and value for value, those of tritonclient."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from tests.client.conftest import identity
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import np_to_triton_dtype

from cdk_triton.client.payload import decode, encode
from cdk_triton.errors import ConfigurationError, InvocationError

NUMBERS = st.one_of(
    npst.arrays(
        dtype=st.one_of(
            st.just(np.dtype(bool)),
            npst.integer_dtypes(endianness="="),
            npst.unsigned_integer_dtypes(endianness="="),
            npst.floating_dtypes(sizes=(16, 32, 64), endianness="="),
        ),
        shape=npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    ),
    st.just(np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::3]),
    st.just(np.array([[1.5, -2.0]], dtype=ml_dtypes.bfloat16)),
)
TEXT = st.one_of(
    st.lists(st.text(st.characters(max_codepoint=127), max_size=300), max_size=6),
    st.lists(st.one_of(st.text(max_size=9), st.binary(max_size=9)), max_size=6),
)
NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8)


def objects(texts: Sequence[str | bytes]) -> Any:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


TENSORS = st.dictionaries(NAMES, st.one_of(NUMBERS, TEXT.map(objects)), min_size=1, max_size=3)


def of_tritonclient(tensors: Mapping[str, Any], *, binary: bool = True) -> list[InferInput]:
    return [
        InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)).set_data_from_numpy(array, binary)
        for name, array in tensors.items()
    ]


@pytest.mark.slow
@settings(max_examples=150)
@given(tensors=TENSORS, outputs=st.lists(NAMES, unique=True, max_size=2), request_id=NAMES | st.just(""))
def test_a_binary_request_has_the_bytes_of_tritonclient(
    tensors: dict[str, Any], outputs: list[str], request_id: str
) -> None:
    body, size = InferenceServerClient.generate_request_body(
        of_tritonclient(tensors),
        outputs=[InferRequestedOutput(name) for name in outputs],
        request_id=request_id,
        parameters={"temperature": 1},
    )
    ours, kind = encode(tensors, {"outputs": outputs, "request_id": request_id, "parameters": {"temperature": 1}})
    assert ours == body
    assert kind.endswith(f"={size}")


@pytest.mark.slow
@given(tensors=TENSORS)
def test_a_request_of_prepared_tensors_has_the_same_bytes(tensors: dict[str, Any]) -> None:
    prepared = of_tritonclient(tensors)
    wanted = [InferRequestedOutput("probabilities", class_count=3)]
    body, _ = InferenceServerClient.generate_request_body(prepared, outputs=wanted)
    assert encode(prepared, {"outputs": wanted})[0] == body
    assert encode({each.name(): each for each in prepared}, {"outputs": wanted})[0] == body


@pytest.mark.slow
@given(texts=st.dictionaries(NAMES, st.lists(st.text(max_size=9), max_size=4).map(objects), min_size=1))
def test_a_json_request_has_the_values_of_tritonclient(texts: dict[str, Any]) -> None:
    tensors = texts | {"numbers": np.array([[1, 2], [3, 4]], np.int64), "flags": np.array([True, False])}
    body, _ = InferenceServerClient.generate_request_body(of_tritonclient(tensors, binary=False))
    ours, kind = encode(tensors, {"binary": False})
    assert kind == "application/json"
    assert json.loads(ours) == json.loads(body) | {"parameters": {"binary_data_output": False}}


@pytest.mark.slow
@given(tensors=TENSORS)
def test_an_answer_has_the_arrays_of_tritonclient(tensors: dict[str, Any]) -> None:
    _, answer = identity(*encode(tensors, {}))

    found = decode(answer.body, answer.content_type)

    assert list(found) == list(tensors)
    for name, array in found.items():
        theirs = found.infer_result.as_numpy(name)
        assert (array.dtype, array.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(array, theirs)


def answered(array: Any) -> tuple[bytes, str]:
    _, answer = identity(*encode({"x": array}, {}))
    return answer.body, answer.content_type


def test_an_array_of_an_answer_is_a_view_of_its_bytes() -> None:
    body, kind = answered(np.arange(1000, dtype=np.float32))

    array = decode(body, kind)["x"]

    assert np.shares_memory(array, np.frombuffer(body, np.uint8))
    assert not array.flags.writeable


@pytest.mark.parametrize("size", [-1, 3], ids=["a byte less", "no whole elements"])
@pytest.mark.parametrize("array", [np.arange(4, dtype=np.float32), objects(["one", "three"])], ids=["FP32", "BYTES"])
def test_a_wrong_size_of_a_tensor_is_an_error(array: Any, size: int) -> None:
    body, kind = answered(array)
    prefix, header = kind.rsplit("=", 1)
    response = json.loads(body[: int(header)])
    parameters = response["outputs"][0]["parameters"]
    parameters["binary_data_size"] = parameters["binary_data_size"] - 1 if size < 0 else size
    head = json.dumps(response).encode()
    with pytest.raises(InvocationError):
        decode(head + body[int(header) :], f"{prefix}={len(head)}")


def test_a_data_type_that_triton_does_not_have_is_an_error() -> None:
    body = b'{"outputs": [{"name": "x", "datatype": "FP8", "shape": [1], "data": [1]}]}'
    with pytest.raises(InvocationError, match="unknown data type FP8"):
        decode(body, "application/json")


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ({"x": ["half \ud83e"]}, {}),
        ({"x": [b"\xff", "half \ud83e"]}, {"binary": False}),
        ({"x": np.zeros(1)}, {"outputs": [1]}),
        ({"x": np.zeros(1)}, {"parameters": {"when": object}}),
    ],
    ids=["half a character", "half a character as JSON", "an output that is a number", "a parameter that is a class"],
)
def test_other_things_that_cannot_be_sent(inputs: Any, options: Any) -> None:
    with pytest.raises(ConfigurationError):
        encode(inputs, options)


@pytest.mark.slow
def test_arrays_need_neither_gevent_nor_tritonclients_http() -> None:
    program = """
import sys, numpy as np
from cdk_triton.client.payload import decode, encode
encode({"x": np.zeros((1, 4), np.float32), "text": ["one"]}, {"outputs": ["y"]})
decode(b'{"outputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}', "application/json")
print(sorted({"gevent", "tritonclient.http"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
