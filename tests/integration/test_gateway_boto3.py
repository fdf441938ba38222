"""boto3's own view of an endpoint: the S3 of moto, the front server, real tritonservers, and its exceptions."""

import asyncio
import io
import json
import tarfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from cdk_triton.client import AsyncTritonClient, InferenceResult, TritonClient
from cdk_triton.errors import ConfigurationError, ModelError
from cdk_triton.triton import ModelRepository
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Container, Endpoint, Variant
from cdk_triton_local.triton import TritonHost

QUIET = {
    "SAGEMAKER_TRITON_LOG_VERBOSE": "true",
    "SAGEMAKER_TRITON_PING_MODE": "live",
}  # verbose: bodies would show here
SECRET = 31415926.0

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
instance_group { kind: KIND_GPU }
"""
MODEL = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value + ADD)]) for value in values]
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling { step { model_name: "step" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""


def archive(add: int) -> bytes:
    """An ensemble around a model that is called `step` in every archive."""
    files = {
        "step/config.pbtxt": CONFIG,
        "step/1/model.py": MODEL.replace("ADD", str(add)),
        "ensemble/config.pbtxt": ENSEMBLE,
        "ensemble/1/.keep": "",
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def variant(name: str, container: Container, weight: float = 1.0) -> Variant:
    return Variant(name, weight, "ml.g5.xlarge", container)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    directory = tmp_path_factory.mktemp("aws")
    hosts: list[TritonHost] = []

    def host(aws: LocalAws) -> TritonHost:
        hosts.append(TritonHost(lambda role: aws.client("s3", role), directory / "host", log=lambda line: None))
        return hosts[0]

    with LocalAws(directory / "aws", host_factory=host) as aws:
        s3 = aws.client("s3")
        s3.create_bucket(Bucket="models")
        for key, add in {"fleet/one.tar.gz": 1, "fleet/two.tar.gz": 2, "single.tar.gz": 3}.items():
            s3.put_object(Bucket="models", Key=key, Body=archive(add))
        s3.put_object(Bucket="models", Key="fleet/broken.tar.gz", Body=b"not an archive")
        fleet = Container("image", "MultiModel", "s3://models/fleet/", QUIET)
        hosts[0].deploy(Endpoint("fleet", "config", (variant("AllTraffic", fleet),)))
        single_environment = QUIET | {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble"}
        single = Container("image", "SingleModel", "s3://models/single.tar.gz", single_environment)
        hosts[0].deploy(Endpoint("split", "config", (variant("Often", single, 3.0), variant("Rarely", single, 1.0))))
        yield aws


@pytest.fixture(scope="module")
def runtime(aws: LocalAws) -> Any:
    return boto3.client(
        "sagemaker-runtime",
        endpoint_url=aws.url,
        region_name="us-east-1",
        aws_access_key_id=aws.environment()["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=aws.environment()["AWS_SECRET_ACCESS_KEY"],
        config=Config(retries={"max_attempts": 0}),
    )


def body(*values: float) -> bytes:
    tensor = {"name": "IN", "shape": [1, len(values)], "datatype": "FP32", "data": values}
    return json.dumps({"inputs": [tensor]}).encode()


def values_of(answer: Any) -> list[float]:
    result: list[float] = json.loads(answer["Body"].read())["outputs"][0]["data"]
    return result


def refused(runtime: Any, **arguments: Any) -> ClientError:
    with pytest.raises(ClientError) as error:
        runtime.invoke_endpoint(**{"EndpointName": "fleet", "Body": body(1.0), **arguments})
    return error.value


def test_two_archives_with_the_same_model_names_answer_for_themselves(runtime: Any) -> None:
    for target, expected in (("one.tar.gz", 2.0), ("two.tar.gz", 3.0), ("one.tar.gz", 2.0)):
        answer = runtime.invoke_endpoint(EndpointName="fleet", TargetModel=target, Body=body(1.0))
        assert values_of(answer) == [expected]
        assert answer["InvokedProductionVariant"] == "AllTraffic"


def test_binary_tensors_travel_both_ways(runtime: Any) -> None:
    sent = InferInput("IN", [2, 3], "FP32")
    sent.set_data_from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    content, size = InferenceServerClient.generate_request_body([sent], outputs=[InferRequestedOutput("OUT")])
    prefix = "application/vnd.sagemaker-triton.binary+json;json-header-size="
    answer = runtime.invoke_endpoint(
        EndpointName="fleet", TargetModel="one.tar.gz", Body=content, ContentType=f"{prefix}{size}"
    )
    assert answer["ContentType"].startswith(prefix)
    received = InferenceServerClient.parse_response_body(
        answer["Body"].read(), header_length=int(answer["ContentType"].removeprefix(prefix))
    )
    assert np.array_equal(received.as_numpy("OUT"), np.arange(6).reshape(2, 3) + 1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.1, "The document root must not be followed by other values"),
        (1.0, "unexpected size for input '"),  # the tensor begins with a zero, which ends JSON
    ],
)
def test_a_binary_body_without_the_size_of_its_json_is_on_the_page(runtime: Any, value: float, words: str) -> None:
    tensor = InferInput("IN", [1, 3], "FP32").set_data_from_numpy(np.full((1, 3), value, np.float32))
    content, _ = InferenceServerClient.generate_request_body([tensor])
    error = refused(runtime, TargetModel="one.tar.gz", Body=content, ContentType="application/octet-stream")
    assert words in str(error)
    assert words in (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()


def test_requests_of_many_clients_keep_apart(runtime: Any) -> None:
    results: dict[int, list[float]] = {}

    def call(i: int) -> None:
        target, add = (("one.tar.gz", 1), ("two.tar.gz", 2))[i % 2]
        answer = runtime.invoke_endpoint(EndpointName="fleet", TargetModel=target, Body=body(float(i)))
        results[i] = [value - add for value in values_of(answer)]

    threads = [threading.Thread(target=call, args=[i]) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [float(i)] for i in range(40)}


@pytest.fixture
def environment(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a program that uses the library's clients."""
    for name, value in aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def test_the_client_without_boto3_sends_many_requests_to_triton(environment: None) -> None:
    requests = [{"IN": np.full((1, 3), number, np.float32)} for number in range(40)]

    answers = TritonClient("fleet").infer_many(requests, max_batch_size=8, target_model="two.tar.gz")

    assert [each["OUT"].tolist() for each in answers if isinstance(each, InferenceResult)] == [
        [[number + 2] * 3] for number in range(40)
    ]


def test_the_client_for_asyncio_asks_both_archives_by_name_and_by_repository(
    environment: None, aws: LocalAws, tmp_path: Path
) -> None:
    names = {"endpoint-name": "fleet", "target-models/one": "one.tar.gz", "target-models/two": "two.tar.gz"}
    for name, value in names.items():
        aws.client("ssm").put_parameter(Name=f"/shop/{name}", Value=value, Type="String")
    (tmp_path / "ensemble").mkdir()
    (tmp_path / "ensemble" / "config.pbtxt").write_text(ENSEMBLE)
    (tmp_path / "step" / "1").mkdir(parents=True)
    (tmp_path / "step" / "config.pbtxt").write_text(CONFIG)
    (tmp_path / "step" / "1" / "model.py").write_text(MODEL)
    repository = ModelRepository.from_directory(tmp_path)

    async def ask() -> list[Any]:
        async with AsyncTritonClient.from_parameters("/shop") as client:
            two = client.for_repository(repository, ensemble="two")
            with pytest.raises(ConfigurationError, match="FP32"):
                await two.infer({"IN": np.zeros((1, 2), np.int64)})
            with pytest.raises(ModelError) as error:
                await client.infer({"OTHER": np.zeros((1, 2), np.float32)}, ensemble="one")
            assert error.value.status == 400
            calls = [client.infer({"IN": np.full((1, 2), each, np.float32)}, ensemble="one") for each in range(30)]
            calls += [two.infer({"IN": np.full((1, 2), each, np.float32)}) for each in range(30)]
            return [each["OUT"].tolist() for each in await asyncio.gather(*calls)]

    assert asyncio.run(ask()) == [[[each + add] * 2] for add in (1, 2) for each in range(30)]


def test_variants_share_the_requests_by_weight_or_by_name(runtime: Any) -> None:
    seen = Counter(
        runtime.invoke_endpoint(EndpointName="split", Body=body(1.0))["InvokedProductionVariant"] for _ in range(200)
    )
    assert 110 < seen["Often"] < 185  # 150 expected; outside by chance less than once in a million
    named = runtime.invoke_endpoint(EndpointName="split", TargetVariant="Rarely", Body=body(1.0))
    assert named["InvokedProductionVariant"] == "Rarely"
    assert values_of(named) == [4.0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"EndpointName": "nobody"}, "Endpoint nobody of account 123456789012 not found."),
        ({}, "is missing a target model header."),
        ({"EndpointName": "split", "TargetModel": "one.tar.gz"}, "does not support target model header."),
        ({"EndpointName": "split", "TargetVariant": "Never"}, "Variant Never of endpoint split"),
        ({"TargetModel": "nothing.tar.gz"}, "Failed to download model data(bucket: models, key: fleet/nothing.tar.gz)"),
        ({"TargetModel": "../single.tar.gz"}, "Target model '../single.tar.gz' is not valid"),
        (
            {"TargetModel": "one.tar.gz", "InferenceComponentName": "c"},
            "Inference Component Name header is not allowed",
        ),
    ],
)
def test_what_sagemaker_rejects_is_a_validation_error(runtime: Any, arguments: Any, said: str) -> None:
    error = refused(runtime, **arguments).response
    assert error["Error"]["Code"] == "ValidationError"
    assert said in error["Error"]["Message"]
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 400


@pytest.mark.parametrize(
    ("content", "said"), [(b"{", "failed to parse the request JSON"), (b'{"inputs": []}', "expected 1 inputs")]
)
def test_what_the_server_rejects_is_a_model_error_in_its_words(runtime: Any, content: bytes, said: str) -> None:
    error = refused(runtime, TargetModel="one.tar.gz", Body=content)
    assert type(error).__name__ == "ModelError"
    response: Any = error.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert response["OriginalStatusCode"] == 400
    assert said in response["OriginalMessage"]
    assert response["OriginalMessage"] in response["Error"]["Message"]
    assert response["LogStreamArn"] == "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/fleet"


def test_an_archive_that_is_none_is_a_model_error(runtime: Any) -> None:
    response: Any = refused(runtime, TargetModel="broken.tar.gz").response
    assert response["Error"]["Code"] == "ModelError"
    assert "is not a complete .tar.gz" in response["OriginalMessage"]


def test_six_mebibytes_are_the_limit_of_a_request(runtime: Any) -> None:
    limit = 6 * 1024 * 1024
    error = refused(runtime, TargetModel="one.tar.gz", Body=b" " * (limit + 1)).response
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert error["Error"]["Code"] == "413"
    passed: Any = refused(runtime, TargetModel="one.tar.gz", Body=b" " * limit).response
    assert passed["OriginalStatusCode"] == 400, "the server saw it"


def test_six_mebibytes_are_the_limit_of_an_answer(runtime: Any) -> None:
    values = [0.1] * 400_000  # 2 MB of JSON; the sums take 18 characters each
    response: Any = refused(runtime, TargetModel="one.tar.gz", Body=body(*values)).response
    assert response["Error"]["Code"] == "ModelError"
    assert "is larger than 6291456 bytes" in response["Error"]["Message"]


def test_no_value_of_a_request_is_in_any_log(runtime: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime.invoke_endpoint(EndpointName="fleet", TargetModel="one.tar.gz", Body=body(SECRET))
    refused(runtime, TargetModel="one.tar.gz", Body=b'{"inputs": "31415926"}')
    logs: list[Path] = list(tmp_path_factory.getbasetemp().rglob("*.log"))
    assert logs
    assert not [log for log in logs if b"31415926" in log.read_bytes()]
