"""A publisher with a next platform: what is published for one platform is published for the other, by the command.

The handlers, the buildspec and the build program are those that AWS would run; `trtexec` and the GPU are stand-ins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import Outcome, run

from cdk_triton import ServingPlatform, TensorRTPlan
from cdk_triton.cli.fleet import execution
from cdk_triton.local.aws import LocalAws
from deployed_fleet import DeployedFleet
from sample_repositories.networks import write_network

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["run"]

PRESENT = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
NEXT = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")
FLEET = ("--fleet", "Serving/Fleet")
FOR_NEXT = (*FLEET, "--platform", "26.05/ml.g5.2xlarge")
CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


class Account(DeployedFleet):
    """The local AWS with a publisher for two platforms, and a directory of repositories."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        super().__init__(aws, directory, PRESENT, recipes=[TensorRTPlan("net")], next_platform=NEXT)
        self.tenants = directory / "tenants"

    def write(self, ensemble: str, content: str) -> None:
        """Write the repository of an ensemble, which is packed."""
        version = self.tenants / ensemble / "model" / "1"
        version.mkdir(parents=True, exist_ok=True)
        (version.parent / "config.pbtxt").write_text(CONFIG)
        (version / "model.py").write_text(
            f"class TritonPythonModel:\n    def execute(self, requests): ...\n\n{content}"
        )

    def write_built(self, ensemble: str, added: float) -> None:
        """Write the repository of an ensemble, which is built."""
        write_network(self.tenants / ensemble, "Add", added)


@pytest.fixture(name="account")
def _account(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("publisher")
    with LocalAws(directory / "aws") as aws:
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        monkeypatch.setattr(execution, "POLL_SECONDS", 0.02)
        yield Account(aws, directory)


def test_a_manifest_is_published_for_the_platform_that_is_named(messages: Messages, account: Account, run: Any) -> None:
    account.write("tenant-0", "# zero")
    found: Outcome = run("fleet", "publish", account.tenants, *FOR_NEXT)
    assert (found.status, found.out.splitlines()[-1]) == (0, "1 published")
    assert account.current() == {}
    assert account.current(NEXT).keys() == {"tenant-0"}

    unknown: Outcome = run("fleet", "publish", account.tenants, *FLEET, "--platform", "26.05/ml.p5.48xlarge")
    assert unknown.status == 2
    messages.record("cdk-triton fleet", unknown.said)
