"""What several folders of tests share."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the work (`make test`), say what belongs into one: a file, or a shared folder."""
    for item in items:
        place = item.path.relative_to(CHECKOUT / "tests").as_posix()
        group = next((folder for folder in SHARED if place.startswith(f"{folder}/")), place)
        item.add_marker(pytest.mark.xdist_group(group))
