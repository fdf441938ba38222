"""Asynchronous endpoints of the local AWS, as boto3 meets them. A double stands in for Triton."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton_local.endpoints import AsyncConfig, Invocation, Response
from cdk_triton_local.endpoints.async_queue import AsyncQueue, AsyncRequest

if TYPE_CHECKING:
    from tests.local_aws.conftest import EndpointDouble

    from cdk_triton_local.aws import LocalAws

BUCKET = "queued"
FAILED = 'Received client error (400) from primary with message "no".'


class Queued:
    """An asynchronous endpoint, its bucket and its topics."""

    def __init__(self, aws: LocalAws, name: str) -> None:
        self.aws, self.name = aws, name
        self.runtime, self.s3 = aws.client("sagemaker-runtime"), aws.client("s3")
        self.sagemaker = aws.client("sagemaker")
        self.queue = aws.client("sqs").create_queue(QueueName=name)["QueueUrl"]
        attributes = aws.client("sqs").get_queue_attributes(QueueUrl=self.queue, AttributeNames=["QueueArn"])
        topic = aws.client("sns").create_topic(Name=name)["TopicArn"]
        aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=attributes["Attributes"]["QueueArn"])
        self.configure(name, {"SuccessTopic": topic, "ErrorTopic": topic})
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        self.settle()

    def configure(self, name: str, topics: dict[str, str]) -> None:
        output = {
            "S3OutputPath": f"s3://{BUCKET}/out",
            "S3FailurePath": f"s3://{BUCKET}/failed",
            "NotificationConfig": topics,
        }
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[variant()],
            AsyncInferenceConfig={"OutputConfig": output, "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 2}},
        )

    def settle(self) -> None:
        while self.sagemaker.describe_endpoint(EndpointName=self.name)["EndpointStatus"] != "InService":
            threading.Event().wait(0.01)

    def scale(self, count: int) -> None:
        wanted = {"VariantName": "v", "DesiredInstanceCount": count}
        self.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=self.name, DesiredWeightsAndCapacities=[wanted]
        )
        self.settle()

    def submit(self, **how: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.runtime.invoke_endpoint_async(EndpointName=self.name, **how)
        return answer

    def read(self, uri: str) -> bytes:
        """The object as soon as it is there."""
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        while True:
            try:
                found: bytes = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            except self.s3.exceptions.NoSuchKey:
                threading.Event().wait(0.01)
            else:
                return found

    def notification(self) -> dict[str, Any]:
        while True:
            found = self.aws.client("sqs").receive_message(QueueUrl=self.queue).get("Messages", [])
            if found:
                self.aws.client("sqs").delete_message(QueueUrl=self.queue, ReceiptHandle=found[0]["ReceiptHandle"])
                message: dict[str, Any] = json.loads(json.loads(found[0]["Body"])["Message"])
                return message
            threading.Event().wait(0.01)

    def metric(self, name: str) -> float | None:
        """The greatest value of a metric of the endpoint."""
        self.aws.metrics.publish()
        now = datetime.now(UTC)
        found = self.aws.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName=name,
            Dimensions=[{"Name": "EndpointName", "Value": self.name}],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=7200,
            Statistics=["Maximum"],
        )["Datapoints"]
        return float(found[0]["Maximum"]) if found else None


def variant() -> dict[str, Any]:
    return {
        "VariantName": "v",
        "ModelName": "queued",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1.0,
        "InstanceType": "ml.g5.xlarge",
    }


@pytest.fixture(scope="module")
def account(local_aws: LocalAws) -> LocalAws:
    local_aws.client("s3").create_bucket(Bucket=BUCKET)
    container = {"Image": "example.com/triton:1", "ModelDataUrl": "s3://models/one.tar.gz"}
    local_aws.client("sagemaker").create_model(ModelName="queued", PrimaryContainer=container)
    return local_aws


@pytest.fixture
def queued(account: LocalAws, request: pytest.FixtureRequest) -> Queued:
    return Queued(account, f"q{abs(hash(request.node.name))}"[:40])


@pytest.fixture
def failing(endpoint_double: EndpointDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"Message": f"{FAILED} See the log group x for more information."}).encode()
    monkeypatch.setattr(endpoint_double, "invoke", lambda _: Response(424, {}, body))


def test_a_request_in_the_call_is_answered_in_s3(queued: Queued) -> None:
    answer = queued.submit(Body=b"hello", ContentType="text/plain", InferenceId="one")

    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 202
    assert answer["InferenceId"] == "one"
    assert answer["OutputLocation"] == f"s3://{BUCKET}/out/one.out"
    assert answer["FailureLocation"] == f"s3://{BUCKET}/failed/one-error.out"
    assert queued.read(answer["OutputLocation"]) == b"hello"
    told = queued.notification()
    assert (told["invocationStatus"], told["inferenceId"]) == ("Completed", "one")
    assert told["responseParameters"] == {"outputLocation": answer["OutputLocation"]}
    assert told["requestParameters"] == {"endpointName": queued.name, "contentType": "text/plain"}


def test_a_request_is_read_from_s3(queued: Queued) -> None:
    queued.s3.put_object(Bucket=BUCKET, Key="in/large", Body=b"x" * 7_000_000)  # more than InvokeEndpoint takes
    answer = queued.submit(InputLocation=f"s3://{BUCKET}/in/large", S3OutputPathExtension="mine", Filename="a.bin")

    assert answer["OutputLocation"] == f"s3://{BUCKET}/out/mine/a.bin"
    assert len(queued.read(answer["OutputLocation"])) == 7_000_000
    assert queued.notification()["requestParameters"]["inputLocation"] == f"s3://{BUCKET}/in/large"


def test_a_missing_request_fails(queued: Queued) -> None:
    answer = queued.submit(InputLocation=f"s3://{BUCKET}/in/nothing")
    assert b"Failed to download" in queued.read(answer["FailureLocation"])


def test_a_failure_is_stored_and_told(queued: Queued, failing: None) -> None:
    answer = queued.submit(Body=b"hello")

    assert queued.read(answer["FailureLocation"]).decode() == FAILED
    told = queued.notification()
    assert (told["invocationStatus"], told["failureReason"]) == ("Failed", FAILED)


def test_without_instances_requests_wait_and_the_metrics_say_so(queued: Queued) -> None:
    queued.scale(0)
    answers = [queued.submit(Body=b"hello") for _ in range(3)]
    while queued.metric("ApproximateBacklogSize") != 3:
        threading.Event().wait(0.01)
    assert queued.metric("HasBacklogWithoutCapacity") == 1
    assert "Contents" not in queued.s3.list_objects_v2(Bucket=BUCKET, Prefix=f"out/{answers[0]['InferenceId']}")

    queued.scale(2)
    assert [queued.read(each["OutputLocation"]) for each in answers] == [b"hello"] * 3


def test_an_update_keeps_the_queue(queued: Queued) -> None:
    queued.scale(0)
    answer = queued.submit(Body=b"hello")
    queued.configure(f"{queued.name}-2", {})
    queued.sagemaker.update_endpoint(
        EndpointName=queued.name, EndpointConfigName=f"{queued.name}-2", RetainAllVariantProperties=True
    )
    queued.settle()
    queued.scale(1)
    assert queued.read(answer["OutputLocation"]) == b"hello"


def test_an_asynchronous_endpoint_does_not_become_a_real_time_one(queued: Queued) -> None:
    name = f"{queued.name[:30]}-real-time"
    queued.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant()])
    with pytest.raises(ClientError, match="AsyncInferenceConfig parameter cannot be removed"):
        queued.sagemaker.update_endpoint(EndpointName=queued.name, EndpointConfigName=name)
    assert queued.sagemaker.describe_endpoint(EndpointName=queued.name)["EndpointConfigName"] == queued.name


def test_a_request_that_waited_too_long_expires(queued: Queued) -> None:
    queued.scale(0)
    late = queued.submit(Body=b"hello", RequestTTLSeconds=60)
    queued.aws.clock.advance(61)
    assert b"expired" in queued.read(late["FailureLocation"])


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="no request"),
        pytest.param({"Body": b"x", "InputLocation": "s3://queued/in/x"}, id="two requests"),
        pytest.param({"Body": b"x" * 128_001}, id="too large"),
    ],
)
def test_requests_that_sagemaker_rejects_are_rejected(queued: Queued, arguments: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as caught:
        queued.submit(**arguments)
    assert caught.value.response["Error"]["Code"] == "ValidationError"


def test_each_kind_of_endpoint_takes_its_own_calls(account: LocalAws, queued: Queued) -> None:
    name = f"{queued.name[:30]}-plain"
    queued.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant()])
    queued.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    calls: list[Callable[[], Any]] = [
        lambda: queued.runtime.invoke_endpoint(EndpointName=queued.name, Body=b"x"),
        lambda: queued.runtime.invoke_endpoint_with_response_stream(EndpointName=queued.name, Body=b"x"),
        lambda: queued.runtime.invoke_endpoint_async(EndpointName=name, Body=b"x"),
        lambda: queued.runtime.invoke_endpoint_async(EndpointName="nothing", Body=b"x"),
    ]
    for call in calls:
        with pytest.raises(ClientError) as caught:
            call()
        assert caught.value.response["Error"]["Code"] == "ValidationError"


def test_an_instance_gets_so_many_requests_at_a_time() -> None:
    started, may_end = threading.Semaphore(0), threading.Event()

    def process(request: AsyncRequest, config: AsyncConfig) -> None:
        started.release()
        may_end.wait()

    instances = 1
    config = AsyncConfig("s3://b/o", None, None, None, concurrency=2)
    queue = AsyncQueue("q", config, lambda: instances, process, lambda name, value: None, lambda: 0.0)
    request = AsyncRequest(Invocation("q", {}, b""), "id", None, "s3://b/o/id", None, 60.0, 0.0)
    for _ in range(6):
        queue.add(request)
    assert started.acquire(timeout=10)
    assert started.acquire(timeout=10)
    assert not started.acquire(timeout=0.3)

    instances = 2
    assert started.acquire(timeout=10)
    assert started.acquire(timeout=10)
    assert not started.acquire(timeout=0.3)
    may_end.set()
    queue.close()
