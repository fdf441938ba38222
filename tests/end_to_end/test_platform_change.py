"""The release of published ensembles changes, by the CDK CLI, while clients call all of them.

The handlers, the machine of the publisher and tritonserver are the real ones. Stand-ins: one tritonserver, of release
24.09, serves both releases, and `trtexec` and the GPU of builds are stand-ins too. So the test shows which ensembles
answer and when, and nothing about the releases themselves.

LONG=1 pytest tests/end_to_end/test_platform_change.py    fifty ensembles instead of ten
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import boto3
import numpy as np
import pytest
from botocore.config import Config

from cdk_triton.client import TritonClient
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.triton import TritonHost
from sample_repositories.networks import write_network

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
PROGRAM = Path(sysconfig.get_path("scripts")) / "cdk-triton"
ASSETS = "assets"
ENSEMBLES = 50 if os.environ.get("LONG") else 10
BUILT = 2
"""Ensembles that a build makes; the others are packed."""
PAUSE = 0.5
"""Seconds between two calls of a client, who would otherwise take the processor from the server."""
MAX_AGE = 2
"""Seconds after which the client reads names and the place of the catalogue again."""
FLEET = ("--fleet", "Serving/Fleet")
FOR_NEXT = ("--platform", "26.05/ml.g5.xlarge")
CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
MODEL = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("y", value + NUMBER)]) for value in values]
"""


def name_of(number: int) -> str:
    return f"tenant-{number:02}"


class Client:
    """Callers of every ensemble, one after the other, until the end; each answer is compared with what it has to be."""

    def __init__(self) -> None:
        # Nothing is sent again, so that every error is seen.
        config = Config(retries={"total_max_attempts": 1}, read_timeout=120)
        runtime = boto3.client("sagemaker-runtime", config=config)
        self._client = TritonClient.from_parameters("/serving", runtime, max_age=MAX_AGE)
        self._ensembles = range(ENSEMBLES)
        self._numbers = itertools.cycle(self._ensembles)
        self._answered, self._lock, self._ends = dict[int, float](), threading.Lock(), threading.Event()
        self.faults: list[str] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(3)]

    def __enter__(self) -> Client:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._ends.is_set():
            with self._lock:
                number = next(self._numbers)
            sent = time.monotonic()
            try:
                result = self._client.infer({"x": np.zeros((1, 3), np.float32)}, ensemble=name_of(number))
                right = float(result["y"].ravel()[0]) == number
            except Exception as error:
                self.faults.append(f"{name_of(number)}: {error}")
                continue
            if not right:
                self.faults.append(f"{name_of(number)}: {result['y']}")
            self._answered[number] = sent
            self._ends.wait(PAUSE)

    def names_are_read_again(self) -> None:
        """Wait until the client has read each name from the catalogue that the endpoint has now."""
        self._ends.wait(4 * MAX_AGE)

    def everything_answers(self) -> None:
        """Wait until each ensemble has answered a request that was sent from now on."""
        began = time.monotonic()
        while not self.faults and any(self._answered.get(number, 0) < began for number in self._ensembles):
            assert time.monotonic() < began + 500
            self._ends.wait(0.1)
        assert self.faults == []


class Account:
    """The local AWS, the cloud assemblies of the steps, and the commands of a person."""

    def __init__(self, aws: LocalAws, assemblies: Path) -> None:
        self.aws = aws
        self._assemblies = assemblies
        self._environment = {**aws.process_environment(), "NODE_NO_WARNINGS": "1"}

    def deploy(self, step: str) -> tuple[int, str]:
        """Deploy a step: the status of the command, and what it has printed."""
        command: list[str | Path] = [
            CDK,
            "deploy",
            "--all",
            "--app",
            self._assemblies / step,
            "--require-approval",
            "never",
        ]
        return self._run(*command, "--no-notices", "--ci", environment=self._environment)

    def fleet(self, *arguments: str | Path) -> tuple[int, str]:
        """Run a command as somebody who may publish."""
        publishes = self.aws.environment(f"arn:aws:iam::{self.aws.account}:role/publishes")
        return self._run(PROGRAM, "fleet", *arguments, *FLEET, environment={**self._environment, **publishes})

    @staticmethod
    def _run(*command: str | Path, environment: Mapping[str, str]) -> tuple[int, str]:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def platform(self) -> str:
        """The platform that the endpoint serves."""
        return self._served().split("/")[-2]

    def _served(self) -> str:
        """The URL of the prefix that the endpoint serves."""
        sagemaker = self.aws.client("sagemaker")
        (endpoint,) = sagemaker.list_endpoints()["Endpoints"]
        config = sagemaker.describe_endpoint(EndpointName=endpoint["EndpointName"])["EndpointConfigName"]
        (variant,) = sagemaker.describe_endpoint_config(EndpointConfigName=config)["ProductionVariants"]
        model = sagemaker.describe_model(ModelName=variant["ModelName"])
        return str(model["PrimaryContainer"]["ModelDataUrl"])

    def delete_catalogue(self, platform: str) -> int:
        """Delete the catalogue of a platform; the number of its documents."""
        s3, bucket = self.aws.client("s3"), self._served().split("/")[2]
        objects = s3.list_objects_v2(Bucket=bucket, Prefix="catalogue/")["Contents"]
        keys = [each["Key"] for each in objects if f"/{platform}/" in each["Key"]]
        for key in keys:
            s3.delete_object(Bucket=bucket, Key=key)
        return len(keys)

    def events(self, *resources: str) -> list[str]:
        """The events of some resources, whose logical ids begin so."""
        found = self.aws.client("cloudformation").describe_stack_events(StackName="Serving")["StackEvents"]
        named = [
            (
                next((name for name in resources if re.fullmatch(f"{name}[0-9A-F]+", each["LogicalResourceId"])), ""),
                each,
            )
            for each in reversed(found)
        ]
        return [f"{name} {each['ResourceStatus']}" for name, each in named if name]

    def status(self) -> str:
        (stack,) = self.aws.client("cloudformation").describe_stacks(StackName="Serving")["Stacks"]
        return str(stack["StackStatus"])


def write_tenants(directory: Path) -> None:
    """The repositories: most are packed, some are built. Each adds its number to a request."""
    for number in range(ENSEMBLES):
        root = directory / name_of(number)
        if number < BUILT:
            write_network(root, "Add", number)
            continue
        (root / "model" / "1").mkdir(parents=True)
        (root / "model" / "config.pbtxt").write_text(CONFIG)
        (root / "model" / "1" / "model.py").write_text(MODEL.replace("NUMBER", str(number)))


def with_room_for(models: int, aws: LocalAws) -> TritonHost:
    return TritonHost(
        lambda role: aws.client("s3", role),
        aws.directory / "endpoints",
        models,
        aws.log,
        account=aws.account,
        region=aws.region,
        record=aws.metrics.record,
    )


@contextmanager
def deployed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    subprocess.run([sys.executable, HERE / "platform_app" / "app.py", ASSETS, directory / "assemblies"], check=True)
    with LocalAws(directory / "aws", host_factory=partial(with_room_for, ENSEMBLES + 1)) as aws:
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # of another local AWS
        aws.client("s3").create_bucket(Bucket=ASSETS)
        yield Account(aws, directory / "assemblies")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_call_is_answered_while_the_release_of_published_ensembles_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tenants(tmp_path / "tenants")
    with deployed(tmp_path, monkeypatch) as account:
        assert account.deploy("first")[0] == 0
        status, text = account.fleet("publish", tmp_path / "tenants")
        assert (status, text.splitlines()[-1]) == (0, f"{ENSEMBLES} published"), text
        with Client() as client:
            # Too early: nothing is published for the new release.
            status, text = account.deploy("early")
            assert status == 1
            assert f"{ENSEMBLES} live ensembles are not published for the new platform 26.05-a10g;" in text
            assert "(not published: tenant-00," in text
            assert f"cdk-triton fleet publish --all {' '.join(FOR_NEXT + FLEET)}" in text
            assert (account.status(), account.platform()) == ("UPDATE_ROLLBACK_COMPLETE", "25.09-a10g")
            client.everything_answers()

            assert account.deploy("prepared")[0] == 0
            status, text = account.fleet("publish", "--all", *FOR_NEXT)
            assert (status, text.splitlines()[-1]) == (0, f"{ENSEMBLES} published"), text
            assert account.platform() == "25.09-a10g"
            # One that the rollback cannot find on the platform before.
            alone = tmp_path / "alone.json"
            alone.write_text(json.dumps([{"ensemble": "new", "repository": f"tenants/{name_of(BUILT)}"}]))
            assert account.fleet("publish", alone, *FOR_NEXT)[0] == 0

            account.aws.client("logs").create_log_group(logGroupName="taken")
            status, text = account.deploy("failing")
            assert (status, account.status()) == (1, "UPDATE_ROLLBACK_COMPLETE"), text
            # The endpoint served the new release, and went back to the old one.
            assert account.events("Endpoint", "Taken")[-7:] == [
                "Endpoint UPDATE_IN_PROGRESS",
                "Endpoint UPDATE_COMPLETE",
                "Taken CREATE_IN_PROGRESS",
                "Taken CREATE_FAILED",
                "Endpoint UPDATE_IN_PROGRESS",
                "Endpoint UPDATE_COMPLETE",
                "Taken DELETE_COMPLETE",
            ]
            assert account.platform() == "25.09-a10g"
            client.everything_answers()

            assert account.deploy("changed")[0] == 0
            assert account.platform() == "26.05-a10g"
            client.everything_answers()

            # The running client follows the catalogue, and does not need the one before.
            client.names_are_read_again()
            assert account.delete_catalogue("25.09-a10g") == ENSEMBLES
            client.names_are_read_again()
            client.everything_answers()
        assert client.faults == []
