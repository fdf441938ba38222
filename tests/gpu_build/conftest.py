"""Builds that really run: the program's file in a process of its own, with the stand-ins for the tools of a GPU."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from cdk_triton.artifacts.program import write_program
from cdk_triton_local.build_tools import environment

LONGEST_SECONDS = 240

PLATFORM = {
    "image": "sagemaker-tritonserver:25.09-py3",
    "release": "25.09",
    "gpu": "NVIDIA A10G",
    "compute_capability": "8.6",
    "tensorrt": "10.13.3.9",
    "dali": None,
    "python": None,
}


def key_of(name: str) -> str:
    """An artifact key."""
    return hashlib.sha256(name.encode()).hexdigest()


def archive_of(entries: Mapping[str, bytes]) -> bytes:
    """A `.tar.gz` of files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0)


def tiny_network(factor: float = 2.0, *, second: str = "ids", dims: tuple[str | int, int] = ("n", 4)) -> bytes:
    """An ONNX network of two inputs, `x` (FP32) and `ids` (INT32): y = factor * x + ids."""
    number = helper.make_tensor("factor", TensorProto.FLOAT, [], [factor])
    graph = helper.make_graph(
        [
            helper.make_node("Cast", [second], ["floats"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["x", "factor"], ["product"]),
            helper.make_node("Add", ["product", "floats"], ["y"]),
        ],
        "tiny",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, dims),
            helper.make_tensor_value_info(second, TensorProto.INT32, [dims[0], 1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
        [number],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    onnx.checker.check_model(model)
    return content


def tiny_step(**changes: Any) -> dict[str, Any]:
    """The step for `tiny_network()`, in the form that the recipe gives it."""
    step: dict[str, Any] = {
        "recipe": "tensorrt_plan",
        "name": "the TensorRT plan of tiny",
        "onnx": "tiny/tiny.onnx",
        "plan": "tiny/1/model.plan",
        "flags": [
            "--skipInference",
            "--fp16",
            "--minShapes=ids:1x1,x:1x4",
            "--optShapes=ids:2x1,x:2x4",
            "--maxShapes=ids:8x1,x:8x4",
        ],
        "flags_if_static": None,
        "plugins": [],
        "tensorrt_major": 10,
        "profiles": [
            {"x": {"min": [1, 4], "opt": [2, 4], "max": [8, 4]}, "ids": {"min": [1, 1], "opt": [2, 1], "max": [8, 1]}}
        ],
        "inputs": [
            {"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 4]},
            {"name": "ids", "data_type": "TYPE_INT32", "dims": [-1, 1]},
        ],
        "outputs": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1, 4]}],
        "parity": {"tolerance": {"absolute": 0.01, "relative": 0.02}, "ranges": {"ids": [0, 100]}, "seed": 0},
    }
    return {**step, **changes}


SOURCES: Mapping[str, bytes] = {
    "tiny/config.pbtxt": b'platform: "tensorrt_plan"\n',
    "tiny/tiny.onnx": tiny_network(),
    "ensemble/config.pbtxt": b'platform: "ensemble"\n',
    "ensemble/1/.keep": b"",
}


@dataclass
class Build:
    """An input folder, an output folder, and runs of the program from one to the other."""

    folder: Path
    out: Path
    program: Path
    plan: dict[str, Any]
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def add(self, name: str, files: Mapping[str, bytes] = SOURCES, **changes: Any) -> str:
        """Add an ensemble with a TensorRT plan to the plan; returns its artifact key."""
        archive = archive_of(files)
        digest = hashlib.sha256(archive).hexdigest()
        (self.folder / "sources").mkdir(exist_ok=True)
        (self.folder / "sources" / f"{digest}.tar.gz").write_bytes(archive)
        ensemble = {
            "repository": name,
            "artifact_key": key_of(name),
            "sources": f"sources/{digest}.tar.gz",
            "files": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()},
            "inputs": [],
            "steps": [tiny_step()],
            "remove": ["tiny/tiny.onnx"],
        }
        self.plan["ensembles"].append({**ensemble, **changes})
        return key_of(name)

    def start(self) -> subprocess.Popen[str]:
        """Write the plan and start the program."""
        (self.folder / "plan.json").write_text(json.dumps(self.plan))
        command = [sys.executable, str(self.program), str(self.folder), str(self.out)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment
        )
        self.started.append(process)
        return process

    def run(self) -> tuple[int, list[dict[str, Any]]]:
        """Run the program to its end: exit code and log lines."""
        process = self.start()
        output, _ = process.communicate(timeout=LONGEST_SECONDS)
        return process.returncode, [json.loads(line) for line in output.splitlines()]

    def report(self, key: str) -> dict[str, Any]:
        """`build.json` of a finished ensemble."""
        document: dict[str, Any] = json.loads((self.out / key / "build.json").read_text())
        return document

    def failure(self, key: str = "") -> dict[str, Any]:
        """`failure.json` of an ensemble, or of the job."""
        document: dict[str, Any] = json.loads((self.out / key / "failure.json").read_text())
        return document


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's file."""
    target = tmp_path_factory.mktemp("program") / "program.pyz"
    write_program(target)
    return target


@pytest.fixture(scope="session")
def network() -> Callable[..., bytes]:
    """Makes an ONNX network: see `tiny_network`."""
    return tiny_network


@pytest.fixture(scope="session")
def tensorrt_step() -> Callable[..., dict[str, Any]]:
    """Makes a step: see `tiny_step`."""
    return tiny_step


@pytest.fixture
def build(tmp_path: Path, program: Path) -> Iterator[Build]:
    """A build without ensembles."""
    folder = tmp_path / "in"
    folder.mkdir()
    plan = {
        "schema": 1,
        "build": "cdk-triton-0123456789abcdef",
        "deadline_seconds": 300,
        "platform": dict(PLATFORM),
        "ensembles": [],
    }
    tools = environment(gpu="NVIDIA A10G", compute_capability="8.6", tensorrt="10.13.3.9")
    # Little else: what the program needs of its environment should be seen here.
    variables = {**tools, "AWS_SECRET_ACCESS_KEY": "not for children", "HOME": str(tmp_path)}
    build = Build(folder, tmp_path / "out", program, plan, variables)
    yield build
    for process in build.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


WriteTool = Callable[[str, str], None]


@pytest.fixture
def write_tool(build: Build, tmp_path: Path) -> WriteTool:
    """Puts a test double before the stand-ins on the PATH of a build: name and shell script."""

    def write(name: str, script: str) -> None:
        directory = tmp_path / "doubles"
        directory.mkdir(exist_ok=True)
        tool = directory / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        if str(directory) not in build.environment["PATH"]:
            build.environment["PATH"] = f"{directory}{os.pathsep}{build.environment['PATH']}"

    return write
