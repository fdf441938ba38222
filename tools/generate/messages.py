"""The texts of findings and errors: tests/messages.golden, which tests compare with what they reach."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.generate import ROOT, Files, GenerateError, Generator

PATH = "tests/messages.golden"


def _files() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "messages.golden"
        shutil.copy(ROOT / PATH, copy)
        pytest = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
        command = [*pytest, "--rewrite-messages", f"--messages-file={copy}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise GenerateError(f"the tests that record the messages fail:\n{done.stdout}{done.stderr}")
        return {PATH: copy.read_bytes()}


GENERATOR = Generator(_files, tests=("tests",))
