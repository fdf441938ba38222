"""The builds, rehearsals and writes of a deployment: if everything is there already, and if one of a hundred changed.

The CDK synthesises the app each time, in a process of its own. The benchmark then sends its custom resource to the
store's real handlers as CloudFormation would, even if no property changed and CloudFormation would not send it. S3
and CodeBuild are the doubles in memory that the tests of the handlers use, and so is the build: it writes a few bytes
for each ensemble and each rehearsal that its plan names. The benchmark counts the builds that the handlers start, the
ensembles and rehearsals in them, and every call that writes an object of the store.

The patch release is a copy of this library with other words in the build program and in the handlers, and the same
`PROGRAM_VERSION`: its plan names another program, so that the custom resource is updated.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import onnx.parser

from _figures import progress, report

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "doubles"), str(ROOT / "lambda")]

import artifacts  # noqa: E402
from artifacts.builders import Builders  # noqa: E402
from artifacts.copying import PART_BYTES  # noqa: E402
from artifacts.storage import Storage  # noqa: E402
from memory_aws import S3, Call, Client, Clock, CodeBuild, Logs, ProgramDouble, Wire  # noqa: E402

ENSEMBLES = 100
CHANGED = "ensemble042"
STORE = "the-store"
PROJECT = "the-project"
WRITES = {"PutObject", "CopyObject", "CreateMultipartUpload", "UploadPartCopy", "CompleteMultipartUpload"}

CONFIG = """
backend: "tensorrt"
max_batch_size: 16
input [{ name: "X" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "Y" data_type: TYPE_FP32 dims: [4] }]
"""
NETWORK = """
<ir_version: 8, opset_import: ["" : 17], doc_string: "%s">
graph (float[N, 4] X) => (float[N, 4] Y) { Y = Relu(X) }
"""


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        repositories = work / "repositories"
        for number in range(ENSEMBLES):
            write_repository(repositories / f"ensemble{number:03}")
        region = Region()
        progress(f"redeployment: the first deployment of {ENSEMBLES} ensembles ...")
        before = synthesise(work / "first", repositories)
        first = region.deploy(before)
        if (first.builds, first.ensembles, first.rehearsals) != (1, ENSEMBLES, ENSEMBLES):
            raise SystemExit(f"redeployment: the first deployment had {first}")
        for name, change in changes(work).items():
            progress(f"redeployment: {name} ...")
            outdir = synthesise(work / name, repositories, **change)
            if name == "patch_release" and properties_of(outdir) == properties_of(before):
                raise SystemExit("redeployment: the patch release sends the same request as before")
            counts = region.deploy(outdir)
            report(f"redeployment.{name}.builds", counts.builds, "builds started", at_most=0)
            report(f"redeployment.{name}.rehearsals", counts.rehearsals, "rehearsals", at_most=0)
            report(f"redeployment.{name}.writes", counts.writes, "objects written", at_most=0)
        progress("redeployment: one golden request changed ...")
        write_golden_request(repositories / CHANGED, 2.0)
        counts = region.deploy(synthesise(work / "golden", repositories))
        report("redeployment.one_request.rehearsed", counts.rehearsals, f"of {ENSEMBLES} rehearsed", at_most=1)
        report("redeployment.one_request.at_least", counts.rehearsals, f"of {ENSEMBLES} rehearsed", at_least=1)
        report("redeployment.one_request.built", counts.ensembles, f"of {ENSEMBLES} ensembles built", at_most=0)
        progress("redeployment: one recipe changed ...")
        counts = region.deploy(synthesise(work / "changed", repositories, changed=CHANGED))
        report("redeployment.one_recipe.built", counts.ensembles, f"of {ENSEMBLES} ensembles built", at_most=1)
        report("redeployment.one_recipe.at_least", counts.ensembles, f"of {ENSEMBLES} ensembles built", at_least=1)


def changes(work: Path) -> dict[str, dict[str, Any]]:
    """Name of each change that must build nothing, and what `synthesise` is told."""
    return {
        "nothing_changed": {},
        "unrelated_property": {"instances": 2},
        "patch_release": {"library": patched(work / "library")},
    }


def write_repository(root: Path) -> None:
    """A TensorRT model whose network is like no other."""
    (root / "network").mkdir(parents=True)
    (root / "network" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    network = onnx.parser.parse_model(NETWORK % root.name)
    (root / "network" / "network.onnx").write_bytes(network.SerializeToString())
    write_golden_request(root, 1.0)


def write_golden_request(root: Path, number: float) -> None:
    """Its golden request, which is not in its archive."""
    (root / "golden").mkdir(exist_ok=True)
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [number] * 4}
    (root / "golden" / "one.json").write_text(json.dumps({"inputs": [tensor]}), encoding="utf-8")


def synthesise(
    outdir: Path, repositories: Path, *, instances: int = 1, changed: str = "none", library: Path = ROOT
) -> Path:
    """The cloud assembly of the app, by the library in a checkout."""
    environment = os.environ | {"PYTHONPATH": str(library / "constructs")}
    arguments = [str(outdir), str(repositories), str(instances), changed]
    command = [sys.executable, str(Path(__file__).with_name("_redeployed_app.py")), *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return outdir


def patched(checkout: Path) -> Path:
    """The library as a patch release might be, in a directory of its own."""
    for name in ("constructs", "gpu_build", "lambda"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("gpu_build/build_program/main.py", "lambda/artifacts/ensure.py"):
        with (checkout / name).open("a", encoding="utf-8") as file:
            file.write("\n# Words that change nothing.\n")
    return checkout


def properties_of(outdir: Path) -> dict[str, Any]:
    """The properties of the custom resource."""
    resources = json.loads((outdir / "Models.template.json").read_text())["Resources"].values()
    (resource,) = (each for each in resources if each["Type"] == "Custom::TritonArtifacts")
    return dict(resource["Properties"])


@dataclass
class Counts:
    """The work of a deployment: builds started, ensembles and rehearsals in them, calls that write to the store."""

    builds: int
    ensembles: int
    rehearsals: int
    writes: int


@dataclass
class Region:
    """S3 and CodeBuild in memory, with a store."""

    clock: Clock = field(default_factory=Clock)
    calls: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.s3 = S3(self.clock)
        self.program = ProgramDouble(StoreFolder(self.s3), PART_BYTES)
        self.codebuild = CodeBuild(PROJECT, self.clock, self.program)

    def deploy(self, outdir: Path) -> Counts:
        """Play the part of the CDK CLI, CloudFormation, the provider framework and CodeBuild."""
        self.calls.clear()
        built, rehearsed = sum(map(len, self.program.built.values())), len(self.program.rehearsed)
        event = {"RequestType": "Create", "ResourceProperties": self.published(outdir)}
        event |= artifacts.on_event(event, None) | {"StartedAt": self.clock()}
        while not artifacts.poll(event, self.invocation())["IsComplete"]:
            for job, build in self.codebuild.live().items():
                self.program.finish(build, {})
                self.codebuild.end(job, "SUCCEEDED")
            self.clock.now += 30
        return Counts(
            builds=self.calls["StartBuild"],
            ensembles=sum(map(len, self.program.built.values())) - built,
            rehearsals=len(self.program.rehearsed) - rehearsed,
            writes=sum(self.calls[name] for name in WRITES),
        )

    def published(self, outdir: Path) -> dict[str, Any]:
        """Publish the assets, and return the properties of the custom resource."""
        for file in json.loads((outdir / "Models.assets.json").read_text())["files"].values():
            (place,) = file["destinations"].values()
            self.s3.put(place["bucketName"], place["objectKey"], (outdir / file["source"]["path"]).read_bytes())
        # The image's address is joined of the partition's domain; nothing here looks at it.
        image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver"
        return properties_of(outdir) | {"BuildImage": image}

    def invocation(self) -> artifacts.Invocation:
        """One invocation of the handler."""
        wire = Wire(around=self.counted)
        clients: dict[str, Any] = {
            name: Client(name, double, wire)
            for name, double in (("s3", self.s3), ("codebuild", self.codebuild), ("logs", Logs()))
        }
        settings = {"codebuild": {"project": PROJECT, "log_group": "/builds"}, "processing": None}
        return artifacts.Invocation(
            storage=Storage(clients["s3"], STORE),
            builders=Builders(settings, STORE, clients.__getitem__),
            remaining_millis=lambda: 300_000,
            now=self.clock,
        )

    def counted(self, _service: str, operation: str, call: Call) -> dict[str, Any]:
        """A call of the handler."""
        self.calls[operation] += 1
        return call()


@dataclass
class StoreFolder:
    """The store's bucket as a job reads it."""

    s3: S3

    def get(self, key: str) -> bytes | None:
        """An object's content."""
        return self.s3.get(STORE, key)

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""
        self.s3.put(STORE, key, body)


if __name__ == "__main__":
    main()
