"""A region where every builder can be, and what roles may do, in lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest

if TYPE_CHECKING:
    from tests.hosting.conftest import World


@pytest.fixture(name="ireland")
def _ireland(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))


@pytest.fixture(name="grants")
def _grants(world: World, flattened: Callable[[Any], str]) -> Callable[[cdk.Stack, str], set[str]]:
    """Every action of the role whose logical id begins so, with its resource and condition, as one line each."""

    def lines(stack: cdk.Stack, logical_id: str) -> set[str]:
        return {
            " ".join([action, "on", flattened(resource), *([json.dumps(s["Condition"])] if "Condition" in s else [])])
            for s in world.statements(stack, logical_id)
            for action in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
            for resource in (s["Resource"] if isinstance(s["Resource"], list) else [s["Resource"]])
        }

    return lines
