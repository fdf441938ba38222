"""The canary of docs/canary.md by the CDK CLI on the local AWS: its own alarms roll a bad version back.

The real tritonserver answers 16 clients. The time of the local AWS moves only when a test moves it.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdk_triton.client import TritonClient
from cdk_triton.errors import ModelError
from cdk_triton_local import Clock, LocalAws

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
ASSETS = "assets"
CLIENTS = 16
CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(pb_utils.get_input_tensor_by_name(each, "x").as_numpy()) for each in requests]

    def _answer(self, x):
        ANSWER
"""
ANSWERS = {
    "good": 'return pb_utils.InferenceResponse([pb_utils.Tensor("y", x + 1)])',
    "bad": 'return pb_utils.InferenceResponse(error=pb_utils.TritonError("the index is missing"))',
}


class Account:
    """The local AWS, and the cloud assemblies of the example."""

    def __init__(self, directory: Path, assemblies: Path) -> None:
        self.clock = Clock(only_moved=True)
        self.lines: queue.Queue[str] = queue.Queue()
        self.aws = LocalAws(directory, clock=self.clock, log=self.lines.put)
        self._assemblies = assemblies

    def deploy(self, app: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [CDK, "deploy", "--app", self._assemblies / app, "--require-approval", "never", "--no-notices", "--ci"],
            env={**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, line: str) -> None:
        """Wait for a line in the log of the local AWS."""
        while line not in self.lines.get(timeout=60):
            pass

    def subscribe(self) -> None:
        """Collect the messages of the example's topic in a queue."""
        (stack,) = self.aws.client("cloudformation").describe_stacks(StackName="Search")["Stacks"]
        (topic,) = [each["OutputValue"] for each in stack["Outputs"] if each["OutputKey"] == "TopicArn"]
        sqs = self.aws.client("sqs")
        self._queue = sqs.create_queue(QueueName="messages")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        attributes = {"RawMessageDelivery": "true"}
        self.aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=attributes)

    def messages(self) -> list[str]:
        """The messages that have come since the last time."""
        sqs, found = self.aws.client("sqs"), list[str]()
        while some := sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get("Messages"):
            found += [each["Body"] for each in some]
            for each in some:
                sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=each["ReceiptHandle"])
        return found

    def pass_a_minute(self) -> Counter[str]:
        """Let every client ask twice, and return how often which answer came."""
        client = TritonClient("search", self.aws.client("sagemaker-runtime"))

        def ask(number: int) -> str:
            try:
                answer = client.infer({"x": np.array([number], np.float32)})["y"]
            except ModelError:
                return "failed"
            return "right" if answer.tolist() == [number + 1] else "wrong"

        with ThreadPoolExecutor(CLIENTS) as clients:
            answers = Counter(clients.map(ask, range(2 * CLIENTS)))
        self.clock.advance(60)
        return answers

    def endpoint(self) -> dict[str, Any]:
        return dict(self.aws.client("sagemaker").describe_endpoint(EndpointName="search"))

    def alarms(self, state: str) -> list[str]:
        """The alarms in a state, by the names that the constructs have for them."""
        found = self.aws.client("cloudwatch").describe_alarms(StateValue=state)["MetricAlarms"]
        return [each["AlarmName"] for each in found]


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("canary")
    for name, answer in ANSWERS.items():
        net = directory / "repositories" / name / "search" / "net"
        (net / "1").mkdir(parents=True)
        (net / "config.pbtxt").write_text(CONFIG)
        (net / "1" / "model.py").write_text(MODEL.replace("ANSWER", answer))
    app = HERE / "canary_app" / "app.py"
    subprocess.run([sys.executable, app, directory / "repositories", ASSETS, directory / "assemblies"], check=True)
    account = Account(tmp_path_factory.mktemp("aws"), directory / "assemblies")
    with account.aws as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        first = account.deploy("good")
        output, _ = first.communicate()
        assert first.returncode == 0, output
        account.subscribe()
        account.clock.advance(90 - account.clock.now % 60)  # half a minute before and after each evaluation of alarms
        yield account


def test_a_bad_version_is_rolled_back_by_the_alarms_of_the_example(account: Account) -> None:
    before = account.endpoint()["EndpointConfigName"]
    assert [account.pass_a_minute() for _ in range(6)] == [{"right": 32}] * 6
    assert not account.alarms("ALARM")
    account.messages()

    process = account.deploy("bad")
    account.wait_for("25 % of the requests go to the new servers")
    during: list[Counter[str]] = []
    while account.endpoint()["EndpointStatus"] == "Updating" and len(during) < 15:
        during.append(account.pass_a_minute())
    output, _ = process.communicate()

    assert during == [{"right": 24, "failed": 8}] * 3
    (alarm,) = account.alarms("ALARM")
    assert "ServerErrors" in alarm
    of_alarm, *of_events = account.messages()
    assert json.loads(of_alarm) == {"AlarmName": alarm, "NewStateValue": "ALARM"}
    assert f"The SageMaker endpoint search is ROLLING_BACK with the configuration {before}." in of_events[0]
    assert f"The SageMaker endpoint search is IN_SERVICE with the configuration {before}." in of_events[1]
    assert process.returncode != 0
    assert alarm in output
    assert account.endpoint()["EndpointConfigName"] == before
    assert account.endpoint()["EndpointStatus"] == "InService"
    assert account.pass_a_minute() == {"right": 32}
