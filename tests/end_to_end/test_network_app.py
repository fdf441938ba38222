"""A model in a VPC of its own, served without an archive: the CDK CLI, the store's handler and a real tritonserver."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdk_triton_local.aws import LocalAws

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"


class App:
    """The app of `network_app`, and the local AWS that it is deployed to."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        self.aws = aws
        self._directory = directory

    def cdk(self, *arguments: str) -> str:
        done = subprocess.run(
            [CDK, *arguments, "--no-notices", "--ci"],
            cwd=self._directory,
            env={**self.aws.process_environment(), "NODE_NO_WARNINGS": "1", "CDK_VALIDATION": "false"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def deploy(self, addend: str) -> None:
        app = ("--app", "python app.py", "--context", f"addend={addend}")
        self.cdk("deploy", "--all", "--require-approval", "never", *app)

    def resources(self, kind: str) -> list[str]:
        """The physical ids of a type in the stack of the model."""
        found = self.aws.client("cloudformation").describe_stack_resources(StackName="Serving")["StackResources"]
        return [each["PhysicalResourceId"] for each in found if each["ResourceType"] == kind]

    def answer(self, value: float) -> float:
        (name,) = self.resources("AWS::SageMaker::Endpoint")
        tensor = {"name": "IN", "shape": [1, 1], "datatype": "FP32", "data": [value]}
        response = self.aws.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=name.rsplit("/", 1)[-1],
            ContentType="application/json",
            Body=json.dumps({"inputs": [tensor]}),
        )
        result: float = json.loads(response["Body"].read())["outputs"][0]["data"][0]
        return result

    def stored(self) -> set[str]:
        """What is below the newest key of the repository, without it."""
        s3 = self.aws.client("s3")
        buckets = [each["Name"] for each in s3.list_buckets()["Buckets"]]
        (bucket,) = (name for name in buckets if name.startswith("artifacts-"))
        return {each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix="artifacts/")["Contents"]}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    directory = tmp_path_factory.mktemp("app")
    shutil.copytree(HERE / "network_app", directory, dirs_exist_ok=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), faults=["validated-roles"]) as aws:
        app = App(aws, directory)
        app.cdk("bootstrap", "aws://123456789012/us-east-1")
        app.deploy("1.0")
        yield app


def test_the_model_serves_its_files_and_is_where_it_should_be(app: App) -> None:
    assert app.answer(41.0) == 42.0

    (arn,) = app.resources("AWS::SageMaker::Model")
    model: dict[str, Any] = app.aws.client("sagemaker").describe_model(ModelName=arn.rsplit("/", 1)[-1])
    (group,) = (each for each in app.resources("AWS::EC2::SecurityGroup") if each in str(model["VpcConfig"]))
    assert model["VpcConfig"] == {
        "SecurityGroupIds": [group],
        "Subnets": app.resources("AWS::EC2::Subnet"),
    }
    (repository,) = app.resources("AWS::ECR::Repository")
    assert model["PrimaryContainer"]["Image"].endswith(f"/{repository}@sha256:{'a' * 64}")
    source = model["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]
    assert source["S3Uri"].endswith("/files/")
    assert len(app.resources("AWS::EC2::VPCEndpoint")) == 7


def test_a_changed_file_is_another_prefix_and_an_update_of_the_endpoint(app: App) -> None:
    before = app.stored()
    app.deploy("2.0")

    assert app.answer(40.0) == 42.0
    added = {key.split("/", 3)[3] for key in app.stored() - before}
    assert added == {"files/adder/config.pbtxt", "files/adder/1/model.py", "manifest.json"}
    assert before <= app.stored()  # a rollback finds what it served before


def test_everything_but_the_store_goes_away(app: App) -> None:
    vpcs = app.resources("AWS::EC2::VPC")
    app.cdk("destroy", "Serving", "--force", "--app", "cdk.out")

    assert vpcs[0] not in [vpc["VpcId"] for vpc in app.aws.client("ec2").describe_vpcs()["Vpcs"]]
    assert app.stored()
