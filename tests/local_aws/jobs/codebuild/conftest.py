"""What tests of CodeBuild share: a project, a build that runs to its end, and what is left of it."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping
from typing import Any

import psutil
import pytest

from cdk_triton_local.aws import LocalAws

OUT = {"base-directory": "out", "files": ["**/*"]}


class Builds:
    """Makes projects, runs builds and looks at what came of them, as a person with boto3 would."""

    bucket = "builds"
    role = "arn:aws:iam::123456789012:role/builds"
    machine: Mapping[str, Any] = {
        "type": "LINUX_CONTAINER",
        "image": "triton:25.09",
        "computeType": "BUILD_GENERAL1_SMALL",
    }

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.client = aws.client("codebuild")
        self.s3 = aws.client("s3")
        self.s3.create_bucket(Bucket=self.bucket)

    def project(self, *, out: bool = False, spec: str | None = None, **more: Any) -> str:
        """A new project, whose phases (`build=["true"]`) and other properties (`logsConfig=…`) are given."""
        phases = {name: more.pop(name) for name in ("install", "pre_build", "build", "post_build") if name in more}
        name = f"project-{uuid.uuid4().hex[:8]}"
        self.client.create_project(
            **{
                "name": name,
                "serviceRole": self.role,
                "source": {"type": "NO_SOURCE", "buildspec": self.spec(out=out, **phases) if spec is None else spec},
                "artifacts": {"type": "NO_ARTIFACTS"},
                "environment": self.machine,
                **more,
            }
        )
        return name

    @staticmethod
    def spec(*, out: bool = False, **phases: list[str]) -> str:
        """A build specification, which hands out the directory `out` if that is asked for."""
        spec: dict[str, Any] = {"version": "0.2", "phases": {name: {"commands": each} for name, each in phases.items()}}
        return json.dumps(spec | ({"artifacts": OUT} if out else {}))

    def folders(self, folder: str, content: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The overrides that make a build read `<folder>/in/`, which gets the content, and write `<folder>/out/`."""
        for name, text in (content or {}).items():
            self.s3.put_object(Bucket=self.bucket, Key=f"{folder}/in/{name}", Body=text.encode())
        return {
            "sourceTypeOverride": "S3",
            "sourceLocationOverride": f"{self.bucket}/{folder}/in/",
            "artifactsOverride": {
                "type": "S3",
                "location": self.bucket,
                "path": folder,
                "name": "out",
                "namespaceType": "NONE",
                "packaging": "NONE",
            },
        }

    def start(self, project: str, **overrides: Any) -> str:
        return str(self.client.start_build(projectName=project, **overrides)["build"]["id"])

    def run(self, project: str, **overrides: Any) -> dict[str, Any]:
        return self.finished(self.start(project, **overrides))

    def describe(self, identifier: str) -> dict[str, Any]:
        build: dict[str, Any] = self.client.batch_get_builds(ids=[identifier])["builds"][0]
        return build

    def finished(self, identifier: str) -> dict[str, Any]:
        while not (build := self.describe(identifier))["buildComplete"]:
            threading.Event().wait(0.02)
        return build

    def runs(self, identifier: str, marker: str) -> None:
        """Wait until a command of the build runs."""
        while not self.processes(marker):
            assert not self.describe(identifier)["buildComplete"]
            threading.Event().wait(0.02)

    @staticmethod
    def phases(build: Mapping[str, Any]) -> dict[str, str | None]:
        return {each["phaseType"]: each.get("phaseStatus") for each in build["phases"]}

    @staticmethod
    def contexts(build: Mapping[str, Any], status: str = "FAILED") -> dict[str, tuple[str, str]]:
        """The phases that ended with a status, each with its code and message."""
        return {
            each["phaseType"]: (each["contexts"][0]["statusCode"], each["contexts"][0]["message"])
            for each in build["phases"]
            if each.get("phaseStatus") == status
        }

    def log(self, build: Mapping[str, Any]) -> str:
        where = build["logs"]
        events = self.aws.client("logs").get_log_events(
            logGroupName=where["groupName"], logStreamName=where["streamName"], startFromHead=True
        )["events"]
        return "\n".join(each["message"] for each in events)

    def uploaded(self, prefix: str) -> dict[str, str]:
        found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        return {
            each["Key"].removeprefix(prefix): self.s3.get_object(Bucket=self.bucket, Key=each["Key"])["Body"]
            .read()
            .decode()
            for each in found
        }

    @staticmethod
    def processes(marker: str) -> list[psutil.Process]:
        """Every process on this machine with the marker in its command."""

        def marked(process: psutil.Process) -> bool:
            try:
                return marker in " ".join(process.cmdline())
            except psutil.Error:
                return False

        return [each for each in psutil.process_iter() if marked(each)]


@pytest.fixture(scope="module")
def builds(local_aws: LocalAws) -> Builds:
    return Builds(local_aws)
