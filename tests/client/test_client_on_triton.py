"""The client against a real tritonserver behind the local gateway: what neither of them says about itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from botocore.exceptions import ClientError

from cdk_triton.artifacts import write_archive
from cdk_triton.client import TritonClient
from cdk_triton.errors import InvocationError, ModelError
from cdk_triton_local.endpoints import Container, Endpoint, Invocation, Variant
from cdk_triton_local.triton import TritonHost

if TYPE_CHECKING:
    from golden_messages import Messages


DATATYPES = {
    "BOOL": np.bool_,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "STRING": np.object_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
}
IN_JSON = sorted(set(DATATYPES) - {"FP16"})

MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.echo(request) for request in requests]

    def echo(self, request):
        wanted = request.requested_output_names()
        tensors = [tensor for tensor in request.inputs() if tensor.name() in wanted]
        return pb_utils.InferenceResponse([pb_utils.Tensor(t.name(), t.as_numpy()) for t in tensors])
"""


class DirectoryStore:
    """S3, as far as the host needs it: objects are files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 - boto3's names
        file = self.directory / Bucket / Key
        if not file.is_file():
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": "There is no such key."}}, "GetObject")
        return {"Body": file.open("rb")}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonHost]:
    """A multi-model endpoint `echo` with one archive, `echo.tar.gz`: every tensor is optional and comes back."""
    directory = tmp_path_factory.mktemp("triton")
    model = directory / "repository" / "echo"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.py").write_text(MODEL)
    inputs = [f'{{name: "{t}" data_type: TYPE_{t} dims: [-1] optional: true}}' for t in DATATYPES]
    outputs = [f'{{name: "{t}" data_type: TYPE_{t} dims: [-1]}}' for t in DATATYPES]
    (model / "config.pbtxt").write_text(
        f'backend: "python"\nmax_batch_size: 8\ninput [{", ".join(inputs)}]\noutput [{", ".join(outputs)}]\n'
    )
    (directory / "s3" / "bucket" / "models").mkdir(parents=True)
    write_archive(directory / "repository", directory / "s3" / "bucket" / "models" / "echo.tar.gz")
    container = Container("none", "MultiModel", "s3://bucket/models/", {"SAGEMAKER_MULTI_MODEL": "true"})
    host = TritonHost(lambda role: DirectoryStore(directory / "s3"), directory / "host")
    try:
        host.deploy(Endpoint("echo", "echo-1", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
        yield host
    finally:
        host.close()


@pytest.fixture
def client(host: TritonHost, endpoint: Any, answer: Any) -> TritonClient:
    def through_the_gateway(headers: Mapping[str, str], body: bytes) -> Any:
        response = host.invoke(Invocation("echo", headers, body))
        return answer(response.body, response.headers["Content-Type"], response.status, response.headers)

    endpoint.handle = through_the_gateway
    return TritonClient("echo", endpoint.runtime())


def tensors(names: list[str]) -> dict[str, Any]:
    arrays = {name: np.array([[0, 1], [2, 3]]).astype(DATATYPES[name]) for name in names if name != "STRING"}
    if "STRING" in names:
        arrays["STRING"] = np.array([["A man is eating food.", "ü"], ["", "🦊"]], dtype=object)
    return arrays


@pytest.mark.slow
@pytest.mark.parametrize(("binary", "names"), [(True, sorted(DATATYPES)), (False, IN_JSON)], ids=["binary", "json"])
def test_the_server_reads_and_writes_every_data_type(client: TritonClient, binary: bool, names: list[str]) -> None:
    sent = tensors(names)

    answer = client.infer(sent, outputs=names, target_model="echo.tar.gz", binary=binary, request_id="r-1")

    assert set(answer) == set(names)
    for name, array in sent.items():
        expected = [text.encode() for text in array.flat] if name == "STRING" else list(array.flat)
        assert list(answer[name].flat) == expected
        assert answer[name].shape == (2, 2)
    assert (answer.request_id, answer.model_name, answer.variant) == ("r-1", "echo.tar.gz", "AllTraffic")


@pytest.mark.slow
@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_all_outputs_come_in_the_format_of_the_request(client: TritonClient, binary: bool) -> None:
    answer = client.infer(tensors(IN_JSON), target_model="echo.tar.gz", binary=binary)
    assert ("data" in answer.infer_result.get_output("FP32")) is not binary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "outputs", "words"),
    [
        ("fp32", None, "unexpected inference input 'fp32'"),
        ("FP32", ["fp32"], "unexpected inference output 'fp32'"),
    ],
)
def test_the_servers_own_words_reach_the_caller(
    client: TritonClient, name: str, outputs: list[str] | None, words: str
) -> None:
    with pytest.raises(ModelError, match=f"{words}.*; give the inputs and outputs that config.pbtxt has") as caught:
        client.infer({name: np.zeros((1, 1), np.float32)}, outputs=outputs, target_model="echo.tar.gz")
    assert caught.value.status == 400
    assert not caught.value.original_message.startswith("{")


@pytest.mark.slow
def test_a_target_model_that_is_not_there_is_named(messages: Messages, client: TritonClient) -> None:
    with messages.raises(InvocationError):
        client.infer({"FP32": np.zeros((1, 1), np.float32)}, target_model="nothing.tar.gz")
