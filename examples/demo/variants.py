"""The example app with one thing changed: what the demo deploys to show when something is built, and when not.

* `python variants.py level` builds the plan of `bert` with more effort;
* `python variants.py forgetful DIRECTORY` takes the text ensemble from a repository in DIRECTORY whose tokenizer
  forgets most of a text, so every check and the build pass, and the golden request gets another answer;
* `python variants.py broken DIRECTORY` takes it from a repository with a network that no TensorRT can build.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
import onnx
from onnx import TensorProto, helper

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from app import add_stacks  # noqa: E402 - after the path
from examples.reference_systems.assets import ASSETS  # noqa: E402
from examples.reference_systems.bert import BERT  # noqa: E402
from examples.reference_systems.two_ensembles import text_repository  # noqa: E402


def write_forgetful_repository(directory: Path) -> Path:
    """A copy of the text ensemble whose tokenizer keeps 4 tokens of a text instead of 256."""
    copy = directory / "forgetful/sentence_embedding"
    if not copy.exists():
        shutil.copytree(ASSETS / "sentence_embedding", copy)
    model = copy / "tokenizer/1/model.py"
    model.write_text(model.read_text(encoding="utf-8").replace("MAX_TOKENS = 256", "MAX_TOKENS = 4"), encoding="utf-8")
    return copy


def write_broken_repository(directory: Path) -> Path:
    """A copy of the text ensemble whose network has the right inputs and outputs, and an operator that needs others.

    The synthesis knows only that TensorRT has this operator, a plugin; the build finds that the inputs are not its own.
    """
    copy = directory / "broken/sentence_embedding"
    if not copy.exists():
        shutil.copytree(ASSETS / "sentence_embedding", copy, ignore=shutil.ignore_patterns("bert.onnx"))
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "tokens"])
        for name in ("token_ids", "attn_mask")
    )
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 384])
    node = helper.make_node("EfficientNMS_TRT", ["token_ids", "attn_mask"], ["output"], name="pooler")
    versions = [helper.make_opsetid("", 17)]
    graph = helper.make_graph([node], "broken", [ids, mask], [output])
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), copy / "bert" / "bert.onnx")
    return copy


def main(variant: str, directory: str = "") -> None:
    """Synthesise the example app, changed."""
    app = cdk.App()
    written = {"broken": write_broken_repository, "forgetful": write_forgetful_repository}
    if variant in written:
        add_stacks(app, text=text_repository(written[variant](Path(directory))))
    else:
        add_stacks(app, text=text_repository(bert=replace(BERT, optimization_level=4)))
    app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
