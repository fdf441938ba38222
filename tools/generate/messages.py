"""The texts of findings and errors: tests/messages.golden, which tests compare with what they reach."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.generate import ROOT, Files, GenerateError, Generator

PATH = "tests/messages.golden"
_TEST = re.compile(r"^  (tests/[^:]+\.py)::", re.MULTILINE)


def _tests() -> tuple[str, ...]:
    """The files of the tests that record their texts. A new file is recorded once by hand: testing.md describes how."""
    return tuple(sorted(set(_TEST.findall((ROOT / PATH).read_text(encoding="utf-8")))))


def _files() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "messages.golden"
        shutil.copy(ROOT / PATH, copy)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "loadfile",
            "-p",
            "no:cacheprovider",
            "--rewrite-messages",
        ]
        done = subprocess.run(
            [*command, f"--messages-file={copy}", *_tests()], cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise GenerateError(f"the tests that record the messages fail:\n{done.stdout}{done.stderr}")
        return {PATH: copy.read_bytes()}


GENERATOR = Generator(_files, tests=_tests())
