"""The real tritonserver as judge of the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ModelRepository
from cdk_triton_local.triton.server_files import ServerFiles, arrange_server_files
from judging.comparison import Tally
from judging.server import Judge, NoServerError, null_server_files, other_server_files

TABLES = pytest.StashKey[dict[str, Tally]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--repositories", type=int, metavar="N", help="how many generated repositories the server judges")
    parser.addoption("--server", type=Path, metavar="FOLDER", help="a server of your own as judge: /opt/tritonserver")
    parser.addoption("--release", metavar="YY.MM", help="the release of that server, such as 26.05")


def pytest_configure(config: pytest.Config) -> None:
    """Reject a server that cannot judge before any test runs."""
    folder, release = config.getoption("server", default=None), config.getoption("release", default=None)
    if (folder is None) is not (release is None):
        raise pytest.UsageError("--server and --release belong together: name the server's folder and its release")
    if folder is None:
        return
    try:
        with TemporaryDirectory() as directory:
            other_server_files(folder, release, Path(directory))
    except (NoServerError, ConfigurationError) as error:
        raise pytest.UsageError(str(error)) from None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for test, tally in config.stash.get(TABLES, {}).items():
        terminalreporter.section(test)
        for line in tally.lines():
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def server_files(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> ServerFiles:
    """A real server whose backends do nothing: that of the option `--server`, or our own."""
    folder: Path | None = pytestconfig.getoption("server", default=None)
    if folder is not None:
        return other_server_files(folder, pytestconfig.getoption("release"), tmp_path_factory.mktemp("server"))
    packages = Path(str(pytest.importorskip("pytriton").__file__)).parents[1]
    return null_server_files(packages, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def judge(server_files: ServerFiles) -> Judge:
    """`judge(directory, models)`: does the server load these models of a repository?"""
    return Judge(server_files)


@pytest.fixture(scope="session")
def python_judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """A real server with NVIDIA's Python backend."""
    pytest.importorskip("pytriton")
    return Judge(arrange_server_files(tmp_path_factory.mktemp("server")))


@pytest.fixture
def refusal(judge: Judge) -> Callable[[ModelRepository], str | None]:
    """Start the server as a single-model container does, and return what it said if it did not load the entry model."""

    def ask(repository: ModelRepository) -> str | None:
        entry = repository.entry_model()
        assert entry is not None
        verdict = judge(repository.root, [entry.name])
        return None if verdict.loaded else verdict.said

    return ask


@pytest.fixture
def repositories(pytestconfig: pytest.Config) -> int | None:
    """How many repositories a test with generated ones takes; None: a fixed few."""
    count: int | None = pytestconfig.getoption("repositories", default=None)
    return count


@pytest.fixture
def table(request: pytest.FixtureRequest, repositories: int | None) -> Iterator[Tally]:
    """Counts that are printed at the end, where somebody asked for a number of repositories."""
    tally = Tally()
    yield tally
    if repositories is not None:
        request.config.stash.setdefault(TABLES, {})[request.node.name] = tally
