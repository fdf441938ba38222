"""Running `cdk-triton`, and small repositories to run it on."""

from __future__ import annotations

import functools
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

from cdk_triton.cli import main

# Each call of the command derives all its options again, which takes 0.05 s.
vars(typer.main)["get_command"] = functools.cache(typer.main.get_command)

PROGRAM = Path(sysconfig.get_path("scripts")) / "cdk-triton"

MODEL = """
backend: "python"
max_batch_size: 8
input [{name: "x" data_type: TYPE_FP32 dims: [4]}]
output [{name: "y" data_type: TYPE_FP32 dims: [4]}]
"""

PYTHON_MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--inputs", type=int, metavar="N", help="how many config.pbtxt files of any bytes are validated")


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Standard error as one line, and of a usage error what is in its frame."""
        framed = [line.strip("│ ") for line in self.err.splitlines() if line.startswith("│")]
        return " ".join(" ".join(framed or [self.err]).split())


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """The entry point of the installed command, in this process."""

    def call(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["cdk-triton", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capfd.readouterr()
        return Outcome(int(exit_.value.code or 0), out, err)

    return call


@pytest.fixture
def program() -> Callable[..., Outcome]:
    """The installed command itself."""

    def call(*arguments: str | Path, cwd: Path | None = None) -> Outcome:
        done = subprocess.run([PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A model repository in which nothing is wrong."""
    directory = tmp_path / "models"
    (directory / "echo" / "1").mkdir(parents=True)
    (directory / "echo" / "config.pbtxt").write_text(MODEL)
    (directory / "echo" / "1" / "model.py").write_text(PYTHON_MODEL)
    return directory
