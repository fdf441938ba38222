"""A command that publishes is interrupted, killed or cut off, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from tests.cli.conftest import PROGRAM, run
from tests.end_to_end.faults import GROUPS
from tests.end_to_end.publisher_account import FLEET, Account, Run, account, deployed

from cdk_triton.cli.fleet import place, publishing, uploads
from cdk_triton.cli.fleet.execution import start
from cdk_triton.cli.fleet.map_progress import MapProgress
from cdk_triton.cli.fleet.uploads import upload
from cdk_triton.errors import StoreError
from cdk_triton_local.lambdas import LambdaRuntime

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["account", "deployed", "run"]


def test_the_next_command_uploads_only_what_is_missing_or_has_changed(
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

    account.write(names[-1], "# corrected")
    monkeypatch.setattr(publishing, "upload", recorded)
    found = run("fleet", "publish", manifest, *FLEET)
    assert found.status == 0
    assert found.out.splitlines()[-3:] == [
        "published, packed now: tenant-15, tenant-16",
        "published, uploaded by an earlier command: tenant-14",
        "3 published",
    ]
    first, second = uploaded
    assert (len(first), len(second), len(second & first)) == (3, 2, 1)
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


def test_a_command_that_gets_sigterm_during_its_uploads_reports_that_it_has_started_nothing(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = account.manifest("terminated")
    started = len(account.executions())

    def endless(*_: Any, progress: Callable[[int, int], object]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            progress(0, 1)
            threading.Event().wait(0.01)

    monkeypatch.setattr(uploads, "write_archive", endless)
    found = run("fleet", "publish", manifest, *FLEET)
    assert found.status == 128 + signal.SIGTERM
    assert "this command has not started an execution" in found.said
    assert len(account.executions()) == started


def test_a_command_that_is_interrupted_while_it_starts_an_execution_leads_to_it(
    messages: Messages, account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = account.manifest("tenant-12")
    started, is_followed, invoke = len(account.executions()), threading.Event(), LambdaRuntime.invoke

    def held(runtime: LambdaRuntime, function: str, event: Any) -> Any:
        assert is_followed.wait(60)  # or the execution might end before the second command
        return invoke(runtime, function, event)

    def interrupted(*arguments: Any) -> None:
        start(*arguments)
        raise KeyboardInterrupt

    def followed(*arguments: Any) -> str:
        execution = start(*arguments)
        is_followed.set()
        return execution

    monkeypatch.setattr(LambdaRuntime, "invoke", held)
    monkeypatch.setattr(publishing, "start", interrupted)
    found = run("fleet", "publish", manifest, *FLEET)
    assert found.status == 130
    messages.record("cdk-triton fleet", found.said)

    monkeypatch.setattr(publishing, "start", followed)
    assert run("fleet", "publish", manifest, *FLEET).status == 0
    assert len(account.executions()) == started + 1
    assert account.current()["tenant-12"] == account.target("tenant-12")


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


@pytest.mark.slow
@pytest.mark.parametrize("faults", GROUPS, ids=" ".join)
def test_the_faults_of_aws_are_waited_for(account: Account, run: Run, faults: list[str]) -> None:
    ensemble = f"under-{faults[0]}"
    manifest, before = account.manifest(ensemble), len(account.executions())
    injected = account.aws.inject(*faults)

    found = run("fleet", "publish", manifest, *FLEET)

    account.aws.inject()
    assert (found.status, found.out.splitlines()[-1]) == (0, "1 published"), found.err
    assert account.current()[ensemble] == account.target(ensemble)
    assert len(account.executions()) == before + 1
    assert injected.injected
