"""Draws the estimate of docs/cost.md: docs/images/estimate.svg, by a run of `cdk-triton estimate --plot`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tools.generate import Files, GenerateError, Generator
from tools.generate._shapes import for_dark_pages

COMMAND = (
    *("cdk-triton", "estimate", "--requests-per-second", "40", "--shape", "mon-fri 9-17=100, else=5"),
    *("--price-per-hour", "1.5", "--instance-type", "ml.g5.2xlarge"),
    *("--policy", "min=1 max=8", "--policy", "min=1 max=8 safety_factor=0.8", "--policy", "min=5"),
)
SETTINGS = "svg.hashsalt: cdk-triton\nsvg.fonttype: none\npath.simplify_threshold: 1\n"
"""The settings of matplotlib: the same bytes in each run, and text that stays text."""


def _files() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        picture, settings = Path(folder, "estimate.svg"), Path(folder, "matplotlibrc")
        settings.write_text(SETTINGS, encoding="utf-8")
        environment = {**os.environ, "MATPLOTLIBRC": str(settings)}
        done = subprocess.run(
            [*COMMAND, "--plot", str(picture)], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise GenerateError(f"{' '.join(COMMAND)} fails: {done.stderr}")
        return {"docs/images/estimate.svg": for_dark_pages(picture.read_text(encoding="utf-8")).encode()}


GENERATOR = Generator(_files)
