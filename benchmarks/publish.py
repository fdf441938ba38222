"""`cdk-triton fleet publish` of many ensembles, to a publisher on the local AWS.

Each ensemble has 1 MB of weights. The command runs in a process of its own, and the local AWS in this one, so that only
the command's processor time is counted. An object that is written again is a second version of it in the bucket, which
the benchmark counts. `--ensembles` makes another run; the local AWS keeps all objects in memory, 16 MB for an ensemble.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from _figures import progress, report
from cdk_triton import ServingPlatform
from cdk_triton.local.aws import LocalAws

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "doubles"))

from deployed_fleet import DeployedFleet  # noqa: E402

PROGRAM = Path(sysconfig.get_path("scripts")) / "cdk-triton"
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
WEIGHTS_BYTES = 1_000_000
LONG_AGO = (1_000_000_000, 1_000_000_000)
STAGED = 3
"""Objects of an execution below `staging/`, whatever it changes: the request, the items, and the results of the map."""

CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = "class TritonPythonModel:\n    def execute(self, requests): ...\n"


@dataclass(frozen=True)
class Run:
    """A run of the command: wall-clock and processor seconds, what it printed, and what was written meanwhile."""

    seconds: float
    processor_seconds: float
    last_line: str
    writes: int
    executions: int


def main(count: int) -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        progress(f"publish: writing {count} repositories ...")
        tenants = work / "tenants"
        for number in range(count):
            write_repository(tenants / f"tenant-{number:05}", number)
        with LocalAws(work / "aws") as aws:
            fleet = DeployedFleet(aws, work, PLATFORM)
            environment = {**os.environ, **aws.environment(), "XDG_CACHE_HOME": str(work / "cache")}
            environment.pop("AWS_PROFILE", None)
            progress("publish: the first time ...")
            first = run(fleet, tenants, environment)
            progress(f"publish: {first.seconds:.0f} s, {first.processor_seconds:.0f} s of processor time")
            report("publish.first.live", live(fleet, count), f"of {count} ensembles live", at_least=count)
            progress("publish: the same again ...")
            again = run(fleet, tenants, environment)
            report("publish.again.processor", again.processor_seconds, "s of processor time", at_most=3)
            report("publish.again.writes", again.writes, "objects written", at_most=0)
            report("publish.again.executions", again.executions, "executions started", at_most=0)
            progress("publish: one file changed ...")
            write_repository(tenants / "tenant-00000", count)
            changed = run(fleet, tenants, environment)
            # The upload, the archive that is served and the catalogue's document.
            report("publish.one_file.writes", changed.writes - STAGED, "objects written", at_most=3)


def write_repository(root: Path, seed: int) -> None:
    """A repository that nobody has written to for long, with weights of its own."""
    version = root / "model" / "1"
    version.mkdir(parents=True, exist_ok=True)
    (root / "model" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    (version / "model.py").write_text(MODEL, encoding="utf-8")
    (version / "weights.bin").write_bytes(random.Random(seed).randbytes(WEIGHTS_BYTES))
    for file in (root / "model" / "config.pbtxt", *version.iterdir()):
        os.utime(file, LONG_AGO)


def run(fleet: DeployedFleet, tenants: Path, environment: Mapping[str, str]) -> Run:
    """Run the command to its end."""
    writes, executions = fleet.writes(), len(fleet.executions())
    before, start = processor_seconds(), time.perf_counter()
    command = [str(PROGRAM), "fleet", "publish", str(tenants), "--fleet", "Serving/Fleet"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds, used = time.perf_counter() - start, processor_seconds() - before
    made = len(fleet.executions()) - executions
    return Run(seconds, used, done.stdout.splitlines()[-1], fleet.writes() - writes, made)


def live(fleet: DeployedFleet, count: int) -> int:
    """How many of the ensembles are live."""
    current = fleet.current()
    return sum(current.get(f"tenant-{number:05}") is not None for number in range(count))


def processor_seconds() -> float:
    """The processor time of the processes that have ended, and of those that they had started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ensembles", type=int, default=200)
    main(parser.parse_args().ensembles)
