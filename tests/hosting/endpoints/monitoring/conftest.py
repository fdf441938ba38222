"""The models of endpoints that are monitored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest

from cdk_triton import (
    TritonMultiModel,
)

if TYPE_CHECKING:
    from tests.hosting.conftest import World


@pytest.fixture(name="fleet")
def _fleet(world: World, stack: cdk.Stack) -> TritonMultiModel:
    return TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)
