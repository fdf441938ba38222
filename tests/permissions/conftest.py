"""The worlds of the constructs' tests, and one with all roles."""

import pytest
from aws_cdk.assertions import Template
from tests.hosting.conftest import World, _flattened, _stack, _world
from tests.permissions.callers import add_callers
from tests.permissions.templates import Templates
from tests.security.everything import add_everything

__all__ = ["_flattened", "_stack", "_world"]


@pytest.fixture(name="everything", scope="session")
def _everything(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """The roles of the constructs and of callers; whoever changes a policy copies them first."""
    world = World(tmp_path_factory.mktemp("world"))
    artifacts, serving = add_everything(world, world.app())
    callers = add_callers(serving)  # which the other stacks then have exports for
    return Templates([Template.from_stack(stack).to_json() for stack in (artifacts, serving, callers)])
