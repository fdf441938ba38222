"""`TritonMultiModel`: what a stack with a multi-model endpoint's Model says."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match

from cdk_triton import ModelRepository, ServingPlatform, TritonArtifactStore, TritonEndpoint, TritonMultiModel
from cdk_triton.artifacts import artifact_key, source_key
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.plan import StackPlan

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

CDK = Path(__file__).parents[3] / "node_modules" / ".bin" / "cdk"
MODEL, DELIVERY = "AWS::SageMaker::Model", "Custom::TritonArtifacts"


class Fleets:
    """An app with a store and a fleet behind an endpoint, made as often as a test likes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.count = 0

    def synthesised(
        self, ensembles: dict[str, ModelRepository], platform: ServingPlatform | None = None
    ) -> tuple[TritonMultiModel, dict[str, Any]]:
        self.count += 1
        app = self.world.app(f"cdk.out.{self.count}")
        store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
        stack = cdk.Stack(app, "Stack")
        fleet = TritonMultiModel(
            stack, "Fleet", store=store, ensembles=ensembles, platform=platform or self.world.platform
        )
        TritonEndpoint(stack, "Endpoint", model=fleet)
        return fleet, self.world.template(stack)["Resources"]

    @staticmethod
    def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, set[str]]:
        """Logical id to the properties that differ."""
        assert before.keys() == after.keys()
        return {
            name: {
                p
                for p in after[name]["Properties"]
                if before[name]["Properties"].get(p) != after[name]["Properties"][p]
            }
            for name in before
            if before[name] != after[name]
        }


@pytest.fixture(name="fleets")
def _fleets(world: World) -> Fleets:
    return Fleets(world)


def only(resources: dict[str, Any], kind: str) -> tuple[str, dict[str, Any]]:
    ((name, resource),) = ((name, r) for name, r in resources.items() if r["Type"] == kind)
    return name, resource


def test_the_model_names_a_prefix_with_the_platform(
    fleets: Fleets, world: World, flattened: Callable[[Any], str]
) -> None:
    fleet, resources = fleets.synthesised({"text": world.repository()})

    container = only(resources, MODEL)[1]["Properties"]["PrimaryContainer"]
    assert container["Mode"] == "MultiModel"
    assert flattened(container["ModelDataUrl"]).endswith(f">/fleets/{fleet.name_in_store}/25.09-a10g/")
    assert container["Environment"] == {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_PING_MODE": "live",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "1048576",
    }


def test_a_release_whose_start_script_has_no_sizes_gets_small_ones(world: World, stack: cdk.Stack) -> None:
    """The Python backend of 22.10 would start with 64 MiB, which is all that a container has, and grow by 64 MiB."""
    TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform="22.10/ml.g4dn.xlarge")
    environment = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Environment"]
    assert {name: value for name, value in environment.items() if "SHM" in name} == {
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "4194304",
        "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": "1048576",
    }


def test_target_models_are_flat_and_named_by_their_source(messages: Messages, world: World, fleets: Fleets) -> None:
    repository = world.repository()
    fleet, _ = fleets.synthesised({"text": repository})

    assert fleet.target_models == {"text": f"text-{source_key(repository)[:10]}.tar.gz"}
    assert cdk.Stack.of(fleet).resolve(fleet.target_model("text")) == fleet.target_models["text"]
    with messages.raises(ConfigurationError) as caught:
        fleet.target_model("txt")
    assert str(caught.value).endswith(" 'text'")


def test_a_model_without_ensembles_has_no_target_models(messages: Messages, world: World, stack: cdk.Stack) -> None:
    with messages.raises(ConfigurationError):
        TritonMultiModel(stack, "Fleet", platform=world.platform).target_model("text")


def test_another_ensemble_changes_the_plan_and_nothing_else(world: World, fleets: Fleets) -> None:
    text, image = world.repository("text"), world.repository("image")
    _, before = fleets.synthesised({"text": text})

    _, after = fleets.synthesised({"text": text, "image": image})

    assert fleets.changed(before, after) == {only(before, DELIVERY)[0]: {"PlanKey", "PlanSha256"}}


def test_another_content_changes_the_plan_and_nothing_else(world: World, fleets: Fleets) -> None:
    old, before = fleets.synthesised({"text": world.repository(weights="1")})

    new, after = fleets.synthesised({"text": world.repository(weights="2")})

    assert fleets.changed(before, after) == {only(before, DELIVERY)[0]: {"PlanKey", "PlanSha256"}}
    assert old.target_models != new.target_models


def test_a_diff_shows_which_ensembles_change(world: World, fleets: Fleets, tmp_path: Path) -> None:
    image = world.repository("image")
    old, before = fleets.synthesised({"text": world.repository("text", weights="1"), "image": image})
    new, _ = fleets.synthesised({"text": world.repository("text", weights="2"), "image": image})
    (tmp_path / "before.json").write_text(json.dumps({"Resources": before}))
    template, assembly = tmp_path / "before.json", str(cdk.App.of(new).outdir)  # type: ignore[union-attr]  # it has one
    options = ["--no-change-set", "--exclusively", "--no-notices", "--ci"]

    done = subprocess.run(
        [CDK, "diff", "Stack", "--template", template, "--app", assembly, *options],
        env={**os.environ, "NODE_NO_WARNINGS": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    changed = [line.split() for line in done.stdout.splitlines() if ".tar.gz" in line]
    assert [line[-1] for line in changed] == [old.target_models["text"], new.target_models["text"]]


def test_the_names_that_a_diff_shows_stay_within_a_template(world: World, fleets: Fleets) -> None:
    repository = world.repository()
    many = {f"{'e' * 60}{number}": repository for number in range(1000)}
    too_long = {f"{'e' * 180}{number}": repository for number in range(1000)}

    shown = only(fleets.synthesised(many)[1], DELIVERY)[1]["Metadata"]["cdk-triton:TargetModels"]
    said = only(fleets.synthesised(too_long)[1], DELIVERY)[1]["Metadata"]["cdk-triton:TargetModels"]

    assert len(shown) == 1000
    assert said.startswith("1000 ensembles")


def test_another_gpu_is_another_model_for_the_same_callers(world: World, fleets: Fleets) -> None:
    old, before = fleets.synthesised({"text": world.repository()})

    platform = ServingPlatform(release="25.09", instance_type="ml.g4dn.xlarge")
    new, after = fleets.synthesised({"text": world.repository()}, platform)

    assert fleets.changed(before, after) == {
        only(before, DELIVERY)[0]: {"PlanKey", "PlanSha256"},
        only(before, MODEL)[0]: {"PrimaryContainer"},
        only(before, "AWS::SageMaker::EndpointConfig")[0]: {"ProductionVariants"},
    }
    assert old.target_models == new.target_models


def test_a_larger_instance_with_the_same_gpu_keeps_model_and_plan(world: World, fleets: Fleets) -> None:
    _, before = fleets.synthesised({"text": world.repository()})

    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    _, after = fleets.synthesised({"text": world.repository()}, platform)

    assert fleets.changed(before, after) == {only(before, "AWS::SageMaker::EndpointConfig")[0]: {"ProductionVariants"}}


def test_the_role_reads_its_own_fleet_whatever_the_platform(world: World, fleets: Fleets) -> None:
    fleet, resources = fleets.synthesised({"text": world.repository()})

    policy = json.dumps(only(resources, "AWS::IAM::ManagedPolicy")[1])
    assert f'"/fleets/{fleet.name_in_store}/*"' in policy
    assert f'{{"s3:prefix": "fleets/{fleet.name_in_store}/*"}}' in policy
    assert "artifacts/" not in policy


def test_two_fleets_share_a_store_and_not_a_prefix(world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    fleets = [
        TritonMultiModel(
            cdk.Stack(app, name), "Fleet", store=store, ensembles={"text": world.repository()}, platform=world.platform
        )
        for name in ("First", "Second")
    ]
    app.synth()

    assert fleets[0].name_in_store != fleets[1].name_in_store
    assert fleets[0].target_models == fleets[1].target_models


def test_one_repository_under_two_names_is_committed_once(world: World) -> None:
    app = world.app()
    stack = cdk.Stack(app, "Stack")
    repository = world.repository()
    TritonMultiModel(stack, "Fleet", ensembles={"a": repository, "b": repository}, platform=world.platform)

    plan = world.plan(app, world.only(stack, DELIVERY))
    assert len(plan["commits"]) == 1
    assert [copy["ensemble"] for copy in plan["fleet"]["copies"]] == ["a", "b"]


def test_the_handler_reads_the_plan_as_it_was_meant(world: World) -> None:
    app = world.app()
    stack = cdk.Stack(app, "Stack")
    text, image = world.repository("text"), world.repository("image")
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"t": text, "i": image}, platform=world.platform)

    resource = world.only(stack, DELIVERY)["Properties"]
    content = (world.directory / "cdk.out" / f"asset.{resource['PlanKey']}").read_bytes()
    plan = StackPlan.parse(content)

    assert [commit.artifact_key for commit in plan.commits] == [artifact_key(r, world.platform) for r in (text, image)]
    assert all(
        (world.directory / "cdk.out" / f"asset.triton-{commit.artifact_key}.tar.gz").exists() for commit in plan.commits
    )
    assert plan.fleet is not None
    assert plan.fleet.target_models == fleet.target_models
    assert plan.fleet.index == f"fleets/{fleet.name_in_store}/25.09-a10g/index.json"
    assert {copy.archive for copy in plan.fleet.copies} == {commit.archive for commit in plan.commits}


@pytest.mark.parametrize(
    "name",
    ["", "a/b", "with space", "-first", "é", "x" * 201],
    ids=["none", "slash", "space", "dash", "accent", "long"],
)
def test_a_name_that_cannot_be_a_target_model_is_rejected(
    messages: Messages, world: World, stack: cdk.Stack, name: str
) -> None:
    with messages.raises(ConfigurationError):
        TritonMultiModel(stack, "Fleet", ensembles={name: world.repository()}, platform=world.platform)


def test_an_instance_type_that_aws_does_not_list_is_warned_about(
    messages: Messages, world: World, stack: cdk.Stack
) -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g6.xlarge")
    TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=platform)

    (warning,) = Annotations.from_stack(stack).find_warning("/Stack/Fleet", Match.any_value())
    messages.record("CT620", str(warning.entry.data))
    assert "[ack: CT620]" in str(warning.entry.data)


def test_the_construct_paths_are_a_contract(world: World, stack: cdk.Stack) -> None:
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)

    assert [child.node.id for child in fleet.node.children] == ["Artifacts", "Role", "Permissions", "Resource"]
    assert fleet.name_in_store.startswith("stack-fleet-")


def test_a_directory_and_the_short_form_of_a_platform_are_repository_and_platform(world: World) -> None:
    repository = world.repository()
    stacks = [cdk.Stack(world.app(f"cdk.out.{name}"), "Stack") for name in ("objects", "texts")]
    directories = dict.fromkeys("ab", str(repository.root))
    objects = TritonMultiModel(stacks[0], "Fleet", ensembles=dict.fromkeys("ab", repository), platform=world.platform)
    texts = TritonMultiModel(stacks[1], "Fleet", ensembles=directories, platform="25.09/ml.g5.2xlarge")

    assert texts.platform == objects.platform
    assert texts.ensembles["a"] is texts.ensembles["b"]
    assert texts.target_models == objects.target_models


@pytest.mark.parametrize("text", ["25.09", "/ml.g5.2xlarge"])
def test_a_text_that_is_no_platform_is_a_sentence(
    messages: Messages, world: World, stack: cdk.Stack, text: str
) -> None:
    with messages.raises(ConfigurationError):
        TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=text)
