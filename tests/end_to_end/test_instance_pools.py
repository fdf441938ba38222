"""One endpoint, two GPUs with a TensorRT plan each: the unmodified CDK CLI, a real server, and capacity that goes.

The stand-in builds both plans, one on CodeBuild and one in a Processing job. Each deployment is a test; they build on
each other and stop at the first that fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from cdk_triton.client import TritonClient
from cdk_triton_local.aws import LocalAws
from sample_repositories.networks import write_network

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"
CDK_TRITON = Path(sys.executable).with_name("cdk-triton")
ASSETS = "assets"
A10G, T4 = "ml.g5.2xlarge", "ml.g4dn.2xlarge"


class Account:
    """The local AWS, and the cloud assemblies of the app."""

    def __init__(self, aws: LocalAws, assemblies: Path, log: list[str]) -> None:
        self.aws = aws
        self._assemblies = assemblies
        self._log = log

    def cdk(self, number: int, *command: str, ok: bool = True) -> str:
        done = subprocess.run(
            [CDK, *command, "--app", self._assemblies / str(number), "--no-notices", "--ci"],
            env={**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def deploy(self, number: int, *, ok: bool = True) -> str:
        return self.cdk(number, "deploy", "--require-approval", "never", ok=ok)

    def set_capacity(self, instance_type: str, instances: str) -> None:
        """As a person does it, while the local AWS runs."""
        command = [
            str(CDK_TRITON),
            "local",
            "capacity",
            instance_type,
            instances,
            "--directory",
            str(self.aws.directory),
        ]
        subprocess.run(command, check=True, capture_output=True)

    def pools(self) -> dict[str, int]:
        """The instances by type, as DescribeEndpoint reports them."""
        (variant,) = self.aws.client("sagemaker").describe_endpoint(EndpointName="pools")["ProductionVariants"]
        return {each["InstanceType"]: each["CurrentInstanceCount"] for each in variant["InstancePools"]}

    def stack(self) -> dict[str, Any]:
        (stack,) = self.aws.client("cloudformation").describe_stacks(StackName="Pools")["Stacks"]
        return dict(stack)

    def archive(self, gpu: str) -> str:
        """The URL of a model's archive."""
        names = {each["OutputKey"]: each["OutputValue"] for each in self.stack()["Outputs"]}
        model = self.aws.client("sagemaker").describe_model(ModelName=names[f"Model{gpu}"])
        return str(model["PrimaryContainer"]["ModelDataUrl"])

    def served(self) -> str:
        """The archive that the endpoint serves, by the last line of the log about it."""
        (*_, line) = (each for each in self._log if each.startswith("endpoint pools: variant AllTraffic runs on "))
        return next(word for word in line.split() if word.startswith("s3://"))

    def platform_of(self, archive: str) -> str:
        """The platform in the manifest beside an archive."""
        place = urlsplit(archive)
        key = place.path.removeprefix("/").replace("model.tar.gz", "manifest.json")
        found = self.aws.client("s3").get_object(Bucket=place.netloc, Key=key)["Body"].read()
        return str(json.loads(found)["platform"])

    def answers(self) -> None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        result = TritonClient("pools", self.aws.client("sagemaker-runtime")).infer({"x": x})
        np.testing.assert_allclose(result["y"], x + 1)


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory, log = tmp_path_factory.mktemp("pools"), list[str]()
    write_network(directory / "text", "Add", 1)
    program = HERE / "pools_app" / "app.py"
    subprocess.run([sys.executable, program, directory / "text", ASSETS, directory / "assemblies"], check=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), log=log.append) as aws:
        aws.client("s3").create_bucket(Bucket=ASSETS)
        yield Account(aws, directory / "assemblies", log)


@pytest.fixture(autouse=True)
def in_order(request: pytest.FixtureRequest) -> None:
    """These tests tell one story: after a failure the rest of it means nothing."""
    if request.session.testsfailed and getattr(request.module, "_began_clean", 0) != request.session.testsfailed:
        pytest.skip("an earlier step failed")


@pytest.fixture(scope="module", autouse=True)
def failures_before(request: pytest.FixtureRequest) -> None:
    request.module._began_clean = request.session.testsfailed


def test_without_an_a10g_the_plan_of_the_t4_answers(account: Account) -> None:
    account.set_capacity(A10G, "0")
    account.deploy(0)

    assert account.pools() == {A10G: 0, T4: 1}
    assert account.served() == account.archive("T4") != account.archive("A10G")
    assert account.platform_of(account.served()) == "25.09-t4"
    account.answers()


def test_an_update_takes_the_a10g_that_is_free_again(account: Account) -> None:
    account.set_capacity(A10G, "unlimited")
    assert account.pools() == {A10G: 0, T4: 1}
    account.deploy(1)

    assert account.pools() == {A10G: 1, T4: 0}
    assert account.served() == account.archive("A10G")
    assert account.platform_of(account.served()) == "25.09-a10g"
    account.answers()


def test_an_update_that_finds_no_instance_fails_and_the_endpoint_answers_on(account: Account) -> None:
    account.set_capacity(A10G, "0")
    account.set_capacity(T4, "0")
    output = account.deploy(2, ok=False)

    assert "InsufficientInstanceCapacity" in output
    assert account.stack()["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert account.pools() == {A10G: 1, T4: 0}
    account.answers()


def test_everything_is_destroyed(account: Account) -> None:
    account.cdk(1, "destroy", "--force")

    assert account.aws.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert account.aws.client("sagemaker").list_models()["Models"] == []
