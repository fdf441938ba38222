"""What is said of ensembles of one fleet whose inner models have the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from cdk_triton import ContainerEnvironment, ModelRepository, ServingPlatform, TritonModel, TritonMultiModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

WRITES_BYTECODE = ContainerEnvironment(variables={"PYTHONDONTWRITEBYTECODE": ""})


def apart(world: World, name: str) -> ModelRepository:
    """The repository, whose model `preprocess` is called `preprocess-<name>`."""
    root = world.repository(name).root
    (root / "preprocess").rename(root / f"preprocess-{name}")
    configuration = root / "ensemble" / "config.pbtxt"
    configuration.write_text(configuration.read_text().replace('"preprocess"', f'"preprocess-{name}"'))
    return ModelRepository.from_directory(root)


def warned(
    stack: cdk.Stack, ensembles: Mapping[str, ModelRepository], release: str, environment: ContainerEnvironment
) -> list[str]:
    platform = ServingPlatform(release=release, instance_type="ml.g5.2xlarge")
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=platform, environment=environment)
    found = Annotations.from_stack(stack).find_warning("/Stack/Fleet", Match.string_like_regexp("SharedModelNames"))
    return [str(each.entry.data) for each in found]


@pytest.mark.parametrize(
    ("release", "environment"),
    [
        pytest.param("24.09", ContainerEnvironment(), id="Python that ignores the variable"),
        pytest.param("25.09", WRITES_BYTECODE, id="without the variable"),
    ],
)
def test_inner_models_of_the_same_name_are_named(
    messages: Messages, world: World, stack: cdk.Stack, release: str, environment: ContainerEnvironment
) -> None:
    same = {name: world.repository(name) for name in ("text", "titles", "queries")}
    (warning,) = warned(stack, same, release, environment)
    messages.record("cdk-triton:SharedModelNames", warning)


def test_no_word_where_python_writes_no_bytecode(world: World, stack: cdk.Stack) -> None:
    same = {name: world.repository(name) for name in ("text", "titles")}
    assert warned(stack, same, "25.09", ContainerEnvironment()) == []


def test_no_word_of_names_of_their_own(world: World, stack: cdk.Stack) -> None:
    named_apart = {name: apart(world, name) for name in ("text", "titles")}
    assert warned(stack, named_apart, "24.09", ContainerEnvironment()) == []


def test_only_multi_models_write_no_bytecode(world: World, stack: cdk.Stack) -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
    repository = world.repository()
    TritonMultiModel(stack, "Fleet", ensembles={"text": repository}, platform=platform)
    TritonModel(stack, "Model", repository=repository, platform=platform)
    models = Template.from_stack(stack).find_resources("AWS::SageMaker::Model").values()
    containers = [model["Properties"]["PrimaryContainer"] for model in models]
    bytecode = {
        each.get("Mode") == "MultiModel": each["Environment"].get("PYTHONDONTWRITEBYTECODE") for each in containers
    }
    assert bytecode == {True: "1", False: None}
