"""The unmodified CDK CLI against the local AWS, from bootstrap to destroy, event by event.

One stack goes through everything, in one test per command; they build on each other and stop at the first that fails.
`stack_events.txt` holds every event that is expected, and the rule of CloudFormation that it follows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import assert_recorded

from cdk_triton.errors import LocalError
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Component, Endpoint, Invocation, Response, Shift, all_at_once

HERE = Path(__file__).parent
CDK = HERE.parents[1] / "node_modules" / ".bin" / "cdk"


class EndpointDouble:
    """Stands in for Triton: remembers endpoints and refuses those whose container has a variable REFUSE."""

    def __init__(self) -> None:
        self.endpoints: dict[str, Endpoint] = {}

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        if refusal := endpoint.variants[0].container.environment.get("REFUSE"):
            raise LocalError(refusal)
        self.endpoints[endpoint.name] = endpoint

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        pass

    def place(self, component: Component, copies: int) -> None:
        pass

    def withdraw(self, name: str) -> None:
        pass

    def remove(self, name: str) -> None:
        self.endpoints.pop(name, None)

    def invoke(self, invocation: Invocation) -> Response:
        return Response(200, {}, invocation.body)

    def stream(self, invocation: Invocation) -> Response:
        return self.invoke(invocation)

    def close(self) -> None:
        self.endpoints.clear()

    def served_versions(self) -> list[str]:
        return [each.variants[0].container.environment["VERSION"] for each in self.endpoints.values()]


class Cli:
    """Runs the CLI on the app, and reads the events that a command has added to its stack."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        self._aws = aws
        self._directory = directory
        self._seen = 0
        self._stack_id = ""

    def run(self, *arguments: str, ok: bool = True) -> str:
        """Run a command on the app, or on what it was synthesised to if the context is the same."""
        is_synthesised = (self._directory / "cdk.out").exists() and "--context" not in arguments
        done = subprocess.run(
            [CDK, *arguments, "--app", "cdk.out" if is_synthesised else "python app.py", "--no-notices", "--ci"],
            cwd=self._directory,
            # The CDK's validation of templates takes half of the time of each command; tests/hosting has it.
            env={**self._aws.process_environment(), "NODE_NO_WARNINGS": "1", "CDK_VALIDATION": "false"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def consult(self, *arguments: str) -> str:
        """Run the library's own command instead; the CDK's one is on its PATH."""
        environment = self._aws.process_environment()
        path = os.pathsep.join((str(CDK.parent), sysconfig.get_path("scripts"), environment["PATH"]))
        done = subprocess.run(
            [Path(sysconfig.get_path("scripts")) / "cdk-triton", *arguments],
            cwd=self._directory,
            env={**environment, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def deploy(self, *context: str, ok: bool = True, method: str = "change-set") -> str:
        flags = ("--require-approval", "never", "--progress", "events", "--method", method)
        return self.run("deploy", *flags, *(part for each in context for part in ("--context", each)), ok=ok)

    def new_events(self) -> list[str]:
        """`<type> <status> <logical id>` of each event since the last call, oldest first."""
        cloudformation = self._aws.client("cloudformation")
        if not self._stack_id:
            self._stack_id = cloudformation.describe_stacks(StackName="Hosting")["Stacks"][0]["StackId"]
        events = cloudformation.describe_stack_events(StackName=self._stack_id)["StackEvents"]
        events = list(reversed(events))[self._seen :]
        self._seen += len(events)
        return [f"{each['ResourceType']} {each['ResourceStatus']} {each['LogicalResourceId']}" for each in events]

    def stack(self) -> dict[str, Any]:
        found: dict[str, Any] = self._aws.client("cloudformation").describe_stacks(StackName="Hosting")["Stacks"][0]
        return found


def assert_events(section: str, found: list[str]) -> None:
    """These are the events of one section of `stack_events.txt`, whose comments stay as they are."""

    def with_events(text: str) -> str:
        before, mark, rest = text.partition(f"[{section}]\n")
        assert mark, f"there is no section {section}"
        old, following, after = rest.partition("\n[")
        comments = [line for line in old.splitlines() if line.startswith("#")]
        return before + mark + "\n".join([*comments, *found, ""]) + following + after

    assert_recorded(HERE / "stack_events.txt", with_events)


@pytest.fixture(scope="module")
def host() -> EndpointDouble:
    return EndpointDouble()


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory, host: EndpointDouble) -> Iterator[Cli]:
    directory = tmp_path_factory.mktemp("app")
    shutil.copytree(HERE / "hosting_app", directory, dirs_exist_ok=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: host) as aws:
        yield Cli(aws, directory)


@pytest.fixture(autouse=True)
def in_order(request: pytest.FixtureRequest) -> None:
    """These tests tell one story: after a failure the rest of it means nothing."""
    if request.session.testsfailed and getattr(request.module, "_began_clean", 0) != request.session.testsfailed:
        pytest.skip("an earlier step failed")


@pytest.fixture(scope="module", autouse=True)
def failures_before(request: pytest.FixtureRequest) -> None:
    request.module._began_clean = request.session.testsfailed


def test_bootstrap(cli: Cli) -> None:
    assert "bootstrapped" in cli.run("bootstrap", "aws://123456789012/us-east-1")
    assert "bootstrapped (no changes)" in cli.run("bootstrap", "aws://123456789012/us-east-1")


def test_the_doctor_finds_the_bootstrap(cli: Cli) -> None:
    lines = cli.consult("doctor", "--platform", "25.09/ml.g5.xlarge").splitlines()
    assert any(re.match(r"ok +bootstrap\b", line) for line in lines)


def test_list(cli: Cli) -> None:
    assert cli.run("list").split() == ["Hosting"]


def test_deploy_creates_everything(cli: Cli, host: EndpointDouble) -> None:
    output = cli.deploy()
    assert "Hosting.ArtifactRegion = us-east-1" in output
    assert_events("create", cli.new_events())
    assert host.served_versions() == ["1"]


def test_deploy_again_changes_nothing(cli: Cli) -> None:
    assert "(no changes)" in cli.deploy()
    assert cli.new_events() == []


def test_diff_of_what_is_deployed_is_empty(cli: Cli) -> None:
    assert "There were no differences" in cli.run("diff")
    assert cli.new_events() == []


def test_diff_tells_what_will_be_replaced(cli: Cli) -> None:
    output = cli.run("diff", "--context", "version=2")
    assert "AWS::SageMaker::Model Model Model replace" in output
    assert "AWS::SageMaker::EndpointConfig Config Config may be replaced" in output
    assert "AWS::SageMaker::Endpoint Endpoint Endpoint\n" in output
    assert cli.new_events() == []


def test_an_update_replaces_and_cleans_up(cli: Cli, host: EndpointDouble) -> None:
    cli.deploy("version=2")
    assert_events("update with replacement", cli.new_events())
    assert host.served_versions() == ["2"]


def test_a_failing_update_rolls_back_while_the_endpoint_serves(cli: Cli, host: EndpointDouble) -> None:
    output = cli.deploy("version=3", "refuse=the GPU has no memory left", ok=False)
    assert "the GPU has no memory left" in output
    assert_events("failing update", cli.new_events())
    assert cli.stack()["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert host.served_versions() == ["2"]


def test_an_update_after_a_rollback_works_also_without_a_change_set(cli: Cli, host: EndpointDouble) -> None:
    cli.deploy("version=4", method="direct")
    assert_events("update with replacement", cli.new_events())
    assert host.served_versions() == ["4"]


def test_what_is_not_modelled_is_rejected_with_a_sentence(cli: Cli) -> None:
    output = cli.run("drift", ok=False)
    assert "DetectStackDrift" in output
    assert "is not modelled by the local CloudFormation, which models CreateChangeSet, CreateStack," in output


def test_destroy_leaves_only_what_is_retained(cli: Cli, host: EndpointDouble) -> None:
    cli.run("destroy", "--force")
    assert_events("delete", cli.new_events())
    assert host.endpoints == {}
