"""What several folders of tests share."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

CHECKOUT = Path(__file__).parents[1]

SHARED = (
    "cli/artifacts",
    "end_to_end/example_app",
    "local/triton",
    "packaging",
)
"""Folders whose tests share something that takes long to make: one process runs all of them."""

# ONNX Runtime's wheel reports usage to its maker otherwise.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# A program started in the background of a shell ignores SIGINT and hands that on; the tests of Ctrl-C need the default.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def model_assets() -> Path:
    """The directory `model_assets` with all weights in place; takes 0.2 s when they are, and one download when not."""
    prepare = [sys.executable, str(CHECKOUT / "model_assets/prepare.py")]
    done = subprocess.run(prepare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return CHECKOUT / "model_assets"


class BySharedWork(LoadScopeScheduling):  # type: ignore[misc]  # xdist's classes have no types
    """Gives a process what shares fixtures that take long: a file, or one of the `SHARED` folders."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in SHARED if f"/{folder}/" in file), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BySharedWork:
    """How several processes share the work (`make test`)."""
    return BySharedWork(config, log)
