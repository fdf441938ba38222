"""Repositories for tests: a sound one, and a way to break it."""

from __future__ import annotations

import argparse
import io
import os
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

import onnx
import onnx.parser
import pytest

from cdk_triton.errors import ModelConfigError
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.instances import GpuInstance, gpu_instance
from cdk_triton.triton import Finding, ModelConfig, ModelRepository, Platform, parse_model_config, releases
from cdk_triton.triton.checks.documentation import Example
from cdk_triton.triton.plans import Profile, ProfileShapes
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.repository import Recipe
from cdk_triton.triton.schema import DataType, ModelInput, ModelOutput

PREPROCESS = """
name: "preprocess"
backend: "python"
max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "token_ids" data_type: TYPE_INT32 dims: -1 }
"""

BERT = """
name: "bert"
platform: "onnxruntime_onnx"
max_batch_size: 8
input { name: "token_ids" data_type: TYPE_INT32 dims: -1 }
output { name: "embedding" data_type: TYPE_FP32 dims: 384 }
"""

ENSEMBLE = """
name: "ensemble"
platform: "ensemble"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_STRING dims: 1 }
output { name: "finaloutput" data_type: TYPE_FP32 dims: 384 }
ensemble_scheduling {
  step {
    model_name: "preprocess"
    model_version: -1
    input_map { key: "TEXT" value: "INPUT0" }
    output_map { key: "token_ids" value: "ids" }
  }
  step {
    model_name: "bert"
    model_version: -1
    input_map { key: "token_ids" value: "ids" }
    output_map { key: "embedding" value: "finaloutput" }
  }
}
"""

PYTHON_MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""

BERT_MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
bert (int32[N, tokens] token_ids) => (float[N, 384] embedding)
<int64[2] shape = {1, 384}>
{
  numbers = Cast<to = 1>(token_ids)
  mean = ReduceMean<axes = [1]>(numbers)
  embedding = Expand(mean, shape)
}
"""

SOUND: Mapping[str, str] = {
    "preprocess/config.pbtxt": PREPROCESS,
    "preprocess/1/model.py": PYTHON_MODEL,
    "bert/config.pbtxt": BERT,
    "bert/1/model.onnx": BERT_MODEL,
    "ensemble/config.pbtxt": ENSEMBLE,
    "ensemble/1/.gitkeep": "",
}


Change = str | bytes | tuple[str, str] | Mapping[str, str] | None
"""A file's content, a replacement (old, new) in the sound one, arguments of `ensemble_of`, or None to leave it out."""


def ensemble_of(*, model: str, given: str, result: str) -> str:
    """An ensemble with one step, which has one tensor in and one out; the rest of it agrees with the sound models."""
    kinds = {"INPUT0": "TYPE_STRING dims: 1", "token_ids": "TYPE_INT32 dims: -1"}
    return f"""
        platform: "ensemble"
        max_batch_size: 8
        input {{ name: "{given}" data_type: {kinds.get(given, "TYPE_FP32 dims: 1")} }}
        output {{ name: "{result}" data_type: TYPE_FP32 dims: 384 }}
        ensemble_scheduling {{
          step {{
            model_name: "{model}"
            model_version: -1
            input_map {{ key: "{given}" value: "{given}" }}
            output_map {{ key: "{result}" value: "{result}" }}
          }}
        }}
    """


class Write(Protocol):
    """Writes a repository and reads it."""

    def __call__(self, change: Mapping[str, Change] = ..., *, base: Mapping[str, str] = ...) -> ModelRepository:
        """Take `base`, or the sound repository, with a change of some files; `a/` is an empty directory.

        An ONNX file may be written in ONNX's text form, and a `.tar.gz` is written as the list of its members. Where
        `model.onnx` or `model.py` has the text "", it is a sound one; a plan with the text "plan" will be built.
        """


@pytest.fixture
def sound() -> Mapping[str, str]:
    """The files of a repository without a finding: preprocess → bert, and the ensemble."""
    return SOUND


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_repository(change: Mapping[str, Change] = {}, *, base: Mapping[str, str] = SOUND) -> ModelRepository:
        root = tmp_path / "repository"
        root.mkdir()
        built: dict[str, str] = {}
        for name, given in {**base, **change}.items():
            path = root / name
            content = given
            if isinstance(given, Mapping):
                content = ensemble_of(**given)
            elif isinstance(given, tuple):
                assert given[0] in base[name], f"{given[0]!r} is not in {name}"
                content = base[name].replace(*given)
            if name.endswith("/"):
                path.mkdir(parents=True)
            elif isinstance(content, str) and _is_built(name, content):
                built[name] = content
            elif content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else _content(name, str(content)))
        return ModelRepository.from_directory(root, recipes=[_Plans(built)] * bool(built))

    return write_repository


ExampleFindings = Callable[[Example], tuple[Finding, ...]]
"""Builds the repository of an example and checks it as its command line says."""


@pytest.fixture
def findings_of_example(tmp_path: Path) -> ExampleFindings:
    def check(example: Example) -> tuple[Finding, ...]:
        root = tmp_path / "repository"
        for name, content in {
            **_left_out(example.files),
            **{n: _content(n, t) for n, t in example.files.items() if not _is_built(n, t)},
        }.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if match := re.fullmatch(rb"\((\d+) GB .*\)\n", content):  # with that many zeros, which take no space
                os.truncate(path, int(match[1]) * 1024**3)
        command = argparse.ArgumentParser(exit_on_error=False)
        command.add_argument("--mode", default="single")
        command.add_argument("--platform")
        command.add_argument("--default-model")
        command.add_argument("--additional-model", action="append", default=[])
        command.add_argument("--preflight", action="store_true")
        options = command.parse_args(example.arguments)
        return ModelRepository.from_directory(root, recipes=_recipes(example.files)).check(
            options.mode,
            _platform(options.platform) if options.platform else None,
            default_model=options.default_model,
            additional_models=options.additional_model,
            preflight=options.preflight,
        )

    return check


def _content(name: str, text: str) -> bytes:
    """What a text in an example stands for: an ONNX file in ONNX's text form, a .tar.gz as the list of its members."""
    text = text or {"model.onnx": BERT_MODEL, "model.py": PYTHON_MODEL}.get(PurePosixPath(name).name, "")
    if name.endswith(".onnx") and text.lstrip().startswith("<"):
        return onnx.parser.parse_model(text).SerializeToString()
    if name.endswith(".tar.gz"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for member in text.split():
                archive.addfile(tarfile.TarInfo(member))
        return buffer.getvalue()
    return text.encode()


def _left_out(files: Mapping[str, str]) -> dict[str, bytes]:
    """What an example leaves out because its rule is not about it: a model's version with its file."""
    return {
        f"{model}/1/{path}": content
        for model, config in _without_files(files)
        for path, content in _model_files(config).items()
    }


@dataclass(frozen=True)
class _Unpublished:
    """A platform with a release of which there is no image yet."""

    release: str
    instance_type: str
    image: str | None = None

    @property
    def instance(self) -> GpuInstance:
        return gpu_instance(self.instance_type)


def _platform(text: str) -> Platform:
    """What stands behind `--platform`."""
    release, _, instance_type = text.partition("/")
    if release_order(release) > releases()[-1].order:
        return _Unpublished(release, instance_type)
    return ServingPlatform(release=release, instance_type=instance_type)


def _is_built(name: str, text: str) -> bool:
    """Whether a file of an example is built by a recipe: a plan of which the example says nothing, or from what."""
    return name.endswith(".plan") and (text.strip() == "plan" or _BUILT.fullmatch(text.strip()) is not None)


_BUILT = re.compile(r"\(built from (?P<onnx>\S+) for (?P<profile>.+)\)")


def _recipes(files: Mapping[str, str]) -> Sequence[Recipe]:
    """The recipes of an example: `(built from bert/bert.onnx for ids 1x128 to 16x128, mask 1x128 to 16x128)`."""
    recipes: list[Recipe] = [_Plans(files)]
    for name, text in files.items():
        if match := _BUILT.fullmatch(text.strip()):
            shapes = (each.replace(" to ", " ").split() for each in match["profile"].split(", "))
            profile = {tensor: ProfileShapes(_shape(low), _shape(high), _shape(high)) for tensor, low, high in shapes}
            recipes.append(PlanOfExample((name,), match["onnx"], (profile,)))
    return recipes


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x"))


@dataclass(frozen=True)
class PlanOfExample:
    """A recipe that builds a plan."""

    produces: tuple[str, ...]
    network: str
    profiles: tuple[Profile, ...]

    def shape_profiles(self, config: ModelConfig) -> tuple[Profile, ...]:
        return self.profiles


@dataclass(frozen=True)
class _Plans:
    """Builds the plans of an example's TensorRT models: of a plan that is there, nobody knows where it runs."""

    files: Mapping[str, str]

    @property
    def produces(self) -> tuple[str, ...]:
        built = [name for name, text in self.files.items() if _is_built(name, text)]
        models = [name for name, config in _without_files(self.files) if _backend(config) == "tensorrt"]
        return (*built, *(f"{name}/1/model.plan" for name in models))


def _backend(config: ModelConfig) -> str:
    platforms = {"tensorrt_plan": "tensorrt", "onnxruntime_onnx": "onnxruntime", "pytorch_libtorch": "pytorch"}
    return config.backend or platforms.get(config.platform, config.platform)


def _without_files(files: Mapping[str, str]) -> Iterator[tuple[str, ModelConfig]]:
    """The models of an example that have no version: name and configuration."""
    for name, text in files.items():
        model, _, file = name.partition("/")
        if file == "config.pbtxt" and not any(re.match(f"{re.escape(model)}/.+/", o) for o in files):
            try:
                yield model, parse_model_config(text)
            except ModelConfigError:
                yield model, ModelConfig(backend="python")


def _model_files(config: ModelConfig) -> dict[str, bytes]:
    files = {
        "ensemble": {".gitkeep": b""},
        "onnxruntime": {"model.onnx": _onnx_of(config)},
        "pytorch": {"model.pt": b"weights"},
        "tensorrt": {},  # built by a recipe
        "dali": {"dali.py": b"@autoserialize\ndef pipeline(): ..."},
        "openvino": {"model.xml": b"<net/>", "model.bin": b"weights"},
        "tensorflow_graphdef": {"model.graphdef": b"weights"},
        "tensorflow_savedmodel": {"model.savedmodel/saved_model.pb": b"graph"},
    }
    return files.get(_backend(config), {config.default_model_filename or "model.py": PYTHON_MODEL.encode()})


def _onnx_of(config: ModelConfig) -> bytes:
    """A model with the inputs, outputs and states of a configuration, and nothing between them."""
    types = {"FP32": "FLOAT", "FP16": "FLOAT16", "FP64": "DOUBLE", "BF16": "BFLOAT16"}

    def value(tensor: ModelInput | ModelOutput) -> onnx.ValueInfoProto:
        name = DataType.Name(tensor.data_type).removeprefix("TYPE_")
        shape = tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims
        dims = [None if d == -1 else d for d in ([-1] if config.max_batch_size else []) + list(shape)]
        kind = getattr(onnx.TensorProto, types.get(name, name))
        return onnx.helper.make_tensor_value_info(tensor.name, kind, dims)

    inputs = {tensor.name: value(tensor) for tensor in config.input}
    outputs = {tensor.name: value(tensor) for tensor in config.output}
    for state in config.sequence_batching.state:
        for name, tensors in ((state.input_name, inputs), (state.output_name, outputs)):
            if name:
                kind = state.data_type or DataType.Value("TYPE_FP32")
                tensors.setdefault(name, value(ModelInput(name=name, data_type=kind, dims=state.dims)))
    nodes = [onnx.helper.make_node("Identity", [config.input[0].name], [t.name]) for t in config.output if config.input]
    graph = onnx.helper.make_graph(nodes, "graph", list(inputs.values()), list(outputs.values()))
    opsets = [onnx.helper.make_opsetid("", 17)]
    return bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
