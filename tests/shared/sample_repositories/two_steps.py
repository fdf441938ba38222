"""An ensemble `pipeline` of two steps, tokenizer and encoder, without a finding."""

from __future__ import annotations

from collections.abc import Mapping

from sample_repositories.sound import PYTHON_MODEL

TOKENIZER = """
backend: "python"
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "TOKENS" data_type: TYPE_INT32 dims: -1 }
output { name: "MASK" data_type: TYPE_INT32 dims: -1 }
"""

ENCODER = """
backend: "python"
input { name: "TOKENS" data_type: TYPE_INT32 dims: -1 }
input { name: "MASK" data_type: TYPE_INT32 dims: -1 }
output { name: "VECTOR" data_type: TYPE_FP32 dims: 8 }
"""

PIPELINE = """
platform: "ensemble"
input { name: "text" data_type: TYPE_STRING dims: 1 }
output { name: "vector" data_type: TYPE_FP32 dims: 8 }
ensemble_scheduling {
  step {
    model_name: "tokenizer"
    model_version: -1
    input_map { key: "TEXT" value: "text" }
    output_map { key: "TOKENS" value: "tokens" }
    output_map { key: "MASK" value: "mask" }
  }
  step {
    model_name: "encoder"
    model_version: -1
    input_map { key: "TOKENS" value: "tokens" }
    input_map { key: "MASK" value: "mask" }
    output_map { key: "VECTOR" value: "vector" }
  }
}
"""

BASE: Mapping[str, str] = {
    "tokenizer/config.pbtxt": TOKENIZER,
    "tokenizer/1/model.py": PYTHON_MODEL,
    "encoder/config.pbtxt": ENCODER,
    "encoder/1/model.py": PYTHON_MODEL,
    "pipeline/config.pbtxt": PIPELINE,
    "pipeline/1/.gitkeep": "",
}


def pipeline(*changes: tuple[str, str], steps: str = "", more: str = "") -> dict[str, str | None]:
    """The ensemble with some texts replaced, each of which it has, with steps put in front, and something added."""
    text = PIPELINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return {"pipeline/config.pbtxt": text.replace("  step {", f"{steps}  step {{", 1) + more}
