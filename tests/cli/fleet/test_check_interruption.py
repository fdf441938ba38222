"""The end of a command whose processes check repositories: it ends at once, and none of its processes stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

SECONDS = 60
BYTES = 3 << 30
PROGRAM = """
import sys
from pathlib import Path
from cdk_triton import ServingPlatform
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.cli.fleet.manifest import read_manifest
from cdk_triton.cli.fleet.verdicts import judge
from cdk_triton.triton import ContainerEnvironment

if __name__ == "__main__":
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
    publisher = PublisherDescription("Fleet", "fleet", platform, ContainerEnvironment(), 8)
    show = lambda done: print(done, flush=True)
    judge(read_manifest(Path(sys.argv[1])), publisher, progress=show)
"""


def press(process: subprocess.Popen[bytes], times: int = 1) -> None:
    """Press Ctrl-C: a terminal sends the signal to all processes of the command."""
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.2)


ENDS: dict[str, Callable[[subprocess.Popen[bytes]], object]] = {
    "Ctrl-C": press,
    "Ctrl-C twice": partial(press, times=2),
    "SIGTERM, as from a CI": subprocess.Popen.terminate,
    "SIGKILL": subprocess.Popen.kill,
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_no_check_outlives_its_command(tmp_path: Path, end: Callable[[subprocess.Popen[bytes]], object]) -> None:
    for number in range(17):  # the last one of the first process is small, so that its progress is shown
        write(tmp_path / "tenants" / f"tenant-{number:02}", 1 if number < 8 else BYTES)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "tenants")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert [process.stdout.readline() for _ in range(2)] == [b"0\n", b"1\n"]
            end(process)
            assert process.wait(SECONDS) != 0
            wait_for_end(process.pid)
        finally:
            if is_running(process.pid):
                os.killpg(process.pid, signal.SIGKILL)


def write(repository: Path, size: int) -> None:
    """Write a repository with a sparse file, which takes long to hash."""
    (repository / "model" / "1").mkdir(parents=True)
    (repository / "model" / "config.pbtxt").write_text('backend: "python"')
    (repository / "model" / "1" / "model.py").write_text("class TritonPythonModel: ...")
    with (repository / "model" / "1" / "weights.bin").open("wb") as file:
        file.truncate(size)


def wait_for_end(group: int) -> None:
    """Wait until no process of a group runs."""
    deadline = time.monotonic() + SECONDS
    while is_running(group):
        assert time.monotonic() < deadline, "a process of the command is still there"
        time.sleep(0.05)


def is_running(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
