"""Children die with their parent, however it dies, and take their own children along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local import process

if TYPE_CHECKING:
    from golden_messages import Messages

# A child that starts a grandchild in a session of its own, and says both process ids.
FAMILY = ["sh", "-c", "setsid sleep 300 & echo $$ $!; wait"]


def gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids)


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def start(*command: str, **arguments: object) -> process.Child:
    return process.start(command, environment=process.child_environment(), **arguments)  # type: ignore[arg-type]


def family_of(child: process.Child) -> list[int]:
    assert child.stdout is not None
    return [child.pid, *map(int, child.stdout.readline().split())]


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143)])
def test_the_status_is_the_one_a_shell_would_show(script: str, status: int) -> None:
    child = start("sh", "-c", script)
    assert child.wait(10) == status
    assert child.poll() == status


def test_what_a_child_leaves_behind_is_killed_when_it_ends() -> None:
    child = start("sh", "-c", "setsid sleep 300 & echo $!", output=subprocess.PIPE)
    assert child.stdout is not None
    left_behind = int(child.stdout.readline())
    child.stdout.close()
    assert child.wait(10) == 0
    assert gone([left_behind])


def test_files_that_a_killed_child_leaves_behind_are_removed(tmp_path: Path) -> None:
    names = ("mine-1", "mine-2", "other")
    child = start("touch", *(str(tmp_path / name) for name in names), leftovers=str(tmp_path / "mine-*"))
    assert child.wait(10) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_stop_asks_first() -> None:
    child = start("sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done", output=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stop(grace=10) == 9
    assert child.stop() == 9, "stopping what has ended is no error"


def test_stop_kills_what_does_not_listen_and_says_so() -> None:
    child = start("sh", "-c", "trap '' TERM; setsid sleep 300 & echo $$ $!; wait; wait", output=subprocess.PIPE)
    pids = family_of(child)
    assert child.stop(grace=0.1) == 137
    assert gone(pids)
    assert child.stdout is not None
    child.stdout.close()


def test_waiting_for_too_long_is_an_error(messages: Messages) -> None:
    child = start("sleep", "300")
    with pytest.raises(TimeoutError) as caught:
        child.wait(0.05)
    messages.record("TimeoutError", str(caught.value).replace(str(child.pid), "PID"))
    assert child.kill() == 137


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_dead_parent_leaves_no_child_and_no_grandchild(how: signal.Signals) -> None:
    program = textwrap.dedent(f"""
        import subprocess, sys
        from cdk_triton_local import process
        child = process.start({FAMILY!r}, environment=process.child_environment(), output=subprocess.PIPE)
        print(child.pid, child.stdout.readline().decode(), flush=True)
        sys.stdin.read()
    """)
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert not gone(pids[:1])
        parent.send_signal(how)
        assert eventually(lambda: gone(pids)), [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]


def test_a_killed_guardian_takes_the_child_along() -> None:
    child = start("sleep", "300")
    assert eventually(lambda: psutil.Process(child.pid).children() != [])
    [sleeper] = psutil.Process(child.pid).children()
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(10) == 137
    assert eventually(lambda: gone([sleeper.pid]))


def test_the_end_of_the_thread_that_started_a_child_is_not_its_end() -> None:
    children: list[process.Child] = []
    thread = threading.Thread(target=lambda: children.append(start(*FAMILY, output=subprocess.PIPE)))
    thread.start()
    thread.join()
    [child] = children
    assert not gone(family_of(child))
    assert child.poll() is None
    assert child.stdout is not None
    child.stdout.close()
    child.kill()


def test_a_child_sees_only_what_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_LIBRARY_PATH", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "secret")
    environment = process.child_environment({"OWN": "value"})
    assert set(environment) <= {*process.INHERITED_VARIABLES, "OWN"}
    child = process.start(["env"], environment=environment, output=subprocess.PIPE)
    assert child.stdout is not None
    seen = dict(line.split("=", 1) for line in child.stdout.read().decode().splitlines())
    child.stdout.close()
    assert child.wait(10) == 0
    assert seen["OWN"] == "value"
    assert "secret" not in seen.values()


def test_a_program_that_does_not_exist_is_named(messages: Messages) -> None:
    with messages.raises(LocalError) as caught:
        start("no-such-program")
    assert "'no-such-program'" in str(caught.value)


def test_a_directory_that_does_not_exist_is_named(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(LocalError) as caught:
        start("true", directory=tmp_path / "nowhere")
    assert str(tmp_path / "nowhere") in str(caught.value)
