"""SmolLM2 as an ONNX graph that goes on from cached keys and values, straight from the weights in a GGUF file.

The network is a Llama (Touvron et al., arXiv:2302.13971) with grouped queries (Ainslie et al., arXiv:2305.13245), as
the keys `llama.*` of the file size it. Its weights are 4 bits wide, in blocks of 32 numbers with a scale and a minimum
(Q4_1 of llama.cpp); the graph keeps them as FP16 and computes in FP32.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader
from gguf.quants import dequantize

from .onnx_graph import FLOAT, INT32, Graph, Specification

# The names of the graph's tensors; those of the cache are as exports of Hugging Face's Transformers call them.
IDS = "token_ids"
MASK = "attn_mask"
LOGITS = "logits"
POSITIONS = 2048
"""The longest text in tokens, prompt and answer together: as many rows has the table of the rotations.

The weights were trained with 8192, for which an endpoint with many requests at once needs the memory.
"""

_REGULAR, _CONTROL = 1, 3  # llama_token_type


def build(gguf: Path) -> bytes:
    """The serialised ONNX model.

    ::

        token_ids                      INT32 [batch, new]
        attn_mask                      INT32 [batch, past + new]   0 for the padding, which goes to the left
        past_key_values.<layer>.key    FP32  [batch, 3, past, 64]  and .value; past is 0 at first
        logits                         FP32  [batch, 49152]        of the last token
        present.<layer>.key            FP32  [batch, 3, past + new, 64]  and .value

    Args:
        gguf: the file of the weights.
    """
    return _Decoder(GGUFReader(gguf)).build()


def tokenizer(gguf: Path) -> bytes:
    """`tokenizer.json` of the package `tokenizers`: byte pairs, with a digit as a token of its own.

    Args:
        gguf: the file of the weights, which has vocabulary and merges.
    """
    fields = GGUFReader(gguf).fields
    tokens: list[str] = fields["tokenizer.ggml.tokens"].contents()
    types: list[int] = fields["tokenizer.ggml.token_type"].contents()
    if fields["tokenizer.ggml.pre"].contents() != "smollm" or set(types) != {_REGULAR, _CONTROL}:
        raise ValueError("this builder supports the tokenizer of SmolLM2, but the GGUF file has another one")
    special = [
        {
            "id": number,
            "content": tokens[number],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, kind in enumerate(types)
        if kind == _CONTROL
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": fields["tokenizer.ggml.merges"].contents(),
        },
    }
    return json.dumps(document, ensure_ascii=False).encode()


class _Decoder:
    """One Llama; the methods add their part of the graph and return the name of what it yields."""

    def __init__(self, reader: GGUFReader) -> None:
        def field(name: str) -> Any:
            return reader.fields[name].contents()

        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self._layers = int(field("llama.block_count"))
        self._heads = int(field("llama.attention.head_count"))
        self._groups = int(field("llama.attention.head_count_kv"))
        self._hidden = int(field("llama.embedding_length"))
        self._vocabulary = int(field("llama.vocab_size"))
        self._epsilon = float(field("llama.attention.layer_norm_rms_epsilon"))
        self._base = float(field("llama.rope.freq_base"))
        self._size = self._hidden // self._heads
        self._graph = Graph("SmolLM2-135M-Instruct")
        self._node, self._constant, self._integers = self._graph.node, self._graph.constant, self._graph.integers

    def build(self) -> bytes:
        cache: Specification = (FLOAT, ["batch", self._groups, "past", self._size])
        grown: Specification = (FLOAT, ["batch", self._groups, "all", self._size])
        parts = [f"{layer}.{part}" for layer in range(self._layers) for part in ("key", "value")]
        self._positions()
        table = self._weight("token_embd.weight")
        x = self._node("Gather", table, IDS, name="embedding")
        for layer in range(self._layers):
            x = self._layer(x, layer)
        rows = self._node("Gather", x, self._integers(-1), name="last/row", axis=1)
        last = self._node("Squeeze", rows, self._integers(1), name="last")
        # The words' vectors are the output matrix, too. Gemm takes it transposed, so that there is one copy.
        self._node("Gemm", self._norm(last, "output_norm"), table, name=LOGITS, transB=1)
        return self._graph.to_bytes(
            inputs={
                IDS: (INT32, ["batch", "new"]),
                MASK: (INT32, ["batch", "all"]),
                **{f"past_key_values.{part}": cache for part in parts},
            },
            outputs={LOGITS: (FLOAT, ["batch", self._vocabulary]), **{f"present.{part}": grown for part in parts}},
            description="SmolLM2-135M-Instruct: token ids and what is cached of those before to the next token.",
            metadata={"weights": "HuggingFaceTB/SmolLM2-135M-Instruct, Q4_1", "positions": str(POSITIONS)},
        )

    def _values(self, name: str) -> npt.NDArray[np.float32]:
        tensor = self._tensors[name]
        values: npt.NDArray[np.float32] = dequantize(tensor.data, tensor.tensor_type)
        return values

    def _weight(self, name: str, values: npt.NDArray[np.float32] | None = None) -> str:
        """A matrix of the file, FP16 in the graph. ONNX Runtime casts it once, when it loads the graph."""
        kept = self._constant(f"{name}/fp16", self._values(name) if values is None else values, np.float16)
        return self._node("Cast", kept, name=name, to=FLOAT)

    def _scalar(self, name: str, value: float) -> str:
        return self._constant(f"scalars/{name}", value)

    def _linear(self, x: str, name: str, values: npt.NDArray[np.float32] | None = None) -> str:
        # The weights are stored [out, in] and multiplied from the right: transposed once here, not at every run.
        matrix = self._weight(name, (self._values(name) if values is None else values).T)
        return self._node("MatMul", x, matrix, name=f"{name}/MatMul")

    def _norm(self, x: str, scope: str) -> str:
        squares = self._node("Mul", x, x, name=f"{scope}/squares")
        mean = self._node("ReduceMean", squares, name=f"{scope}/mean", axes=[-1], keepdims=1)
        safe = self._node("Add", mean, self._scalar("epsilon", self._epsilon), name=f"{scope}/safe")
        length = self._node("Sqrt", safe, name=f"{scope}/length")
        scaled = self._node("Div", x, length, name=f"{scope}/scaled")
        weight = self._constant(f"{scope}.weight", self._values(f"{scope}.weight"))
        return self._node("Mul", scaled, weight, name=f"{scope}/RMSNorm")

    def _positions(self) -> None:
        """The rotations of the new tokens, and which tokens each of them depends on."""
        zero, one = self._integers(0), self._integers(1)
        mask = self._node("Cast", MASK, name="mask", to=FLOAT)
        # A token's place is the number of tokens before it that are no padding.
        counted = self._node("CumSum", MASK, self._constant("axis", 1, np.int32), name="counted")
        places = self._node("Sub", counted, self._constant("first", 1, np.int32), name="places")
        placed = self._node("Max", places, self._constant("none", 0, np.int32), name="placed")
        new = self._node("Shape", IDS, name="new", start=1, end=2)
        every = self._node("Shape", MASK, name="all", start=1, end=2)
        past = self._node("Sub", every, new, name="past")
        these = self._node("Slice", placed, past, every, one, name="these")
        rates = self._base ** (-np.arange(0, self._size, 2, dtype=np.float64) / self._size)
        angles = np.outer(np.arange(POSITIONS), np.concatenate((rates, rates)))
        for name, function in (("cosine", np.cos), ("sine", np.sin)):
            rows = self._node("Gather", self._constant(f"{name}s", function(angles)), these, name=f"{name}/rows")
            self._node("Unsqueeze", rows, one, name=name)  # for every head
        # 0 where a new token (a row) sees one (a column), and -10000 where that comes later or is padding.
        steps = self._constant("steps", np.arange(POSITIONS), np.int32)
        columns = self._node("Slice", steps, zero, every, zero, name="columns")
        rows = self._node("Slice", steps, past, every, zero, name="steps/new")
        upright = self._node("Unsqueeze", rows, one, name="rows")
        later = self._node("Greater", columns, upright, name="later")
        hidden = self._node("Cast", later, name="hidden", to=FLOAT)
        missing = self._node("Sub", self._scalar("one", 1.0), mask, name="missing")
        padding = self._node("Unsqueeze", missing, one, name="padding")
        either = self._node("Max", hidden, padding, name="unseen")
        bias = self._node("Mul", either, self._scalar("masked", -10000.0), name="bias/rows")
        self._node("Unsqueeze", bias, self._integers(1, 2), name="bias")  # for every group and head

    def _layer(self, x: str, layer: int) -> str:
        scope = f"blk.{layer}"
        attended = self._attention(self._norm(x, f"{scope}.attn_norm"), layer)
        x = self._node("Add", x, attended, name=f"{scope}/attended")
        normed = self._norm(x, f"{scope}.ffn_norm")
        gate = self._linear(normed, f"{scope}.ffn_gate.weight")
        share = self._node("Sigmoid", gate, name=f"{scope}/gate/Sigmoid")
        opened = self._node("Mul", gate, share, name=f"{scope}/gate")  # SiLU
        wide = self._node("Mul", opened, self._linear(normed, f"{scope}.ffn_up.weight"), name=f"{scope}/wide")
        return self._node("Add", x, self._linear(wide, f"{scope}.ffn_down.weight"), name=f"{scope}/out")

    def _attention(self, x: str, layer: int) -> str:
        scope = f"blk.{layer}.attn"
        query = self._rotated(self._rows(x, f"{scope}_q", self._heads), f"{scope}_q", self._heads)
        key = self._rotated(self._rows(x, f"{scope}_k", self._groups), f"{scope}_k", self._groups)
        value = self._split(self._linear(x, f"{scope}_v.weight"), f"{scope}_v", self._groups)
        past, present = f"past_key_values.{layer}", f"present.{layer}"
        keys = self._node("Concat", f"{past}.key", key, name=f"{present}.key", axis=2)
        values = self._node("Concat", f"{past}.value", value, name=f"{present}.value", axis=2)
        # The heads of a group share keys and values: [batch, groups, heads, new, size] x [batch, groups, 1, ...].
        two = self._integers(2)
        grouped = self._integers(0, self._groups, self._heads // self._groups, -1, self._size)
        queries = self._node("Reshape", query, grouped, name=f"{scope}/queries")
        turned = self._node("Transpose", keys, name=f"{scope}/keys/turned", perm=[0, 1, 3, 2])
        shared_keys = self._node("Unsqueeze", turned, two, name=f"{scope}/keys")
        shared_values = self._node("Unsqueeze", values, two, name=f"{scope}/values")
        scores = self._node("MatMul", queries, shared_keys, name=f"{scope}/scores")
        root = self._scalar("1_over_sqrt_size", self._size**-0.5)
        biased = self._node(
            "Add", self._node("Mul", scores, root, name=f"{scope}/scaled"), "bias", name=f"{scope}/biased"
        )
        shares = self._node("Softmax", biased, name=f"{scope}/Softmax", axis=-1)
        mixed = self._node("MatMul", shares, shared_values, name=f"{scope}/mixed")
        split = self._integers(0, self._heads, -1, self._size)
        heads = self._node("Reshape", mixed, split, name=f"{scope}/heads")
        ordered = self._node("Transpose", heads, name=f"{scope}/ordered", perm=[0, 2, 1, 3])
        joined = self._node("Reshape", ordered, self._integers(0, 0, self._hidden), name=f"{scope}/joined")
        return self._linear(joined, f"{scope}_output.weight")

    def _rows(self, x: str, scope: str, heads: int) -> str:
        """Queries or keys, whose halves rotate against each other; the file has the two of a pair side by side."""
        name = f"{scope}.weight"
        pairs = self._values(name).reshape(heads, self._size // 2, 2, self._hidden)
        return self._linear(x, name, pairs.swapaxes(1, 2).reshape(heads * self._size, self._hidden))

    def _split(self, x: str, scope: str, heads: int) -> str:
        """[batch, new, heads * size] -> [batch, heads, new, size]; 0 keeps a dimension."""
        parts = self._node("Reshape", x, self._integers(0, 0, heads, self._size), name=f"{scope}/Reshape")
        return self._node("Transpose", parts, name=f"{scope}/Transpose", perm=[0, 2, 1, 3])

    def _rotated(self, x: str, scope: str, heads: int) -> str:
        """Rotary position embedding (Su et al., arXiv:2104.09864)."""
        x = self._split(x, scope, heads)
        half, zero, three = self._integers(self._size // 2), self._integers(0), self._integers(3)
        first = self._node("Slice", x, zero, half, three, name=f"{scope}/first")
        second = self._node("Slice", x, half, self._integers(self._size), three, name=f"{scope}/second")
        negated = self._node("Neg", second, name=f"{scope}/negated")
        turned = self._node("Concat", negated, first, name=f"{scope}/turned", axis=-1)
        along = self._node("Mul", x, "cosine", name=f"{scope}/along")
        across = self._node("Mul", turned, "sine", name=f"{scope}/across")
        return self._node("Add", along, across, name=f"{scope}/rotated")
