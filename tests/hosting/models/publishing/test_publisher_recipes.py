"""`TritonMultiModel.add_publisher(recipes=…)`: its description, its builder, its permissions, and what it rejects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk.assertions import Template
from tests.hosting.models.publishing.test_publisher import Fleet, actions, description

from cdk_triton import (
    CondaEnvironment,
    ContainerEnvironment,
    DaliPipeline,
    ModelRepository,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonMultiModel,
    WheelEnvironment,
)
from cdk_triton.artifacts import OnnxExport, Parity, S3File, Tolerance, artifact_key, source_key
from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA, PublisherDescription
from cdk_triton.cli.fleet.manifest import Listed
from cdk_triton.cli.fleet.verdicts import judge
from cdk_triton.errors import ConfigurationError
from sample_repositories.networks import write_network

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

NETWORK = S3File("weights", "bert.onnx", "0" * 64)
RECIPES = (
    TensorRTPlan("net"),
    TensorRTPlan(
        "bert",
        onnx=NETWORK,
        precision="fp16",
        profiles=[{"ids": ((1, 8), (4, 64), (8, 128))}],
        parity=Parity(tolerance=Tolerance(0.1, 0.2), ranges={"ids": (0, 30_521)}),
    ),
    TensorRTPlan("plain", parity=None),
    DaliPipeline("preprocess", serialize=True),
    CondaEnvironment("python", lock="conda.lock"),
    WheelEnvironment("wheels"),
    OnnxExport(
        "exported", entry="export.py:main", onnx="model.onnx", requirements="requirements.txt", sources=["a.py"]
    ),
)


@pytest.fixture(name="fleet")
def _fleet(world: World) -> Fleet:
    return Fleet(world)


def test_the_template_describes_every_recipe_to_the_command(fleet: Fleet) -> None:
    fleet.add_publisher(recipes=RECIPES, max_builds=3)
    found = PublisherDescription.parse(description(fleet), "Serving/Fleet")
    assert found.recipes == RECIPES
    assert found.max_builds == 3
    assert found.builder is not None
    assert (found.builder.kind, found.builder.platform["gpu"]) == ("codebuild", "NVIDIA A10G")


def test_the_command_computes_the_keys_of_a_synthesis(fleet: Fleet, tmp_path: Path) -> None:
    write_network(tmp_path / "tenant", "Add", 1)
    fleet.add_publisher(recipes=RECIPES)
    found = PublisherDescription.parse(json.loads(json.dumps(description(fleet))), "Serving/Fleet")

    (verdict,) = judge([Listed("tenant", tmp_path / "tenant")], found, recheck=True)

    repository = ModelRepository.from_directory(tmp_path / "tenant", recipes=[TensorRTPlan("net")])
    assert verdict.errors == []
    assert verdict.source_key == source_key(repository)
    assert verdict.artifact_key == artifact_key(repository, fleet.model.platform)
    assert verdict.build is not None
    assert verdict.build.recipes == (0,)


@pytest.mark.parametrize("name", ["program", "parameters", "recipe"])
def test_a_command_that_computes_other_keys_stops(messages: Messages, fleet: Fleet, name: str) -> None:
    fleet.add_publisher(recipes=RECIPES[:1])
    found = description(fleet)
    builds = json.loads(found["builds"])
    if name == "program":
        builds["program"] += 1
    else:
        builds["recipes"][0][name] = {"of": "another version"} if name == "parameters" else "NewRecipe"
    with messages.raises(ConfigurationError):
        PublisherDescription.parse({**found, "builds": json.dumps(builds)}, "Serving/Fleet")


def states(fleet: Fleet) -> dict[str, Any]:
    """The states of the machine; unresolved values are ids in `<>`."""
    (machine,) = fleet.resources("AWS::StepFunctions::StateMachine").values()
    parts = machine["Properties"]["DefinitionString"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else "<token>" for part in parts)
    found: dict[str, Any] = json.loads(text)["States"]
    return found


def test_the_machine_builds_before_it_changes_ensembles(fleet: Fleet) -> None:
    fleet.add_publisher(recipes=RECIPES, max_builds=3)
    found = states(fleet)
    assert found["Prepare"]["Parameters"]["max_builds"] == 3
    assert found["HasBuilds"]["Choices"][0]["Next"] == "Builds"
    assert found["Builds"]["MaxConcurrency"] == 3
    assert found["Builds"]["Next"] == "Ensembles"
    child = found["Builds"]["ItemProcessor"]["States"]
    asked = child["Build"]["Parameters"]["Publication"]
    assert asked["description"].startswith("triton-plan-")
    assert asked["description"] == f"triton-plan-{asked['sha256']}.json"
    for state in (each for each in child.values() if each["Type"] == "Task"):
        assert [catcher["ErrorEquals"] for catcher in state["Catch"]] == [["States.ALL"]]


def test_a_publisher_without_recipes_has_no_states_for_builds(fleet: Fleet) -> None:
    fleet.add_publisher()
    assert states(fleet).keys() == {"Prepare", "Ensembles", "Count"}


def test_only_the_store_s_handler_builds(world: World, fleet: Fleet) -> None:
    fleet.add_publisher(recipes=RECIPES)
    served, catalogue = (
        f"/{part}/{fleet.model.name_in_store}/25.09-a10g/{name}"
        for part, name in (("fleets", "*.tar.gz"), ("catalogue", "*.json"))
    )
    found = actions(world, fleet, "FleetPublisherChangeRole")
    requests = f"/staging/publish/{fleet.model.name_in_store}/*/archives/*.tar.gz"
    own = f"/staging/publishing/{fleet.model.name_in_store}/25.09-a10g/*"
    assert found["s3:GetObject"] == sorted([requests, own, "/artifacts/*", served, catalogue])
    assert found["s3:PutObject"] == [catalogue, served]
    # The copy of a large archive that was built is resumed.
    assert (found["s3:ListMultipartUploadParts"], found["s3:ListBucketMultipartUploads"]) == ([served], ["?"])
    assert "codebuild:StartBuild" not in found
    machine = actions(world, fleet, "FleetPublisherStateMachineRole")
    assert len(machine["lambda:InvokeFunction"]) == 5
    inputs = Template.from_stack(cdk.Stack.of(fleet.store)).to_json()["Resources"]
    assert "weights/bert.onnx" in json.dumps(inputs)  # the handler may read the input


@dataclass(frozen=True)
class Own:
    """A recipe of the user's."""

    model: str = "net"
    produces: tuple[str, ...] = ("net/1/model.plan",)

    def parameters(self) -> dict[str, object]:
        return {"recipe": "own"}


REJECTED: dict[str, dict[str, Any]] = {
    "a recipe of the user's own": {"recipes": [Own()]},
    "not a list": {"recipes": TensorRTPlan("net")},
    "two for one file": {"recipes": [TensorRTPlan("net"), TensorRTPlan("net", precision="fp16")]},
    "no builds": {"recipes": RECIPES[:1], "max_builds": 0},
}


@pytest.mark.parametrize("arguments", REJECTED.values(), ids=REJECTED)
def test_what_a_publisher_cannot_build_is_rejected(messages: Messages, fleet: Fleet, arguments: dict[str, Any]) -> None:
    with messages.raises(ConfigurationError):
        fleet.add_publisher(**arguments)


def test_a_store_without_a_builder_for_the_gpu_is_rejected(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    store = TritonArtifactStore(stack, "Store", builders=[])
    model = TritonMultiModel(stack, "Fleet", platform=world.platform, store=store)
    with messages.raises(ConfigurationError):
        model.add_publisher(recipes=RECIPES[:1])


def test_the_store_of_another_app_cannot_build_for_a_publisher(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    store = TritonArtifactStore.from_exports(stack, "Store", "triton")
    model = TritonMultiModel(stack, "Fleet", platform=world.platform, store=store)
    with messages.raises(ConfigurationError):
        model.add_publisher(recipes=RECIPES[:1])


def test_a_platform_of_an_own_image_builds_too(world: World) -> None:
    image = f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/triton@sha256:{'0' * 64}"
    fleet = Fleet(world, platform=ServingPlatform(image=image, release="25.09", instance_type="ml.g5.xlarge"))
    fleet.add_publisher(recipes=RECIPES[:1])
    assert PublisherDescription.parse(description(fleet), "Serving/Fleet").builder is not None


@pytest.mark.slow
@pytest.mark.parametrize("pack", [cdk_nag.AwsSolutionsChecks, cdk_nag.NIST80053R5Checks])
def test_cdk_nag_finds_nothing(fleet: Fleet, pack: Any) -> None:
    fleet.add_publisher(recipes=RECIPES)
    fleet.app.synth()
    report = pack().validate_scope(fleet.stack)
    found = {(each.rule_name, each.violating_resources[0].resource_logical_id) for each in report.violations}
    assert not found


def test_a_publisher_that_rehearses_needs_no_recipe(world: World, fleet: Fleet) -> None:
    fleet.add_publisher(rehearse=True)
    found = PublisherDescription.parse(description(fleet), "Serving/Fleet")
    assert (found.rehearse, found.recipes) == (True, ())
    assert found.builder is not None
    assert "Builds" in str(world.only(fleet.stack, "AWS::StepFunctions::StateMachine"))


def test_a_rehearsal_of_a_publisher_needs_literal_variables(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app("tokens"), "Serving")
    environment = ContainerEnvironment(variables={"TABLE": cdk.Aws.STACK_NAME})
    fleet = TritonMultiModel(stack, "Fleet", platform=world.platform, environment=environment)
    with messages.raises(ConfigurationError):
        fleet.add_publisher(rehearse=True)


def test_a_store_of_another_app_cannot_rehearse(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app("shared"), "Serving")
    store = TritonArtifactStore.from_exports(stack, "Store", "triton")
    fleet = TritonMultiModel(stack, "Fleet", platform=world.platform, store=store)
    with messages.raises(ConfigurationError):
        fleet.add_publisher(rehearse=True)


def test_the_variables_of_the_models_are_those_of_a_rehearsal(world: World, tmp_path: Path) -> None:
    write_network(tmp_path / "tenant", "Add", 1)
    (tmp_path / "tenant/golden").mkdir()
    request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}
    (tmp_path / "tenant/golden/one.json").write_text(json.dumps(request))
    (tmp_path / "tenant/cdk-triton.toml").write_text('[[rehearsal.requests]]\nrequest = "golden/one.json"\n')
    found = {}
    for rehearse in (True, False):
        stack = cdk.Stack(world.app(f"variables{rehearse}"), "Serving")
        environment = ContainerEnvironment(variables={"TABLE": "prices"})
        fleet = TritonMultiModel(stack, "Fleet", platform=world.platform, environment=environment)
        publisher = fleet.add_publisher(rehearse=rehearse, recipes=[TensorRTPlan("net")])
        document = publisher._machine.get_metadata(PUBLISHER_METADATA)
        described = PublisherDescription.parse(json.loads(json.dumps(document)), "Serving/Fleet")
        (verdict,) = judge([Listed("tenant", tmp_path / "tenant")], described, recheck=True)
        assert verdict.errors == []
        found[rehearse] = verdict.rehearsal
    rehearsal = found[True]
    assert found[False] is None
    assert rehearsal is not None
    assert rehearsal.document["environment"]["TABLE"] == "prices"
