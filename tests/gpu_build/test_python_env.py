"""A Python with pinned packages: this one if it has them, else an environment of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import build_program as build_program
from build_program.parity import Reference
from build_program.python_env import pinned_python
from build_program.step import BuildError

if TYPE_CHECKING:
    from golden_messages import Messages


REQUIREMENTS = Path(build_program.__file__).parent / "requirements"
HASH = f"--hash=sha256:{'0' * 64}"

# The words of pip, of two runs of its own.
UNREACHED = (
    "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken "
    "by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7fce24c23cd0>: Failed to "
    "establish a new connection: [Errno -2] Name or service not known')': /simple/numpy/",
    "ERROR: No matching distribution found for numpy==0.1",
)
MISMATCH = (
    "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package "
    "versions, please update the hashes.",
)


class Recorded:
    """A work that runs nothing."""

    def __init__(self, scratch: Path, *, fails: str = "nothing", log: Sequence[str] = UNREACHED) -> None:
        self.shared = scratch
        self.commands: list[list[str]] = []
        self._fails = fails
        self._log = log

    def run(self, command: list[str], *, what: str) -> list[str]:
        self.commands.append(command)
        if what.startswith(self._fails):
            raise BuildError(f"the step: {what} failed", self._log)
        if "venv" in command:
            Path(command[-1]).mkdir()
        return []


def test_an_interpreter_that_has_the_pinned_version_is_used_as_it_is(tmp_path: Path) -> None:
    work: Any = Recorded(tmp_path)
    requirements = f"numpy=={metadata.version('numpy')} \\\n    {HASH}\n"

    assert pinned_python(work, requirements, name="numpy", present="numpy") == Path(sys.executable)
    assert work.commands == []


def test_another_one_gets_exactly_what_is_pinned(messages: Messages, tmp_path: Path) -> None:
    work: Any = Recorded(tmp_path, fails="installing")

    with messages.raises(BuildError) as raised:
        pinned_python(work, f"numpy==0.1 \\\n    {HASH}\n", name="ONNX Runtime", present="numpy")

    assert raised.value.log == UNREACHED
    venv, pip = work.commands
    assert venv[:4] == [sys.executable, "-m", "venv", "--without-pip"]
    assert Path(venv[4]).name.startswith("python-onnx-runtime-")
    assert {"--require-hashes", "--no-deps", "--only-binary", "--target"} <= set(pip)


def test_a_package_with_another_hash_needs_no_network(messages: Messages, tmp_path: Path) -> None:
    work: Any = Recorded(tmp_path, fails="installing", log=MISMATCH)

    with messages.raises(BuildError) as raised:
        pinned_python(work, f"numpy==0.1 \\\n    {HASH}\n", name="the export")

    assert "network" not in str(raised.value)
    assert raised.value.log == MISMATCH


@pytest.mark.parametrize("log", [UNREACHED, MISMATCH], ids=["no package index", "another hash"])
def test_a_comparison_that_cannot_be_installed_can_be_switched_off(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Sequence[str]
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "0.1")
    work: Any = Recorded(tmp_path, fails="installing", log=log)

    with messages.raises(BuildError):
        Reference(work, "the plan of tiny", tmp_path / "tiny.onnx")


def test_an_environment_is_made_once_in_a_job(tmp_path: Path) -> None:
    work: Any = Recorded(tmp_path)
    requirements = f"numpy==0.1 \\\n    {HASH}\n"

    first = pinned_python(work, requirements, name="ONNX Runtime")
    made = len(work.commands)

    assert pinned_python(work, requirements, name="ONNX Runtime") == first
    assert len(work.commands) == made
    assert pinned_python(work, requirements.replace("0.1", "0.2"), name="ONNX Runtime") != first


@pytest.mark.parametrize("file", sorted(REQUIREMENTS.glob("*.txt")), ids=lambda file: file.stem)
def test_pinned_sets_are_complete_and_name_no_registry(file: Path) -> None:
    text = file.read_text()
    packages = re.split(r"(?m)^(?=\w)", text)[1:]

    assert "://" not in text
    for package in packages:
        assert re.match(r"[\w.-]+==[\w.]+ (; .*)?\\\n", package), package
        assert package.count("--hash=sha256:") >= 1
    assert {"onnxruntime", "numpy"} <= {package.partition("==")[0] for package in packages}


def test_there_is_a_set_for_each_python_of_tritons_images_and_for_this_one() -> None:
    # 3.8 up to 23.04, 3.10 up to 24.10, 3.12 since (server: build.py); 3.11 runs builds here.
    assert {file.stem.partition("-")[2] for file in REQUIREMENTS.glob("onnxruntime-*")} == {
        "3.8",
        "3.10",
        "3.11",
        "3.12",
    }
