"""A single model on an endpoint whose only variant is scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest

from cdk_triton import TritonEndpoint, TritonModel
from cdk_triton.hosting import ScalableInstanceCount

if TYPE_CHECKING:
    pass


@pytest.fixture(name="endpoint")
def _endpoint(stack: cdk.Stack, model: TritonModel) -> TritonEndpoint:
    return TritonEndpoint(stack, "Endpoint", model=model)


@pytest.fixture(name="count")
def _count(endpoint: TritonEndpoint) -> ScalableInstanceCount:
    return endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8)
