"""The options of the clients' methods: which method takes which, for type checkers, at run time and for tools."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import create_autospec

import numpy as np
import pytest

from cdk_triton.client import AsyncTritonClient, TritonClient
from cdk_triton.client.repository import AsyncRepositoryClient, RepositoryClient
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages

X: Any = {"x": np.zeros((1, 2), np.float32)}

CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
"""

TARGET = ["ensemble", "target_model", "target_variant", "inference_component"]
REQUEST = ["outputs", "parameters", "priority", "queue_timeout_seconds"]
SINGLE = [*REQUEST, "binary", "request_id", "inference_id", "custom_attributes"]


@pytest.fixture
def repository(tmp_path: Path) -> ModelRepository:
    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "model" / "1" / "model.py").touch()
    (tmp_path / "model" / "config.pbtxt").write_text(CONFIG)
    return ModelRepository.from_directory(tmp_path)


def unexpected(method: str, option: str) -> Any:
    meant = r"( \(did you mean .*\?\))?"
    return pytest.raises(TypeError, match=rf"^{method}\(\) got an unexpected keyword argument '{option}'{meant}$")


def test_an_option_that_a_method_does_not_have_is_a_type_error(endpoint: Any, repository: ModelRepository) -> None:
    """For mypy, too: it warns about an ignored error that does not exist."""
    client = TritonClient("texts", endpoint.runtime())
    checked = client.for_repository(repository, target_model="a.tar.gz")

    with unexpected("TritonClient.infer", "ensembel"):
        client.infer(X, ensembel="text")  # type: ignore[call-arg]
    with unexpected("TritonClient.infer_many", "request_id"):
        client.infer_many([X], max_batch_size=1, request_id="r")  # type: ignore[call-arg]
    with unexpected("TritonClient.submit", "target_model"):
        client.submit(X, target_model="a.tar.gz")  # type: ignore[call-arg]
    with unexpected("TritonClient.for_repository", "outputs"):
        client.for_repository(repository, outputs=["x"])  # type: ignore[call-arg]
    with unexpected("TritonClient.stream", "target_model"):
        client.stream(X, target_model="a.tar.gz")  # type: ignore[call-arg]
    with unexpected("RepositoryClient.generate", "outputs"):
        checked.generate(X, outputs=["x"])  # type: ignore[call-arg]
    with unexpected("RepositoryClient.infer", "target_model"):
        checked.infer(X, target_model="b.tar.gz")  # type: ignore[call-arg]
    with unexpected("RepositoryClient.infer_many", "binary"):
        checked.infer_many([X], binary=True)  # type: ignore[call-arg]
    assert endpoint.requests == []


def test_an_option_that_a_method_for_asyncio_does_not_have_is_a_type_error(
    environment: Any, endpoint: Any, repository: ModelRepository
) -> None:
    async def use() -> None:
        async with AsyncTritonClient("texts") as client:
            checked = client.for_repository(repository)
            with unexpected("AsyncTritonClient.infer", "ensembel"):
                await client.infer(X, ensembel="text")  # type: ignore[call-arg]
            with unexpected("AsyncTritonClient.stream", "binary"):
                await client.stream(X, binary=True)  # type: ignore[call-arg]
            with unexpected("AsyncTritonClient.submit", "target_model"):
                await client.submit(X, target_model="a.tar.gz")  # type: ignore[call-arg]
            with unexpected("AsyncRepositoryClient.infer_many", "binary"):
                await checked.infer_many([X], binary=True)  # type: ignore[call-arg]

    asyncio.run(use())
    assert endpoint.requests == []


def test_a_value_of_another_type_is_an_error_for_mypy(endpoint: Any) -> None:
    client = TritonClient("texts", endpoint.runtime())
    client.infer(X, parameters={"temperature": 0.5})  # type: ignore[dict-item]
    client.infer(X, outputs=None, ensemble=None, target_model=None, parameters=None)


@pytest.mark.parametrize(
    ("client", "asynchronous"), [(TritonClient, AsyncTritonClient), (RepositoryClient, AsyncRepositoryClient)]
)
def test_help_notebooks_and_mocks_see_the_options_of_each_method(client: type, asynchronous: type) -> None:
    single = ["self", "inputs", *SINGLE]
    many = ["self", "requests", "concurrency", *REQUEST]
    expected = {"infer": single, "infer_many": many}
    if client is TritonClient:
        expected = {
            "infer": [*single, *TARGET],
            "infer_many": [*many, "max_batch_size", *TARGET],
            "submit": [*single, "queue_seconds", "invocation_seconds"],
            "for_repository": ["self", "repository", *TARGET],
            "sequence": ["self", "sequence_id", *TARGET],
        }
    for name, arguments in expected.items():
        for each in (client, asynchronous):
            assert sorted(inspect.signature(getattr(each, name)).parameters) == sorted(arguments)


def test_a_mock_of_the_client_for_asyncio_is_awaited_and_rejects_an_unknown_option() -> None:
    mock = create_autospec(AsyncTritonClient, instance=True)
    mock.infer.return_value = {"y": 1}

    assert asyncio.run(mock.infer(X, outputs=["y"])) == {"y": 1}
    with pytest.raises(TypeError):
        mock.infer(X, ensembel="text")


def test_sagemakers_own_identifiers_are_headers(endpoint: Any) -> None:
    TritonClient("texts", endpoint.runtime()).infer(X, inference_id="i-1", custom_attributes="tenant=7")
    ((_, headers, _),) = endpoint.requests
    assert headers["x-amzn-sagemaker-inference-id"] == "i-1"
    assert headers["x-amzn-sagemaker-custom-attributes"] == "tenant=7"


@pytest.mark.usefixtures("environment")
def test_the_client_for_asyncio_sends_the_identifiers_too(endpoint: Any) -> None:
    async def infer() -> None:
        async with AsyncTritonClient("texts") as client:
            await client.infer(X, inference_id="i-1", custom_attributes="tenant=7", priority=2)

    asyncio.run(infer())
    ((_, headers, header),) = endpoint.requests
    assert headers["x-amzn-sagemaker-inference-id"] == "i-1"
    assert headers["x-amzn-sagemaker-custom-attributes"] == "tenant=7"
    assert header["parameters"]["priority"] == 2


@pytest.mark.parametrize("name", ["priority", "timeout", "sequence_id", "sequence_start", "sequence_end", "triton_x"])
def test_a_reserved_parameter_names_the_option(endpoint: Any, messages: Messages, name: str) -> None:
    with messages.raises(ConfigurationError):
        TritonClient("texts", endpoint.runtime()).infer(X, parameters={name: 1})


@pytest.mark.parametrize(
    "option",
    [
        {"request_id": 7},
        {"request_id": "r\udcff"},
        {"parameters": "k"},
        {"parameters": [("k", 1)]},
        {"parameters": {1: 1}},
    ],
)
def test_an_option_of_another_type_is_one_sentence(endpoint: Any, messages: Messages, option: Any) -> None:
    client = TritonClient("texts", endpoint.runtime())
    with messages.raises(ConfigurationError):
        client.infer(X, **option)
    for method in (client.stream, client.generate, client.submit):
        with pytest.raises(ConfigurationError):
            method({"x": np.zeros(2, np.float32)}, **option)
    assert endpoint.requests == []


def test_half_a_character_names_no_sequence(endpoint: Any, messages: Messages) -> None:
    with messages.raises(ConfigurationError):
        TritonClient("texts", endpoint.runtime()).sequence("user-\udcff")


def test_tensors_for_grpc_are_named(endpoint: Any, messages: Messages) -> None:
    grpc = pytest.importorskip("tritonclient.grpc")
    with messages.raises(ConfigurationError):
        TritonClient("texts", endpoint.runtime()).infer([grpc.InferInput("x", [1, 2], "FP32")])


@pytest.mark.parametrize(
    "option",
    [
        {"inference_id": ""},
        {"inference_id": "x" * 65},
        {"inference_id": 7},
        {"custom_attributes": "größe=7"},
        {"custom_attributes": "a\r\nX-Other: b"},
        {"custom_attributes": "x" * 1025},
    ],
)
def test_identifiers_that_sagemaker_does_not_take(endpoint: Any, messages: Messages, option: Any) -> None:
    client = TritonClient("texts", endpoint.runtime())
    with messages.raises(ConfigurationError):
        client.infer(X, **option)
    with pytest.raises(ConfigurationError):
        client.submit(X, **option)
    assert endpoint.requests == []
