"""The model of the endpoints under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest

from cdk_triton import TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World


@pytest.fixture(name="model")
def _model(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
