"""A publisher with a next platform: what is published for one platform is published for the other, by the command.

The handlers, the buildspec and the build program are those that AWS would run; `trtexec` and the GPU are stand-ins.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import Outcome, run
from tests.docs.blocks import of_kind

from cdk_triton import ModelRepository, ServingPlatform, TensorRTPlan
from cdk_triton.artifacts import artifact_key
from cdk_triton.cli.fleet import publishing
from cdk_triton.protocol import layout
from cdk_triton_local.aws import LocalAws
from deployed_fleet import DeployedFleet
from sample_repositories.networks import write_network

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["run"]

PRESENT = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
RECIPES = [TensorRTPlan("net")]
FLEET = ("--fleet", "Serving/Fleet")
(BLOCK,) = of_kind("end_to_end/test_publisher_platforms.py")
_, *PUBLISH_ALL = shlex.split(BLOCK.text)  # the command of docs/publishing.md
NAMED = PUBLISH_ALL[PUBLISH_ALL.index("--platform") + 1]
RELEASE, INSTANCE_TYPE = NAMED.split("/")
NEXT = ServingPlatform(release=RELEASE, instance_type=INSTANCE_TYPE)
FOR_NEXT = (*FLEET, "--platform", NAMED)
ONLY_BEFORE_26_04 = "4611686018427387904, 4"
"""Dimensions whose product servers from 26.04 on reject."""

CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


class Account(DeployedFleet):
    """The local AWS with a publisher for two platforms, and a directory of repositories."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        super().__init__(aws, directory, PRESENT, recipes=RECIPES, next_platform=NEXT)
        self.tenants = directory / "tenants"

    def write(self, ensemble: str, content: str, dimensions: str = "1") -> None:
        """Write the repository of an ensemble, which is packed."""
        version = self.tenants / ensemble / "model" / "1"
        version.mkdir(parents=True, exist_ok=True)
        (version.parent / "config.pbtxt").write_text(CONFIG.replace("dims: [ 1 ]", f"dims: [ {dimensions} ]", 1))
        (version / "model.py").write_text(
            f"class TritonPythonModel:\n    def execute(self, requests): ...\n\n{content}"
        )

    def served(self, platform: ServingPlatform) -> str:
        """The prefix that an endpoint of a platform serves from."""
        return layout.fleet_prefix(self.fleet.name_in_store, platform.label)

    def uploads(self) -> set[str]:
        """The object keys of what the command has uploaded."""
        prefix = layout.publish_prefix(self.fleet.name_in_store)
        found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        return {each["Key"] for each in found}

    def write_built(self, ensemble: str, added: float) -> None:
        """Write the repository of an ensemble, which is built."""
        write_network(self.tenants / ensemble, "Add", added)


@pytest.fixture(name="account")
def _account(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("publisher")
    with LocalAws(directory / "aws") as aws:
        account = Account(aws, directory)
        account.lead_publisher(monkeypatch)
        yield account


def test_a_manifest_is_published_for_the_platform_that_is_named(messages: Messages, account: Account, run: Any) -> None:
    account.write("tenant-0", "# zero")
    found: Outcome = run("fleet", "publish", account.tenants, *FOR_NEXT)
    assert (found.status, found.out.splitlines()[-1]) == (0, "1 published")
    assert account.current() == {}
    assert account.current(NEXT).keys() == {"tenant-0"}

    (live,) = account.current(NEXT).values()
    assert "tenant-0" not in run("fleet", "list", *FLEET).out
    assert f"tenant-0  {live}" in run("fleet", "list", *FOR_NEXT).out
    assert run("fleet", "unpublish", "tenant-0", *FLEET).status == 2  # it is not there
    assert run("fleet", "unpublish", "tenant-0", *FOR_NEXT).status == 0
    assert account.current(NEXT) == {"tenant-0": None}
    assert run("fleet", "rollback", "tenant-0", *FOR_NEXT).out == f"callers of tenant-0 get {live}\n"
    assert account.current(NEXT) == {"tenant-0": live}

    unknown: Outcome = run("fleet", "publish", account.tenants, *FLEET, "--platform", "26.05/ml.p5.48xlarge")
    assert unknown.status == 2
    messages.record("cdk-triton fleet", unknown.said)


def test_everything_that_is_live_is_published_for_the_next_platform(
    messages: Messages, account: Account, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        account.write(f"tenant-{number}", f"# {number}")
    account.write("tenant-3", "# old", ONLY_BEFORE_26_04)
    for number in range(2):
        account.write_built(f"built-{number}", number)
    assert run("fleet", "publish", account.tenants, *FLEET).status == 0
    assert run("fleet", "unpublish", "tenant-2", *FLEET).status == 0
    live = {name: target for name, target in account.current().items() if target is not None}
    (sources,) = account.s3.list_objects_v2(Bucket=account.bucket, Prefix="artifacts/built-1/")["Contents"][2:]
    assert sources["Key"].endswith(layout.SOURCES)
    account.s3.delete_object(Bucket=account.bucket, Key=sources["Key"])
    uploads = account.uploads()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "judge_published", interrupted)
        broken_off: Outcome = run(*PUBLISH_ALL)
    assert broken_off.status == 130
    assert "this command has not started an execution" in broken_off.said

    found: Outcome = run(*PUBLISH_ALL)

    assert found.status == 1
    rejected, hint, failed, *lines = without_warnings(found)
    assert rejected.startswith("rejected tenant-3: model/config.pbtxt:4:42: error CT247")
    assert hint == "    more about a rule: cdk-triton explain CT247"
    assert lines == [
        "published, built in AWS now or before: built-0",
        "published, copied from the present platform: tenant-0, tenant-1",
        "3 published, 1 rejected by the checks, 1 failed",
    ]
    messages.record("cdk-triton fleet", failed.replace(sources["Key"].split("/")[2], "KEY"))
    assert account.current(NEXT) == {name: live[name] for name in ("built-0", "tenant-0", "tenant-1")}
    for name, target in account.current(NEXT).items():
        head = account.s3.head_object(Bucket=account.bucket, Key=f"{account.served(NEXT)}{target}")
        repository = ModelRepository.from_directory(
            account.tenants / name, recipes=RECIPES if name == "built-0" else []
        )
        assert head["Metadata"]["artifact-key"] == artifact_key(repository, NEXT)
    assert not {key for key in account.uploads() - uploads if key.endswith(".tar.gz")}

    again: Outcome = run("fleet", "publish", account.tenants, *FOR_NEXT)  # as the message says
    assert again.out.splitlines()[-1] == "2 published, 3 unchanged, 1 rejected by the checks"
    assert account.current(NEXT).keys() == {*live, "tenant-2"} - {"tenant-3"}
    last: Outcome = run(*PUBLISH_ALL)
    assert without_warnings(last)[2:] == [
        "unpublished, as on the present platform: tenant-2",
        "0 published, 1 unpublished, 4 unchanged, 1 rejected by the checks",
    ]
    there = account.current(NEXT)
    assert {name: there.get(name) for name in (*live, "tenant-2")} == {**live, "tenant-2": None, "tenant-3": None}
    assert run(*PUBLISH_ALL).out.splitlines()[-1] == ("0 published, 4 unchanged, 1 rejected by the checks")

    assert len(run("fleet", "list", "tenant-2", *FOR_NEXT).out.splitlines()) > 2  # a rollback would find a version
    assert run("fleet", "unpublish", "tenant-2", "--forget", *FLEET).status == 0
    forgotten: Outcome = run(*PUBLISH_ALL)
    assert without_warnings(forgotten)[2:] == without_warnings(last)[2:]
    assert [line.split()[0] for line in run("fleet", "list", "tenant-2", *FOR_NEXT).out.splitlines()[1:]] == [
        "(unpublished)"
    ]


def without_warnings(found: Outcome) -> list[str]:
    """The lines of the standard output; each run warns of an instance type that AWS does not list."""
    return [line for line in found.out.splitlines() if not line.startswith("warning about ")]
