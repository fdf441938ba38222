"""`metadata` of models: what plans and tags contain, and what cannot be a tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest

from cdk_triton import TritonModel, TritonMultiModel
from cdk_triton.artifacts import artifact_key
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

MODEL = "AWS::SageMaker::Model"
NOTES = {"commit": "1f3a9c", "approver": "ada@bank.example"}


def _plan(world: World, stack: cdk.Stack) -> Any:
    app = stack.node.root
    assert isinstance(app, cdk.App)
    return world.plan(app, world.only(stack, "Custom::TritonArtifacts"))


def test_metadata_is_in_the_plan_and_in_the_tags(world: World, stack: cdk.Stack) -> None:
    repository = world.repository("text")

    TritonModel(stack, "Model", repository=repository, platform=world.platform, metadata=NOTES)

    key = artifact_key(repository, world.platform)
    tags = {each["Key"]: each["Value"] for each in world.only(stack, MODEL)["Properties"]["Tags"]}
    assert tags == {**NOTES, "cdk-triton:artifact-key": key}
    plan = _plan(world, stack)
    assert [(each["artifact_key"], each["metadata"]) for each in plan["commits"]] == [(key, NOTES)]


def test_without_metadata_nothing_changes(world: World, stack: cdk.Stack) -> None:
    TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform)

    assert "Tags" not in world.only(stack, MODEL)["Properties"]
    plan = _plan(world, stack)
    assert plan["commits"][0]["metadata"] == {}


def test_other_metadata_is_the_same_archive_and_the_same_model(world: World) -> None:
    def model(name: str, metadata: dict[str, str]) -> tuple[str, Any]:
        stack = cdk.Stack(world.app(name), "Stack")
        repository = world.repository_again("text")
        TritonModel(stack, "Model", repository=repository, platform=world.platform, metadata=metadata)
        ((logical_id, resource),) = world.resources(stack, MODEL).items()
        return logical_id, {name: value for name, value in resource["Properties"].items() if name != "Tags"}

    world.repository("text")
    assert model("first", NOTES) == model("second", {"commit": "other"})


def test_every_archive_of_a_multi_model_gets_the_metadata(world: World, stack: cdk.Stack) -> None:
    ensembles = {"text": world.repository("text"), "image": world.repository("image")}

    TritonMultiModel(stack, "Model", ensembles=ensembles, platform=world.platform, metadata=NOTES)

    tags = {each["Key"]: each["Value"] for each in world.only(stack, MODEL)["Properties"]["Tags"]}
    assert tags == NOTES  # it has several archives
    assert [each["metadata"] for each in _plan(world, stack)["commits"]] == [NOTES, NOTES]


@pytest.mark.parametrize(
    "metadata",
    [
        {f"key{number}": "value" for number in range(49)},
        {"k" * 128: "v" * 256, "empty": "", "Größe + Einheit": "1/2 a=b_c.d:e@f-g"},
        {"awsome": "yes"},
    ],
    ids=["most", "longest", "almost reserved"],
)
def test_what_a_tag_takes_is_taken(world: World, stack: cdk.Stack, metadata: dict[str, str]) -> None:
    TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform, metadata=metadata)


@pytest.mark.parametrize(
    "metadata",
    [
        {f"key{number}": "value" for number in range(50)},
        {"": "value"},
        {"k" * 129: "value"},
        {"commit": "v" * 257},
        {"commit": "a, b"},
        {"commit#": "a"},
        {"commit": "a\nb"},
        {"aws:commit": "a"},
        {"AWS:commit": "a"},
        {"cdk-triton:artifact-key": "a"},
    ],
    ids=["many", "no key", "long key", "long value", "comma", "hash", "line", "aws", "AWS", "ours"],
)
def test_what_cannot_be_a_tag_is_rejected(
    world: World, stack: cdk.Stack, metadata: dict[str, str], messages: Messages
) -> None:
    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform, metadata=metadata)


def test_a_token_is_no_metadata(world: World, stack: cdk.Stack) -> None:
    """The manifest is written at synth."""
    metadata = {"commit": cdk.Aws.REGION}
    with pytest.raises(ConfigurationError, match=r"'commit' in metadata of Stack/Model, .* contains a CDK token"):
        TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform, metadata=metadata)
