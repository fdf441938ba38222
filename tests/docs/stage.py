"""The things that the Python blocks of the pages take from the app around them, by the names that the pages use."""

from __future__ import annotations

import ast
import asyncio
import builtins
import importlib
import inspect
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

import aws_cdk as cdk
import numpy as np
import onnx.parser
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct
from tests.hosting.conftest import PLAN_NETWORK, PLAN_SOURCE, World

import cdk_triton
from cdk_triton import (
    ModelRepository,
    ServingPlatform,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.client import TritonClient

MODULES = {"os": "os"}
OF_COMPONENTS = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")
ENVIRONMENT = cdk.Environment(account="123456789012", region="eu-west-1")


def write_files(world: World) -> None:
    """Write the files that the blocks read, into the directory of the world."""
    for name in ("models", "search", "repository"):
        world.repository(name, below=".")
    for name in ("models/search/bert",):
        (world.directory / name).mkdir(parents=True)
    plan = world.directory / "models" / "search" / "bert"
    (plan / "config.pbtxt").write_text(PLAN_NETWORK)
    (plan / "bert.onnx").write_bytes(onnx.parser.parse_model(PLAN_SOURCE).SerializeToString())
    for name in ("dog.jpg", "scan.raw"):
        (world.directory / name).write_bytes(b"\0" * 16)
    (world.directory / "request.json").write_text(
        '{"inputs": [{"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": ["A man is eating food."]}]}'
    )


class Stage:
    """The app of one page: makes each thing when a block names it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._made: dict[str, Any] = {}
        self._blocks = 0

    def run(self, code: str, file: str, line: int) -> None:
        """Run a block with the names that it takes from earlier blocks, from this stage, or from an import.

        Args:
            code: the block.
            file: what a traceback calls its page.
            line: the line of its fence there.
        """
        self._forget()
        tree = ast.parse(re.sub(r"<([A-Z]\w+)>", r"\1", code))
        ast.increment_lineno(tree, line)
        given = {name: self._named(name) for name in sorted(_free_names(tree))}
        names = given | {"__name__": "page", "__file__": file}
        compiled = compile(tree, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ended = eval(compiled, names)
        if inspect.iscoroutine(ended):
            asyncio.run(ended)
        self._made.update({name: made for name, made in names.items() if given.get(name) is not made})

    def _forget(self) -> None:
        """Make the things anew for the next block, except the app and its store."""
        self._blocks += 1
        for name in set(vars(self)) - {"app", "_stack", "artifacts_stack", "store", "_world", "_made", "_blocks"}:
            del vars(self)[name]

    @cached_property
    def _given(self) -> Construct:
        """The scope of what a block refers to; a block's own constructs have another, so that no id is taken."""
        return Construct(self._stack, f"Given{self._blocks}")

    def _named(self, name: str) -> Any:
        if name == "self":
            return Construct(self._stack, f"Block{self._blocks}")
        if name in self._made and name not in ("store", "artifacts_stack"):
            return self._made[name]
        if isinstance(getattr(Stage, name, None), cached_property):
            return getattr(self, name)
        for module in (cdk_triton, cdk):
            if hasattr(module, name):
                return getattr(module, name)
        return importlib.import_module(MODULES.get(name, f"aws_cdk.aws_{name}"))

    @cached_property
    def app(self) -> cdk.App:
        return self._world.app()

    @cached_property
    def _stack(self) -> cdk.Stack:
        return cdk.Stack(self.app, "Stack", env=ENVIRONMENT)

    @cached_property
    def artifacts_stack(self) -> cdk.Stack:
        return cdk.Stack(self.app, "Artifacts", env=ENVIRONMENT)

    @cached_property
    def store(self) -> TritonArtifactStore:
        return TritonArtifactStore(self.artifacts_stack, "Given")

    @cached_property
    def platform(self) -> Any:
        return ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")

    @cached_property
    def repository(self) -> ModelRepository:
        return ModelRepository.from_directory("repository")

    @cached_property
    def ensembles(self) -> dict[str, ModelRepository]:
        return {"text": self.repository}

    def _model(self, id: str, platform: ServingPlatform | None = None) -> TritonModel:
        return TritonModel(
            self._given, id, store=self.store, platform=platform or self.platform, repository=self.repository
        )

    @cached_property
    def model(self) -> TritonModel:
        return self._model("Model")

    @cached_property
    def current(self) -> TritonModel:
        return self._model("Current")

    @cached_property
    def candidate(self) -> TritonModel:
        return self._model("Candidate")

    @cached_property
    def multi_model(self) -> TritonMultiModel:
        return TritonMultiModel(
            self._given, "Fleet", store=self.store, platform=self.platform, ensembles=self.ensembles
        )

    @cached_property
    def endpoint(self) -> TritonEndpoint:
        return TritonEndpoint(self._given, "Endpoint", model=self.model)

    @cached_property
    def vpc(self) -> ec2.Vpc:
        return ec2.Vpc(self._given, "Vpc")

    @cached_property
    def features(self) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(self._given, "Features", vpc=self.vpc)

    @cached_property
    def key(self) -> kms.Key:
        return kms.Key(self._given, "Key")

    @cached_property
    def topic(self) -> sns.Topic:
        return sns.Topic(self._given, "Topic", enforce_ssl=True)

    @cached_property
    def logs(self) -> s3.Bucket:
        return s3.Bucket(self._given, "Logs")

    @cached_property
    def logs_bucket(self) -> s3.Bucket:
        """One of another app, because the packs of the page judge every bucket of this one."""
        return s3.Bucket(cdk.Stack(), "Logs")

    @cached_property
    def service(self) -> iam.Role:
        return iam.Role(self._given, "Service", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))

    @cached_property
    def service_role(self) -> iam.Role:
        return self.service

    @cached_property
    def pipeline_role(self) -> iam.Role:
        return self.service

    @cached_property
    def new_key(self) -> kms.Key:
        return kms.Key(self._given, "NewKey")

    @cached_property
    def old_key(self) -> kms.IKey:
        return self.key

    @cached_property
    def text_model(self) -> TritonModel:
        return self._model("Text", OF_COMPONENTS)

    @cached_property
    def client(self) -> TritonClient:
        return TritonClient("my-endpoint")

    @cached_property
    def inputs(self) -> dict[str, Any]:
        return {"x": self.array}

    @cached_property
    def array(self) -> Any:
        return np.zeros((1, 4), np.float32)

    @cached_property
    def texts(self) -> list[str]:
        return ["A man is eating food.", "This is awful."]

    @cached_property
    def text(self) -> ModelRepository:
        return self.repository

    @cached_property
    def weights(self) -> ModelRepository:
        return self.repository

    @cached_property
    def image_model(self) -> TritonModel:
        return self._model("Image", OF_COMPONENTS)

    @cached_property
    def expected(self) -> list[float]:
        return [0.25, 0.75]

    @cached_property
    def text_component(self) -> str:
        return "text"

    @cached_property
    def image_component(self) -> str:
        return "image"

    @cached_property
    def main(self) -> Callable[[], None]:
        return lambda: None


def _free_names(tree: ast.Module) -> set[str]:
    """Return the names that a block uses and neither makes nor imports."""
    nodes = list(ast.walk(tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    for node in nodes:
        match node:
            case ast.alias():
                made.add(node.asname or node.name.partition(".")[0])
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler() if node.name:
                made.add(node.name)
            case ast.arg():
                made.add(node.arg)
    return {node.id for node in names} - made - set(vars(builtins)) - {"__file__"}
