"""A recipe that is written outside the library, with public names only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk.assertions import Annotations, Match

from cdk_triton import BuildRecipe, ModelRepository, S3File, ServingPlatform, TensorRTPlan, TritonModel
from cdk_triton.artifacts import artifact_key
from cdk_triton.artifacts.prepare import prepare
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    import aws_cdk as cdk
    from tests.hosting.conftest import World

SHA256 = "0123456789abcdef" * 4


@dataclass(frozen=True)
class RegisteredPlan:
    """The plan of a network in a registry, on GPUs that it was tested on."""

    model: str
    gpu: str

    def __str__(self) -> str:
        return f"RegisteredPlan({self.model!r})"

    @property
    def _plan(self) -> TensorRTPlan:
        return TensorRTPlan(self.model, onnx=S3File("registry", f"{self.model}.onnx", SHA256))

    @property
    def produces(self) -> tuple[str, ...]:
        return self._plan.produces

    @property
    def consumes(self) -> tuple[str, ...]:
        return self._plan.consumes

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        return self._plan.s3_files

    def parameters(self) -> dict[str, object]:
        return {**self._plan.parameters(), "registry": "ours"}

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        self._plan.validate(repository, platform)
        if platform.gpu != self.gpu:
            raise ConfigurationError(f"{self} was not tested on {platform.gpu}: choose another instance type")

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        return {**self._plan.step(repository, platform), "name": f"the registered plan of {self.model}"}

    def estimated_minutes(self, repository: ModelRepository) -> float:
        return 42.0


def repository(world: World, recipe: BuildRecipe) -> ModelRepository:
    root = world.repository_with_plan().root
    (root / "network" / "network.onnx").unlink()
    return ModelRepository.from_directory(root, recipes=[recipe])


def test_it_is_checked_planned_and_keyed_as_those_of_the_library(world: World, stack: cdk.Stack) -> None:
    recipe = RegisteredPlan("network", gpu=world.platform.gpu)
    ours = repository(world, recipe)
    theirs = repository(world, TensorRTPlan("network", onnx=S3File("registry", "network.onnx", SHA256)))
    TritonModel(stack, "Model", repository=ours, platform=world.platform)
    app = stack.node.root

    plan = world.plan(app, world.only(stack, "Custom::TritonArtifacts"))  # type: ignore[arg-type] # the root is an app
    (commit,) = plan["commits"]
    (step,) = commit["build"]["ensemble"]["steps"]
    assert (step["recipe"], step["name"]) == ("tensorrt_plan", "the registered plan of network")
    assert "registry" in {source["bucket"] for source in commit["build"]["inputs"]}
    assert commit["artifact_key"] == artifact_key(ours, world.platform) != artifact_key(theirs, world.platform)
    assert prepare(ours, "single", world.platform, ContainerEnvironment()).build_minutes > 42


def test_its_own_check_is_an_error_of_the_construct(world: World, stack: cdk.Stack) -> None:
    recipe = RegisteredPlan("network", gpu="NVIDIA H100")
    TritonModel(stack, "Model", repository=repository(world, recipe), platform=world.platform)

    said = Match.string_like_regexp(r"RegisteredPlan\('network'\) was not tested on NVIDIA A10G")
    assert Annotations.from_stack(stack).find_error("/Stack/Model", said)
