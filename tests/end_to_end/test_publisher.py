"""A publisher on the local AWS: the command, the synthesised machine in moto's interpreter, the real functions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from tests.cli.conftest import PROGRAM, Outcome, run
from tests.docs.blocks import of_kind

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.artifacts import artifact_key, layout, source_key
from cdk_triton.artifacts.repository_checks import check_repository
from cdk_triton.cli.fleet import execution, place, publishing, verdicts
from cdk_triton.cli.fleet.map_progress import MapProgress
from cdk_triton.cli.fleet.uploads import upload
from cdk_triton.cli.progress import Progress
from cdk_triton.errors import StoreError
from cdk_triton.local.aws import LocalAws
from deployed_fleet import DeployedFleet

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["run"]

PLATFORM = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = "class TritonPythonModel:\n    def execute(self, requests): ...\n\n"


class Account(DeployedFleet):
    """The local AWS with a publisher, and a directory of repositories."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        super().__init__(aws, directory, PLATFORM)
        self._directory = directory

    def write(self, ensemble: str, content: str, config: str = CONFIG) -> Path:
        """Write the repository of an ensemble; returns the directory of all of them."""
        model = self._directory / "tenants" / ensemble / "model"
        (model / "1").mkdir(parents=True, exist_ok=True)
        (model / "config.pbtxt").write_text(config)
        (model / "1" / "model.py").write_text(MODEL + content)
        return model.parents[1]

    def manifest(self, *ensembles: str) -> Path:
        """Write the repositories of ensembles, and a manifest of these alone."""
        for ensemble in ensembles:
            self.write(ensemble, f"# {ensemble}")
        manifest = self._directory / f"{ensembles[0]}.json"
        manifest.write_text(json.dumps([{"ensemble": each, "repository": f"tenants/{each}"} for each in ensembles]))
        return manifest

    def target(self, ensemble: str) -> str:
        """The target model of the repository as it is now."""
        repository = ModelRepository.from_directory(self._directory / "tenants" / ensemble)
        return layout.target_model(ensemble, source_key(repository))


@pytest.fixture(scope="module")
def _deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("publisher")
    with LocalAws(directory / "aws") as aws:
        yield Account(aws, directory)


@pytest.fixture(name="account")
def _account(_deployed: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The deployed publisher, to which the environment of this process leads."""
    for name, value in _deployed.aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(execution, "POLL_SECONDS", 0.02)
    return _deployed


Run = Callable[..., Outcome]
FLEET = ("--fleet", "Serving/Fleet")


def test_ensembles_are_published_rolled_back_and_unpublished_without_a_deployment(account: Account, run: Run) -> None:
    names = [f"tenant-{number}" for number in range(3)]
    for name in names:
        tenants = account.write(name, f"# first {name}")
    first = {name: account.target(name) for name in names}
    (commands,) = of_kind("end_to_end/test_publisher.py")  # of docs/platform_teams.md: publish and list
    path = os.pathsep.join([str(PROGRAM.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", commands.text], cwd=tenants.parent, env=os.environ | {"PATH": path}, stdout=subprocess.PIPE
    )
    said = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert said[-5] == "3 published"
    assert [line.split()[:2] for line in said[-3:]] == [[name, first[name]] for name in names]
    assert account.current() == first
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    head = account.s3.head_object(Bucket=account.bucket, Key=served + first["tenant-1"])
    key = artifact_key(ModelRepository.from_directory(tenants / names[1]), PLATFORM)
    assert head["Metadata"]["artifact-key"] == key

    again = run("fleet", "publish", tenants, *FLEET)
    assert (again.status, again.out) == (0, "0 published, 3 unchanged\n")
    assert len(account.executions()) == 1

    account.write("tenant-0", "# second")
    account.write("tenant-1", "# second", config="max_batch_siz: 1")
    found = run("fleet", "publish", tenants, *FLEET)
    assert found.status == 1
    assert "rejected tenant-1: model/config.pbtxt:1:1: error CT101" in found.out
    assert "    more about a rule: cdk-triton explain CT101" in found.out.splitlines()
    assert found.out.splitlines()[-1] == "1 published, 1 unchanged, 1 rejected by the checks"
    changed = account.target("tenant-0")
    assert account.current() == {**first, "tenant-0": changed}

    assert run("fleet", "rollback", "tenant-0", *FLEET).out == f"callers of tenant-0 get {first['tenant-0']}\n"
    assert run("fleet", "unpublish", "tenant-2", *FLEET).out == "tenant-2 is unpublished\n"
    started = len(account.executions())
    again = run("fleet", "unpublish", "tenant-2", *FLEET)
    assert (again.status, again.out) == (0, "tenant-2 was unpublished already\n")
    assert len(account.executions()) == started
    assert account.current() == {**first, "tenant-2": None}
    listed = [line.split()[:2] for line in run("fleet", "list", *FLEET).out.splitlines()[1:]]
    assert listed == [["tenant-0", first["tenant-0"]], ["tenant-1", first["tenant-1"]], ["tenant-2", "(unpublished)"]]
    versions = [line.split()[0] for line in run("fleet", "list", "tenant-0", *FLEET).out.splitlines()[1:]]
    assert versions == [first["tenant-0"], changed]

    assert run("fleet", "rollback", "tenant-0", "--to", changed, *FLEET).status == 0
    assert account.current()["tenant-0"] == changed
    published = run("fleet", "publish", tenants, *FLEET)  # tenant-1 is rejected, tenant-2 was served before
    assert "published, archives were there: tenant-2" in published.out


def test_documents_that_a_publication_wrote_are_not_read_again(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents: list[str] = []
    opened = place.open_fleet

    def counted(name: str, platform: str | None = None) -> place.Fleet:
        fleet = opened(name, platform)

        def note(params: dict[str, Any], **_: Any) -> None:
            documents.append(params["Key"])

        fleet.aws.client("s3").meta.events.register("provide-client-params.s3.GetObject", note)
        return fleet

    monkeypatch.setattr(place, "open_fleet", counted)
    manifest = account.manifest("tenant-12")
    assert run("fleet", "publish", manifest, *FLEET).out.splitlines()[-1] == "1 published"
    assert any(key.endswith("/tenant-12.json") for key in documents)

    documents.clear()
    assert run("fleet", "publish", manifest, *FLEET).out == "0 published, 1 unchanged\n"
    assert documents == []


def test_a_publication_that_succeeded_is_reported_without_the_new_documents(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[dict[str, Any]] = [{}]

    def read_once(_: place.Fleet) -> dict[str, Any]:
        if answers:
            return answers.pop()
        raise EndpointConnectionError(endpoint_url="somewhere")

    monkeypatch.setattr(publishing, "read_catalogue", read_once)
    found = run("fleet", "publish", account.manifest("tenant-13"), *FLEET)
    assert (found.status, found.out.splitlines()[-1]) == (0, "1 published")


def test_what_was_published_for_the_old_platform_during_its_change_is_named(account: Account, run: Run) -> None:
    assert run("fleet", "publish", account.manifest("tenant-13"), *FLEET).status == 0
    assert "warning" not in run("fleet", "list", *FLEET).err
    name = account.fleet.name_in_store
    place = [layout.catalogue_key(name, platform, "tenant-13") for platform in ("23.09-a10g", PLATFORM.label)]
    account.s3.copy_object(Bucket=account.bucket, Key=place[0], CopySource=f"{account.bucket}/{place[1]}")
    account.s3.delete_object(Bucket=account.bucket, Key=place[1])
    account.s3.delete_object(
        Bucket=account.bucket, Key=layout.fleet_prefix(name, PLATFORM.label) + account.target("tenant-13")
    )
    found = run("fleet", "list", *FLEET)
    account.s3.delete_object(Bucket=account.bucket, Key=place[0])
    assert found.status == 0
    assert "the last change of tenant-13 (23.09-a10g)" in found.err


def test_an_archive_that_is_not_the_one_of_its_keys_fails_alone(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, bad = "tenant-7", "tenant-8"
    manifest = account.manifest(sound, bad)

    def changing(*arguments: Any, **named: Any) -> dict[str, str]:
        account.write(bad, "# changed after it was checked")
        return upload(*arguments, **named)

    monkeypatch.setattr(publishing, "upload", changing)
    found = run("fleet", "publish", manifest, *FLEET)

    assert found.status == 1
    assert f"failed {bad}: the archive staging/publish/" in found.out
    assert found.out.splitlines()[-1] == "1 published, 1 failed"
    assert sound in account.current()
    assert bad not in account.current()


def test_the_same_command_again_uploads_only_what_is_missing(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["tenant-14", "tenant-15", "tenant-16"]
    manifest = account.manifest(*names)
    uploaded: list[set[str]] = []

    def broken_off(fleet: place.Fleet, archives: Mapping[str, Path], **_: Any) -> dict[str, str]:
        uploaded.append(set(archives))
        upload(fleet, dict(list(archives.items())[:1]))
        raise StoreError("the connection was lost")

    def recorded(fleet: place.Fleet, archives: Mapping[str, Path], **named: Any) -> dict[str, str]:
        uploaded.append(set(archives))
        return upload(fleet, archives, **named)

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "upload", broken_off)
        assert run("fleet", "publish", manifest, *FLEET).status == 1
    assert not account.current().keys() & {*names}

    monkeypatch.setattr(publishing, "upload", recorded)
    assert run("fleet", "publish", manifest, *FLEET).status == 0
    first, second = uploaded
    assert (len(first), len(second)) == (3, 2)
    assert second < first
    assert account.current().keys() >= {*names}


def test_an_interrupted_command_leads_to_the_execution_that_goes_on(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = account.manifest("tenant-9")

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "follow", interrupted)
        found = run("fleet", "publish", manifest, *FLEET)
    assert found.status == 130
    hint = found.err.strip().splitlines()[-1].partition("run: ")[2].split()

    assert run(*hint[1:]).status == 0
    assert account.current()["tenant-9"] == account.target("tenant-9")


@pytest.mark.parametrize("step", ["judge", "upload"])
def test_a_command_that_is_interrupted_before_it_starts_an_execution_reports_so(
    messages: Messages, account: Account, run: Run, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ensemble = f"interrupted-{step}"
    manifest = account.manifest(ensemble)
    started = len(account.executions())

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, step, interrupted)
        found = run("fleet", "publish", manifest, *FLEET)
    assert found.status == 130
    assert len(account.executions()) == started
    messages.record("cdk-triton fleet", found.said)

    assert run("fleet", "publish", manifest, *FLEET).status == 0
    assert account.current()[ensemble] == account.target(ensemble)


def test_a_command_that_was_killed_leaves_an_execution_to_attach_to(account: Account, run: Run) -> None:
    manifest = account.manifest("tenant-10")
    known = {each["name"] for each in account.executions()}
    with subprocess.Popen([PROGRAM, "fleet", "publish", manifest, *FLEET]) as command:
        while not (new := {each["name"] for each in account.executions()} - known):
            assert command.poll() is None
            threading.Event().wait(0.01)
        command.kill()
    assert command.returncode == -signal.SIGKILL

    attached = run("fleet", "publish", "--attach", *new, *FLEET)
    assert (attached.status, attached.out) == (0, f"the execution {new.pop()} has succeeded\n")
    assert account.current()["tenant-10"] == account.target("tenant-10")
    assert run("fleet", "publish", manifest, *FLEET).out == "0 published, 1 unchanged\n"


def test_a_command_goes_on_after_the_connection_was_lost(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = account.manifest("tenant-11")
    lost = [EndpointConnectionError(endpoint_url="somewhere"), ReadTimeoutError(endpoint_url="somewhere")]
    counts = MapProgress.counts

    def unreliable(progress: MapProgress) -> dict[str, int] | None:
        if lost:
            raise lost.pop()
        return counts(progress)

    monkeypatch.setattr(MapProgress, "counts", unreliable)
    found = run("fleet", "publish", manifest, *FLEET)
    assert (found.status, found.out.splitlines()[-1]) == (0, "1 published")
    assert not lost
    assert account.current()["tenant-11"] == account.target("tenant-11")


def test_the_warnings_of_the_checks_are_printed_again_and_again(account: Account, run: Run) -> None:
    manifest = account.manifest("tenant-9")
    account.write("tenant-9", "# nine", CONFIG + "dynamic_batching { default_priority_level: 1 }")
    for end in ("1 published", "0 published, 1 unchanged"):
        found = run("fleet", "publish", manifest, *FLEET)
        first, *_, last = found.out.splitlines()
        assert found.status == 0
        assert first.startswith("warning about tenant-9: model/config.pbtxt:6:20: warning CT235: ")
        assert last == end


def test_a_recheck_checks_what_has_not_changed(account: Account, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"checked-{number}" for number in range(3)]
    manifest = account.manifest(*names)
    for file in manifest.parent.glob("tenants/checked-*/**/*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    checked: list[str] = []

    def noted(repository: ModelRepository, *arguments: Any) -> dict[str, Any]:
        checked.append(repository.name)
        return check_repository(repository, *arguments)

    monkeypatch.setattr(verdicts, "check_repository", noted)
    counts = []
    for arguments in ((), (), ("--recheck",)):
        checked.clear()
        assert run("fleet", "publish", manifest, *arguments, *FLEET).status == 0
        counts.append(list(checked))
    assert counts == [names, [], names]


def test_checks_and_uploads_show_the_time_left(account: Account, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    class Screen(Progress):
        def say(self, text: str) -> None:
            texts.append(text)

    monkeypatch.setattr(publishing, "working", lambda _: nullcontext(Screen()))
    assert run("fleet", "publish", account.manifest("watched"), *FLEET).status == 0
    assert [text for text in texts if "repositories" in text or "archives" in text] == [
        "checked 0 of 1 repositories",
        "checked 1 of 1 repositories",
        "uploaded 0 of 1 archives",
        "uploaded 1 of 1 archives",
    ]


def test_a_rollback_that_must_fail_starts_no_execution(messages: Messages, account: Account, run: Run) -> None:
    """A failed execution sets off the alarm of the publisher."""
    manifest = account.manifest("tenant-8")
    first = account.target("tenant-8")
    assert run("fleet", "publish", manifest, *FLEET).status == 0
    started = len(account.executions())
    found = run("fleet", "rollback", "tenant-8", *FLEET)
    assert found.status == 2
    messages.record("cdk-triton fleet", found.said)

    account.write("tenant-8", "# second")
    assert run("fleet", "publish", manifest, *FLEET).status == 0
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    account.s3.delete_object(Bucket=account.bucket, Key=served + first)
    found = run("fleet", "rollback", "tenant-8", *FLEET)
    assert found.status == 2
    messages.record("cdk-triton fleet", found.said)
    assert len(account.executions()) == started + 1
    assert account.current()["tenant-8"] == account.target("tenant-8")


def test_a_rollback_of_an_ensemble_whose_archives_were_deleted_names_those_that_are_there(
    messages: Messages, account: Account, run: Run
) -> None:
    versions = []
    for content in ("# first", "# second"):
        tenants = account.write("departed", content)
        (tenants.parent / "departed.csv").write_text("ensemble,repository\ndeparted,tenants/departed\n")
        assert run("fleet", "publish", tenants.parent / "departed.csv", *FLEET).status == 0
        versions.append(account.target("departed"))
    first, second = versions
    assert run("fleet", "unpublish", "departed", *FLEET).status == 0
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)

    account.s3.delete_object(Bucket=account.bucket, Key=served + second)  # as gc does after 30 days
    for arguments in ((), ("--to", second)):
        found = run("fleet", "rollback", "departed", *arguments, *FLEET)
        assert found.status != 0
        assert second in found.said
        assert f"it has {first}" in found.said
        messages.record("cdk-triton fleet rollback", found.said)

    account.s3.delete_object(Bucket=account.bucket, Key=served + first)
    for arguments in ((), ("--to", first)):
        found = run("fleet", "rollback", "departed", *arguments, *FLEET)
        assert found.status != 0
        messages.record("cdk-triton fleet rollback", found.said)
    assert account.current()["departed"] is None


def test_a_forgotten_ensemble_has_no_versions_and_can_be_published_again(
    messages: Messages, account: Account, run: Run
) -> None:
    tenants = account.write("left", "# first")
    (tenants.parent / "left.csv").write_text("ensemble,repository\nleft,tenants/left\n")
    publish = ("fleet", "publish", tenants.parent / "left.csv", *FLEET)
    forget = ("fleet", "unpublish", "left", "--forget", *FLEET)
    assert run(*publish).status == 0
    assert run("fleet", "unpublish", "left", *FLEET).status == 0
    assert run(*forget).out == "left is unpublished, and the catalogue does not list its versions any more\n"
    started = len(account.executions())

    assert run(*forget).out == "left was unpublished already\n"
    assert [line.split()[0] for line in run("fleet", "list", "left", *FLEET).out.splitlines()[1:]] == ["(unpublished)"]
    found = run("fleet", "rollback", "left", *FLEET)
    assert found.status == 2
    messages.record("cdk-triton fleet rollback", found.said)
    assert len(account.executions()) == started

    assert run(*publish).status == 0
    assert account.current()["left"] == account.target("left")


UNUSABLE = {
    "a stack that is not there": ("list", "--fleet", "Nothing/Fleet"),
    "no path": ("list", "--fleet", "Serving"),
    "another path": ("list", "--fleet", "Serving/Flee"),
    "an ensemble that was never published": ("rollback", "tenant-77", *FLEET),
    "a version that is not there": ("rollback", "tenant-7", "--to", "tenant-7-0.tar.gz", *FLEET),
    "an execution that is not there": ("publish", "--attach", "nothing", *FLEET),
    "neither manifest nor execution": ("publish", *FLEET),
    "everything for the same platform": ("publish", "--all", *FLEET),
    "everything, checked again": ("publish", "--all", "--platform", "25.09/ml.g5.xlarge", "--recheck", *FLEET),
    "an execution, checked again": ("publish", "--attach", "nothing", "--recheck", *FLEET),
    "everything and a manifest": ("publish", "tenants", "--all", "--platform", "25.09/ml.g5.xlarge", *FLEET),
}


@pytest.mark.parametrize("arguments", UNUSABLE.values(), ids=UNUSABLE)
def test_arguments_that_lead_nowhere_are_usage_errors(
    messages: Messages, account: Account, run: Run, arguments: tuple[str, ...]
) -> None:
    if "--to" in arguments:
        assert run("fleet", "publish", account.manifest("tenant-7"), *FLEET).status == 0
    found = run("fleet", *arguments)
    assert found.status == 2
    messages.record("cdk-triton fleet", found.said)
