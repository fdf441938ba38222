"""The model repositories of all systems, and the platform that serves them."""

from __future__ import annotations

from pathlib import Path

from cdk_triton import ServingPlatform

ASSETS = Path(__file__).resolve().parents[2] / "model_assets"
PREPARED = (
    "sentence_embedding/tokenizer/1/tokenizer.json",
    "sentence_embedding/tokenizer/1/vendor",
    "sentence_embedding/bert/bert.onnx",
    "tensorrt_tenants/bert/bert.onnx",
    "image_classification/resnet50/1/model.onnx",
    "image_classification/resnet50/labels.txt",
    "onnx_models/images/resnet50/1/model.onnx",
    "onnx_models/images/resnet50/labels.txt",
    "onnx_models/texts/minilm/1/model.onnx",
    "text_generation/generate/1/model.onnx",
    "text_generation/generate/1/tokenizer.json",
)
"""The files of the repositories that git does not keep."""

WHEELS = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": (ASSETS / "wheels").as_uri()}
"""Variables with which a build takes the wheels that `prepare.py` has downloaded, without a package index.

pip splits the second one at spaces, and an address has none.
"""

PLATFORM = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")
