"""The steps as the build program runs them: out of its one file, from a folder into a folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

from cdk_triton import DaliPipeline, ModelRepository, OnnxExport, ServingPlatform
from cdk_triton.artifacts import BuildRecipe, ensemble_document, platform_document
from cdk_triton.artifacts.program import write_program
from cdk_triton_local import build_tools

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
FILES = {
    "ensemble/config.pbtxt": 'platform: "ensemble"\n',
    "preprocess/config.pbtxt": 'backend: "dali"\nmax_batch_size: 4\n',
    "preprocess/pipeline.py": """
import nvidia.dali as dali
import nvidia.dali.fn as fn

@dali.pipeline_def(batch_size=4, num_threads=1, device_id=0)
def preprocess():
    return fn.decoders.image(fn.external_source(name="IN"), device="mixed")
""",
    "network/config.pbtxt": 'backend: "onnxruntime"\noutput { name: "y" data_type: TYPE_INT64 dims: -1 }\n',
    "network/requirements.txt": f"onnx=={version('onnx')} --hash=sha256:{'0' * 64}\n",
    "network/export.py": """
import onnx
from onnx import TensorProto, helper

def export(path):
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "net", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
""",
}
RECIPES: list[BuildRecipe] = [
    DaliPipeline("preprocess", pipeline="pipeline.py", serialize=True),
    OnnxExport("network", entry="export.py:export", onnx="1/model.onnx", requirements="requirements.txt"),
]


def write_sources(repository: ModelRepository, target: Path) -> None:
    """The archive of the sources, as a deployment publishes it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w:gz") as archive:
        for file in repository.files:
            archive.add(file.source, file.path.as_posix())
        archive.addfile(tarfile.TarInfo("ensemble/1/.keep"))


@pytest.mark.slow
def test_the_steps_run_out_of_one_file(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    repository = ModelRepository.from_directory(tmp_path / "repository", recipes=RECIPES)
    folder, out = tmp_path / "in", tmp_path / "out"
    document = ensemble_document(repository, PLATFORM)
    write_sources(repository, folder / str(document["sources"]))
    plan = {
        "schema": 1,
        "build": f"cdk-triton-{'0' * 16}",
        "deadline_seconds": 120,
        # The Python that runs this, and not the image's.
        "platform": {**platform_document(PLATFORM), "python": None},
        "ensembles": [document],
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    write_program(folder / "program.pyz")
    environment = build_tools.environment(gpu=PLATFORM.gpu, compute_capability="8.6", tensorrt="10.13.3.9")
    environment["PYTHONPATH"] = str(Path(build_tools.__file__).with_name("python"))
    done = subprocess.run(
        [sys.executable, str(folder / "program.pyz"), str(folder), str(out)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    finished = out / str(document["artifact_key"])
    built = json.loads((finished / "build.json").read_text())
    assert {"nvidia-smi", "nvidia.dali"} <= set(built["stand_ins"])
    outputs = {output["path"] for step in built["steps"] for output in step["outputs"]}
    assert outputs == {"preprocess/1/model.dali", "network/1/model.onnx"}
    with tarfile.open(finished / "model.tar.gz") as archive:
        names = {member.name for member in archive if member.isfile()}
    assert names == {
        "ensemble/config.pbtxt",
        "ensemble/1/.keep",
        "preprocess/config.pbtxt",
        "preprocess/1/model.dali",
        "network/config.pbtxt",
        "network/1/model.onnx",
    }
