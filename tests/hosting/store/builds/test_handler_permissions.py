"""The actions of the handler's policy are those of the calls that it makes, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import aws_cdk as cdk

from cdk_triton import CodeBuildGpuBuilder, SageMakerProcessingBuilder, TritonArtifactStore

if TYPE_CHECKING:
    from tests.hosting.conftest import World

BY_LAMBDA_ITSELF = {"logs:CreateLogStream", "logs:PutLogEvents"}


def test_the_handler_may_make_the_calls_that_it_was_seen_to_make_and_no_others(world: World, stack: cdk.Stack) -> None:
    TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(), SageMakerProcessingBuilder()])

    actions = [statement["Action"] for statement in world.statements(stack, "StoreIsCompleteRole")]
    allowed = {action for each in actions for action in ([each] if isinstance(each, str) else each)}
    recorded = json.loads((world.root / "tests" / "handlers" / "calls.json").read_text())
    assert allowed == {action for call in recorded for action in call["actions"]} | BY_LAMBDA_ITSELF
