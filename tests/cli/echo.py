"""A local AWS whose endpoints answer with what they are asked, and what deployments leave in it."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from tritonclient.http import InferenceServerClient, InferInput

from cdk_triton.protocol.index import Index
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Component, Endpoint, Invocation, Response, Shift, all_at_once

BUCKET = "models"
BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="
ROLE = "arn:aws:iam::123456789012:role/role"

TEXT = """
name: "text"
platform: "ensemble"
max_batch_size: 4
input [{name: "TEXT" data_type: TYPE_STRING dims: [1]}, {name: "X" data_type: TYPE_FP32 dims: [2, -1]}]
output [{name: "TEXT" data_type: TYPE_STRING dims: [1]}]
"""
IMAGE = """
backend: "python"
max_batch_size: 4
input [{name: "IMAGE" data_type: TYPE_UINT8 dims: [-1]}]
output [{name: "IMAGE" data_type: TYPE_UINT8 dims: [-1]}]
"""
SUMS = """
backend: "python"
input [{name: "X" data_type: TYPE_FP32 dims: [1]}]
output [{name: "Y" data_type: TYPE_FP32 dims: [1]}]
sequence_batching { control_input {
  name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 } } }
"""


@dataclass
class Echo:
    """Stands in for Triton: answers with the inputs as outputs, or with an error."""

    asked: list[Invocation] = field(default_factory=list)
    error: Response | None = None

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        pass

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        pass

    def place(self, component: Component, copies: int) -> None:
        pass

    def withdraw(self, name: str) -> None:
        pass

    def remove(self, name: str) -> None:
        pass

    def invoke(self, invocation: Invocation) -> Response:
        self.asked.append(invocation)
        if self.error is not None:
            return self.error
        size = int(invocation.headers["content-type"].removeprefix(BINARY))
        header = json.loads(invocation.body[:size])
        head = json.dumps(header | {"outputs": header["inputs"]}).encode()
        received = InferenceServerClient.parse_response_body(head + invocation.body[size:], header_length=len(head))
        tensors = [
            InferInput(each["name"], each["shape"], each["datatype"]).set_data_from_numpy(
                received.as_numpy(each["name"])
            )
            for each in header["inputs"]
        ]
        body, _ = InferenceServerClient.generate_request_body(tensors)
        end = json.JSONDecoder().raw_decode(body.decode("latin-1"))[1]
        answer = json.loads(body[:end])
        head = json.dumps({"model_name": "echo", "model_version": "1", "outputs": answer["inputs"]}).encode()
        headers = {"Content-Type": f"{BINARY}{len(head)}", "x-Amzn-Invoked-Production-Variant": "AllTraffic"}
        return Response(200, headers, head + body[end:])

    def stream(self, invocation: Invocation) -> Response:
        return self.invoke(invocation)

    def close(self) -> None:
        pass


@dataclass
class World:
    """The local AWS as a test sees it."""

    aws: LocalAws
    echo: Echo

    def __post_init__(self) -> None:
        self.s3 = self.aws.client("s3")
        self.sagemaker = self.aws.client("sagemaker")

    def archive(self, key: str, configurations: Mapping[str, str]) -> None:
        """An archive with these configurations, by model."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for model, text in configurations.items():
                member = tarfile.TarInfo(f"{model}/config.pbtxt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=buffer.getvalue())

    def endpoint(self, name: str, *, asynchronous: bool = False, **container: Any) -> None:
        self.sagemaker.create_model(
            ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer={"Image": "image", **container}
        )
        variant = {"VariantName": "AllTraffic", "ModelName": name, "InstanceType": "ml.g5.2xlarge"}
        extra = {"AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": f"s3://{BUCKET}/async/output"}}}
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[{**variant, "InitialInstanceCount": 1}],
            **(extra if asynchronous else {}),
        )
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        self._await(name)

    def fleet(self, name: str) -> None:
        """A multi-model endpoint with the current target models of `text` and `image`, and an old one."""
        prefix = f"fleets/{name}/25.09-a10g/"
        self.archive(f"{prefix}text-0123456789.tar.gz", {"text": TEXT})
        self.archive(f"{prefix}text-old.tar.gz", {"text": TEXT})
        self.archive(f"{prefix}image-0123456789.tar.gz", {"image": IMAGE})
        current = {"text": "text-0123456789.tar.gz", "image": "image-0123456789.tar.gz"}
        self.s3.put_object(Bucket=BUCKET, Key=f"{prefix}index.json", Body=Index(name, current).text())
        self.endpoint(name, Mode="MultiModel", ModelDataUrl=f"s3://{BUCKET}/{prefix}")

    def components(self, endpoint: str, name: str) -> None:
        """An endpoint with one component, of the model `image`."""
        variant = {"VariantName": "AllTraffic", "InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": 1}
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=endpoint, ExecutionRoleArn=ROLE, ProductionVariants=[variant]
        )
        self.sagemaker.create_endpoint(EndpointName=endpoint, EndpointConfigName=endpoint)
        self._await(endpoint)
        self.component(endpoint, name, "image")

    def component(self, endpoint: str, name: str, model: str) -> None:
        """A component of an endpoint."""
        needs = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
        self.sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName=endpoint,
            VariantName="AllTraffic",
            Specification={"ModelName": model, "ComputeResourceRequirements": needs},
            RuntimeConfig={"CopyCount": 1},
        )
        while self._status(name) == "Creating":
            threading.Event().wait(0.01)

    def without_components(self, endpoint: str, name: str) -> None:
        """Delete what `components` made."""
        self.sagemaker.delete_inference_component(InferenceComponentName=name)
        while self.sagemaker.list_inference_components(EndpointNameEquals=endpoint)["InferenceComponents"]:
            threading.Event().wait(0.01)
        self.sagemaker.delete_endpoint(EndpointName=endpoint)

    def _status(self, component: str) -> str:
        found = self.sagemaker.describe_inference_component(InferenceComponentName=component)
        return str(found["InferenceComponentStatus"])

    def _await(self, endpoint: str) -> None:
        waiter = self.sagemaker.get_waiter("endpoint_in_service")
        waiter.wait(EndpointName=endpoint, WaiterConfig={"Delay": 0.01, "MaxAttempts": 1000})


@pytest.fixture(scope="module")
def _echo_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    echo = Echo()
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: echo) as aws:
        aws.client("s3").create_bucket(Bucket=BUCKET)
        world = World(aws, echo)
        world.archive("image.tar.gz", {"image": IMAGE})
        world.endpoint("image", ModelDataUrl=f"s3://{BUCKET}/image.tar.gz")
        world.endpoint("queue", asynchronous=True, ModelDataUrl=f"s3://{BUCKET}/image.tar.gz")
        world.fleet("fleet")
        yield world


@pytest.fixture(scope="module")
def _echo_session(_echo_aws: World) -> boto3.Session:
    """Reading the service models takes most of a command's time."""
    return boto3.Session()


@pytest.fixture
def world(_echo_aws: World, _echo_session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> World:
    """The local AWS, to which the environment of this process leads."""
    for name, value in _echo_aws.aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(boto3, "Session", lambda **_: _echo_session)
    # The client's: boto3's own keeps the credentials of the first local AWS of the process.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", _echo_session)
    _echo_aws.echo.asked.clear()
    _echo_aws.echo.error = None
    return _echo_aws


@pytest.fixture
def shop(world: World) -> Iterator[str]:
    """An endpoint with one component, `image-1`."""
    world.components("shop", "image-1")
    yield "shop"
    world.without_components("shop", "image-1")
