"""What several folders of tests share."""

import functools
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore.session
import hypothesis
import pytest

from costs import UnmarkedSlowTests, expensive_first, files_of_one_app, is_left_out, mark_by_folder

pytest_plugins = ["golden_messages", "pytester"]

CHECKOUT = Path(__file__).parents[1]

# ONNX Runtime's wheel and the CDK CLI report usage to their makers otherwise, the CLI from a second Node.js process.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["CDK_DISABLE_CLI_TELEMETRY"] = "1"
# The `cdk` command is 16 MB of JavaScript, and compiling it takes a quarter of the time of each of its processes.
os.environ.setdefault("NODE_COMPILE_CACHE", str(CHECKOUT / ".pytest_cache/node"))
# A program started in the background of a shell ignores SIGINT and hands that on; the tests of Ctrl-C need the default.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Each session of botocore reads the tables of AWS's services again, and each test that uses moto begins a new session.
vars(botocore.session)["create_loader"] = functools.cache(botocore.session.create_loader)

# How long examples take depends on what else the machine does.
hypothesis.settings.register_profile("tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    """Report slow tests once: in the process that prints, not in the workers of xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(UnmarkedSlowTests())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `-m` leaves out by folder."""
    return is_left_out(collection_path, config.getoption("-m")) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they cost, and begin with the expensive ones."""
    mark_by_folder(items)
    expensive_first(items)


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests among the workers, as `--dist loadfile` asks."""
    return files_of_one_app(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection() -> None:
    """Keep the garbage collector from walking over the collected tests again and again, a quarter of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Go on with what the tests themselves make."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _no_session_of_other_tests() -> None:
    """Make boto3 forget its default session, which keeps the credentials of the first test that used it."""
    if "boto3" in sys.modules:
        vars(sys.modules["boto3"])["DEFAULT_SESSION"] = None


@pytest.fixture(scope="session")
def model_assets() -> Path:
    """The directory `model_assets` with all weights in place: a second if they are, a download if not."""
    prepare = [sys.executable, str(CHECKOUT / "model_assets/prepare.py")]
    done = subprocess.run(prepare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return CHECKOUT / "model_assets"
