"""A repository in memory: what the strategies build and change before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import onnx
import onnx.helper
from google.protobuf import text_format

from cdk_triton.triton import ModelConfig
from cdk_triton.triton.schema import DataType, ModelInput, ModelInstanceGroup, ModelOutput, enum_name
from sample_repositories.files import DALI_PIPELINE, SERIALIZED_PIPELINE
from sample_repositories.torch_models import torch_model_files
from sample_repositories.tree_models import xgboost_binary

__all__ = ["OUR_RELEASE", "Draft", "Tensor", "model_files", "type_of"]

OUR_RELEASE: Final = "24.10"
"""The release of the tritonserver of nvidia-pytriton."""

PYTHON_MODEL = b"""
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""


def type_of(name: str) -> int:
    """The number of a data type, for example of `FP32`."""
    return int(DataType.Value(f"TYPE_{name}"))


@dataclass(frozen=True)
class Tensor:
    """A tensor as the data has it: no -1, and no batch dimension where the model batches."""

    name: str
    data_type: int
    shape: tuple[int, ...]


@dataclass(repr=False)
class Draft:
    """A repository that can still be changed.

    Attributes:
        entry: the model that the container loads.
        configs: configurations by directory.
        texts: texts that stand in the place of a configuration, by directory.
        files: all other files, by path.
        changes: what was done to a valid repository, in words.
        release: the release of the server that is to load it.
    """

    entry: str = ""
    configs: dict[str, ModelConfig] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    release: str = OUR_RELEASE

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Every file of the repository."""
        for directory, config in self.configs.items():
            text = text_format.MessageToString(config, as_utf8=True)
            yield f"{directory}/config.pbtxt", self.texts.get(directory, text.encode())
        yield from self.files.items()

    def write(self, root: Path) -> None:
        """Write the repository into a new directory; a path below another file is left out."""
        for name, content in self.contents():
            path = root / name
            if path.is_dir() or any(parent.is_file() for parent in path.parents):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def for_the_judge(self) -> Draft | None:
        """The same without what only a GPU decides, or None if it is the same already.

        This machine has no GPU, and its server refuses every KIND_GPU, and every GPU's number. With a negative
        one KIND_AUTO is KIND_CPU wherever there are GPUs, too.
        """
        kinds = ModelInstanceGroup
        copies = {directory: ModelConfig.FromString(c.SerializeToString()) for directory, c in self.configs.items()}
        for config in copies.values():
            for group in config.instance_group:
                if group.kind == kinds.KIND_GPU or (group.kind == kinds.KIND_AUTO and min(group.gpus, default=-1) >= 0):
                    group.kind = kinds.KIND_CPU
                    group.ClearField("gpus")
        return None if copies == self.configs else replace(self, configs=copies)

    def __repr__(self) -> str:
        """The whole repository, to be read in a failed test."""
        lines = [f"entry: {self.entry}", *(f"changed: {change}" for change in self.changes)]
        for name, content in sorted(self.contents()):
            text = content.decode(errors="backslashreplace")
            shown = name.endswith("config.pbtxt") or len(content) < 40
            lines.append(f"--- {name}" + (f"\n{text}" if shown and text else ""))
        return "\n".join(lines)


def model_files(config: ModelConfig) -> dict[str, bytes]:
    """What belongs into a version directory, as the backend of a configuration wants it."""
    name = config.default_model_filename
    kind = config.backend or config.platform
    if kind == "ensemble":
        return {".gitkeep": b""}
    if kind in ("onnxruntime", "onnxruntime_onnx"):
        return {name or "model.onnx": _onnx(config)}
    if kind == "openvino":
        return {name or "model.xml": b"<net/>", (name or "model.xml").replace(".xml", ".bin"): b"weights"}
    if kind in ("tensorflow_savedmodel", "tensorflow"):
        return {f"{name or 'model.savedmodel'}/saved_model.pb": b"graph"}
    return {
        "python": {name or "model.py": PYTHON_MODEL},
        "tensorrt": {name or "model.plan": b"ptrt" + bytes(28)},
        "tensorrt_plan": {name or "model.plan": b"ptrt" + bytes(28)},
        "pytorch": torch_model_files(config),
        "pytorch_libtorch": torch_model_files(config),
        "tensorflow_graphdef": {name or "model.graphdef": b"graph"},
        "dali": {name or "model.dali": DALI_PIPELINE.encode() if name.endswith(".py") else SERIALIZED_PIPELINE},
        "fil": {name or "xgboost.model": xgboost_binary(features=0)},
    }.get(kind, {"model.identity": b""})


def _onnx(config: ModelConfig) -> bytes:
    """An ONNX model with everything that the configuration gives it and wants of it; nobody runs it."""
    types = {"FP32": "FLOAT", "FP16": "FLOAT16", "FP64": "DOUBLE", "BF16": "BFLOAT16"}

    def kind_of(data_type: int) -> int:
        name = DataType.Name(data_type).removeprefix("TYPE_")
        return int(getattr(onnx.TensorProto, types.get(name, name)))

    def value(name: str, data_type: int, shape: Iterable[int]) -> onnx.ValueInfoProto:
        dims = [None if d == -1 else d for d in ([-1] if config.max_batch_size else []) + list(shape)]
        return onnx.helper.make_tensor_value_info(name, kind_of(data_type), dims)

    def tensor(given: ModelInput | ModelOutput) -> onnx.ValueInfoProto:
        if isinstance(given, ModelInput) and given.allow_ragged_batch:  # all elements of all requests in a row
            return onnx.helper.make_tensor_value_info(given.name, kind_of(given.data_type), [None])
        return value(given.name, given.data_type, given.reshape.shape if given.HasField("reshape") else given.dims)

    inputs, outputs = [tensor(each) for each in config.input], [tensor(each) for each in config.output]
    for each in config.batch_input:
        shape = [None, None] if enum_name(each, "kind") == "BATCH_ITEM_SHAPE" else [None]  # as the server computes it
        inputs.append(onnx.helper.make_tensor_value_info(each.target_name[0], kind_of(each.data_type), shape))
    for signal in config.sequence_batching.control_input:
        inputs.append(value(signal.name, signal.control[0].data_type or type_of("INT32"), [1]))
    for state in config.sequence_batching.state:
        inputs.append(value(state.input_name, state.data_type, state.dims))
        outputs.append(value(state.output_name, state.data_type, state.dims))
    given, made = [each.name for each in inputs], [each.name for each in outputs]
    # One operator of a foreign domain, of which nothing is judged: the server's backends here read no graph.
    nodes = [
        onnx.helper.make_node("Attention", given, [name for name in made if name not in given], domain="com.microsoft")
    ]
    graph = onnx.helper.make_graph(nodes, "graph", inputs, outputs)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
