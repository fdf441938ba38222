"""An app imports what it has, and nothing of what it could have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest
    from tests.hosting.conftest import World

APP = """
import sys
import aws_cdk as cdk
from cdk_triton import ModelRepository, ServingPlatform, TritonEndpoint, TritonModel

stack = cdk.Stack(cdk.App(outdir=sys.argv[1], builtin_cloud_formation_validation=False), "Stack")
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
    "cdk_triton.hosting.endpoints.updates.policies",
    "cdk_triton.hosting.endpoints.updates.rollback_notice",
    "cdk_triton.hosting.endpoints.updates.warnings",
    "cdk_triton.hosting.models.multi_model",
    "cdk_triton.hosting.endpoints.monitoring.alarms",
    "cdk_triton.hosting.endpoints.monitoring.metrics_config",
    "cdk_triton.hosting.endpoints.scaling.instance_count",
}
OF_CHECKS = {"google.protobuf", "cdk_triton.checks.registry"}
"""Modules that parse configurations and check them."""


def imported(world: World, repository: Path) -> set[str]:
    command = [sys.executable, "-c", APP, str(world.directory / "out"), str(repository)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_plain_endpoint_imports_neither_alarms_nor_scaling_nor_recipes(world: World) -> None:
    modules = imported(world, world.repository("text").root)

    assert "cdk_triton.hosting.endpoints.endpoint" in modules
    assert not OF_OTHERS & modules


def test_nothing_is_imported_for_checks_that_are_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(world.directory / "cache"))
    monkeypatch.delenv("CDK_TRITON_NO_CACHE", raising=False)
    root = world.repository("text").root
    sleep(2.1)  # files that were just written are not trusted

    assert imported(world, root) >= OF_CHECKS
    assert not OF_CHECKS & imported(world, root)
