"""all-MiniLM-L6-v2 as an ONNX graph: a BERT encoder, mean pooling and normalisation, straight from its weights.

The encoder is that of Devlin et al., "BERT", arXiv:1810.04805, as the weights' `config.json` sizes it. Pooling over the
tokens and scaling to length 1 belong to the sentence model (Reimers and Gurevych, arXiv:1908.10084, and the
`modules.json` beside the weights). They are part of the graph, so that 384 numbers leave the GPU for each text, not
384 for each token.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load

from .onnx_graph import FLOAT, INT32, Graph

# The names in bert/config.pbtxt.
IDS = "token_ids"
MASK = "attn_mask"
OUTPUT = "output"


def build(weights: bytes, configuration: bytes) -> bytes:
    """The serialised ONNX model: two INT32 [N, tokens] -> FP32 [N, 384], each row of length 1.

    Args:
        weights: the content of `model.safetensors`.
        configuration: the content of `config.json`.
    """
    return _Encoder(load(weights), json.loads(configuration)).build()


class _Encoder:
    """One BERT encoder; the methods add their part of the graph and return the name of what it yields."""

    def __init__(self, weights: dict[str, npt.NDArray[np.float32]], configuration: dict[str, Any]) -> None:
        if configuration["hidden_act"] != "gelu" or configuration["position_embedding_type"] != "absolute":
            raise ValueError("this builder supports BERT with GELU and absolute positions, but config.json has others")
        self._weights = weights
        self._layers = int(configuration["num_hidden_layers"])
        self._heads = int(configuration["num_attention_heads"])
        self._hidden = int(configuration["hidden_size"])
        self._epsilon = float(configuration["layer_norm_eps"])
        self._graph = Graph("all-MiniLM-L6-v2")

    def build(self) -> bytes:
        mask = self._graph.node("Cast", MASK, name="attention_mask", to=FLOAT)
        x = self._embeddings()
        bias = self._attention_bias(mask)
        for i in range(self._layers):
            x = self._layer(x, bias, f"encoder.layer.{i}")
        self._sentence(x, mask)
        return self._graph.to_bytes(
            inputs={IDS: (INT32, ["batch", "tokens"]), MASK: (INT32, ["batch", "tokens"])},
            outputs={OUTPUT: (FLOAT, ["batch", self._hidden])},
            description="all-MiniLM-L6-v2: token ids and attention mask to a sentence embedding of length 1.",
            metadata={"weights": "sentence-transformers/all-MiniLM-L6-v2"},
        )

    def _weight(self, name: str) -> str:
        return self._graph.constant(name, self._weights[name])

    def _scalar(self, name: str, value: float) -> str:
        return self._graph.constant(f"scalars/{name}", value)

    def _linear(self, x: str, scope: str) -> str:
        # The weights are stored [out, in] and multiplied from the right: transposed once here, not at every run.
        matrix = self._graph.constant(f"{scope}.weight", self._weights[f"{scope}.weight"].T)
        product = self._graph.node("MatMul", x, matrix, name=f"{scope}/MatMul")
        return self._graph.node("Add", product, self._weight(f"{scope}.bias"), name=f"{scope}/Add")

    def _layer_norm(self, x: str, residual: str, scope: str) -> str:
        total = self._graph.node("Add", x, residual, name=f"{scope}/residual")
        scale, bias = self._weight(f"{scope}.weight"), self._weight(f"{scope}.bias")
        return self._graph.node(
            "LayerNormalization", total, scale, bias, name=f"{scope}/LayerNormalization", axis=-1, epsilon=self._epsilon
        )

    def _embeddings(self) -> str:
        words = self._graph.node(
            "Gather", self._weight("embeddings.word_embeddings.weight"), IDS, name="embeddings/words"
        )
        # The first rows of the position table, as many as there are tokens.
        tokens = self._graph.node("Shape", IDS, name="embeddings/tokens", start=1, end=2)
        zero = self._graph.integers(0)
        table = self._weight("embeddings.position_embeddings.weight")
        positions = self._graph.node("Slice", table, zero, tokens, zero, name="embeddings/positions")
        # A single text is all segment 0, so token_type_ids is no input and its embedding a constant.
        segment = self._graph.constant(
            "embeddings.token_type_embeddings.weight[0]", self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        placed = self._graph.node("Add", positions, segment, name="embeddings/places")
        return self._layer_norm(words, placed, "embeddings.LayerNorm")

    def _attention_bias(self, mask: str) -> str:
        """0 where there is a token and -10000 on padding, whose share after the softmax is then exactly 0.

        -10000 and not the lowest float32, so that the graph survives a conversion to FP16 (lowest: -65504).
        """
        missing = self._graph.node("Sub", self._scalar("one", 1.0), mask, name="attention/missing")
        bias = self._graph.node("Mul", missing, self._scalar("masked", -10000.0), name="attention/bias")
        return self._graph.node("Unsqueeze", bias, self._graph.integers(1, 2), name="attention/bias_per_head")

    def _layer(self, x: str, bias: str, scope: str) -> str:
        attended = self._attention(x, bias, f"{scope}.attention")
        x = self._layer_norm(
            self._linear(attended, f"{scope}.attention.output.dense"), x, f"{scope}.attention.output.LayerNorm"
        )
        wide = self._gelu(self._linear(x, f"{scope}.intermediate.dense"), f"{scope}.intermediate")
        return self._layer_norm(self._linear(wide, f"{scope}.output.dense"), x, f"{scope}.output.LayerNorm")

    def _attention(self, x: str, bias: str, scope: str) -> str:
        size = self._hidden // self._heads
        # 0 keeps the input's dimension: [batch, tokens, hidden] -> [batch, tokens, heads, size] and back.
        split = self._graph.integers(0, 0, self._heads, size)
        joined = self._graph.integers(0, 0, self._hidden)

        def heads(part: str, perm: list[int]) -> str:
            y = self._linear(x, f"{scope}.self.{part}")
            y = self._graph.node("Reshape", y, split, name=f"{scope}/{part}/Reshape")
            return self._graph.node("Transpose", y, name=f"{scope}/{part}/Transpose", perm=perm)

        query = heads("query", [0, 2, 1, 3])
        key = heads("key", [0, 2, 3, 1])  # transposed already
        value = heads("value", [0, 2, 1, 3])
        scores = self._graph.node("MatMul", query, key, name=f"{scope}/scores")
        scaled = self._graph.node("Mul", scores, self._scalar("1_over_sqrt_size", size**-0.5), name=f"{scope}/scaled")
        biased = self._graph.node("Add", scaled, bias, name=f"{scope}/biased")
        shares = self._graph.node("Softmax", biased, name=f"{scope}/Softmax", axis=-1)
        mixed = self._graph.node("MatMul", shares, value, name=f"{scope}/mixed")
        ordered = self._graph.node("Transpose", mixed, name=f"{scope}/ordered", perm=[0, 2, 1, 3])
        return self._graph.node("Reshape", ordered, joined, name=f"{scope}/joined")

    def _gelu(self, x: str, scope: str) -> str:
        """x/2 * (1 + erf(x / sqrt 2)); the operator Gelu came with opset 20 only."""
        erf = self._graph.node(
            "Erf",
            self._graph.node("Mul", x, self._scalar("1_over_sqrt_2", 0.5**0.5), name=f"{scope}/Gelu/argument"),
            name=f"{scope}/Gelu/Erf",
        )
        half = self._graph.node("Mul", x, self._scalar("half", 0.5), name=f"{scope}/Gelu/half")
        share = self._graph.node("Add", erf, self._scalar("one", 1.0), name=f"{scope}/Gelu/share")
        return self._graph.node("Mul", half, share, name=f"{scope}/Gelu")

    def _sentence(self, x: str, mask: str) -> None:
        """The mean over the tokens that are not padding, scaled to length 1."""
        # Each token's share of the mean: 1/count where there is a token. The count is at least 1, so that a mask
        # without any token gives zeros and no NaN. (Scaling undoes the division, but FP16 would overflow without it.)
        count = self._graph.node("ReduceSum", mask, self._graph.integers(1), name="sentence/tokens", keepdims=1)
        counted = self._graph.node("Max", count, self._scalar("one", 1.0), name="sentence/at_least_one")
        shares = self._graph.node("Div", mask, counted, name="sentence/shares")
        # [batch, 1, tokens] x [batch, tokens, hidden]: the mean is one matrix product.
        row = self._graph.node("Unsqueeze", shares, self._graph.integers(1), name="sentence/row")
        mean = self._graph.node("MatMul", row, x, name="sentence/mean")
        pooled = self._graph.node("Squeeze", mean, self._graph.integers(1), name="sentence/pooled")
        length = self._graph.node("ReduceL2", pooled, name="sentence/length", axes=[1], keepdims=1)
        # 1e-12 is what torch.nn.functional.normalize takes.
        safe = self._graph.node("Max", length, self._scalar("shortest", 1e-12), name="sentence/safe_length")
        self._graph.node("Div", pooled, safe, name=OUTPUT)
