"""How much longer `cdk synth` takes with this library, and with a thousand ensembles instead of one.

An app with one endpoint is compared with an app of the same template, written with L1 constructs as by hand, and with
assets of the same contents, without which neither could be deployed; the templates are compared first. A multi-model
endpoint with a thousand ensembles is compared with one that has a single ensemble; the files are unchanged since it was
last synthesised.

The figures are processor time of the app and of the Node that jsii starts, which mostly wait for each other: by the
clock, both apps took 6 to 8 % less. The apps take turns, because it changes with what others do on the machine. CDK's
own validation of templates is off, which takes the same time for the same template. Byte code is there, as an
installation writes it.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _figures import progress, report
from _l1_program import l1_program

ENSEMBLES = 1000
ROUNDS = 75
"""On a shared machine an app takes up to 1.6 times as long from one round to the next: the difference of two medians of
25 rounds was found 0.1 s off, and that of 75 is known to some 0.04 s. Each comparison takes six to eight minutes."""

APP = Path(__file__).with_name("_synth_app.py")

PREPROCESS = """
backend: "python"
max_batch_size: 8
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "IDS" data_type: TYPE_INT32 dims: [ 4 ] } ]
"""
NETWORK = """
backend: "python"
max_batch_size: 8
input [ { name: "IDS" data_type: TYPE_INT32 dims: [ 4 ] } ]
output [ { name: "VECTOR" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "VECTOR" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [
  { model_name: "preprocess" model_version: -1
    input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "ids" } },
  { model_name: "network" model_version: -1
    input_map { key: "IDS" value: "ids" } output_map { key: "VECTOR" value: "VECTOR" } }
] }
"""
MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""


def main() -> None:
    """Measure and report."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        os.environ["XDG_CACHE_HOME"] = str(work / "cache")
        repositories = work / "repositories"
        progress(f"synth: writing {ENSEMBLES} ensembles ...")
        for number in range(ENSEMBLES):
            write_repository(repositories / f"ensemble{number:04}")
        time.sleep(2.1)  # files that were just written are not trusted
        measure_endpoint(work, repositories)
        measure_fleet(work, repositories)


def measure_endpoint(work: Path, repositories: Path) -> None:
    """An endpoint stack, against L1 constructs."""
    ours, by_hand, program = work / "endpoint", work / "by_hand", work / "by_hand.py"
    library = [str(APP), str(ours), str(repositories), "0"]
    run(*library)
    program.write_text(l1_program(ours), encoding="utf-8")
    run(str(program), str(by_hand))
    if template(ours) != template(by_hand):
        raise SystemExit("synth: the app written by hand has another template")
    with_library, without = turns(library, [str(program), str(by_hand)])
    report("synth.endpoint", with_library - without, "s more than L1 constructs", at_most=0.5)


def measure_fleet(work: Path, repositories: Path) -> None:
    """A thousand ensembles, against one."""
    many, one = work / "many", work / "one"
    multi_model, single = ([str(APP), str(out), str(repositories), str(n)] for out, n in ((many, ENSEMBLES), (one, 1)))
    progress(f"synth: {ENSEMBLES} ensembles for the first time ...")
    run(*multi_model)
    run(*single)
    resources = len(template(many)["Resources"]) - len(template(one)["Resources"])
    report("synth.resources", resources / (ENSEMBLES - 1), "resources for each other ensemble", at_most=0)
    with_many, with_one = turns(multi_model, single)
    report("synth.thousand_ensembles", with_many - with_one, "s more than one ensemble", at_most=2)


def turns(first: list[str], second: list[str]) -> tuple[float, float]:
    """The medians of the processor seconds of two apps that take turns."""
    seconds: list[tuple[float, float]] = []
    for number in range(1, ROUNDS + 1):
        seconds.append((run(*first), run(*second)))
        progress(f"synth: round {number} of {ROUNDS}: {seconds[-1][0]:.2f} s and {seconds[-1][1]:.2f} s")
    longer, shorter = medians(seconds)
    drawn = [medians(random.choices(seconds, k=ROUNDS)) for _ in range(1000)]  # the bootstrap of statistics
    error = statistics.stdev(one - other for one, other in drawn)
    progress(
        f"synth: medians {longer:.2f} s and {shorter:.2f} s, {longer / shorter:.2f} times as long; standard error of "
        f"their difference {error:.2f} s"
    )
    return longer, shorter


def medians(seconds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """For each of two apps."""
    return statistics.median(each for each, _ in seconds), statistics.median(each for _, each in seconds)


def run(*arguments: str) -> float:
    """Processor seconds of an app, with those of the processes that it waits for."""
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"synth: {arguments[0]} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def template(assembly: Path) -> dict[str, dict[str, object]]:
    """The template of the app's stack."""
    return dict(json.loads((assembly / "Stack.template.json").read_text(encoding="utf-8")))


def write_repository(root: Path) -> None:
    """An ensemble of two Python models, whose code is like no other's."""
    files = {
        "preprocess/config.pbtxt": PREPROCESS,
        "preprocess/1/model.py": f"{MODEL}# {root.name}\n",
        "network/config.pbtxt": NETWORK,
        "network/1/model.py": MODEL,
        "ensemble/config.pbtxt": ENSEMBLE,
        "ensemble/1/.gitkeep": "",
    }
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
