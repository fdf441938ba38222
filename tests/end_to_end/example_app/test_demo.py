"""`make demo`: what it prints, and that nothing of it stays."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def demo(model_assets: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The running demo, whose temporary files are below `tmp_path`."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "CI": "true",
    }
    process = subprocess.Popen(
        [sys.executable, model_assets.parent / "examples/demo"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def left_running(directory: Path) -> list[str]:
    """Command lines of the processes that have something to do with a directory."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if str(directory) in command and process.info["pid"] != os.getpid():
            found.append(command)
    return found


@pytest.mark.timeout(1500)
def test_it_shows_two_ensembles_says_what_was_real_and_leaves_nothing(
    demo: subprocess.Popen[str], tmp_path: Path
) -> None:
    printed, _ = demo.communicate(timeout=1200)
    assert demo.returncode == 0, printed
    # The first deployment builds, the same again does not, one changed recipe does once, a broken network fails.
    builds = re.findall(r"was started for sentence_embedding; it ended with (\w+)\.|(Builds that .* none)\.", printed)
    assert ["".join(each) for each in builds] == [
        "SUCCEEDED",
        "Builds that were started: none",
        "SUCCEEDED",
        "FAILED",
    ]
    assert re.search(r"\bsentence_embedding [^:]*: [^:]*\bbert\b", re.sub(r"\s+", " ", printed))
    assert re.search(r"The endpoint goes on: text-\w{10}\.tar\.gz answers, cosine 0\.7553\.", printed)
    assert "cosine of the two: 0.7553 (published: 0.7553)" in printed
    assert re.search(r"^text +text-\w{10}\.tar\.gz +binary, [\d.]+ kB +\d+ ms +[\d.]+ ms", printed, re.MULTILINE)
    assert re.search(r"^image +image-\w{10}\.tar\.gz +JSON, [\d.]+ kB +\d+ ms +[\d.]+ ms", printed, re.MULTILINE)
    assert re.search(r"0\.\d{4}  Egyptian cat", printed)
    assert "Real\n" in printed
    assert "Stand-ins\n" in printed
    assert left_running(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("cdk-triton")] == []
    # ONNX Runtime would keep what it reports to its maker in a directory `Microsoft`.
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["cdk-triton"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_in_the_middle_of_the_deployment_leaves_nothing(
    demo: subprocess.Popen[str], number: signal.Signals, tmp_path: Path
) -> None:
    assert demo.stdout is not None
    for line in demo.stdout:
        if "CREATE_IN_PROGRESS" in line:
            break
    # A terminal's Ctrl-C goes to every process of the session, a `kill` to the one that is named.
    (os.killpg if number is signal.SIGINT else os.kill)(demo.pid, number)
    printed, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, printed
    assert "Interrupted. Everything that the demo started has been stopped." in printed
    assert "Traceback" not in printed
    assert left_running(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("cdk-triton")] == []
