"""The walk through docs/getting_started.md with a repository of a user's own, on two local AWSs at once."""

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GUIDE = (Path(__file__).parents[3] / "docs/getting_started.md").read_text()
(APP,) = (block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "App()" in block)
(CDK_JSON,) = re.findall(r"^echo (.*) > cdk.json$", GUIDE, re.MULTILINE)

CONFIG = """
name: "multiply"
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { kind: KIND_GPU } ]
"""

MODEL = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("Y", FACTOR * x)]) for x in inputs]
"""


def write_project(directory: Path, factor: int) -> None:
    version = directory / "models/multiply/1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(MODEL.replace("FACTOR", str(factor)))
    (version.parent / "config.pbtxt").write_text(CONFIG)
    (directory / "app.py").write_text(APP)
    (directory / "cdk.json").write_text(*shlex.split(CDK_JSON))


@pytest.fixture
def two_projects(local_aws: Any, tmp_path: Path) -> Iterator[list[Any]]:
    with ExitStack() as running:
        shells = []
        for factor in (2, 3):
            directory = tmp_path / f"times_{factor}"
            write_project(directory, factor)
            shells.append(running.enter_context(local_aws(directory)))
        yield shells


@pytest.mark.long
def test_two_projects_deploy_side_by_side_and_share_nothing(two_projects: list[Any]) -> None:
    x = np.array([[1, 2, 3]], dtype=np.float32)
    for shell in two_projects:
        shell.deploy("Payments")
    for factor, shell in zip((2, 3), two_projects, strict=True):
        outputs = shell.outputs("Payments")
        answer = shell.ask(outputs["EndpointName"], "Y", {"X": x}, target_model=outputs["FraudModel"])
        np.testing.assert_array_equal(answer, factor * x)
    first, second = two_projects
    assert first.variables["AWS_ENDPOINT_URL"] != second.variables["AWS_ENDPOINT_URL"]
    first.cdk("destroy", "Payments", "--force")
    assert first.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert len(second.client("sagemaker").list_endpoints()["Endpoints"]) == 1


def test_a_mistake_in_the_configuration_stops_the_synthesis_with_a_sentence(shell: Any) -> None:
    write_project(shell.directory, factor=2)
    config = shell.directory / "models/multiply/config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size", "max_batchsize"))
    printed = shell.cdk("synth", "--quiet", status=1)
    assert "max_batchsize" in printed
    assert "max_batch_size" in printed
    assert "Traceback" not in printed
