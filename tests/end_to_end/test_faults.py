"""What a stack goes through, while AWS has its documented faults (`cdk_triton_local.faults`).

The handlers, the state machines and the builds are the real ones; no server runs. Without Node.js, because the command
of the CDK only passes templates on.

pytest tests/end_to_end/test_faults.py                  thirty random mixes of faults
pytest tests/end_to_end/test_faults.py --mixes 1000     other ones each time
LONG=1 pytest tests/end_to_end/test_faults.py           the command of the CDK deploys, each fault alone
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import aws_cdk as cdk
import onnx.parser
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from botocore.exceptions import ClientError
from tests.end_to_end.faults import GROUPS, PASSING
from tests.end_to_end.test_scaled_endpoint import CONFIG as PLAIN_CONFIG
from tests.end_to_end.test_scaled_endpoint import MODEL
from tests.end_to_end.test_shared_store import CONFIG, NETWORK
from tests.hosting.conftest import ROOT
from tests.permissions.recording import OPERATOR

from cdk_triton import (
    CodeBuildGpuBuilder,
    ContainerEnvironment,
    ModelRepository,
    S3File,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    add_vpc_endpoints,
)
from cdk_triton.hosting import ITritonArtifactStore
from cdk_triton_local import LocalAws
from deployed_fleet import publish_assets

if TYPE_CHECKING:
    from cdk_triton_local.faults import Faults
    from golden_messages import Messages

LONG = bool(os.environ.get("LONG"))
HOUR = 60 * 60
COMPLETE = "CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE"
STORE, OTHER_STORE = "store-of-faults", "other-store-of-faults"
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
PLACE = cdk.Environment(account="123456789012", region="us-east-1")


class Account:
    """The local AWS with a store, another store that promotes from it, and the templates of a stack that uses one.

    Its clients are those of an operator, whose calls have no faults.

    Args:
        aws: the local AWS.
        directory: for cloud assemblies.
        with_cdk: whether the command of the CDK deploys and destroys, as a user whose calls have faults.
    """

    def __init__(self, aws: LocalAws, directory: Path, *, with_cdk: bool) -> None:
        self.aws = aws
        self._with_cdk = with_cdk
        self.s3 = aws.client("s3", OPERATOR)
        self._stacks = aws.client("cloudformation", OPERATOR)
        self._directory = directory
        self._assemblies: dict[str, str] = {}
        network = onnx.parser.parse_model(NETWORK).SerializeToString()
        for bucket in ("assets", "networks"):
            self.s3.create_bucket(Bucket=bucket)
        self.s3.put_object(Bucket="networks", Key="net.onnx", Body=network)
        repository = directory / "text"
        (repository / "net").mkdir(parents=True)
        (repository / "net" / "config.pbtxt").write_text(CONFIG)
        recipe = TensorRTPlan("net", onnx=S3File("networks", "net.onnx", sha256=hashlib.sha256(network).hexdigest()))
        self._repository = ModelRepository.from_directory(repository, recipes=[recipe])
        (directory / "plain" / "net" / "1").mkdir(parents=True)
        (directory / "plain" / "net" / "config.pbtxt").write_text(PLAIN_CONFIG)
        (directory / "plain" / "net" / "1" / "model.py").write_text(MODEL)
        self._without_build = ModelRepository.from_directory(directory / "plain")
        self._synthesise()
        for stack, assembly in (("Home", "home"), ("Other", "promoted")):
            assert self.deploy(stack, assembly) == "CREATE_COMPLETE", self.reasons(stack)

    def deploy(self, stack: str, assembly: str) -> str:
        """Create or update a stack; returns its status."""
        self._assemblies[stack] = assembly
        if self._with_cdk:
            return self._cdk("deploy", stack, assembly, "--require-approval", "never")
        publish_assets(self.s3, self._directory / assembly, stack)
        exists = any(each["StackName"] == stack for each in self._stacks.describe_stacks()["Stacks"])
        operation = self._stacks.update_stack if exists else self._stacks.create_stack
        template = (self._directory / assembly / f"{stack}.template.json").read_text()
        try:
            operation(StackName=stack, TemplateBody=template, Capabilities=["CAPABILITY_NAMED_IAM"])
        except ClientError as error:
            if "No updates" not in str(error):
                raise
        return self._wait(stack)

    def delete(self, stack: str) -> str:
        identifier = self._stacks.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
        if self._with_cdk:
            return self._cdk("destroy", identifier, self._assemblies[stack], "--force")
        self._stacks.delete_stack(StackName=stack)
        return self._wait(identifier)

    def reasons(self, stack: str) -> list[str]:
        """Why resources of a stack failed, the oldest first."""
        events = self._stacks.describe_stack_events(StackName=stack)["StackEvents"]
        return [each["ResourceStatusReason"] for each in reversed(events) if "FAILED" in each["ResourceStatus"]]

    def artifacts(self, bucket: str) -> list[str]:
        """The names of all objects below `artifacts/`."""
        found = self.s3.list_objects_v2(Bucket=bucket, Prefix="artifacts/").get("Contents", [])
        return sorted(each["Key"].rpartition("/")[2] for each in found)

    def builds(self) -> dict[str, str]:
        """The status of each of the latest hundred builds, by its id."""
        codebuild = self.aws.client("codebuild", OPERATOR)
        (project,) = codebuild.list_projects()["projects"]
        ids = codebuild.list_builds_for_project(projectName=project)["ids"]
        found = codebuild.batch_get_builds(ids=ids)["builds"] if ids else []
        return {each["id"]: each["buildStatus"] for each in found}

    def clear(self) -> None:
        """Delete what a test has left, and all artifacts."""
        left = {each["StackName"] for each in self._stacks.describe_stacks()["Stacks"]}
        for stack in sorted(left - {"Home", "Other"}, reverse=True):  # first those that use another one
            self.delete(stack)
        for bucket in (STORE, OTHER_STORE):
            for each in self.s3.list_object_versions(Bucket=bucket).get("Versions", []):
                self.s3.delete_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])

    def _cdk(self, command: str, stack: str, assembly: str, *options: str) -> str:
        name = stack.split("/")[1] if "/" in stack else stack
        arguments = [command, name, "--exclusively", "--app", str(self._directory / assembly), "--no-notices", "--ci"]
        environment, began = {**self.aws.process_environment(), "NODE_NO_WARNINGS": "1"}, self.aws.time.now
        done = subprocess.run(
            [ROOT / "node_modules/.bin/cdk", *arguments, *options],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert self.aws.time.now - began < HOUR, done.stdout + done.stderr
        return self._wait(stack)

    def _wait(self, stack: str) -> str:
        """The status in which an operation ends, in less time than the longest wait of a custom resource."""
        began = self.aws.time.now
        while True:
            status = str(self._stacks.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            assert self.aws.time.now - began < HOUR, status
            threading.Event().wait(0.05)

    def synthesise_isolated(self, name: str, *, exclude: Collection[str] = (), verbose: bool = False) -> list[str]:
        """Synthesise a stack with a scaled endpoint, its store, and their VPC without a route to the internet.

        It has no build, which would take its own time besides.

        Returns:
            The warnings that there is no way out of the VPC.
        """
        app = self._app(name)
        stack = cdk.Stack(app, "Isolated", env=PLACE)
        subnets = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-east-1a", "us-east-1b"], subnet_configuration=[subnets])
        store = TritonArtifactStore(stack, "Store", vpc=vpc, builders=[])
        endpoint = self._serve(stack, store, self._without_build, verbose=verbose)
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=6)
        add_vpc_endpoints(vpc, store_functions=True, exclude=exclude)
        said = [str(each.entry.data) for each in app.synth().get_stack_by_name("Isolated").messages]
        return [each for each in said if "NoWayOut" in each]

    def _app(self, name: str) -> cdk.App:
        return cdk.App(
            outdir=str(self._directory / name),
            context=json.loads((ROOT / "cdk.json").read_text())["context"],
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name="assets"),
            builtin_cloud_formation_validation=False,  # other tests have it
        )

    def _synthesise(self) -> None:
        app = self._app("home")
        builders = [CodeBuildGpuBuilder()]
        home = cdk.Stack(app, "Home", env=PLACE)
        TritonArtifactStore(home, "Store", builders=builders, export_prefix="home", bucket_name=STORE)
        app.synth()

        for name in ("first", "changed", "failing"):
            app = self._app(name)
            stack = cdk.Stack(app, "Served", env=PLACE)
            store = TritonArtifactStore.from_exports(stack, "Store", "home", builders=builders)
            endpoint = self._serve(stack, store, self._repository, verbose=name != "first")
            if name == "failing":
                logs.LogGroup(stack, "Taken", log_group_name="taken").node.add_dependency(endpoint)
            app.synth()

        app = self._app("promoted")
        other, stack = (cdk.Stack(app, name, env=PLACE) for name in ("Other", "Promoted"))
        tested = TritonArtifactStore.from_bucket(other, "Tested", s3.Bucket.from_bucket_name(other, "Bucket", STORE))
        store_of_other = TritonArtifactStore(other, "Store", promotes_from=tested, bucket_name=OTHER_STORE)
        self._serve(stack, store_of_other, self._repository)
        app.synth()

        for name in ("published", "unpublished"):
            app = self._app(name)
            artifacts, fleet = (cdk.Stack(app, each, env=PLACE) for each in ("Artifacts", "Fleet"))
            home_of_fleet = TritonArtifactStore(artifacts, "Store", builders=[])
            logs.LogGroup(fleet, "Log")  # a stack is not empty
            if name == "published":
                TritonMultiModel(fleet, "Fleet", store=home_of_fleet, platform=PLATFORM).add_publisher()
            app.synth()

    def _serve(
        self, stack: cdk.Stack, store: ITritonArtifactStore, repository: ModelRepository, *, verbose: bool = False
    ) -> TritonEndpoint:
        environment = ContainerEnvironment(log_verbose=int(verbose))
        model = TritonModel(
            stack, "Model", repository=repository, platform=PLATFORM, store=store, environment=environment
        )
        return TritonEndpoint(stack, "Endpoint", model=model)


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock()) as aws:
        aws.client("logs", OPERATOR).create_log_group(logGroupName="taken")
        yield Account(aws, tmp_path_factory.mktemp("faults"), with_cdk=LONG)


@pytest.fixture(autouse=True)
def _as_before(account: Account) -> Iterator[None]:
    yield
    account.aws.inject()
    for thread in threading.enumerate():
        if thread.name.startswith("execution-"):  # of a second delivery, whose calls are none of the next test
            thread.join(60)
    account.clear()


def live_through(account: Account, *faults: str, seed: int | None = None) -> Faults:
    """Deploy, update, roll back, promote and destroy; nothing is lost, double or left behind."""
    before = account.builds()
    injected = account.aws.inject(*faults, seed=seed)
    assert account.deploy("Served", "first") == "CREATE_COMPLETE", account.reasons("Served")
    assert account.deploy("Served", "failing") == "UPDATE_ROLLBACK_COMPLETE", account.reasons("Served")
    assert account.deploy("Served", "changed") == "UPDATE_COMPLETE", account.reasons("Served")
    account.aws.inject(*faults, seed=seed)  # once more, for the functions of the other store
    assert account.deploy("Promoted", "promoted") == "CREATE_COMPLETE", account.reasons("Promoted")
    assert account.delete("Promoted") == "DELETE_COMPLETE"
    assert account.delete("Served") == "DELETE_COMPLETE"

    assert [status for id, status in account.builds().items() if id not in before] == ["SUCCEEDED"]
    for bucket in (STORE, OTHER_STORE):
        assert account.artifacts(bucket) == ["manifest.json", "model.tar.gz"]
    return injected


@pytest.mark.slow
@pytest.mark.parametrize("faults", [[each] for each in PASSING] if LONG else GROUPS, ids=" ".join)
def test_nothing_is_lost_or_double(account: Account, faults: list[str]) -> None:
    injected = live_through(account, *faults)

    assert injected.injected.keys() == {*faults}


@pytest.mark.slow
def test_nothing_is_lost_or_double_in_a_random_mix(account: Account, seed: int) -> None:
    chosen = random.Random(seed)
    live_through(account, *chosen.sample(PASSING, chosen.randrange(2, len(PASSING))), seed=seed)


@pytest.mark.slow
def test_a_publisher_is_added_and_removed_although_its_store_is_deployed_first(account: Account) -> None:
    """As `cdk deploy --all` does. CloudFormation keeps an export in use, and other teams have filled the log policy."""
    account.aws.inject("full-log-policy")
    for assembly in ("published", "unpublished"):
        for stack in ("Artifacts", "Fleet"):
            assert account.deploy(stack, assembly) in COMPLETE, account.reasons(stack)


@pytest.mark.slow
def test_without_a_quota_a_deployment_fails_with_one_sentence_and_works_later(
    messages: Messages, account: Account
) -> None:
    account.aws.inject("no-gpu-quota")

    assert account.deploy("Served", "first") == "ROLLBACK_COMPLETE"
    (reason,) = (each for each in account.reasons("Served") if "CodeBuild" in each)
    messages.record("ArtifactError", reason.partition(" (RequestId")[0])

    account.aws.inject()
    assert account.delete("Served") == "DELETE_COMPLETE"
    assert account.deploy("Served", "first") == "CREATE_COMPLETE"
    assert account.delete("Served") == "DELETE_COMPLETE"


@pytest.mark.slow
def test_a_build_that_stays_in_the_queue_is_waited_for_less_than_an_hour_and_used_later(
    account: Account,
) -> None:
    before, began = account.builds(), account.aws.time.now
    account.aws.inject("full-build-queue")

    assert account.deploy("Served", "first") == "ROLLBACK_COMPLETE"
    assert 50 * 60 < account.aws.time.now - began < 60 * 60
    (reason,) = account.reasons("Served")
    assert "is not finished after 50 minutes ('text' for 25.09-a10g is being built); the build continues" in reason
    assert account.delete("Served") == "DELETE_COMPLETE"

    account.aws.inject()
    assert account.deploy("Served", "first") == "CREATE_COMPLETE", account.reasons("Served")
    assert [status for id, status in account.builds().items() if id not in before] == ["SUCCEEDED"]


@pytest.mark.slow
def test_functions_in_isolated_subnets_need_the_vpc_endpoints_of_their_calls(account: Account) -> None:
    """The wait for a scaled endpoint ends at once, or after 50 minutes; no deployment fails."""
    missing = ["cloudformation", "sagemaker.api"]
    (warning,) = account.synthesise_isolated("closed", exclude=missing)
    assert "no VPC endpoint for cloudformation, sagemaker.api" in warning
    account.synthesise_isolated("closed-changed", exclude=missing, verbose=True)
    assert account.synthesise_isolated("open") == []
    account.synthesise_isolated("open-changed", verbose=True)
    injected = account.aws.inject("isolated-subnets")

    def minutes(operation: Callable[..., str], *assembly: str) -> float:
        began = account.aws.time.now
        assert operation("Isolated", *assembly) in COMPLETE, account.reasons("Isolated")
        return (account.aws.time.now - began) / 60

    assert minutes(account.deploy, "closed") < 5, "a new endpoint is not waited for"
    assert 50 < minutes(account.deploy, "closed-changed") < 55
    assert minutes(account.deploy, "open") < 5, "the VPC endpoints are there before the update"
    assert minutes(account.deploy, "open-changed") < 5
    assert minutes(account.delete) < 5, "the VPC endpoints stay until the wait has ended"
    assert injected.injected.keys() == {"isolated-subnets"}
