"""An app imports what it has, and nothing of what it could have."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.hosting.conftest import World

APP = """
import sys
import aws_cdk as cdk
from cdk_triton import ModelRepository, ServingPlatform, TritonEndpoint, TritonModel

stack = cdk.Stack(cdk.App(outdir=sys.argv[1]), "Stack")
platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
model = TritonModel(stack, "Model", repository=ModelRepository.from_directory(sys.argv[2]), platform=platform)
TritonEndpoint(stack, "Endpoint", model=model)
print(*sorted(sys.modules))
"""
OF_OTHERS = {
    "aws_cdk.aws_cloudwatch",
    "aws_cdk.aws_scheduler",
    "cdk_triton.artifacts.recipes.conda",
    "cdk_triton.artifacts.recipes.tensorrt",
    "cdk_triton.hosting.endpoints.rollback_notice",
    "cdk_triton.hosting.models.multi_model",
    "cdk_triton.hosting.monitoring.alarms",
    "cdk_triton.hosting.scaling.instance_count",
}


def test_a_plain_endpoint_imports_neither_alarms_nor_scaling_nor_recipes(world: World) -> None:
    command = [sys.executable, "-c", APP, str(world.directory / "out"), str(world.repository("text").root)]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert "cdk_triton.hosting.endpoints.endpoint" in modules
    assert not OF_OTHERS & set(modules)
