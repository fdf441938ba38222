"""`cdk-triton local status` with endpoints, and errors of a shell that is not led to a local AWS that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton_local import daemon as local_daemon
from cdk_triton_local.daemon import DaemonStatus

if TYPE_CHECKING:
    from tests.cli.echo import World

    from golden_messages import Messages

pytestmark = pytest.mark.slow  # the local AWS takes seconds to start


@pytest.fixture
def running(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The state file of `local up`, whose process this one is."""
    status = DaemonStatus(pid=42, started=1, url=world.aws.url, environment=world.aws.environment())
    monkeypatch.setattr(local_daemon.Daemon, "status", lambda self: status)
    return world


def test_status_lists_endpoints_and_target_models_beside_the_variables(run: Any, running: World) -> None:
    found = run("local", "status")

    assert found.status == 0
    assert all(line.startswith(("export ", "unset ")) for line in found.out.splitlines())
    lines = [" ".join(line.split()) for line in found.err.splitlines()]
    assert "fleet InService multi-model --target-model image (image-0123456789.tar.gz)" in lines


def test_status_is_also_json(run: Any, running: World) -> None:
    found = json.loads(run("local", "status", "--format", "json").out)

    assert found["url"] == running.aws.url
    assert found["environment"]["AWS_ENDPOINT_URL"] == running.aws.url
    assert [each["endpoint"] for each in found["endpoints"]] == ["fleet", "image", "queue"]


def test_a_shell_without_variables_is_led_to_the_local_aws_of_the_directory(
    messages: Messages, run: Any, running: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    status = DaemonStatus(pid=42, started=1, url=running.aws.url, environment={})
    monkeypatch.setattr(local_daemon.Daemon, "status", lambda self: status)
    for name in running.aws.environment():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    monkeypatch.setattr("sys.argv", ["cdk-triton"])
    found = run("invoke", "image", "--random")

    assert found.status == 1
    assert "a local AWS runs in ./.cdk-triton/local: eval" in found.said
    messages.record("cdk-triton invoke", found.said)
