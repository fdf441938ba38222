"""An endpoint of two instances with four GPUs each, and models for its components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match

from cdk_triton import ServingPlatform, TritonComponents, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")
COPY: dict[str, Any] = {"accelerators": 1, "memory": cdk.Size.gibibytes(8)}
"""What a copy needs, where a test is not about it."""


@pytest.fixture(name="text")
def _text(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "TextModel", repository=world.repository("text"), platform=PLATFORM)


@pytest.fixture(name="components")
def _components(stack: cdk.Stack) -> TritonComponents:
    return TritonComponents(stack, "Components", platform=PLATFORM, min_instance_count=1, max_instance_count=2)


def warnings(stack: cdk.Stack) -> dict[str, str]:
    """Code to text, of the endpoint and its components."""
    found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    texts = [str(message.entry.data) for message in found if "/Components" in message.id]
    return {text.rpartition("[ack: cdk-triton:")[2].rstrip("]"): text for text in texts}
