"""How long the store's handler takes to import in a new Lambda function, without boto3.

boto3 is the largest part of a cold start, and this project cannot change it. So the benchmark imports it first and does
not count it. Python reads the handler's own modules as in Lambda: from a read-only directory without byte code, so that
it compiles each module again. The benchmark counts the time of the processor, because an import waits for nothing else.
It prints the time of the wall clock too, which also contains the work of other programs on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _figures import progress, report

RUNS = 9
HANDLERS = Path(__file__).resolve().parents[1] / "lambda"

IMPORT = """
import json, sys, time
import boto3, botocore.config, botocore.exceptions
sys.path.insert(0, sys.argv[1])
wall, start = time.perf_counter(), time.process_time()
import artifacts
print(json.dumps([time.process_time() - start, time.perf_counter() - wall]))
"""


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        root = Path(directory) / "function"
        shutil.copytree(HANDLERS, root, ignore=shutil.ignore_patterns("__pycache__"))
        progress(f"cold_import: {RUNS} new processes ...")
        runs = [cold_import(root) for _ in range(RUNS)]
        processor, wall = (statistics.median(each) * 1000 for each in zip(*runs, strict=True))
        progress(f"cold_import: medians {processor:.1f} ms of the processor, {wall:.1f} ms on the wall")
        report("cold_import.handler", processor, "ms of the processor", at_most=100)


def cold_import(root: Path) -> tuple[float, float]:
    """Seconds of the import in a new interpreter: of the processor, and on the wall."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", IMPORT, str(root)]
    ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    processor, wall = json.loads(ran.stdout)
    return float(processor), float(wall)


if __name__ == "__main__":
    main()
