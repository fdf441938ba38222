"""Repositories with recipes: built by the publisher's machine, and published by the unmodified command.

The handlers, the buildspec and the build program are those that AWS would run; `trtexec` and the GPU are stand-ins.

LONG=1 pytest tests/end_to_end/test_publisher_builds.py     with each fault of AWS alone
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Outcome, run
from tests.end_to_end.faults import PASSING

from cdk_triton import ModelRepository, ServingPlatform, TensorRTPlan
from cdk_triton.artifacts import artifact_key, source_key
from cdk_triton.cli.fleet import publishing
from cdk_triton.cli.fleet.uploads import upload
from cdk_triton.protocol import layout
from cdk_triton_local.aws import LocalAws
from deployed_fleet import DeployedFleet
from sample_repositories.networks import write_network

__all__ = ["run"]

LONG = bool(os.environ.get("LONG"))
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
RECIPES = [TensorRTPlan("net")]
FLEET = ("--fleet", "Serving/Fleet")


class Account(DeployedFleet):
    """The local AWS with a publisher that has a recipe, and a directory of repositories."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        super().__init__(aws, directory, PLATFORM, recipes=RECIPES, max_builds=2)
        self.tenants = directory / "tenants"

    def write(self, ensemble: str, added: float, operator: str = "Add") -> None:
        """Write the repository of an ensemble."""
        write_network(self.tenants / ensemble, operator, added)

    def repository(self, ensemble: str) -> ModelRepository:
        """A repository as a stack would have it."""
        return ModelRepository.from_directory(self.tenants / ensemble, recipes=RECIPES)

    def builds(self) -> list[list[str]]:
        """The repositories of every build so far."""
        codebuild = self.aws.client("codebuild")
        (project,) = codebuild.list_projects()["projects"]
        found = []
        for build in codebuild.list_builds_for_project(projectName=project, sortOrder="ASCENDING")["ids"]:
            (described,) = codebuild.batch_get_builds(ids=[build])["builds"]
            bucket, _, prefix = described["source"]["location"].partition("/")
            plan = self.s3.get_object(Bucket=bucket, Key=f"{prefix}plan.json")["Body"].read()
            found.append(sorted(each["repository"] for each in json.loads(plan)["ensembles"]))
        return found


@pytest.fixture(scope="module")
def _deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("publisher")
    with LocalAws(directory / "aws") as aws:
        yield Account(aws, directory)


@pytest.fixture(name="account")
def _account(_deployed: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    _deployed.lead_publisher(monkeypatch)
    return _deployed


def test_a_failed_build_fails_its_ensemble_and_nothing_is_built_twice(account: Account, run: Any) -> None:
    sound = ("copy", "one", "two")
    for name, added in zip(sound, (1, 1, 2), strict=True):
        account.write(name, added)
    account.write("bad", 0, "EfficientNMS_TRT")  # ONNX Runtime knows its name, and cannot run it
    write_network(account.tenants / "promising", "Add", 3)
    (account.tenants / "promising" / "net").rename(account.tenants / "promising" / "other")
    (account.tenants / "promising" / "cdk-triton.toml").write_text('produced = ["other/1/model.plan"]\n')

    found: Outcome = run("fleet", "publish", account.tenants, *FLEET)

    assert found.status == 1
    assert "failed bad: 'bad' for 25.09-a10g could not be built: the TensorRT plan of net: " in found.out
    assert "rejected promising: cdk-triton.toml: error cdk-triton:ProducedFile: " in found.out
    assert "no recipe makes it; add the recipe, or put the file into the repository" in found.out
    assert "published, built in AWS now or before: copy, one, two" in found.out
    assert account.current() == {
        name: layout.target_model(name, source_key(account.repository(name))) for name in sound
    }
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    for name, target in account.current().items():
        head = account.s3.head_object(Bucket=account.bucket, Key=f"{served}{target}")
        assert head["Metadata"]["artifact-key"] == artifact_key(account.repository(name), PLATFORM)
    built = [name for names in account.builds() for name in names]
    assert sorted(built) in (["bad", "copy", "two"], ["bad", "one", "two"])

    shutil.rmtree(account.tenants / "bad")
    account.write("bad", 5)
    found = run("fleet", "publish", account.tenants, *FLEET)
    assert "published, built in AWS now or before: bad" in found.out
    assert account.builds()[-1] == ["bad"]
    assert len(account.builds()) == 3


def test_a_publication_that_was_interrupted_after_its_uploads_is_repeated(
    account: Account, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.tenants = account.tenants.with_name("interrupted")
    account.write("late", 7)

    def interrupted(*arguments: Any, **named: Any) -> None:
        upload(*arguments, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "upload", interrupted)
        assert run("fleet", "publish", account.tenants, *FLEET).status == 130

    found = run("fleet", "publish", account.tenants, *FLEET)
    assert found.status == 0, found.out
    assert "published, built in AWS now or before: late" in found.out
    assert account.builds()[-1] == ["late"]
    assert account.current()["late"] == layout.target_model("late", source_key(account.repository("late")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults", [[each] for each in PASSING] if LONG else [["new-roles", "slow-starts"]], ids=" ".join
)
def test_the_faults_of_aws_are_waited_for(account: Account, run: Any, faults: list[str]) -> None:
    account.tenants = account.tenants.with_name(f"under-{faults[0]}")
    account.write(faults[0], 10 + PASSING.index(faults[0]))
    before, began = len(account.builds()), account.aws.time.now
    injected = account.aws.inject(*faults)

    found = run("fleet", "publish", account.tenants, *FLEET)

    account.aws.inject()
    assert (found.status, found.out.splitlines()[-1]) == (0, "1 published"), found.said
    assert account.builds()[before:] == [[faults[0]]]
    assert LONG or injected.injected.keys() == {*faults}  # a publication does not meet every fault
    assert account.aws.time.now - began < 60 * 60


@pytest.mark.slow
def test_a_build_that_stays_in_the_queue_fails_with_its_reason(account: Account, run: Any) -> None:
    account.tenants = account.tenants.with_name("queued")
    account.write("queued", 9)
    began = account.aws.time.now
    account.aws.inject("full-build-queue")

    found = run("fleet", "publish", account.tenants, *FLEET)

    account.aws.inject()
    assert found.out.splitlines()[-1] == "0 published, 1 failed"
    assert "(the service has no free machine with this GPU now; publish again later)" in found.out
    assert 8 * 60 * 60 < account.aws.time.now - began < 9 * 60 * 60
