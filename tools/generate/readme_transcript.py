"""The transcript in README.md: what `cdk-triton validate` prints for a small repository with one mistake."""

from __future__ import annotations

import os
import pty
import subprocess
import tempfile
from pathlib import Path

from tools.generate import ROOT, Files, Generator

PAGE = "README.md"
BEGIN = "<!-- begin: written by `make generate` -->\n"
END = "<!-- end -->\n"
COMMAND = ("cdk-triton", "validate", "models", "--platform", "26.05/ml.g5.2xlarge")
COLUMNS = 100

CLASSIFIER = """\
backend: "python"
max_batch_size: 8
input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
"""
MODEL = """\
class TritonPythonModel:
    def execute(self, requests):
        raise NotImplementedError
"""
PIPELINE = """\
platform: "ensemble"
max_batch_size: 8
input { name: "picture" data_type: TYPE_FP32 dims: 4 }
output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
ensemble_scheduling {
  step {
    model_name: "classifier"
    model_version: -1
    input_map { key: "picture" value: "picture" }
    output_map { key: "SCORES" value: "SCORES" }
  }
}
"""
FILES = {
    "classifier/config.pbtxt": CLASSIFIER,
    "classifier/1/model.py": MODEL,
    "pipeline/config.pbtxt": PIPELINE,
    "pipeline/1/.gitkeep": "",
}


def transcript() -> str:
    """Return what a terminal shows: the command and its output."""
    with tempfile.TemporaryDirectory() as directory:
        write_repository(Path(directory))
        return f"$ {' '.join(COMMAND)}\n{on_a_terminal(Path(directory))}"


def write_repository(directory: Path) -> None:
    """Write the repository with the mistake into `directory/models`."""
    for name, text in FILES.items():
        file = directory / "models" / name
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")


def on_a_terminal(directory: Path, *, coloured: bool = False) -> str:
    """Run the command where its output is a terminal, and return the text that it prints.

    Args:
        directory: the working directory of the command.
        coloured: whether the terminal has colours.
    """
    ours, theirs = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
    colours = {"TERM": "xterm-256color"} if coloured else {"NO_COLOR": "1"}
    environment = {**inherited, "COLUMNS": str(COLUMNS), **colours}
    with subprocess.Popen(COMMAND, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        shown = b"".join(iter(lambda: read(ours), b""))
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def read(terminal: int) -> bytes:
    """Return the next bytes of a terminal; none once every program has closed it."""
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux reports the closed other end as an input/output error
        return b""


def with_transcript(page: str) -> str:
    """Return the page with the transcript between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n```console\n{transcript()}```\n\n{END}{rest.split(END)[1]}"


def _files() -> Files:
    return {PAGE: with_transcript((ROOT / PAGE).read_text(encoding="utf-8")).encode()}


GENERATOR = Generator(_files)
