"""Inception v3 as an ONNX graph, with untrained weights.

The architecture is the one of TF-slim's `inception_v3` without the auxiliary head, as in the published
`inception_v3_2016_08_28` graph (Szegedy et al., "Rethinking the Inception Architecture for Computer Vision",
arXiv:1512.00567; https://github.com/tensorflow/models/blob/master/research/slim/nets/inception_v3.py): the same
layers, names, layout (NHWC in, 1001 probabilities out) and number of parameters, 23,819,401 once batch normalisation
is folded into the convolutions. Only the weights differ: they are drawn from a fixed seed, because the trained ones
are not on any package index. What comes out is therefore a computation of the right size and cost, and no recognition
of anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .onnx_graph import FLOAT, Graph

SEED = 20160828
IMAGE_SIZE = 299  # pixels, height and width
CLASSES = 1001  # slim's ImageNet classes: 0 is the background
INPUT = "input"
OUTPUT = "InceptionV3/Predictions/Softmax"

# Filters are drawn with mean 0 and this gain over 1/sqrt(fan in): half of a standard normal's values survive a ReLU,
# and what survives has variance (1 - 1/pi) / 2. It is He's initialisation for zero-mean filters (Brock et al.,
# arXiv:2101.08692, "scaled weight standardisation"). With He's own, the positive mean that every ReLU adds grows from
# layer to layer until all images look alike to the last one.
RELU_GAIN = float(np.sqrt(2 / (1 - 1 / np.pi)))
# Averaging over the last 8x8 pixels leaves little variance; with this gain the most probable class of a natural image
# gets some percent, as an undecided network would say, and not the 0.1 % of a uniform distribution.
LOGITS_GAIN = 16.0


@dataclass(frozen=True)
class Convolution:
    """Convolution, batch normalisation (folded) and ReLU."""

    channels: int
    height: int = 1
    width: int = 1
    stride: int = 1
    padding: Literal["SAME", "VALID"] = "SAME"

    @property
    def name(self) -> str:
        """As part of the names of tensors and weights."""
        return f"Conv2d_{self.height}x{self.width}"


@dataclass(frozen=True)
class Pool:
    """Pooling over 3x3 pixels: the largest value with stride 2, or the mean with stride 1."""

    kind: Literal["MaxPool", "AveragePool"]

    @property
    def name(self) -> str:
        """As part of the names of tensors and weights."""
        return f"{self.kind}_3x3"


@dataclass(frozen=True)
class Branches:
    """Sequences of layers that read the same tensor; their channels are joined in this order."""

    branches: tuple[tuple[Layer, ...], ...]

    @property
    def name(self) -> str:
        """As part of the names of tensors and weights."""
        return "concat"


Layer = Convolution | Pool | Branches

MAX_POOL = Pool("MaxPool")
AVERAGE_POOL = Pool("AveragePool")


def _valid(channels: int, size: int, stride: int = 1) -> Convolution:
    return Convolution(channels, size, size, stride, "VALID")


def _grid_35(pool: int) -> Branches:
    """Figure 5 of the paper: 35x35 pixels, with `pool` channels behind the pooling branch."""
    return Branches(
        (
            (Convolution(64),),
            (Convolution(48), Convolution(64, 5, 5)),
            (Convolution(64), Convolution(96, 3, 3), Convolution(96, 3, 3)),
            (AVERAGE_POOL, Convolution(pool)),
        )
    )


def _grid_17(inner: int) -> Branches:
    """Figure 6: 17x17 pixels, 7x7 filters factorised into 1x7 and 7x1 over `inner` channels."""
    return Branches(
        (
            (Convolution(192),),
            (Convolution(inner), Convolution(inner, 1, 7), Convolution(192, 7, 1)),
            (
                Convolution(inner),
                Convolution(inner, 7, 1),
                Convolution(inner, 1, 7),
                Convolution(inner, 7, 1),
                Convolution(192, 1, 7),
            ),
            (AVERAGE_POOL, Convolution(192)),
        )
    )


def _grid_8() -> Branches:
    """Figure 7: 8x8 pixels, wide, for the coarsest grid."""
    fork = Branches(((Convolution(384, 1, 3),), (Convolution(384, 3, 1),)))
    return Branches(
        (
            (Convolution(320),),
            (Convolution(384), fork),
            (Convolution(448), Convolution(384, 3, 3), fork),
            (AVERAGE_POOL, Convolution(192)),
        )
    )


REDUCTION_TO_17 = Branches(
    (
        (_valid(384, 3, stride=2),),
        (Convolution(64), Convolution(96, 3, 3), _valid(96, 3, stride=2)),
        (MAX_POOL,),
    )
)
REDUCTION_TO_8 = Branches(
    (
        (Convolution(192), _valid(320, 3, stride=2)),
        (Convolution(192), Convolution(192, 1, 7), Convolution(192, 7, 1), _valid(192, 3, stride=2)),
        (MAX_POOL,),
    )
)

NETWORK: dict[str, Layer] = {
    "Conv2d_1a_3x3": _valid(32, 3, stride=2),  # -> 149 x 149 x 32
    "Conv2d_2a_3x3": _valid(32, 3),  # -> 147 x 147 x 32
    "Conv2d_2b_3x3": Convolution(64, 3, 3),  # -> 147 x 147 x 64
    "MaxPool_3a_3x3": MAX_POOL,  # -> 73 x 73 x 64
    "Conv2d_3b_1x1": _valid(80, 1),  # -> 73 x 73 x 80
    "Conv2d_4a_3x3": _valid(192, 3),  # -> 71 x 71 x 192
    "MaxPool_5a_3x3": MAX_POOL,  # -> 35 x 35 x 192
    "Mixed_5b": _grid_35(pool=32),  # -> 35 x 35 x 256
    "Mixed_5c": _grid_35(pool=64),  # -> 35 x 35 x 288
    "Mixed_5d": _grid_35(pool=64),  # -> 35 x 35 x 288
    "Mixed_6a": REDUCTION_TO_17,  # -> 17 x 17 x 768
    "Mixed_6b": _grid_17(inner=128),  # -> 17 x 17 x 768
    "Mixed_6c": _grid_17(inner=160),  # -> 17 x 17 x 768
    "Mixed_6d": _grid_17(inner=160),  # -> 17 x 17 x 768
    "Mixed_6e": _grid_17(inner=192),  # -> 17 x 17 x 768
    "Mixed_7a": REDUCTION_TO_8,  # -> 8 x 8 x 1280
    "Mixed_7b": _grid_8(),  # -> 8 x 8 x 2048
    "Mixed_7c": _grid_8(),  # -> 8 x 8 x 2048
}


class Tensor(NamedTuple):
    """A tensor of the graph, N x channels x height x width."""

    name: str
    channels: int


class _Builder:
    """Walks the layers, adds their nodes, and draws their weights in that order."""

    def __init__(self, graph: Graph, random: np.random.Generator) -> None:
        self._graph = graph
        self._random = random

    def add(self, layer: Layer, x: Tensor, scope: str) -> Tensor:
        match layer:
            case Convolution():
                return self._convolution(layer, x, scope)
            case Pool():
                return self._pool(layer, x, scope)
            case Branches():
                ends = [self._sequence(branch, x, f"{scope}/Branch_{i}") for i, branch in enumerate(layer.branches)]
                joined = self._graph.node("Concat", *(end.name for end in ends), name=f"{scope}/concat", axis=1)
                return Tensor(joined, sum(end.channels for end in ends))

    def _sequence(self, layers: tuple[Layer, ...], x: Tensor, scope: str) -> Tensor:
        for i, layer in enumerate(layers):
            x = self.add(layer, x, f"{scope}/{i}_{layer.name}")
        return x

    def _convolution(self, layer: Convolution, x: Tensor, scope: str) -> Tensor:
        weights = self.filters(layer.channels, x.channels, layer.height, layer.width, RELU_GAIN)
        y = self._graph.node(
            "Conv",
            x.name,
            self._graph.constant(f"{scope}/weights", weights),
            self._graph.constant(f"{scope}/biases", np.zeros(layer.channels)),
            name=f"{scope}/Conv2D",
            kernel_shape=[layer.height, layer.width],
            strides=[layer.stride, layer.stride],
            # TensorFlow's SAME with stride 1, which is the only one that occurs: the odd kernel's half on each side.
            pads=[layer.height // 2, layer.width // 2] * 2 if layer.padding == "SAME" else [0] * 4,
        )
        return Tensor(self._graph.node("Relu", y, name=f"{scope}/Relu"), layer.channels)

    def _pool(self, layer: Pool, x: Tensor, scope: str) -> Tensor:
        if layer.kind == "MaxPool":
            y = self._graph.node("MaxPool", x.name, name=scope, kernel_shape=[3, 3], strides=[2, 2])
        else:
            # TensorFlow's mean leaves the padding out, as does ONNX when it is told so.
            y = self._graph.node(
                "AveragePool", x.name, name=scope, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=0
            )
        return Tensor(y, x.channels)

    def filters(self, out: int, channels: int, height: int, width: int, gain: float) -> npt.NDArray[np.float32]:
        """Random filters, each with mean 0, scaled so that a layer passes on the variance that it was given."""
        fan_in = channels * height * width
        weights = self._random.standard_normal((out, fan_in), dtype=np.float32)
        weights -= weights.mean(axis=1, keepdims=True)
        weights *= np.float32(gain / np.sqrt(fan_in))
        return weights.reshape(out, channels, height, width)


def build(seed: int = SEED) -> bytes:
    """The serialised ONNX model: `input` FP32 [N, 299, 299, 3] in [-1, 1] -> softmax FP32 [N, 1001]."""
    graph = Graph("InceptionV3")
    builder = _Builder(graph, np.random.Generator(np.random.PCG64(seed)))
    x = Tensor(graph.node("Transpose", INPUT, name="InceptionV3/NCHW", perm=[0, 3, 1, 2]), 3)
    for name, layer in NETWORK.items():
        x = builder.add(layer, x, f"InceptionV3/{name}")
    pooled = graph.node("GlobalAveragePool", x.name, name="InceptionV3/Logits/AvgPool_1a_8x8")
    scope = "InceptionV3/Logits/Conv2d_1c_1x1"
    logits = graph.node(
        "Conv",
        pooled,
        graph.constant(f"{scope}/weights", builder.filters(CLASSES, x.channels, 1, 1, LOGITS_GAIN)),
        graph.constant(f"{scope}/biases", np.zeros(CLASSES)),
        name=f"{scope}/Conv2D",
        kernel_shape=[1, 1],
    )
    squeezed = graph.node("Squeeze", logits, graph.integers(2, 3), name="InceptionV3/Logits/SpatialSqueeze")
    graph.node("Softmax", squeezed, name=OUTPUT, axis=1)
    return graph.to_bytes(
        inputs={INPUT: (FLOAT, ["batch", IMAGE_SIZE, IMAGE_SIZE, 3])},
        outputs={OUTPUT: (FLOAT, ["batch", CLASSES])},
        description=(
            "Inception v3 (TF-slim architecture), UNTRAINED: every weight is random, drawn from a fixed seed. "
            "The probabilities mean nothing; the model shows how an image ensemble is served."
        ),
        metadata={"weights": "untrained", "seed": str(seed)},
    )
