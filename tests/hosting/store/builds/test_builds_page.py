"""The user guide's pages of builds: their tables are those of the library, and their examples run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import onnx.parser
import pytest
from tests.docs.blocks import of_kind

import cdk_triton.cli
from cdk_triton import ModelRepository, ServingPlatform, artifacts

PAGES = ("builds.md", "recipes.md")
BLOCKS = of_kind("hosting/store/builds/test_builds_page.py")


TENSORRT = """
platform: "tensorrt_plan"
max_batch_size: 32
input {{ name: "ids" data_type: TYPE_INT32 dims: [ {length} ] }}
output {{ name: "out" data_type: TYPE_FP32 dims: [ {length} ] }}
"""
PYTHON_MODEL = """
backend: "python"
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }
"""
PIPELINE = """
from nvidia.dali import fn, pipeline_def

@pipeline_def(batch_size=4, num_threads=1, device_id=0)
def preprocess():
    return fn.external_source(name="IN")
"""


def examples(language: str) -> list[str]:
    of_language = [block for block in BLOCKS if block.language == language]
    return [block.text for page in PAGES for block in of_language if block.page == f"docs/{page}"]


def network(length: str) -> bytes:
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]>\nnetwork (int32[batch, {length}] ids) => '
        f"(float[batch, {length}] out) {{ out = Cast <to = 1> (ids) }}"
    )
    return bytes(onnx.parser.parse_model(text).SerializeToString())


FILES: dict[str, str | bytes] = {
    "models/bert/config.pbtxt": TENSORRT.format(length=128),
    "models/bert/bert.onnx": network("128"),
    "models/encoder/config.pbtxt": TENSORRT.format(length=-1),
    "models/encoder/encoder.onnx": network("length"),
    "large/bert/config.pbtxt": TENSORRT.format(length=128),
    "images/preprocess/config.pbtxt": 'backend: "dali"\nmax_batch_size: 4\n',
    "images/preprocess/pipeline.py": PIPELINE,
    "tokens/tokenize/config.pbtxt": PYTHON_MODEL,
    "tokens/tokenize/conda-linux-64.lock": "@EXPLICIT\n"
    f"https://conda.anaconda.org/conda-forge/linux-64/python-3.12.4-0.conda#{'0' * 64}\n",
    "wheels/tokenize/config.pbtxt": PYTHON_MODEL,
    "wheels/tokenize/requirements.txt": f"numpy==1.26.4 --hash=sha256:{'0' * 64}\n",
    "registered/bert/config.pbtxt": TENSORRT.format(length=128),
    "registry.json": json.dumps(
        {"bert": {"bucket": "networks", "key": "bert.onnx", "sha256": "0" * 64, "gpus": ["NVIDIA A10G"]}}
    ),
    "exported/bert/config.pbtxt": TENSORRT.format(length=128),
    "exported/bert/export.py": "def export(path): ...\n",
    "exported/bert/requirements.txt": f"onnx==1.19.0 --hash=sha256:{'0' * 64}\n",
}


def test_the_command_takes_what_the_page_says_is_produced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("models/bert/config.pbtxt", "models/bert/bert.onnx"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        content = FILES[name]
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    codes = {finding.code for finding in ModelRepository.from_directory(tmp_path / "models").check()}
    (settings,) = examples("toml")
    (tmp_path / "models" / "cdk-triton.toml").write_text(settings)

    assert codes == {"CT110"}
    monkeypatch.setattr("sys.argv", ["cdk-triton", "validate", str(tmp_path / "models")])
    with pytest.raises(SystemExit) as ended:
        cdk_triton.cli.main()
    assert not ended.value.code


def test_the_examples_run_and_their_repositories_can_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    monkeypatch.chdir(tmp_path)
    app = cdk.App()
    names: dict[str, Any] = {"artifacts_stack": cdk.Stack(app, "Artifacts"), "main": app.synth}
    for example in examples("python"):
        exec(example, names)
    assert str(names["platform"].versions.tensorrt).startswith("11.")

    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    steps: dict[str, list[str]] = {}
    for name, found in names.items():
        if isinstance(found, ModelRepository):
            document: Any = artifacts.ensemble_document(found, platform)
            steps[name] = [step["recipe"] for step in document["steps"]]
    assert steps == {
        "text": ["tensorrt_plan"],
        "search": ["tensorrt_plan"],
        "large": ["tensorrt_plan"],
        "images": ["dali_pipeline"],
        "tokens": ["conda_environment"],
        "wheels": ["wheel_environment"],
        "exported": ["onnx_export", "tensorrt_plan"],
        "registered": ["tensorrt_plan"],
    }
