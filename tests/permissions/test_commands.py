"""The permissions that the guide lists for a command are those that its calls need, and no others."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.exceptions import ClientError
from tests.cli.artifacts.conftest import ACCOUNT, ASSETS, World, key_of, store_template, synthesise, zipped_handlers
from tests.cli.conftest import run
from tests.cli.echo import TEXT, Echo
from tests.cli.echo import World as EchoWorld
from tests.permissions.account import Account
from tests.permissions.judging import judge
from tests.permissions.pages import ARTIFACTS, DOCTOR, INVOKE_AND_BENCH, Page, actions_in
from tests.permissions.recording import Recording

from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA, PublisherDescription
from cdk_triton.artifacts.served_repositories import SERVED_METADATA
from cdk_triton.cli.artifacts import publishing, sweep
from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.bench.cloudwatch import load_parts
from cdk_triton.protocol import layout
from cdk_triton.protocol.plan import BuildInput, BuildMachine
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Response
from cdk_triton_local.process import conflicting_variables

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import Synthesise
    from tests.cli.conftest import Outcome

__all__ = ["run", "synthesise"]

Run = Callable[..., "Outcome"]

pytestmark = pytest.mark.slow  # the local AWS takes seconds to start

PUBLISHING_ROLE = f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-file-publishing-role-{ACCOUNT}-us-east-1"


def archive(model: str, config: str) -> bytes:
    """An archive with one configuration."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        member = tarfile.TarInfo(f"{model}/config.pbtxt")
        member.size = len(config)
        file.addfile(member, io.BytesIO(config.encode()))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def echo() -> Echo:
    return Echo()


@pytest.fixture(name="world", scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory, echo: Echo) -> Iterator[World]:
    """A store with a key, endpoints that it serves, and an asynchronous endpoint with a bucket and a key of its own."""
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: echo) as aws:
        s3 = aws.client("s3")
        for bucket in (ASSETS, "models"):
            s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=ASSETS, Key="code.zip", Body=zipped_handlers())
        deployed = World(aws, "the-store", "", "")
        assert deployed.deploy(store_template(), "the-store") == "CREATE_COMPLETE"
        resources = aws.client("cloudformation").list_stack_resources(StackName="the-store")["StackResourceSummaries"]
        names = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in resources}
        world = World(aws, "the-store", names["Bucket"], names["IsComplete"])
        for bucket in (world.bucket, "models"):
            key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
            default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
            s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [default]})
        aws.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument="{}")  # of the endpoints
        yield world


class Reader:
    """Somebody who has exactly the permissions of a page."""

    def __init__(self, world: World, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recording = Recording()
        self._aws = world.aws
        account = Account(self._aws)
        buckets = {"the store's key": world.bucket, "the endpoint's key": "models"}
        self._policy = page.policy({name: str(account.bucket_key(bucket)) for name, bucket in buckets.items()})
        iam, name = self._aws.client("iam"), f"reads-{page.file}"
        self._role: str = iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        iam.put_role_policy(RoleName=name, PolicyName="page", PolicyDocument=json.dumps(self._policy))
        for variable in conflicting_variables(os.environ):
            monkeypatch.delenv(variable)
        for variable, value in self._aws.environment(self._role).items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        monkeypatch.setattr(LocalAws, "on_call", lambda _, call: self.recording.add(call, account))

    def faults(self) -> list[str]:
        """The calls that the page does not allow, and what it allows that no call needs."""
        asked = [each for each in self.recording.decisions.values() if each.principal == self._role]
        verdicts = judge(asked, self._aws.account)
        denied = [f"denied: {each}" for each, verdict in zip(asked, verdicts, strict=True) if not verdict.allowed]
        only = [verdict.grants[0] for verdict in verdicts if len(verdict.grants) == 1]
        needed = {(grant.statement, part) for grant in only for part in (*grant.actions, *grant.resources)}
        needless = [
            f"needless: {part} of {statement['Action']} on {statement['Resource']}"
            for number, statement in enumerate(self._policy["Statement"])
            for part in (*statement["Action"], *statement["Resource"])
            if (number, part) not in needed
        ]
        return [*self.recording.faults, *denied, *needless]


@pytest.fixture(name="reader")
def _reader(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[Page], Reader]:
    return lambda page: Reader(world, page, monkeypatch)


@pytest.fixture(name="endpoints", scope="module")
def _endpoints(world: World) -> None:
    """Endpoints of all kinds, which are called like their kinds."""
    single, fleet = layout.archive_key("text", key_of("text")), "fleets/fleet/25.09-a10g/"
    world.put(single, archive("text", TEXT))
    world.serve("fleet", "text-0123456789.tar.gz", key_of("text"))
    world.put(f"{fleet}text-0123456789.tar.gz", archive("text", TEXT))
    world.published("fleet", "text", "text-0123456789.tar.gz")
    data = f"s3://{world.bucket}/{single}"
    world.model("single", ModelDataUrl=data)
    world.model("queue", ModelDataUrl=data)
    world.model("multi", Mode="MultiModel", ModelDataUrl=f"s3://{world.bucket}/{fleet}")
    world.model("stream", ModelDataUrl=data, Environment={"SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream"})
    world.model("image", ModelDataUrl=data)
    for name in ("single", "multi", "stream"):
        world.endpoint(name, name)
    variant = {"VariantName": "v", "InitialInstanceCount": 1, "ModelName": "queue", "InstanceType": "ml.g5.xlarge"}
    output = {"S3OutputPath": "s3://models/async/output", "S3FailurePath": "s3://models/async/failures"}
    world.sagemaker.create_endpoint_config(
        EndpointConfigName="queue", ProductionVariants=[variant], AsyncInferenceConfig={"OutputConfig": output}
    )
    world.sagemaker.create_endpoint(EndpointName="queue", EndpointConfigName="queue")
    components = EchoWorld(world.aws, Echo())
    components.components("components", "component")
    components.component("components", "streaming", "stream")


@pytest.mark.parametrize(
    ("page", "folders"),
    [
        pytest.param(ARTIFACTS, ["artifacts"], id="artifacts"),
        pytest.param(DOCTOR, ["doctor"], id="doctor"),
        pytest.param(INVOKE_AND_BENCH, ["bench", "endpoints", "invoke", "requests"], id="invoke and bench"),
    ],
)
def test_a_page_has_what_the_source_of_its_command_calls(page: Page, folders: list[str]) -> None:
    """Also the calls that the following tests do not make."""
    listed = {action for statement in page.policy({})["Statement"] for action in statement["Action"]}
    assert actions_in(*folders) <= listed


@pytest.mark.usefixtures("endpoints")
def test_invoke_and_bench(
    run: Run, reader: Callable[[Page], Reader], echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = reader(INVOKE_AND_BENCH)

    assert run("invoke").status == 0
    assert run("invoke", "single", "--random").status == 0
    assert run("invoke", "multi", "--target-model", "text", "--random").status == 0
    assert run("invoke", "components", "--component", "component", "--random").status == 0
    large = ("--input", f"TEXT={'long' * 40_000}", "--input", "X=[[[1, 2, 3], [4, 5, 6]]]")
    assert run("invoke", "queue", *large).status == 0
    load = ("--rate", "5", "--duration", "1", "--warm-up", "0")
    assert run("bench", "single", "--random", *load).status == 0
    load_parts(Aws(), "single", "v", (0.0, 60.0))  # of stand-ins, no metrics are asked for

    monkeypatch.setattr(echo, "error", Response(400, {}, b'{"error": "no"}'))
    assert run("invoke", "queue", *large).status == 1  # the reason is in S3
    for endpoint in (["stream"], ["components", "--component", "streaming"]):
        assert run("invoke", *endpoint, "--stream", "--random").status == 1  # the double streams nothing

    assert caller.faults() == []


@pytest.mark.usefixtures("endpoints")
def test_artifacts(
    run: Run, reader: Callable[[Page], Reader], world: World, synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.deploy(store_template(), "Models") == "CREATE_COMPLETE"  # another store
    caller = reader(ARTIFACTS)
    key = world.commit("text", "unused")
    world.serve("fleet", "unused-0123456789.tar.gz", key)
    world.lock(key_of("other"), "succeeded")
    store = ("--store", world.stack)

    assert run("artifacts", "list").status == 2  # which of the two?
    assert run("artifacts", "list", *store).status == 0
    assert run("artifacts", "show", key, *store).status == 0
    with monkeypatch.context() as patch:
        patch.setattr(sweep, "write_record", denied)
        assert run("artifacts", "gc", *store, "--yes").status == 1
    assert run("artifacts", "gc", *store, "--yes").status == 0
    sweep._has_artifacts(Aws(), "Models")  # if it were being deployed

    app = synthesise(bytes(6 << 20))
    monkeypatch.setattr(publishing, "_PART_BYTES", 5 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_send", denied)
        assert run("artifacts", "build", "Models", *store, "--app", app).status == 1
    assert run("artifacts", "build", "Models", *store, "--app", app).status == 0
    app = synthesise(b"another")
    assets = app / "Models.assets.json"
    assets.write_text(assets.read_text().replace('"bucketName"', f'"assumeRoleArn": "{PUBLISHING_ROLE}", "bucketName"'))
    assert run("artifacts", "build", "Models", *store, "--app", app).status == 0
    package = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:model-package/package"
    world.model("packaged", ModelPackageName=package)
    assert run("artifacts", "list", *store).status == 1  # moto has no packages
    assert caller.faults() == []


@pytest.mark.usefixtures("endpoints")
def test_doctor(run: Run, reader: Callable[[Page], Reader], world: World, tmp_path: Path) -> None:
    aws = world.aws
    aws.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="29", Type="String")
    aws.client("iam").create_service_linked_role(AWSServiceName="sagemaker.application-autoscaling.amazonaws.com")
    parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "value"}}
    exports = {"Outputs": {"Name": {"Value": "value", "Export": {"Name": "Search:Name"}}}}
    assert world.deploy({"Resources": {"P": parameter}, **exports}, "Search") == "CREATE_COMPLETE"
    caller = reader(DOCTOR)

    world.rehearse("text", key_of("text"), "golden", load_seconds=1.0)
    app = assembly(tmp_path, layout.pass_key("text", key_of("text"), key_of("golden")))
    assert run("doctor", "--platform", "25.09/ml.g5.xlarge", "--app", app).status == 0

    assert caller.faults() == []


def assembly(directory: Path, passed: str) -> Path:
    """A cloud assembly with a publisher, an endpoint with a name and a rehearsed model, and without the export."""
    machine = BuildMachine("codebuild", 60, {}, BuildInput(None, "", ""))
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    publisher = PublisherDescription(
        "Fleet", "fleet", platform, ContainerEnvironment(), 8, builder=machine, rehearse=True
    ).document()
    endpoint = {"EndpointName": "named", "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}}
    template = {
        "Resources": {
            "Config": {"Type": "AWS::SageMaker::EndpointConfig", "Properties": {"ProductionVariants": []}},
            "Endpoint": {"Type": "AWS::SageMaker::Endpoint", "Properties": endpoint},
            "Publisher": {"Type": "AWS::StepFunctions::StateMachine", "Metadata": {PUBLISHER_METADATA: publisher}},
        }
    }
    served = {
        "mode": "single",
        "platform": {"release": "25.09", "instance_type": "ml.g5.xlarge"},
        "passes": {"text": passed, "other": passed.replace("text", "other")},
        "minutes": {"builds": 0, "rehearsals": 1},
    }
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://unknown-account/unknown-region",
        "properties": {"templateFile": "t.json", "stackName": "Search"},
        "metadata": {"/Search/Model": [{"type": SERVED_METADATA, "data": served}]},
    }
    (directory / "manifest.json").write_text(json.dumps({"artifacts": {"Search": stack}}))
    (directory / "t.json").write_text(json.dumps(template))
    return directory


def denied(*_: object) -> None:
    raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")
