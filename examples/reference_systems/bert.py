"""The TensorRT plan of all-MiniLM-L6-v2, a BERT encoder, which two of the systems serve."""

from __future__ import annotations

from cdk_triton import Parity, TensorRTPlan

# A plan takes the shapes that it was built for: smallest, usual and largest, each as texts and tokens. The tokenizer
# makes 256 tokens of a text at most. With real token ids and no padding the comparison with ONNX Runtime means most.
SHAPES = ((1, 1), (8, 64), (16, 256))
BERT = TensorRTPlan(
    "bert",
    onnx="bert.onnx",
    precision="fp16",
    profiles=[{"token_ids": SHAPES, "attn_mask": SHAPES}],
    parity=Parity(ranges={"token_ids": (0, 30521), "attn_mask": (1, 1)}),
)
