"""Tiny repositories that every check likes, and apps with the settings of this project's cdk.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import onnx.parser
import pytest
from aws_cdk.assertions import Template

from cdk_triton import ModelRepository, ServingPlatform, TensorRTPlan

ROOT = Path(__file__).parents[2]

PREPROCESS = """
backend: "python"
max_batch_size: 8
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "IDS" data_type: TYPE_INT32 dims: [ -1 ] } ]
"""
NETWORK = """
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "IDS" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "VECTOR" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "VECTOR" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [
  { model_name: "preprocess" model_version: -1
    input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "ids" } },
  { model_name: "network" model_version: -1
    input_map { key: "IDS" value: "ids" } output_map { key: "VECTOR" value: "VECTOR" } }
] }
"""
PYTHON_MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""
ONNX_MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
graph (int32[N, L] IDS) => (float[N, 4] VECTOR) { VECTOR = Cast<to = 1>(IDS) }
"""

PLAN_NETWORK = """
platform: "tensorrt_plan"
max_batch_size: 8
input [ { name: "IDS" data_type: TYPE_INT32 dims: [ 4 ] } ]
output [ { name: "VECTOR" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
PLAN_SOURCE = """
<ir_version: 8, opset_import: ["" : 17]>
graph (int32[N, 4] IDS) => (float[N, 4] VECTOR) { VECTOR = Cast<to = 1>(IDS) }
"""


class World:
    """What the tests share: names, and ways to look at a synthesised app."""

    platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
    root = ROOT

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def app(self, name: str = "cdk.out", *, validated: bool = False, **context: object) -> cdk.App:
        """An app; CDK's validation of templates, which takes most of the time of a synthesis, is for its own tests."""
        return cdk.App(
            outdir=str(self.directory / name),
            context={**json.loads((ROOT / "cdk.json").read_text())["context"], **context},
            builtin_cloud_formation_validation=validated,
        )

    def repository(
        self, name: str = "text", *, weights: str = "1", network: str = NETWORK, below: str = "repositories"
    ) -> ModelRepository:
        root = self.directory / below / name
        files: dict[str, str | bytes] = {
            "preprocess/config.pbtxt": PREPROCESS,
            "preprocess/1/model.py": PYTHON_MODEL,
            "network/config.pbtxt": network,
            "network/1/model.onnx": onnx.parser.parse_model(ONNX_MODEL).SerializeToString(),
            "network/1/weights.bin": weights,
            "ensemble/config.pbtxt": ENSEMBLE,
            "ensemble/1/.gitkeep": "",
        }
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        return ModelRepository.from_directory(root)

    def repository_with_plan(
        self, name: str = "text", *, recipes: Iterable[TensorRTPlan] = (TensorRTPlan("network", onnx="network.onnx"),)
    ) -> ModelRepository:
        """The repository with a TensorRT model, whose plan is built of `network/network.onnx` by default."""
        root = self.repository(name, network=PLAN_NETWORK).root
        (root / "preprocess/config.pbtxt").write_text(PREPROCESS.replace("-1", "4"))
        (root / "network/1/model.onnx").unlink()
        (root / "network/network.onnx").write_bytes(onnx.parser.parse_model(PLAN_SOURCE).SerializeToString())
        return ModelRepository.from_directory(root, recipes=recipes)

    def repository_again(self, name: str, below: str = "repositories") -> ModelRepository:
        """The repository as it stands."""
        return ModelRepository.from_directory(self.directory / below / name)

    @staticmethod
    def resources(stack: cdk.Stack, kind: str) -> dict[str, Any]:
        """Logical id to resource, of one type."""
        return dict(Template.from_stack(stack).find_resources(kind))

    @classmethod
    def only(cls, stack: cdk.Stack, kind: str) -> dict[str, Any]:
        """The one resource of that type."""
        (resource,) = cls.resources(stack, kind).values()
        return dict(resource)

    @classmethod
    def policies(cls, stack: cdk.Stack) -> dict[str, Any]:
        """Logical id to policy, inline or managed."""
        return cls.resources(stack, "AWS::IAM::Policy") | cls.resources(stack, "AWS::IAM::ManagedPolicy")

    @classmethod
    def statements(cls, stack: cdk.Stack, role: str) -> list[dict[str, Any]]:
        """All that the policies of the role allow whose logical id begins so."""
        return [
            statement
            for policy in cls.policies(stack).values()
            # The role of another stack is not a Ref.
            if any(each.get("Ref", "").startswith(role) for each in policy["Properties"]["Roles"])
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]

    @staticmethod
    def template(stack: cdk.Stack) -> dict[str, Any]:
        return dict(Template.from_stack(stack).to_json())

    @staticmethod
    def plan(app: cdk.App, resource: dict[str, Any]) -> dict[str, Any]:
        """The plan that a custom resource refers to, from the cloud assembly."""
        key = resource["Properties"]["PlanKey"]
        plan: dict[str, Any] = json.loads((Path(app.outdir) / f"asset.{key}").read_text())
        return plan


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(name="shared_world", scope="module")
def _shared_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """For what a module's tests only look at."""
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Stack")


@pytest.fixture(name="flattened")
def _flattened() -> Callable[[Any], str]:
    """A value of a template as one line of text: references in angle brackets."""

    def text(value: Any) -> str:
        match value:
            case {"Fn::Join": [separator, parts]}:
                return str(separator).join(text(part) for part in parts)
            case {"Fn::Sub": sub}:
                return str(sub)
            case {"Fn::GetAtt": [resource, attribute]}:
                return f"<{resource}.{attribute}>"
            case {"Ref": name}:
                return f"<{name}>"
            case {"Fn::ImportValue": name}:
                return f"<{name}>"
            case {"Fn::FindInMap": path}:
                return f"<{'.'.join(text(part) for part in path)}>"
            case _:
                return str(value)

    return text
