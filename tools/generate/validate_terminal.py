"""Draws a terminal with the output of `cdk-triton validate`: docs/images/validate.svg, from a run of the command."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.generate import Files, Generator
from tools.generate._terminal import terminal
from tools.generate.readme_transcript import COLUMNS, COMMAND, on_a_terminal, write_repository

WORDS = (
    "cdk-triton validate reads a repository with an ensemble. It prints the file, the line and the column of error "
    "CT332, the line itself with a mark below the wrong name, and the correction: the step maps the input 'picture', "
    "but the model has only the input 'IMAGE'."
)


def _files() -> Files:
    with tempfile.TemporaryDirectory() as directory:
        write_repository(Path(directory))
        shown = f"\033[1m$ {' '.join(COMMAND)}\033[0m\n{on_a_terminal(Path(directory), coloured=True)}"
    return {"docs/images/validate.svg": terminal(shown, "cdk-triton validate", WORDS, COLUMNS)}


GENERATOR = Generator(_files)
