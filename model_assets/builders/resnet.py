"""ResNet-50 as an ONNX graph, straight from the trained weights of Keras Applications.

The network is that of He et al., "Deep Residual Learning for Image Recognition", arXiv:1512.03385. It comes as a layers
model of TensorFlow.js: `model.json` lists the layers as Keras does, and then the weights, whose float32 numbers follow
each other in the shards (https://www.tensorflow.org/js/tutorials/conversion/import_keras).

Two things differ from Keras, and neither changes an answer. The images come as channels, rows, columns, which is how
DALI can write them and GPUs like them best. And a batch normalisation is part of the convolution before it, because
both are linear.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from .onnx_graph import FLOAT, Graph

IMAGE_SIZE = 224  # pixels, height and width
CLASSES = 1000

# The names in resnet50/config.pbtxt.
INPUT = "input"
OUTPUT = "probabilities"

Weights = dict[str, npt.NDArray[np.float32]]


def build(model: bytes, numbers: bytes) -> bytes:
    """The serialised ONNX model: FP32 [N, 3, 224, 224] -> softmax FP32 [N, 1000].

    The input has the channels blue, green, red, each less its mean over ImageNet: 103.939, 116.779, 123.68.

    Args:
        model: the content of `model.json`.
        numbers: that of the shards, one after the other.
    """
    document = json.loads(model)
    weights = _weights(document["weightsManifest"], numbers)
    return _Network(weights).build(document["modelTopology"]["model_config"]["config"]["layers"])


def shards(model: bytes) -> list[str]:
    """The names of the shards, in their order."""
    return [path for group in json.loads(model)["weightsManifest"] for path in group["paths"]]


def labels(document: bytes) -> bytes:
    """The names of the classes as Triton reads them: a line for each."""
    by_number = json.loads(document)
    return "".join(f"{by_number[str(number)].replace('_', ' ')}\n" for number in range(CLASSES)).encode()


def _weights(manifest: list[dict[str, Any]], numbers: bytes) -> Weights:
    found: Weights = {}
    rest = np.frombuffer(numbers, dtype="<f4")
    for entry in (entry for group in manifest for entry in group["weights"]):
        if entry["dtype"] != "float32" or "quantization" in entry:
            raise ValueError(f"this builder reads float32 weights, but {entry['name']} has others")
        size = int(np.prod(entry["shape"], dtype=np.int64))
        found[entry["name"]], rest = rest[:size].reshape(entry["shape"]), rest[size:]
    if rest.size:
        raise ValueError(f"the shards have {rest.size} numbers more than model.json lists")
    return found


class _Network:
    """Walks the layers, which stand in an order in which each has its inputs before it."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._graph = Graph("ResNet-50")
        self._tensors: dict[str, str] = {}  # layer -> the tensor that it yields
        self._padding: dict[str, list[int]] = {}  # layer that only pads -> how much: top, left, bottom, right
        self._convolutions: dict[str, tuple[str, dict[str, Any]]] = {}  # layer -> input tensor, and its settings

    def build(self, layers: list[dict[str, Any]]) -> bytes:
        for layer in layers:
            inputs = [name for name, *_ in layer["inbound_nodes"][0]] if layer["inbound_nodes"] else []
            self._add(layer["class_name"], layer["config"], inputs)
        return self._graph.to_bytes(
            inputs={INPUT: (FLOAT, ["batch", 3, IMAGE_SIZE, IMAGE_SIZE])},
            outputs={OUTPUT: (FLOAT, ["batch", CLASSES])},
            description="ResNet-50, trained on ImageNet: an image as BGR less the mean to 1000 probabilities.",
            metadata={"weights": "Keras Applications, ResNet50"},
        )

    def _add(self, kind: str, config: dict[str, Any], inputs: list[str]) -> None:
        name = config["name"]
        match kind:
            case "InputLayer":
                self._tensors[name] = INPUT
            case "ZeroPadding2D":
                (top, bottom), (left, right) = config["padding"]
                self._tensors[name] = self._tensors[inputs[0]]
                self._padding[name] = [top, left, bottom, right]
            case "Conv2D":
                self._convolutions[name] = inputs[0], config
            case "BatchNormalization":
                self._tensors[name] = self._convolution(config, inputs[0])
            case "Activation" if config["activation"] == "relu":
                self._tensors[name] = self._graph.node("Relu", self._tensors[inputs[0]], name=name)
            case "Add":
                self._tensors[name] = self._graph.node("Add", *(self._tensors[each] for each in inputs), name=name)
            case "MaxPooling2D":
                self._tensors[name] = self._pool(config, inputs[0])
            case "GlobalAveragePooling2D":
                pooled = self._graph.node("GlobalAveragePool", self._tensors[inputs[0]], name=f"{name}/mean")
                self._tensors[name] = self._graph.node("Flatten", pooled, name=name)
            case "Dense" if config["activation"] == "softmax":
                self._tensors[name] = self._classes(name, inputs[0])
            case _:
                raise ValueError(f"this builder supports the layers of ResNet-50, but {name} is a {kind}")

    def _convolution(self, normalisation: dict[str, Any], name: str) -> str:
        """A convolution and the batch normalisation behind it as one node."""
        given, config = self._convolutions[name]
        if config["padding"] != "valid" and config["kernel_size"] != [1, 1] and config["strides"] != [1, 1]:
            raise ValueError(f"{name} pads by itself with a stride, which this builder does not support")
        parts = ("gamma", "beta", "moving_mean", "moving_variance")
        gamma, beta, mean, variance = (
            self._weights[f"{normalisation['name']}/{part}"].astype(np.float64) for part in parts
        )
        scale = gamma / np.sqrt(variance + normalisation["epsilon"])
        kernel = self._weights[f"{name}/kernel"].astype(np.float64) * scale  # rows, columns, in, out
        bias = (self._weights[f"{name}/bias"].astype(np.float64) - mean) * scale + beta
        height, width = config["kernel_size"]
        same = [height // 2, width // 2] * 2 if config["padding"] == "same" else [0, 0, 0, 0]
        return self._graph.node(
            "Conv",
            self._tensors[given],
            self._graph.constant(f"{name}/kernel", kernel.transpose(3, 2, 0, 1)),
            self._graph.constant(f"{name}/bias", bias),
            name=name,
            kernel_shape=[height, width],
            strides=config["strides"],
            pads=self._padding.get(given, same),
        )

    def _pool(self, config: dict[str, Any], given: str) -> str:
        # What is padded comes out of a ReLU: nothing in it is below the zeros of Keras' padding, so that leaving the
        # padding out of the maximum, as ONNX does, gives the same.
        return self._graph.node(
            "MaxPool",
            self._tensors[given],
            name=config["name"],
            kernel_shape=config["pool_size"],
            strides=config["strides"],
            pads=self._padding.get(given, [0, 0, 0, 0]),
        )

    def _classes(self, name: str, given: str) -> str:
        kernel = self._graph.constant(f"{name}/kernel", self._weights[f"{name}/kernel"])
        bias = self._graph.constant(f"{name}/bias", self._weights[f"{name}/bias"])
        logits = self._graph.node("Gemm", self._tensors[given], kernel, bias, name=name)
        return self._graph.node("Softmax", logits, name=OUTPUT, axis=1)
