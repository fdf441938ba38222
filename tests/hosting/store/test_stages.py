"""A model and its store in different stages, or a construct in no stack: the sentence that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk

from cdk_triton import TritonArtifactStore, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def test_a_store_outside_the_stage(messages: Messages, world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    serving = cdk.Stack(cdk.Stage(app, "Live"), "Serving")

    with messages.raises(ConfigurationError) as caught:
        TritonModel(serving, "Model", repository=world.repository(), platform=world.platform, store=store)
    assert "from_exports" in str(caught.value)


def test_a_store_within_the_stage_is_used(world: World) -> None:
    live = cdk.Stage(world.app(), "Live")
    store = TritonArtifactStore(cdk.Stack(live, "Artifacts"), "Store")
    serving = cdk.Stack(live, "Serving")

    model = TritonModel(serving, "Model", repository=world.repository(), platform=world.platform, store=store)
    assert model.node.path == "Live/Serving/Model"


def test_a_model_in_no_stack(messages: Messages, world: World) -> None:
    app = world.app()
    with messages.raises(ConfigurationError):
        TritonModel(app, "Model", repository=world.repository(), platform=world.platform)
