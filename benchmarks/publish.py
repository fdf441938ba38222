"""`cdk-triton fleet publish` of many ensembles, to a publisher on the local AWS.

Each ensemble has 1 MB of weights, which do not compress. The command runs in a process of its own, and the local AWS in
this one, so that only the processor time of the command and of its workers is counted. The published way
(`_published_way.py`) takes turns with nothing: it is measured in the same run, on 40 of the repositories. An object
that is written again is a second version of it in the bucket, which the benchmark counts. Requests to S3 for an
ensemble's objects are counted where they arrive, without those of the command: the upload, and one that reads the
ensemble's new document at the end. That document is then in the command's cache, so the command that finds nothing
changed does not read it.

The checks are measured on other repositories, of an ensemble of four models each, against protobuf's own
`text_format.Parse` of the same configurations in one process. No two configurations are equal: a multi-model endpoint
needs other names of models in each ensemble. The tenants share the source of their Python models and the graph of
their networks, which are read for each tenant and judged once in a process.

Without an option there are 200 ensembles, and 4 large ones of 100 MB. `--long`, as in `make bench LONG=1`, has 3,000,
and 20 of 500 MB. The local AWS has all objects in memory, two for an archive, and large ones on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from _figures import progress, report
from _published_way import aws_cli, seconds_each
from _serving_report import tree_memory
from cdk_triton import ServingPlatform
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.front.server import Routes
from cdk_triton_local.moto_state import MotoState
from validate import write_ensembles

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "doubles"))

from deployed_fleet import DeployedFleet  # noqa: E402

PROGRAM = Path(sysconfig.get_path("scripts")) / "cdk-triton"
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
WEIGHTS_BYTES = 1_000_000
PUBLISHED_WAY = 40
SAMPLE_SECONDS = 0.2
COMMAND = "fleet-publish"
"""The command's name in the `User-Agent` of its requests."""
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


CHECK = """
import json, sys, time
from pathlib import Path
from cdk_triton.cli.fleet.manifest import read_manifest
from cdk_triton.cli.fleet.place import open_fleet
from cdk_triton.cli.fleet.verdicts import judge
ensembles, publisher = read_manifest(Path(sys.argv[1])), open_fleet("Serving/Fleet").description
seconds = []
for _ in range(2):
    start = time.perf_counter()
    assert not any(each.errors for each in judge(ensembles, publisher))
    seconds.append(time.perf_counter() - start)
print(json.dumps(seconds))
"""
PARSE = """
import json, sys, time
from pathlib import Path
from google.protobuf import text_format
from cdk_triton.triton import ModelConfig
start = time.perf_counter()
for path in Path(sys.argv[1]).glob("*/*/config.pbtxt"):
    text_format.Parse(path.read_text(), ModelConfig())
print(json.dumps(time.perf_counter() - start))
"""


@dataclass(frozen=True)
class Run:
    """A run of the command: wall-clock and processor seconds, memory in MB, and what was written meanwhile."""

    seconds: float
    processor_seconds: float
    memory: float
    writes: int
    executions: int


class Requests:
    """Counts the requests to S3 that are not the command's own, and the seconds that moto takes for all requests."""

    def __init__(self) -> None:
        self.of_s3 = Counter[str]()
        self.moto_seconds = self.seconds = 0.0
        self._lock = threading.Lock()  # the local AWS answers in several threads
        self._watch(Routes, self._all)
        self._watch(MotoState, self._moto)

    def _watch(self, owner: type, note: Callable[[Mapping[str, object], float], None]) -> None:
        original = owner.__call__

        def watched(application: object, environ: dict[str, object], start_response: object) -> Iterable[bytes]:
            start = time.thread_time()
            try:
                answer: Iterable[bytes] = original(application, environ, start_response)
                return answer
            finally:
                seconds = time.thread_time() - start
                with self._lock:
                    note(environ, seconds)

        setattr(owner, "__call__", watched)  # noqa: B010 mypy rejects the assignment

    def _all(self, environ: Mapping[str, object], seconds: float) -> None:
        self.seconds += seconds

    def _moto(self, environ: Mapping[str, object], seconds: float) -> None:
        self.moto_seconds += seconds
        is_of_command = f"app/{COMMAND}" in str(environ.get("HTTP_USER_AGENT"))
        path = str(environ["PATH_INFO"])
        is_of_ensemble = path.endswith(".tar.gz") or "/catalogue/" in path
        if "/s3/aws4_request" in str(environ.get("HTTP_AUTHORIZATION")) and not is_of_command:
            self.of_s3["of ensembles" if is_of_ensemble else "others"] += 1


def main(count: int, large: int, large_bytes: int) -> None:
    """Measure and report."""
    aws_cli()
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        requests = Requests()
        with LocalAws(work / "aws") as aws:
            fleet = DeployedFleet(aws, work, PLATFORM)
            variables = {**os.environ, "XDG_CACHE_HOME": str(work / "cache"), "AWS_SDK_UA_APP_ID": COMMAND}
            environment = aws.process_environment(variables)
            measure_many(fleet, work, environment, count, requests)
            measure_checks(work, environment, count)
            measure_large(fleet, work, environment, large, large_bytes)


def measure_many(
    fleet: DeployedFleet, work: Path, environment: Mapping[str, str], count: int, requests: Requests
) -> None:
    """The first time, again, and with one file changed."""
    tenants = work / "tenants"
    progress(f"publish: writing {count} repositories ...")
    for number in range(count):
        write_repository(tenants / f"tenant-{number:05}", number)
    progress(f"publish: the published way, {PUBLISHED_WAY} times ...")
    (work / "published").mkdir()
    some = sorted(tenants.iterdir())[:PUBLISHED_WAY]
    published = seconds_each(some, fleet.bucket, work / "published", environment)
    progress(
        f"publish: {published.all:.2f} s each, of which the AWS CLI starts for {published.start:.2f} s; now the "
        "command, the first time ..."
    )
    requests.of_s3.clear()
    requests.seconds = requests.moto_seconds = 0.0
    resident, stored = memory(), fleet.stored_bytes()
    first = run(fleet, tenants, environment)
    sent = requests.of_s3["of ensembles"]
    progress(
        f"publish: {first.seconds / count:.3f} s each, {first.seconds:.0f} s in all; of processor time, the command "
        f"{first.processor_seconds:.0f} s, moto {requests.moto_seconds:.0f} s, the rest of the local AWS's requests "
        f"{requests.seconds - requests.moto_seconds:.0f} s; {requests.of_s3['others']} other requests to S3"
    )
    report("publish.first.live", live(fleet, count), f"of {count} ensembles live", at_least=count)
    each = first.seconds / count
    report("publish.first.speed", published.all / each, "times as fast as published", at_least=10)
    started = (published.all - published.start) / each
    report("publish.first.speed_without_start", started, "times, if the AWS CLI took no time to start", at_least=1)
    report("publish.first.requests", sent / count, "requests to S3 for an ensemble", at_most=8)
    kept = (memory() - resident) * 1e6 / (fleet.stored_bytes() - stored)
    report("publish.first.resident", kept, "bytes of the local AWS for a byte stored", at_most=2)
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


def measure_checks(work: Path, environment: Mapping[str, str], count: int) -> None:
    """The checks against protobuf's parser."""
    progress(f"publish: checking {count} repositories ...")
    tenants = work / "checked"
    for number in range(count):
        write_ensembles(tenants / f"tenant-{number:05}", 1, first=number)
    age(tenants)

    def measured(program: str) -> object:
        command = [sys.executable, "-c", program, str(tenants)]
        answer: object = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        return answer

    parsed = measured(PARSE)
    seconds = measured(CHECK)
    assert isinstance(parsed, float)
    assert isinstance(seconds, list)
    progress(f"publish: parsed in {parsed:.2f} s, checked in {seconds[0]:.2f} s, again in {seconds[1]:.2f} s")
    report("publish.check.first", seconds[0] / parsed, "times the time of parsing", at_most=3)
    report("publish.check.again", seconds[1] / parsed, "times the time of parsing", at_most=0.5)


def measure_large(fleet: DeployedFleet, work: Path, environment: Mapping[str, str], count: int, size: int) -> None:
    """The memory of the command with large ensembles, which share a file on the disk."""
    progress(f"publish: {count} ensembles of {size / 1e6:.0f} MB ...")
    tenants, weights = work / "large", work / "weights.bin"
    with weights.open("wb") as file:
        for number in range(size // WEIGHTS_BYTES):
            file.write(random.Random(number).randbytes(WEIGHTS_BYTES))
    for number in range(count):
        root = tenants / f"large-{number:05}"
        write_repository(root, number)
        os.link(weights, root / "model" / "1" / "more.bin")
    done = run(fleet, tenants, environment)
    progress(f"publish: {done.seconds:.0f} s")
    report("publish.large.memory", done.memory, "MB of the command", at_most=300)


def write_repository(root: Path, seed: int) -> None:
    """A repository that nobody has written to for long, with weights of its own."""
    version = root / "model" / "1"
    version.mkdir(parents=True, exist_ok=True)
    (root / "model" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    (version / "model.py").write_text(MODEL, encoding="utf-8")
    (version / "weights.bin").write_bytes(random.Random(seed).randbytes(WEIGHTS_BYTES))
    age(root)


def age(root: Path) -> None:
    """Give files the times of files that nobody has written to for long."""
    for file in root.rglob("*"):
        os.utime(file, LONG_AGO)


def run(fleet: DeployedFleet, tenants: Path, environment: Mapping[str, str]) -> Run:
    """Run the command to its end."""
    writes, executions = fleet.writes(), len(fleet.executions())
    start = time.perf_counter()
    most = 0.0
    with tempfile.TemporaryDirectory() as directory:
        used = Path(directory) / "seconds"
        command = [str(PROGRAM), "fleet", "publish", str(tenants), "--fleet", "Serving/Fleet"]
        measured = [sys.executable, "-S", str(Path(__file__).with_name("_processor_time.py")), str(used), *command]
        with subprocess.Popen(measured, env=environment, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                most = max(most, tree_memory(process.pid) - tree_memory(process.pid, alone=True))
                time.sleep(SAMPLE_SECONDS)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        processor_seconds = float(used.read_text(encoding="utf-8"))
    seconds, made = time.perf_counter() - start, len(fleet.executions()) - executions
    return Run(seconds, processor_seconds, most, fleet.writes() - writes, made)


def live(fleet: DeployedFleet, count: int) -> int:
    """How many of the ensembles are live."""
    current = fleet.current()
    return sum(current.get(f"tenant-{number:05}") is not None for number in range(count))


def memory() -> float:
    """The memory in MB of this process, which is the local AWS."""
    return tree_memory(os.getpid(), alone=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true", help="3,000 ensembles, and 20 of 500 MB")
    parser.add_argument("--ensembles", type=int)
    long = parser.parse_args().long
    main(parser.parse_args().ensembles or (3000 if long else 200), *((20, 500_000_000) if long else (4, 100_000_000)))
