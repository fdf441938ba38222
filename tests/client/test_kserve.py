"""Requests in files: what Triton's schedulers read from their `parameters`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput

from cdk_triton.client.kserve import Body, read_body
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages

TENSOR = {"name": "x", "datatype": "FP32", "shape": [1], "data": [2.0]}


TEXT = {"name": "x", "datatype": "BYTES", "shape": [1], "data": ["a"]}


def read(directory: Path, parameters: dict[str, Any]) -> Body:
    return body_of(directory, {"inputs": [TENSOR], "parameters": parameters})


def body_of(directory: Path, document: Any) -> Body:
    file = directory / "request.json"
    file.write_text(json.dumps(document))
    return read_body(str(file))


@pytest.mark.parametrize(
    "parameters",
    [
        {"priority": 0, "timeout": 0, "sequence_id": 0},
        {"sequence_id": "", "sequence_start": False, "sequence_end": False},
        {"sequence_start": False},
    ],
)
def test_what_triton_takes_for_absent_is_absent(tmp_path: Path, parameters: dict[str, Any]) -> None:
    body = read(tmp_path, {"custom": 1, **parameters})
    assert (body.priority, body.queue_timeout_seconds, body.step, body.parameters) == (None, None, None, {"custom": 1})


@pytest.mark.parametrize(
    "parameters",
    [
        {"sequence_id": 7, "sequence_start": "false"},
        {"sequence_id": 7, "sequence_end": 1},
        {"sequence_id": False},
        {"sequence_id": 0, "sequence_start": True},
        {"timeout": -5},
        {"timeout": 0.5},
        {"priority": "high"},
        {"priority": False},
    ],
)
def test_a_parameter_of_another_type_is_one_sentence(
    tmp_path: Path, messages: Messages, parameters: dict[str, Any]
) -> None:
    with messages.raises(ConfigurationError):
        read(tmp_path, parameters)


@pytest.mark.parametrize(
    "tensor",
    [
        pytest.param(1.0, id="a number"),
        pytest.param([1.0], id="a row"),
        pytest.param({"datatype": "FP32", "shape": [1], "data": [1]}, id="no name"),
        pytest.param({"name": "x", "datatype": "FP32", "data": [1]}, id="no shape"),
        pytest.param(TENSOR | {"shape": "-1"}, id="the shape as text"),
        pytest.param(TENSOR | {"shape": [-1]}, id="a shape of any size"),
        pytest.param(TENSOR | {"shape": [True]}, id="a shape of bool"),
        pytest.param(TENSOR | {"datatype": "STRING"}, id="another datatype"),
        pytest.param(TEXT | {"data": [{"b64": "aGVsbG8="}]}, id="b64"),
        pytest.param(TEXT | {"data": {"text": "a"}}, id="an object"),
        pytest.param(TEXT | {"data": [None]}, id="null"),
        pytest.param(TEXT | {"data": [1]}, id="a number for text"),
        pytest.param(TENSOR | {"data": [None]}, id="null for a number"),
        pytest.param(TENSOR | {"data": ["1"]}, id="text for a number"),
        pytest.param(TENSOR | {"data": [True]}, id="true for a number"),
        pytest.param(TENSOR | {"datatype": "BOOL", "data": [2]}, id="a number for true"),
    ],
)
def test_an_input_that_triton_rejects_is_one_sentence(tmp_path: Path, messages: Messages, tensor: Any) -> None:
    with messages.raises(ConfigurationError) as rejected:
        body_of(tmp_path, {"inputs": [tensor]})
    assert "Error" not in str(rejected.value)


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"parameters": [1]}, id="a list of parameters"),
        pytest.param({"outputs": {"name": "y"}}, id="one output"),
        pytest.param({"outputs": ["y"]}, id="the name of an output"),
        pytest.param({"instances": [{"b64": "aGVsbG8="}]}, id="TensorFlow Serving"),
        pytest.param({"signature_name": "serve"}, id="an unknown member"),
    ],
)
def test_a_member_of_another_form_is_one_sentence(tmp_path: Path, messages: Messages, members: Any) -> None:
    with messages.raises(ConfigurationError):
        body_of(tmp_path, {"inputs": [TENSOR], **members})


def test_values_may_be_nested_in_any_way(tmp_path: Path) -> None:
    tensors = [
        TENSOR | {"shape": [2, 2], "data": [[1, 2], [3.5, 4]]},
        {"name": "t", "datatype": "BYTES", "shape": [3], "data": ["ü", ["", "b"]]},
        {"name": "b", "datatype": "BOOL", "shape": [1], "data": True},
    ]
    found = body_of(tmp_path, {"inputs": tensors, "outputs": [{"name": "y"}]})
    assert {name: array.tolist() for name, array in Body(found.inputs).arrays.items()} == {
        "x": [[1.0, 2.0], [3.5, 4.0]],
        "t": ["ü".encode(), b"", b"b"],
        "b": [True],
    }
    assert found.outputs == ("y",)


@pytest.mark.parametrize(
    ("datatype", "values"),
    [
        ("UINT64", [12345678901234567891, 5]),
        ("UINT64", [2**64 - 1, 1]),
        ("INT64", [-5, 2**53 + 1]),
    ],
)
def test_no_digit_of_an_integer_is_lost(tmp_path: Path, datatype: str, values: list[int]) -> None:
    tensor = {"name": "x", "datatype": datatype, "shape": [2], "data": values}
    (found,) = body_of(tmp_path, {"inputs": [tensor]}).inputs
    body, size = InferenceServerClient.generate_request_body([found])
    assert np.frombuffer(body[size:], datatype.lower()).tolist() == values


@pytest.mark.parametrize(
    ("datatype", "shape", "data"), [("INT64", [2], [2**63, 1]), ("FP32", [1] * 70, [1.0]), ("INT64", [0, 2**62], [])]
)
def test_what_no_tensor_holds_is_one_sentence(tmp_path: Path, datatype: str, shape: list[int], data: list[Any]) -> None:
    tensor = {"name": "x", "datatype": datatype, "shape": shape, "data": data}
    with pytest.raises(ConfigurationError, match="'x'"):
        body_of(tmp_path, {"inputs": [tensor]})


@pytest.mark.parametrize("values", [[1.0, 2.0], [np.nan, -1.5]], ids=["ASCII", "not UTF-8"])
def test_a_binary_body_is_named_with_the_length_of_its_json(
    tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch, values: list[float]
) -> None:
    monkeypatch.chdir(tmp_path)
    tensor = InferInput("größe", [2], "FP32").set_data_from_numpy(np.array(values, np.float32))
    content, size = InferenceServerClient.generate_request_body([tensor])
    Path("body.bin").write_bytes(content)
    with messages.raises(ConfigurationError) as rejected:
        read_body("body.bin")
    assert f"json-header-size={size}" in str(rejected.value)


def test_a_file_of_another_kind_is_to_be_an_input(
    tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dog.jpg").write_bytes(b"\xff\xd8\xff")
    with messages.raises(ConfigurationError):
        read_body("dog.jpg")
