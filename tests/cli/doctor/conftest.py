"""A machine and a local AWS that are fit for a deployment, and what AWS may answer instead."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.loaders import Loader

from cdk_triton.protocol.plan import StackPlan
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.process import conflicting_variables

if TYPE_CHECKING:
    from golden_messages import Messages


_LOADER = Loader()  # reading the service models takes most of a command's time; the tests do it once


class Raw(io.BytesIO):
    """A body as urllib3 hands it out."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


class Aws:
    """The local AWS, with other answers to some operations."""

    def __init__(self, local: LocalAws) -> None:
        self.local = local
        self._answers: dict[str, tuple[int, bytes]] = {}

    def answers(self, operation: str, document: Mapping[str, Any] | str, status: int = 200) -> None:
        """Let an operation answer so."""
        self._answers[operation] = (status, (document if isinstance(document, str) else json.dumps(document)).encode())

    def rejects(self, operation: str, code: str, message: str) -> None:
        """Let an operation fail, in the words of its protocol."""
        if operation in ("GetCallerIdentity", "GetRole"):
            xml = f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
            self.answers(operation, xml, 403)
        else:
            self.answers(operation, {"__type": code, "message": message}, 400)

    def before_send(self, request: Any, event_name: str, **_: Any) -> Any:
        answer = self._answers.get(event_name.rpartition(".")[2])
        return None if answer is None else AWSResponse(request.url, answer[0], HTTPHeaders(), Raw(answer[1]))


@dataclass(frozen=True)
class Visit:
    """How the command ended."""

    status: int
    out: str
    err: str
    messages: Messages

    def graded(self, subject: str) -> str:
        """Record what is printed about one subject, and return its grade."""
        text = self.said(subject)
        self.messages.record("cdk-triton doctor", text)
        return text.split()[0]

    def said(self, subject: str) -> str:
        """What is said of one subject, with its fix."""
        lines = self.out.splitlines()
        (number,) = (i for i, line in enumerate(lines) if line[9:].startswith(f"{subject}: "))
        return "\n".join([lines[number], *(line for line in lines[number + 1 : number + 2] if line.startswith("    "))])


@pytest.fixture(scope="module")
def _local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: Mock()) as aws:
        aws.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="29", Type="String")
        aws.client("iam").create_service_linked_role(AWSServiceName="sagemaker.application-autoscaling.amazonaws.com")
        yield aws


@pytest.fixture
def aws(_local: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """The local AWS, to which the environment of this process leads."""
    for name in conflicting_variables(os.environ):
        monkeypatch.delenv(name)
    for name, value in _local.environment().items():
        monkeypatch.setenv(name, value)
    found = Aws(_local)

    class Session(boto3.Session):
        def __init__(self, **more: Any) -> None:
            super().__init__(**more)
            self._session.register_component("data_loader", _LOADER)
            self.events.register("before-send", found.before_send)

    monkeypatch.setattr(boto3, "Session", Session)
    return found


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Makes a program that prints a version, on a PATH that has nothing else."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.delenv("JSII_NODE", raising=False)

    def make(name: str, version: str) -> Path:
        path = directory / name
        path.write_text(f"#!/bin/sh\necho '{version}'\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Says how many bytes of the disk are free."""

    def say(size: float) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Mock(free=int(size)))

    return say


@pytest.fixture(autouse=True)
def here(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    programs: Callable[[str, str], Path],
    free: Callable[[float], None],
) -> Path:
    """A machine that is fit for a deployment, in a directory of its own."""
    programs("node", "v24.19.0")
    programs("cdk", "2.1148.1 (build fcf5e34)")
    free(50e9)
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def doctor(run: Callable[..., Any], messages: Messages) -> Callable[..., Visit]:
    """The command."""

    def call(*arguments: str) -> Visit:
        outcome = run("doctor", *arguments)
        return Visit(outcome.status, outcome.out, outcome.err, messages)

    return call


@pytest.fixture
def assembly(tmp_path: Path) -> Callable[..., str]:
    """Writes a cloud assembly with one stack for any account and region, and returns its directory.

    The template may refer to the plans, which are assets, as `triton-plan-0.json` and so on.
    """

    def write(stack: str, template: Mapping[str, Any], plans: Sequence[StackPlan] = ()) -> str:
        directory = tmp_path / "assembly"
        directory.mkdir()
        files = {f"triton-plan-{number}.json": plan for number, plan in enumerate(plans)}
        artifacts = {
            stack: {
                "type": "aws:cloudformation:stack",
                "environment": "aws://unknown-account/unknown-region",
                "properties": {"templateFile": "t.json", "stackName": stack},
                "dependencies": ["assets"],
            },
            "assets": {"type": "cdk:asset-manifest", "properties": {"file": "assets.json"}},
        }
        place = {"bucketName": "assets-${AWS::AccountId}"}
        assets = {
            name: {"source": {"path": name}, "destinations": {"d": {**place, "objectKey": name}}} for name in files
        }
        documents = {"manifest.json": {"artifacts": artifacts}, "assets.json": {"files": assets}, "t.json": template}
        for name, document in documents.items():
            (directory / name).write_text(json.dumps(document))
        for name, plan in files.items():
            (directory / name).write_bytes(plan.text())
        return str(directory)

    return write
