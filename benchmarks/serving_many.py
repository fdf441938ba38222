"""Many published ensembles behind one local multi-model endpoint that has room for some of them.

32 clients ask for ensembles by name, whose popularity follows Zipf's law. Meanwhile `cdk-triton fleet` publishes new
versions and rolls others back, and tritonserver is killed twice in the first third of the time. Each version of each
ensemble adds a number of its own to its input, so an answer shows which version of which ensemble it is from. Inner
models have names of their own. Most ensembles are never changed: their requests outside the kills are a figure of
their own. Memory is compared between the time after the kills, when the room is full again, and the end.

Without an option, 100 ensembles with room for 5 are asked for a minute. `--long`, as in `make bench LONG=1`, has 1,000
with room for 20, and ten minutes.
The table and the plot are written to `--out`. GPU models are not involved, so no figure shows how fast AWS is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from _figures import progress, report
from _serving_clients import CLIENTS, name_of
from _serving_report import Growth, Sample, memory_growth, tree_memory, write_plot, write_table
from cdk_triton import ServingPlatform, TritonEndpoint, TritonMultiModel
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.triton import TritonHost

ROOT = Path(__file__).resolve().parents[1]
sys.path.extend([str(ROOT / "tests" / "doubles"), str(ROOT)])

from deployed_fleet import DeployedFleet  # noqa: E402

PROGRAM = Path(sysconfig.get_path("scripts")) / "cdk-triton"
PLATFORM = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
PATH = "/many"
CACHED_SECONDS = 60
SLACK_SECONDS = 10
"""From the time a name was read to the time at which the request is sent with it."""
THINK_SECONDS = 60.0
"""From an answer to the next request of a client, on average. An endpoint on two shared cores loads slowly. Ten minutes
have some 300 requests, so the bound for those that wait in vain allows none."""
CHANGE_SECONDS = 10.0
WAIT_SECONDS = 59.0
"""A request has 60 seconds. One that gets its place in the last of them ends with a timeout of the model."""
POPULAR = 30
VERSIONS = 1000
"""Numbers for the versions of an ensemble."""

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling { step { model_name: "STEP" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""
CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
instance_group { kind: KIND_CPU count: 1 }
"""
MODEL = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value + NUMBER)]) for value in values]
"""


@dataclass(frozen=True)
class Plan:
    """How many ensembles there are, how long clients ask, and how many ensembles have room."""

    ensembles: int
    seconds: float
    room: int


@dataclass
class History:
    """The versions of an ensemble.

    Attributes:
        newest: the number of the newest one.
        order: the versions, as the catalogue lists them: that which went live most recently first.
        live: the periods in which a version may have been live.
    """

    newest: int = 0
    order: list[int] = field(default_factory=lambda: [0])
    live: list[tuple[int, float, float]] = field(default_factory=lambda: [(0, 0.0, float("inf"))])

    def change(self, version: int, began: float, ended: float) -> None:
        """Note that a version went live between two times."""
        last, since, _ = self.live[-1]
        self.live[-1] = (last, since, ended)
        self.live.append((version, began, float("inf")))
        self.order = [version, *(each for each in self.order if each != version)]

    def versions(self, since: float, until: float) -> set[int]:
        """The versions that may have been live at some time."""
        return {version for version, began, ended in self.live if began <= until and ended >= since}


@dataclass
class Outcome:
    """The answers, sorted by what they show; `undisturbed` are of ensembles that never change, outside the kills."""

    requests: int = 0
    undisturbed: int = 0
    undisturbed_right: int = 0
    right: int = 0
    wrong: int = 0
    of_others: int = 0
    not_ready: int = 0
    explained: int = 0
    unexplained: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class Run:
    """The endpoint, and what happens to it while clients ask.

    Args:
        work: for everything.
        aws: the local AWS.
        log: its log.
        plan: how many there are of everything.
    """

    def __init__(self, work: Path, aws: LocalAws, log: list[tuple[float, str]], plan: Plan) -> None:
        self.work, self.aws, self.log = work, aws, log
        self.count, self.seconds, self.room = plan.ensembles, plan.seconds, plan.room
        self.histories = [History() for _ in range(self.count)]
        self.environment = aws.process_environment({**os.environ, "XDG_CACHE_HOME": str(work / "cache")})
        self.kills: list[tuple[float, float]] = []
        self.samples: list[Sample] = []
        self.changes = 0
        self._done = threading.Event()

    def publish_all(self) -> None:
        """Publish the first version of each ensemble."""
        for ensemble in range(self.count):
            self.write(ensemble, 0)
        progress(f"serving_many: publishing {self.count} ensembles ...")
        self.command("publish", str(self.work / "tenants"))

    def write(self, ensemble: int, version: int) -> None:
        """Write the repository of a version."""
        root, step = self.work / "tenants" / name_of(ensemble), f"step_{ensemble:04}"
        for directory in (root / "ensemble" / "1", root / step / "1"):
            directory.mkdir(parents=True, exist_ok=True)
        (root / "ensemble" / "1" / ".gitkeep").touch()
        (root / "ensemble" / "config.pbtxt").write_text(ENSEMBLE.replace("STEP", step), encoding="utf-8")
        (root / step / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
        model = MODEL.replace("NUMBER", str(ensemble * VERSIONS + version))
        (root / step / "1" / "model.py").write_text(model, encoding="utf-8")

    def command(self, *arguments: str) -> None:
        """Run `cdk-triton fleet`."""
        command = [str(PROGRAM), "fleet", *arguments, "--fleet", "Serving/Fleet"]
        done = subprocess.run(command, env=self.environment, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout[-500:]} {done.stderr[-1000:]}")

    def ask(self) -> list[dict[str, Any]]:
        """Let clients ask, while ensembles change and servers die."""
        arguments = [PATH, str(self.count), str(self.seconds), str(THINK_SECONDS)]
        program = [sys.executable, str(Path(__file__).with_name("_serving_clients.py")), *arguments]
        with (
            ThreadPoolExecutor(3) as pool,
            subprocess.Popen(program, env=self.environment, stdout=subprocess.PIPE, text=True) as clients,
        ):
            assert clients.stdout is not None
            work = [pool.submit(each) for each in (self._change, self._kill, self._watch)]
            try:
                rows = [json.loads(line) for line in clients.stdout]
            finally:
                self._done.set()
            for each in work:
                each.result()  # or its error
        if clients.returncode:
            raise RuntimeError(f"the clients ended with status {clients.returncode}")
        return rows

    def _change(self) -> None:
        chance = random.Random(1)
        while not self._done.wait(CHANGE_SECONDS):
            ensemble = chance.randrange(min(POPULAR, self.count))
            history, began = self.histories[ensemble], time.time()
            if len(history.order) > 1 and chance.random() < 0.5:
                version = history.order[1]
                self.command("rollback", name_of(ensemble))
            else:
                history.newest += 1
                version = history.newest
                self.write(ensemble, version)
                manifest = self.work / "one.json"
                row = {"ensemble": name_of(ensemble), "repository": str(self.work / "tenants" / name_of(ensemble))}
                manifest.write_text(json.dumps([row]), encoding="utf-8")
                self.command("publish", str(manifest))
            history.change(version, began, time.time())
            self.changes += 1

    def _kill(self) -> None:
        for _ in range(2):
            if self._done.wait(self.seconds / 8):
                return
            [server] = servers()
            progress("serving_many: killing tritonserver ...")
            killed = time.time()
            os.kill(server, signal.SIGKILL)
            while not any(at > killed and "tritonserver is ready" in line for at, line in self.log):
                if self._done.wait(0.1):
                    return
            self.kills.append((killed, time.time()))

    def _watch(self) -> None:
        began = time.time()
        while not self._done.wait(2):
            server = sum(tree_memory(each) for each in servers())
            loads = sum(is_load(line) for _, line in self.log)
            self.samples.append(Sample(time.time() - began, server, tree_memory(os.getpid(), alone=True), loads))


def is_load(line: str) -> bool:
    """Whether a line of the log reports that a target model was loaded, with or without the name of the endpoint.

    A line about an unloaded target model has the same words.
    """
    return line.startswith("loaded target model") or "] loaded target model" in line


def servers() -> list[int]:
    """The tritonservers of this process."""
    return [process for process, name in descendants(os.getpid()) if name == "tritonserver"]


def descendants(process: int) -> Iterator[tuple[int, str]]:
    """The processes below one, with their names."""
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        children = ""
        with suppress(OSError):  # the thread has ended
            children = task.read_text()
        for child in map(int, children.split()):
            with suppress(OSError):  # it has ended
                yield child, Path(f"/proc/{child}/comm").read_text().strip()
                yield from descendants(child)


def judge(rows: list[dict[str, Any]], run: Run) -> Outcome:
    """Sort the answers: one is right if its version was live when the client may have read the name, or later."""
    found = Outcome(len(rows))
    for row in sorted(rows, key=lambda each: float(each["sent"])):
        ensemble, took = row["ensemble"], row["ended"] - row["sent"]
        found.seconds.append(took)
        is_of_kill = any(row["sent"] <= ready and row["ended"] >= killed for killed, ready in run.kills)
        if ensemble >= POPULAR and not is_of_kill:
            found.undisturbed += 1
            found.undisturbed_right += row.get("answer") == ensemble * VERSIONS
        since = row["sent"] - CACHED_SECONDS - SLACK_SECONDS
        if "answer" in row:
            number, history = round(row["answer"]), run.histories[ensemble]
            if number // VERSIONS != ensemble:
                found.of_others += 1
            elif number == row["answer"] and number % VERSIONS in history.versions(since, row["ended"]):
                found.right += 1
            else:
                found.wrong += 1
        elif is_of_kill:
            found.explained += 1
        elif row["error"] == "ModelNotReadyError" or took >= WAIT_SECONDS:
            found.not_ready += 1
        else:
            found.unexplained.append(f"{row['error']}: {row['message']}")
    return found


def metrics(run: Run, endpoint: str, began: float) -> Mapping[str, Mapping[str, float]]:
    """The metrics of the variant, as CloudWatch has them."""
    run.aws.metrics.publish()
    names = {"LoadedModelCount": "/aws/sagemaker/Endpoints"} | dict.fromkeys(
        ("ModelCacheHit", "ModelLoadingWaitTime", "ModelDownloadingTime", "ModelLoadingTime", "ModelUnloadingTime"),
        "AWS/SageMaker",
    )
    found = {}
    for name, namespace in names.items():
        points = run.aws.client("cloudwatch").get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": "AllTraffic"}],
            StartTime=began - 60,
            EndTime=time.time() + 60,
            Period=86400,
            Statistics=["Average", "Maximum", "SampleCount"],
        )["Datapoints"]
        found[name] = {key: float(points[0][key]) if points else 0 for key in ("Average", "Maximum", "SampleCount")}
    return found


def main(plan: Plan, out: Path) -> None:
    """Measure and report."""
    log: list[tuple[float, str]] = []

    def keep(line: str) -> None:
        log.append((time.time(), line))

    def host(aws: LocalAws) -> TritonHost:
        return TritonHost(
            lambda role: aws.client("s3", role),
            aws.directory / "endpoints",
            plan.room,
            keep,
            account=aws.account,
            region=aws.region,
            record=aws.metrics.record,
        )

    def extend(stack: cdk.Stack, fleet: TritonMultiModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path=PATH)

    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        with LocalAws(work / "aws", host_factory=host, log=keep) as aws:
            DeployedFleet(aws, work, PLATFORM, extend)
            [endpoint] = aws.client("sagemaker").list_endpoints()["Endpoints"]
            run = Run(work, aws, log, plan)
            run.publish_all()
            progress(f"serving_many: 32 clients send requests for {plan.seconds:g} s ...")
            began = time.time()
            rows = run.ask()
            found, measured = judge(rows, run), metrics(run, endpoint["EndpointName"], began)
    since = max((ready for _, ready in run.kills), default=began) - began
    growth = Growth(
        memory_growth(run.samples, lambda each: each.server, since, plan.room),
        memory_growth(run.samples, lambda each: each.local_aws, since, plan.room),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_table(out / "serving_many.md", run, found, measured, growth)
    write_plot(out / "serving_many.svg", rows, run, began)
    (out / "serving_many.json").write_text(json.dumps(rows), encoding="utf-8")
    print((out / "serving_many.md").read_text(encoding="utf-8"), file=sys.stderr)
    for line in found.unexplained[:5]:
        progress(f"serving_many: {line}")
    right, undisturbed = found.requests - found.explained, max(1, found.undisturbed)
    report("serving_many.right_share", 100 * found.right / right, "% right of what no kill explains", at_least=95)
    share = 100 * found.undisturbed_right / undisturbed
    report("serving_many.undisturbed", share, "% right of ensembles that never change", at_least=99.9)
    report("serving_many.wrong", found.wrong, "answers wrong", at_most=0)
    report("serving_many.of_others", found.of_others, "answers of another ensemble", at_most=0)
    report("serving_many.unexplained", len(found.unexplained), "errors without a kill", at_most=0)
    report("serving_many.kills", len(run.kills), "tritonservers killed", at_least=2)
    report("serving_many.explained", found.explained, "errors of kills", at_most=len(run.kills) * CLIENTS / 4)
    report("serving_many.changes", run.changes, "publications and rollbacks", at_least=plan.seconds // 60)
    report("serving_many.not_ready", 100 * found.not_ready / len(rows), "% waited 60 s in vain", at_most=0.1)
    report(
        "serving_many.loaded", measured["LoadedModelCount"]["Maximum"], "ensembles loaded at most", at_most=plan.room
    )
    report("serving_many.evictions", measured["ModelUnloadingTime"]["SampleCount"], "evictions", at_least=1)
    for name, value in (("memory_growth", growth.server), ("local_aws_growth", growth.local_aws)):
        report(f"serving_many.{name}", value, "times the peak when the room was full", at_most=1.25)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true", help="1,000 ensembles with room for 20, for ten minutes")
    parser.add_argument("--out", type=Path, default=ROOT / "site" / "benchmarks", help="for the table and the plot")
    arguments = parser.parse_args()
    main(Plan(1000, 600.0, 20) if arguments.long else Plan(100, 60.0, 5), arguments.out)
