"""`make demo`: what it prints, and that nothing of it stays."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

CHECKOUT = Path(__file__).parents[3]
pytestmark = pytest.mark.long


Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(model_assets: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a module of the examples, whose temporary files are below `tmp_path`."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "CI": "true",
        "CDK_VALIDATION": "false",  # it takes most of the time of a synthesis; tests/hosting has it
    }
    started: list[subprocess.Popen[str]] = []

    def run(module: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=model_assets.parent,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def demo(start: Start) -> subprocess.Popen[str]:
    """The running demo."""
    return start("examples.demo")


def left_running(directory: Path) -> list[str]:
    """Command lines of the processes that have something to do with a directory."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if str(directory) in command and process.info["pid"] != os.getpid():
            found.append(command)
    return found


def assert_nothing_is_left(directory: Path) -> None:
    assert left_running(directory) == []
    assert [path.name for path in directory.iterdir() if path.name.startswith(("cdk-triton", "python_env"))] == []


@pytest.mark.timeout(1500)
def test_it_shows_two_ensembles_says_what_was_real_and_leaves_nothing(
    demo: subprocess.Popen[str], tmp_path: Path
) -> None:
    printed, _ = demo.communicate(timeout=1200)
    assert demo.returncode == 0, printed
    lines = re.sub(r"\s+", " ", printed)
    # The first deployment builds, the same again does not, one changed recipe does once, two faults make it fail.
    jobs = re.findall(r"was started to build sentence_embedding.*?; it ended with (\w+)\.|(Jobs that .* none)\.", lines)
    assert ["".join(each) for each in jobs] == [
        "SUCCEEDED",
        "Jobs that were started: none",
        "SUCCEEDED",
        "FAILED",
        "FAILED",
    ]
    assert re.search(r"golden/sentences\.json: the output 'finaloutput' has the cosine 0\.\d+ with the expected", lines)
    assert re.search(r"'sentence_embedding' [^:]*: [^:]*\bbert\b", lines)
    assert re.search(r"The endpoint goes on: text-\w{10}\.tar\.gz answers, cosine 0\.7553\.", printed)
    assert "cosine of the two: 0.7553 (published: 0.7553)" in printed
    assert re.search(r"^text +text-\w{10}\.tar\.gz +binary, [\d.]+ kB +\d+ ms +[\d.]+ ms", printed, re.MULTILINE)
    assert re.search(r"^image +image-\w{10}\.tar\.gz +JSON, [\d.]+ kB +\d+ ms +[\d.]+ ms", printed, re.MULTILINE)
    assert re.search(r"0\.\d{4}  Egyptian cat", printed)
    last = printed.partition("Nothing is left running.")[2]
    assert "cosine of the two: 0.7553 (published: 0.7553)" in last
    assert "cdk-triton init" in last
    assert "CREATE_COMPLETE" not in printed
    assert "Real\n" in printed
    assert "Stand-ins\n" in printed
    assert_nothing_is_left(tmp_path)
    # ONNX Runtime would keep what it reports to its maker in a directory `Microsoft`.
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["cdk-triton"]


@pytest.mark.timeout(1500)
@pytest.mark.longest
def test_all_systems_are_deployed_answer_rightly_and_are_taken_down(start: Start, tmp_path: Path) -> None:
    reference = start("examples.reference_systems")
    printed, _ = reference.communicate(timeout=1200)
    assert reference.returncode == 0, printed
    stacks = (
        *("ImageClassification", "TwoEnsembles", "OnnxModels"),
        *("TensorRTTenants", "TextGeneration", "TextStreaming", "TreeModels"),
        *(("PyTorchNetwork",) if find_spec("torch") else ()),
    )
    table = printed.partition("==> Asking every system")[2].partition("\nReal")[0]
    assert all(re.search(rf"^{stack} .* \d+ ms +\d+ ms *$", table, re.MULTILINE) for stack in stacks)
    streamed = re.search(r"^TextStreaming .* (\d+) ms +(\d+) ms *$", table, re.MULTILINE)
    assert streamed is not None
    assert int(streamed[1]) < int(streamed[2])
    if sys.version_info < (3, 12):  # the image has 3.12
        assert re.search(r"in the build of text_generation, by its manifest: .*Python 3\.12", printed)
    assert all(f"{stack}: destroyed" in printed for stack in stacks)
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("number", "line"),
    [
        pytest.param(signal.SIGHUP, "CDKToolkit: AWS::", id="the end of the terminal in the deployment"),
        pytest.param(signal.SIGTERM, "CDKToolkit: AWS::", id="kill in the deployment"),
        pytest.param(signal.SIGINT, "Custom::TritonArtifact", id="Ctrl-C in the build"),
    ],
)
def test_an_interruption_in_the_middle_leaves_nothing(
    demo: subprocess.Popen[str], number: signal.Signals, line: str, tmp_path: Path
) -> None:
    assert demo.stdout is not None
    assert any(line in printed for printed in demo.stdout)
    # A terminal's Ctrl-C goes to every process of the session, a `kill` to the one that is named.
    (os.killpg if number is signal.SIGINT else os.kill)(demo.pid, number)
    printed, _ = demo.communicate(timeout=240)
    assert demo.returncode == 130, printed
    assert "Interrupted. Everything that the demo started has been stopped." in printed
    assert "Traceback" not in printed
    assert_nothing_is_left(tmp_path)
