"""The archives that `reference_systems.py` compares: the published form of the text ensemble, and the examples.

The published form is our own re-implementation of its description: two Python steps, each with a packed environment of
torch and transformers, around a network that takes 128 tokens and gives all hidden states. The published one also logs
each text.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import onnx
from onnx import helper

sys.path.append(str(Path(__file__).resolve().parents[1] / "gpu_build"))

from build_program import wheels
from build_program.log import Log
from build_program.pack import pack
from build_program.stop import Stop
from build_program.work import BuildWork, Journal
from cdk_triton.artifacts.contents import archive_files
from cdk_triton.triton import ModelRepository
from cdk_triton_local.triton.backends.plan import stand_in_plan

ASSETS = Path(__file__).resolve().parents[1] / "model_assets"
PUBLISHED = Path(__file__).with_name("_published")
HIDDEN_STATES = "encoder.layer.5.output.LayerNorm/LayerNormalization"
ONE_THREAD = 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }\n'
BUILD_SECONDS = 3600
WHEELS = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": (ASSETS / "wheels").as_uri()}
"""Variables with which pip takes the wheels that `prepare.py` has downloaded, without an index."""


def prepare() -> None:
    """Prepare the weights, as `make demo` does."""
    subprocess.run([sys.executable, ASSETS / "prepare.py"], stdout=sys.stderr, check=True)


def published_text(directory: Path) -> tuple[Path, Path]:
    """The archive of the published text ensemble, packed as a build packs ours, and its network's file."""
    repository = Path(shutil.copytree(PUBLISHED / "models", directory / "published"))
    environment = cached_environment(PUBLISHED / "requirements.txt")
    for step in ("preprocess", "postprocess"):
        shutil.copy(environment, repository / step / "processing_env.tar.gz")
    shutil.copy(ASSETS / "sentence_embedding/tokenizer/1/tokenizer.json", repository / "preprocess/1")
    network = onnx.load(ASSETS / "sentence_embedding/bert/bert.onnx")
    last = next(number for number, node in enumerate(network.graph.node) if HIDDEN_STATES in node.output)
    del network.graph.node[last + 1 :]
    network.graph.node.append(helper.make_node("Identity", [HIDDEN_STATES], ["output"]))
    states = helper.make_tensor_value_info("output", onnx.TensorProto.FLOAT, ["batch", "tokens", 384])
    network.graph.output[0].CopyFrom(states)
    plan = write_plan(repository / "bert", network.SerializeToString())
    return packed(repository, directory / "published.tar.gz"), plan


def example_text(directory: Path) -> tuple[Path, Path]:
    """The archive of the example's text ensemble, as its build leaves it, and its network's file."""
    source = ASSETS / "sentence_embedding"
    repository = Path(shutil.copytree(source, directory / "example", ignore=shutil.ignore_patterns("*.onnx", "*.toml")))
    plan = write_plan(repository / "bert", (source / "bert/bert.onnx").read_bytes())
    return packed(repository, directory / "example.tar.gz"), plan


def generating(directory: Path) -> Path:
    """The archive of the generating model, with its environment, on one thread of ONNX Runtime."""
    source = ASSETS / "text_generation"
    ignore = shutil.ignore_patterns("requirements.*", "*.toml", "__pycache__")
    repository = Path(shutil.copytree(source, directory / "generating", ignore=ignore))
    with mock.patch.dict(os.environ, WHEELS):
        environment = cached_environment(source / "generate/requirements.txt")
    shutil.copy(environment, repository / "generate/env.tar.gz")
    program = repository / "generate/1/generation.py"
    one_thread = "settings = onnxruntime.SessionOptions()\n    settings.intra_op_num_threads = 1\n"
    changed = program.read_text().replace("settings = onnxruntime.SessionOptions()\n", one_thread)
    assert "intra_op_num_threads" in changed
    program.write_text(changed)
    return packed(repository, directory / "generating.tar.gz")


def write_plan(model: Path, network: bytes) -> Path:
    """Write the stand-in for a model's TensorRT plan, and let it use one thread."""
    (model / "1").mkdir()
    (model / "1/model.plan").write_bytes(stand_in_plan(network))
    with (model / "config.pbtxt").open("a") as file:
        file.write(ONE_THREAD)
    return model / "1/model.plan"


def packed(repository: Path, archive: Path) -> Path:
    """Pack a repository as a build does."""
    files = [file.path for file in archive_files(ModelRepository.from_directory(repository))]
    pack(repository, files, archive, Stop(time.monotonic() + BUILD_SECONDS))
    return archive


def cached_environment(requirements: Path) -> Path:
    """A packed environment, made once for these requirements, this packer and this Python, and kept in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdk-triton/benchmarks"
    determinants = requirements.read_bytes() + inspect.getsource(wheels).encode() + sys.version.encode()
    digest = hashlib.sha256(determinants).hexdigest()[:16]
    kept = cache / f"{digest}.tar.gz"
    if kept.exists():
        return kept
    print(f"packing the environment of {requirements}, once: this takes minutes ...", file=sys.stderr)
    work = cache / f"{digest}.partial"
    shutil.rmtree(work, ignore_errors=True)
    (work / "scratch").mkdir(parents=True)
    shutil.copy(requirements, work / "requirements.txt")
    step = {"requirements": "requirements.txt", "target": "env.tar.gz"}
    log = io.StringIO()
    try:
        wheels.build(
            step,
            BuildWork(
                requirements.name,
                repository=work,
                scratch=work / "scratch",
                platform={},
                probed={},
                log=Log(log),
                stop=Stop(time.monotonic() + BUILD_SECONDS),
                journal=Journal([], []),
            ),
        )
        (work / "env.tar.gz").replace(kept)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return kept
