"""A client that knows the repository rejects a wrong request before it is sent, and completes a right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from tritonclient.http import InferRequestedOutput

from cdk_triton.client import TritonClient
from cdk_triton.client.repository import RepositoryClient
from cdk_triton.errors import ConfigurationError, InvocationError, ModelConfigError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages

CONFIG = """
backend: "python"
max_batch_size: 4
input [
  { name: "text" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "image" data_type: TYPE_FP32 dims: [ 2, -1 ] optional: true },
  { name: "count" data_type: TYPE_UINT8 dims: [ 1, 1 ] optional: true },
  { name: "half" data_type: TYPE_FP16 dims: [ -1 ] optional: true },
  { name: "brain" data_type: TYPE_BF16 dims: [ 2 ] optional: true },
  { name: "flag" data_type: TYPE_BOOL dims: [ 1 ] optional: true }
]
output [
  { name: "text" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "image" data_type: TYPE_FP32 dims: [ 2, -1 ] },
  { name: "count" data_type: TYPE_UINT8 dims: [ 1, 1 ] }
]
"""


def repository(directory: Path, **configs: str) -> ModelRepository:
    for name, config in configs.items():
        (directory / name / "1").mkdir(parents=True)
        (directory / name / "1" / "model.py").touch()
        (directory / name / "config.pbtxt").write_text(config)
    return ModelRepository.from_directory(directory)


@pytest.fixture
def client(endpoint: Any, tmp_path: Path) -> RepositoryClient:
    return TritonClient("texts", endpoint.runtime()).for_repository(
        repository(tmp_path, model=CONFIG), target_model="a.tar.gz"
    )


def sent(endpoint: Any, name: str) -> tuple[list[int], str]:
    tensors = {tensor["name"]: tensor for tensor in endpoint.requests[-1][2]["inputs"]}
    return tensors[name]["shape"], tensors[name]["datatype"]


@pytest.mark.parametrize(
    ("name", "value", "shape"),
    [
        ("text", "one", [1, 1]),
        ("text", ["one", "two"], [2, 1]),
        ("text", [["one"], ["two"]], [2, 1]),
        ("text", np.array(["one", "two"]), [2, 1]),
        ("text", b"\xff", [1, 1]),
        ("image", [[1, 2, 3], [4, 5, 6]], [1, 2, 3]),
        ("image", np.zeros((1, 2, 5), np.float32), [1, 2, 5]),
        ("count", 7, [1, 1, 1]),
        ("count", [7], [1, 1, 1]),
        ("half", [0.5, 1], [1, 2]),
        ("half", [[0.5], [1]], [2, 1]),
        ("half", [2048, -2050], [1, 2]),
        ("image", [[0.1, 1e-60], [16777216, 3]], [1, 2, 2]),
        ("brain", [1.5, -2], [1, 2]),
        ("flag", True, [1, 1]),
    ],
)
def test_shapes_and_types_are_completed(
    client: RepositoryClient, endpoint: Any, name: str, value: Any, shape: list[int]
) -> None:
    text = {} if name == "text" else {"text": ["t"] * shape[0]}
    client.infer(text | {name: value})
    datatypes = {"text": "BYTES", "image": "FP32", "count": "UINT8", "half": "FP16", "brain": "BF16", "flag": "BOOL"}
    assert sent(endpoint, name) == (shape, datatypes[name])
    assert endpoint.requests[-1][1]["x-amzn-sagemaker-target-model"] == "a.tar.gz"


def test_the_outputs_have_the_types_of_the_configuration(client: RepositoryClient) -> None:
    answer = client.infer({"text": ["a", "b"], "image": [[[1], [2]], [[3], [4]]], "count": [3, 4]})
    assert (str(answer["image"].dtype), answer["image"].shape) == ("float32", (2, 2, 1))
    assert answer["count"].ravel().tolist() == [3, 4]
    assert answer["text"].ravel().tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"txt": "a"},
        {"text": 1.5},
        {"text": [["a", "b"]]},
        {"text": ["a"] * 5},
        {"text": "a", "image": np.zeros((1, 2, 3))},
        {"text": "a", "image": np.zeros((1, 3, 3), np.float32)},
        {"text": "a", "image": [[1, 2], [3]]},
        {"text": "a", "image": [["1"], ["2"]]},
        {"text": "a", "count": 256},
        {"text": "a", "count": 1.5},
        {"text": "a", "half": [1e6]},
        {"text": "a", "image": [[16777217], [0]]},
        {"text": "a", "image": [[2**53 + 1], [0]]},
        {"text": "a", "brain": [257, 0]},
        {"text": "a", "count": np.zeros((2, 1, 1), np.uint8)},
        ["a"],
    ],
    ids=[
        "missing",
        "misspelled",
        "number for text",
        "too wide",
        "too many rows",
        "float64 for FP32",
        "another height",
        "ragged",
        "text for numbers",
        "too large",
        "fraction",
        "too large for FP16",
        "integer between two of FP32",
        "integer that FP64 rounds to one of FP32",
        "integer between two of BF16",
        "unequal rows",
        "list",
    ],
)
def test_a_wrong_request_is_not_sent(messages: Messages, client: RepositoryClient, endpoint: Any, inputs: Any) -> None:
    with messages.raises(ConfigurationError):
        client.infer(inputs)
    assert endpoint.requests == []


@pytest.mark.parametrize("name", ["START", "SUM_IN"])
def test_an_input_that_the_sequence_batcher_adds_is_not_sent(
    messages: Messages, endpoint: Any, tmp_path: Path, name: str
) -> None:
    """Public report: client#824."""
    config = """
    sequence_batching {
      control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
      state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: 1 }
    }
    """
    client = TritonClient("texts", endpoint.runtime()).for_repository(repository(tmp_path, model=CONFIG + config))
    with messages.raises(ConfigurationError):
        client.infer({"text": "a", name: [1]})


def test_an_output_that_the_model_does_not_have_is_rejected(
    messages: Messages, client: RepositoryClient, endpoint: Any
) -> None:
    with messages.raises(ConfigurationError):
        client.infer({"text": "a"}, outputs=["imag"])
    with pytest.raises(ConfigurationError):
        client.infer({"text": "a"}, outputs=[InferRequestedOutput("other")])
    with pytest.raises(ConfigurationError):
        client.infer_many([{"text": "a"}], outputs="other")
    assert endpoint.requests == []


def test_an_answer_of_another_repository_is_an_error(
    messages: Messages, client: RepositoryClient, endpoint: Any, answer: Any
) -> None:
    body = b'{"outputs": [{"name": "image", "datatype": "FP64", "shape": [1, 2, 1], "data": [1, 2]}]}'
    endpoint.answer = lambda: answer(body, "application/json")
    with messages.raises(InvocationError):
        client.infer({"text": "a"})


def test_many_requests_are_sent_with_the_batch_size_of_the_configuration(
    client: RepositoryClient, endpoint: Any
) -> None:
    answers: list[Any] = client.infer_many([{"text": f"text {number}"} for number in range(6)] + [{"txt": "a"}])

    assert sorted(header["inputs"][0]["shape"] for _, _, header in endpoint.requests) == [[2, 1], [4, 1]]
    assert [each["text"].tolist() for each in answers[:6]] == [[[f"text {n}".encode()]] for n in range(6)]
    assert isinstance(answers[6], ConfigurationError)


def test_a_model_without_batches_takes_its_dims(endpoint: Any, tmp_path: Path) -> None:
    config = """backend: "python"
        input { name: "x" data_type: TYPE_INT64 dims: [ 2, 1 ] }
        output { name: "x" data_type: TYPE_INT64 dims: [ 2, 1 ] }
    """
    client = TritonClient("texts", endpoint.runtime()).for_repository(repository(tmp_path, model=config))
    assert client.infer({"x": [1, 2]})["x"].tolist() == [[1], [2]]
    with pytest.raises(ConfigurationError, match=r"has the shape \[1, 2\], but config.pbtxt has dims: \[2, 1\]: give"):
        client.infer({"x": [[1, 2]]})
    answers: list[Any] = client.infer_many([{"x": [1, 2]}, {"x": [3, 4]}])
    assert [each["x"].ravel().tolist() for each in answers] == [[1, 2], [3, 4]]


def test_lists_of_small_and_large_integers_keep_their_digits(endpoint: Any, tmp_path: Path, messages: Messages) -> None:
    config = """backend: "python"
        input { name: "x" data_type: TYPE_UINT64 dims: [ 2 ] }
        output { name: "x" data_type: TYPE_UINT64 dims: [ 2 ] }
    """
    client = TritonClient("texts", endpoint.runtime()).for_repository(repository(tmp_path, model=config))
    assert client.infer({"x": [2**63 + 1, 1]})["x"].tolist() == [2**63 + 1, 1]
    with messages.raises(ConfigurationError):
        client.infer({"x": [2**64, 1]})


def test_brain_floats_keep_their_values(client: RepositoryClient) -> None:
    answer = client.infer({"text": "a", "brain": [1.5, -2]})
    assert answer["brain"].dtype == ml_dtypes.bfloat16
    assert answer["brain"].astype(np.float32).tolist() == [[1.5, -2.0]]


def test_a_repository_that_leaves_the_model_open_is_rejected(messages: Messages, endpoint: Any, tmp_path: Path) -> None:
    client = TritonClient("texts", endpoint.runtime())
    with messages.raises(ConfigurationError):
        client.for_repository(repository(tmp_path / "two", one=CONFIG, two=CONFIG))
    with messages.raises(ConfigurationError):
        client.for_repository(repository(tmp_path / "bare", model='backend: "python"'))
    with messages.raises(ModelConfigError):
        client.for_repository(repository(tmp_path / "broken", model="backend: ["))


@pytest.mark.slow
def test_the_reference_repositories_have_a_contract(endpoint: Any) -> None:
    root = Path(__file__).parents[2] / "model_assets"
    client = TritonClient("texts", endpoint.runtime())
    for name in ("sentence_embedding", "image_classification", "text_generation"):
        contract = client.for_repository(ModelRepository.from_directory(root / name)).contract
        assert contract.inputs
        assert contract.outputs


def with_identifiers(directory: Path, endpoint: Any, kind: str) -> RepositoryClient:
    control = f"control {{ kind: CONTROL_SEQUENCE_CORRID data_type: {kind} }}"
    config = CONFIG + f'sequence_batching {{ control_input {{ name: "id" {control} }} }}'
    return TritonClient("texts", endpoint.runtime()).for_repository(repository(directory, model=config))


@pytest.mark.parametrize(
    ("kind", "sequence_id"),
    [
        ("TYPE_STRING", 7),
        ("TYPE_UINT64", "seven"),
        ("TYPE_INT32", "x" * 128),
        ("TYPE_INT64", 2**63),
        ("TYPE_UINT32", 2**32),
        ("TYPE_INT32", 2**31),
    ],
)
def test_an_identifier_that_the_model_gets_in_another_type(
    endpoint: Any, tmp_path: Path, messages: Messages, kind: str, sequence_id: Any
) -> None:
    with messages.raises(ConfigurationError):
        with_identifiers(tmp_path, endpoint, kind).sequence(sequence_id)


@pytest.mark.parametrize(("kind", "sequence_id"), [("TYPE_STRING", "seven"), ("TYPE_INT32", 2**31 - 1)])
def test_an_identifier_that_the_model_gets_as_it_is(endpoint: Any, tmp_path: Path, kind: str, sequence_id: Any) -> None:
    with with_identifiers(tmp_path, endpoint, kind).sequence(sequence_id):
        pass


FLAT = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ 2, 3 ] }
input { name: "text" data_type: TYPE_STRING dims: [ 1 ] }
input { name: "open" data_type: TYPE_INT64 dims: [ -1 ] }
output { name: "x" data_type: TYPE_FP32 dims: [ 2, 3 ] }
"""


@pytest.mark.parametrize(
    "x",
    [[1, 2, 3, 4, 5, 6], np.arange(1, 7, dtype=np.float32), [[1, 2, 3], [4, 5, 6]]],
    ids=["list", "array", "shaped"],
)
def test_a_stream_takes_the_elements_without_their_shape(endpoint: Any, answer: Any, tmp_path: Path, x: Any) -> None:
    sent: list[Any] = []

    def handle(_: Any, body: bytes) -> Any:
        sent.append(json.loads(body))
        return answer(b'{"x": [1, 2, 3, 4, 5, 6]}', "application/json")

    endpoint.handle = handle
    client = TritonClient("texts", endpoint.runtime()).for_repository(repository(tmp_path, model=FLAT))
    client.generate({"x": x, "text": "a", "open": [7, 8]})
    assert sent == [{"x": [1, 2, 3, 4, 5, 6], "text": ["a"], "open": [7, 8]}]


@pytest.mark.parametrize("x", [[1, 2, 3, 4, 5], np.zeros((3, 2), np.float32), [0] * 30])
def test_a_stream_rejects_elements_of_another_tensor(endpoint: Any, tmp_path: Path, messages: Messages, x: Any) -> None:
    client = TritonClient("texts", endpoint.runtime()).for_repository(repository(tmp_path, model=FLAT))
    with messages.raises(ConfigurationError):
        client.stream({"x": x, "text": "a", "open": 7})
    assert endpoint.requests == []
