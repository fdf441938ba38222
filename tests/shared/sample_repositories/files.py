"""The files that a text in a test or an example stands for."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import PurePosixPath

import onnx
import onnx.parser

from cdk_triton.triton import ModelConfig
from cdk_triton.triton.schema import DataType, ModelInput, ModelOutput
from sample_repositories.builds import backend_of
from sample_repositories.sound import BERT_MODEL, PYTHON_MODEL
from sample_repositories.torch_models import torch_content, torch_model_files, torchscript
from sample_repositories.tree_models import pickle_of, tree_model_files

__all__ = ["DALI_PIPELINE", "SERIALIZED_PIPELINE", "content_of", "model_files"]

DALI_PIPELINE = """
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.triton import autoserialize


@autoserialize
@pipeline_def(batch_size=8, num_threads=1, device_id=0)
def pipeline():
    return tuple(fn.external_source(name=name) for name in "DATA".split())
"""
"""A definition that does not show its inputs and outputs, so it fits every configuration."""

SERIALIZED_PIPELINE = b"\x08\x01\x10\x08"
"""A pipeline without inputs and outputs, which no rule compares: one thread, and batches of 8."""


_PICKLE = re.compile(r"\(a pickle of (?P<module>[\w.]+)\)\s*")


def content_of(name: str, text: str) -> bytes:
    """What a text in an example stands for.

    An ONNX file is written in ONNX's text form, a PyTorch model as the signature of its `forward`, a .tar.gz as the
    list of its members, where `a = b` is a hard link, and a pickle as a description.
    """
    if match := _PICKLE.fullmatch(text):
        return pickle_of(match["module"])
    if name.endswith((".pt", ".pt2")):
        return (torch_content(text) if text else torchscript()) or text.encode()
    if name.endswith(".dali") and not text:
        return SERIALIZED_PIPELINE
    usual = {"model.onnx": BERT_MODEL, "model.py": PYTHON_MODEL, "dali.py": DALI_PIPELINE}
    text = text or usual.get(PurePosixPath(name).name, "")
    if name.endswith(".onnx") and text.lstrip().startswith("<"):
        return onnx.parser.parse_model(text).SerializeToString()
    if name.endswith(".tar.gz"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for member, target in re.findall(r"(\S+)(?: = (\S+))?", text):
                info = tarfile.TarInfo(member)
                info.type, info.linkname = (tarfile.LNKTYPE if target else tarfile.REGTYPE), target
                archive.addfile(info)
        return buffer.getvalue()
    return text.encode()


def model_files(config: ModelConfig) -> dict[str, bytes]:
    files = {
        "ensemble": {".gitkeep": b""},
        "onnxruntime": {"model.onnx": _onnx_of(config)},
        "pytorch": torch_model_files(config),
        "torch_aoti": torch_model_files(config),
        "tensorrt": {},  # built by a recipe
        "dali": {"dali.py": DALI_PIPELINE.encode()},
        "fil": tree_model_files(config),
        "openvino": {"model.xml": b"<net/>", "model.bin": b"weights"},
        "tensorflow_graphdef": {"model.graphdef": b"weights"},
        "tensorflow_savedmodel": {"model.savedmodel/saved_model.pb": b"graph"},
    }
    return files.get(backend_of(config), {config.default_model_filename or "model.py": PYTHON_MODEL.encode()})


def _onnx_of(config: ModelConfig) -> bytes:
    """A model with the inputs, outputs and states of a configuration, and one operator of ONNX Runtime between them."""
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
    made = [name for name in outputs if name not in inputs]
    nodes = [
        onnx.helper.make_node("Attention", list(inputs), made, domain="com.microsoft")
    ]  # its signature is not judged
    graph = onnx.helper.make_graph(nodes, "graph", list(inputs.values()), list(outputs.values()))
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
