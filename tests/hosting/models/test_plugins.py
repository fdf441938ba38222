"""A container loads the plugins that a plan of its repository needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk.assertions import Annotations, Match
from tests.artifacts.test_plugins import plan, repository

from cdk_triton import TritonArtifactStore, TritonModel, TritonMultiModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World


def test_the_container_of_a_single_model_loads_them(world: World, stack: cdk.Stack, tmp_path: Path) -> None:
    store = TritonArtifactStore(stack, "Store")
    TritonModel(
        stack, "Model", store=store, repository=repository(tmp_path / "models", plan()), platform=world.platform
    )
    container = world.only(stack, "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]
    assert container["Environment"]["SAGEMAKER_TRITON_ADDITIONAL_ARGS"] == (
        "--backend-config=tensorrt,plugins=/opt/ml/model/bert/lib/libnms.so"
    )


def test_a_multi_model_endpoint_is_an_error(world: World, stack: cdk.Stack, tmp_path: Path) -> None:
    ensembles = {"search": repository(tmp_path / "models", plan())}
    TritonMultiModel(stack, "Models", ensembles=ensembles, platform=world.platform)
    Annotations.from_stack(stack).has_error("*", Match.string_like_regexp(r"has plugins, but a multi-model endpoint"))
