"""Repositories with recipes: who builds them, and what the deployment is told about it."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from cdk_triton import (
    CodeBuildGpuBuilder,
    ModelRepository,
    S3File,
    SageMakerProcessingBuilder,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.artifacts import artifact_key, source_key, sources_key
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.protocol.plan import StackPlan

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

DELIVERY, MODEL = "Custom::TritonArtifacts", "AWS::SageMaker::Model"
NETWORK_IN_S3 = S3File(bucket="models", key="bert/bert.onnx", sha256="ab" * 32)


def environment(region: str) -> cdk.Environment:
    return cdk.Environment(account="111122223333", region=region)


@dataclass(frozen=True)
class Slow(TensorRTPlan):
    """A recipe that says it takes its time."""

    minutes: float = 0.0

    def estimated_minutes(self, repository: object) -> float:
        return self.minutes


class TestThePlan:
    def test_says_what_is_built_and_by_whom(self, world: World) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack", env=environment("eu-west-1"))
        repository = world.repository_with_plan("text")
        TritonModel(stack, "Model", repository=repository, platform=world.platform)

        plan = world.plan(app, world.only(stack, DELIVERY))
        key = artifact_key(repository, world.platform)
        (commit,) = plan["commits"]
        assert commit["asset"] is None
        assert commit["archive"] == f"artifacts/text/{key}/model.tar.gz"
        assert commit["build"]["ensemble"]["artifact_key"] == key
        assert [step["name"] for step in commit["build"]["ensemble"]["steps"]] == ["the TensorRT plan of network"]
        assert commit["build"]["inputs"] == [
            {
                "bucket": None,
                "key": f"triton-sources-{sources_key(repository)}.gz",
                "version": None,
                "path": f"sources/{sources_key(repository)}.tar.gz",
                "sha256": None,
            }
        ]
        program = plan["builder"].pop("program")
        assert program["path"] == "program.pyz"
        assert plan["builder"] == {
            "kind": "codebuild",
            "timeout_minutes": 120,
            "instance_type": None,
            "volume_gb": None,
            "platform": {
                "image": "sagemaker-tritonserver:25.09-py3",
                "release": "25.09",
                "gpu": "NVIDIA A10G",
                "compute_capability": "8.6",
                "tensorrt": "10.13.3.9",
                "dali": "1.51.2",
                "python": "3.12",
            },
        }

    def test_is_told_the_image_that_serves(self, world: World, stack: cdk.Stack) -> None:
        TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=world.platform)

        served = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]["Image"]
        assert world.only(stack, DELIVERY)["Properties"]["BuildImage"] == served

    def test_is_read_by_the_handler_as_it_was_meant(self, world: World) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack")
        built = world.repository_with_plan(
            "built", recipes=[TensorRTPlan("network", onnx=NETWORK_IN_S3, profiles=[{"IDS": ([1, 4], [8, 4], [8, 4])}])]
        )
        (built.root / "network/network.onnx").unlink()
        built = replace(built) if False else type(built).from_directory(built.root, recipes=built.recipes)
        packed = world.repository("packed")
        fleet = TritonMultiModel(stack, "Fleet", ensembles={"b": built, "p": packed}, platform=world.platform)

        resource = world.only(stack, DELIVERY)["Properties"]
        content = (world.directory / "cdk.out" / f"asset.{resource['PlanKey']}").read_bytes()
        plan = StackPlan.parse(content)

        first, second = plan.commits
        assert first.build is not None
        assert [(i.bucket, i.key, i.path) for i in first.build.inputs][1:] == [
            ("models", "bert/bert.onnx", f"inputs/{'ab' * 32}")
        ]
        assert second.build is None
        assert second.asset == f"triton-{artifact_key(packed, world.platform)}.gz"
        assert plan.builder is not None
        assert (plan.builder.kind, plan.builder.instance_type, plan.builder.volume_gb) == (
            "processing",
            "ml.g5.2xlarge",
            100,
        )
        assert plan.fleet is not None
        assert plan.fleet.target_models["b"] == f"b-{source_key(built)[:10]}.tar.gz" == fleet.target_models["b"]

    def test_without_recipes_builds_nothing(self, world: World) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack")
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)

        resource = world.only(stack, DELIVERY)
        assert "BuildImage" not in resource["Properties"]
        assert world.plan(app, resource)["builder"] is None
        assert not list(Path(app.outdir).glob("asset.triton-program-*"))


class TestTheAssets:
    def test_are_the_sources_and_the_program(self, world: World) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack")
        repository = world.repository_with_plan()
        TritonModel(stack, "Model", repository=repository, platform=world.platform)
        app.synth()

        files = json.loads((Path(app.outdir) / "Stack.assets.json").read_text())["files"]
        published = {
            destination["objectKey"]: Path(app.outdir) / asset["source"]["path"]
            for asset in files.values()
            for destination in asset["destinations"].values()
        }
        plan = world.plan(app, world.only(stack, DELIVERY))
        (sources,) = plan["commits"][0]["build"]["inputs"]
        with tarfile.open(published[sources["key"]]) as archive:
            assert set(archive.getnames()) >= {"network/network.onnx", "preprocess/1/model.py"}
            assert "network/1/model.plan" not in archive.getnames()
        with zipfile.ZipFile(published[plan["builder"]["program"]["key"]]) as program:
            assert "__main__.py" in program.namelist()
        # The handler may read what begins so.
        assert {sources["key"].split("-")[0], plan["builder"]["program"]["key"].split("-")[0]} == {"triton"}

    def test_are_shared_by_two_platforms(self, world: World) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack")
        repository = world.repository_with_plan()
        for name in ("ml.g5.xlarge", "ml.g6.xlarge"):
            platform = ServingPlatform(release="25.09", instance_type=name)
            TritonModel(stack, name.replace(".", ""), repository=repository, platform=platform)

        assert len(list(Path(app.outdir).glob("asset.triton-sources-*.tar.gz"))) == 1
        assert len(list(Path(app.outdir).glob("asset.triton-program-*.pyz"))) == 1


def chosen(
    world: World, region: str | None, instance_type: str, builders: Sequence[Builder] | None = None
) -> tuple[str, object]:
    """The kind of builder for an instance type in a region, and the instance type that it builds on."""
    stack = cdk.Stack(world.app(), "Stack", env=None if region is None else environment(region))
    store = TritonArtifactStore(stack, "Store", builders=builders)
    platform = ServingPlatform(release="25.09", instance_type=instance_type)
    builder = store._builder_for(Construct(stack, "Model"), platform, [])
    return builder._kind, builder._machine(platform)[0]


@pytest.mark.parametrize(
    ("region", "instance_type", "builder"),
    [
        ("us-east-1", "ml.g5.12xlarge", ("codebuild", None)),
        ("us-east-1", "ml.g4dn.xlarge", ("processing", "ml.g4dn.xlarge")),
        ("us-east-1", "ml.g6e.2xlarge", ("processing", "ml.g6e.2xlarge")),
        ("us-east-1", "ml.p5.48xlarge", ("processing", "ml.p5.4xlarge")),
        ("eu-north-1", "ml.g5.xlarge", ("processing", "ml.g5.xlarge")),
        (None, "ml.g5.xlarge", ("processing", "ml.g5.xlarge")),
    ],
)
def test_the_builder_follows_from_gpu_and_region(
    world: World, region: str | None, instance_type: str, builder: tuple[str, object]
) -> None:
    assert chosen(world, region, instance_type) == builder


class TestABuilderThatTheUserNames:
    def test_is_taken_at_his_word_where_the_region_is_not_known(self, world: World) -> None:
        assert chosen(world, None, "ml.g5.xlarge", [CodeBuildGpuBuilder()]) == ("codebuild", None)

    def test_is_preferred_in_the_order_of_the_list(self, world: World) -> None:
        builders = [SageMakerProcessingBuilder(), CodeBuildGpuBuilder()]
        assert chosen(world, "eu-west-1", "ml.g5.xlarge", builders) == ("processing", "ml.g5.xlarge")

    def test_builds_on_the_instance_type_that_it_names(self, world: World) -> None:
        builder = SageMakerProcessingBuilder(instance_type="ml.g5.xlarge", volume=cdk.Size.gibibytes(50))
        assert chosen(world, None, "ml.g5.48xlarge", [builder]) == ("processing", "ml.g5.xlarge")

    def test_builds_on_its_fleet(self, world: World) -> None:
        fleet = codebuild.Fleet.from_fleet_arn(
            cdk.Stack(), "Fleet", "arn:aws:codebuild:eu-north-1:111122223333:fleet/Mine:298f7d6e-0000"
        )
        builders = [CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4")]
        assert chosen(world, "eu-north-1", "ml.g6.xlarge", builders) == ("codebuild", None)

    @pytest.mark.parametrize(
        ("region", "instance_type", "builders", "suggested"),
        [
            pytest.param(
                "eu-west-1",
                "ml.g6.xlarge",
                [CodeBuildGpuBuilder()],
                "SageMakerProcessingBuilder()",
                id="CodeBuild has another GPU",
            ),
            pytest.param(
                "eu-north-1",
                "ml.g5.xlarge",
                [CodeBuildGpuBuilder()],
                "SageMakerProcessingBuilder()",
                id="CodeBuild has no GPU there",
            ),
            pytest.param(
                "eu-west-1",
                "ml.g5.xlarge",
                [SageMakerProcessingBuilder(instance_type="ml.g6.xlarge")],
                "CodeBuildGpuBuilder()",
                id="the given type has another GPU",
            ),
            pytest.param(None, "ml.g5.xlarge", [], "SageMakerProcessingBuilder()", id="no builder"),
            pytest.param("us-east-1", "ml.p4d.24xlarge", None, "", id="no builder has the GPU"),
        ],
    )
    def test_that_cannot_build_is_rejected_with_the_one_that_can(
        self,
        messages: Messages,
        world: World,
        region: str | None,
        instance_type: str,
        builders: Sequence[Builder] | None,
        suggested: str,
    ) -> None:
        with messages.raises(ConfigurationError) as caught:
            chosen(world, region, instance_type, builders)
        assert str(caught.value).startswith("Stack/Model ")
        assert suggested in str(caught.value)


class TestWhatABuildMayRead:
    @pytest.fixture(name="resources_of")
    def _resources_of(
        self, world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
    ) -> Callable[[str, str], list[str]]:
        """The resources on which a policy of the store allows an action."""

        def resources(logical_id: str, action: str) -> list[str]:
            found = [
                s["Resource"]
                for s in world.statements(stack, logical_id)
                if action in s["Action"] or action == s["Action"]
            ]
            return [flattened(r) for each in found for r in (each if isinstance(each, list) else [each])]

        return resources

    def test_is_the_image_of_its_platform(
        self, world: World, stack: cdk.Stack, resources_of: Callable[[str, str], list[str]]
    ) -> None:
        store = TritonArtifactStore(stack, "Store")
        for name in ("First", "Second"):
            TritonModel(stack, name, repository=world.repository_with_plan(name), platform=world.platform, store=store)

        assert resources_of("StoreProcessingRole", "ecr:BatchGetImage") == [
            "arn:<AWS::Partition>:ecr:<AWS::Region>:<TritonImages2509.<AWS::Region>.account>:repository"
            "/sagemaker-tritonserver"
        ]

    def test_is_an_image_of_ones_own(
        self, world: World, stack: cdk.Stack, resources_of: Callable[[str, str], list[str]]
    ) -> None:
        image = f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror/triton@sha256:{'a' * 64}"
        platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge", image=image)
        store = TritonArtifactStore(stack, "Store")
        TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=platform, store=store)

        assert resources_of("StoreProcessingRole", "ecr:BatchGetImage") == [
            "arn:<AWS::Partition>:ecr:eu-west-1:111122223333:repository/mirror/triton"
        ]

    def test_is_not_an_image_from_elsewhere_which_is_the_users_to_grant(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        platform = ServingPlatform(
            release="25.09", instance_type="ml.g5.xlarge", image=f"registry.example.com/triton@sha256:{'a' * 64}"
        )
        store = TritonArtifactStore(stack, "Store")
        TritonModel(stack, "Model", repository=world.repository_with_plan(), platform=platform, store=store)

        code = "cdk-triton:BuildImagePullNotGranted"
        (warning,) = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"\[ack: {code}\]"))
        messages.record(code, str(warning.entry.data))
        assert set(store.build_roles) == {"processing"}

    def test_is_nothing_where_nothing_is_built(
        self, world: World, stack: cdk.Stack, resources_of: Callable[[str, str], list[str]]
    ) -> None:
        store = TritonArtifactStore(stack, "Store")
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)

        assert resources_of("StoreProcessingRole", "ecr:BatchGetImage") == []

    def test_is_each_object_that_a_recipe_names_and_no_other(
        self, world: World, stack: cdk.Stack, resources_of: Callable[[str, str], list[str]]
    ) -> None:
        store = TritonArtifactStore(stack, "Store")
        for _ in range(2):
            store._builder_for(store, world.platform, [NETWORK_IN_S3])

        objects = [r for r in resources_of("StoreIsCompleteRole", "s3:GetObject") if "models" in r]
        assert objects == ["arn:<AWS::Partition>:s3:::models/bert/bert.onnx"]

    def test_is_no_pattern(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        store = TritonArtifactStore(stack, "Store")
        with messages.raises(ConfigurationError):
            store._builder_for(store, world.platform, [replace(NETWORK_IN_S3, key="bert*.onnx")])

    def test_leaves_nothing_for_cdk_nag(self, world: World) -> None:
        stack = cdk.Stack(world.app(), "Stack", env=environment("eu-west-1"))
        access_logs = s3.Bucket.from_bucket_name(stack, "AccessLogs", "access-logs")
        key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:111122223333:key/abc")
        store = TritonArtifactStore(stack, "Store", access_logs_bucket=access_logs, encryption_key=key)
        store._builder_for(store, world.platform, [NETWORK_IN_S3])
        store._builder_for(store, replace(world.platform, instance_type="ml.g6.xlarge"), [])

        report = AwsSolutionsChecks().validate_scope(stack)
        assert [violation.rule_name for violation in report.violations or []] == []


class TestRecipesThatCannotBeBuilt:
    def test_are_errors_of_the_construct(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        repository = world.repository_with_plan(recipes=[TensorRTPlan("network", onnx="other.onnx")])
        TritonModel(stack, "Model", repository=repository, platform=world.platform)

        errors = Annotations.from_stack(stack).find_error("/Stack/Model", Match.any_value())
        (error,) = (e for e in errors if "other.onnx" in str(e.entry.data))
        assert str(error.entry.data).startswith(f"{repository.root}: ")
        messages.record("cdk-triton:Recipe", str(error.entry.data))
        assert not list(world.directory.glob("cdk.out/asset.triton-sources-*"))

    def test_are_told_for_every_ensemble_at_once(self, world: World, stack: cdk.Stack) -> None:
        ensembles = {
            name: world.repository_with_plan(name, recipes=[TensorRTPlan("network", onnx=f"{name}.onnx")])
            for name in ("first", "second")
        }
        TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)

        errors = Annotations.from_stack(stack).find_error("/Stack/Fleet", Match.any_value())
        for name in ensembles:
            assert any(f"{name}.onnx" in str(error.entry.data) for error in errors)

    def test_a_promise_that_none_keeps_is_told_with_the_rest(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        root = world.repository_with_plan().root
        (root / "cdk-triton.toml").write_text('produced = ["network/1/a.bin", "network/1/b.bin"]')
        recipes = [TensorRTPlan("netwrk", onnx="network.onnx")]
        repository = ModelRepository.from_directory(root, recipes=recipes)
        TritonModel(stack, "Model", repository=repository, platform=world.platform)

        expected = {
            "cdk-triton:ProducedFile": ("network/1/a.bin", "network/1/b.bin"),
            "cdk-triton:Recipe": ("'network'",),
        }
        for code, mentioned in expected.items():
            errors = Annotations.from_stack(stack).find_error("/Stack/Model", Match.string_like_regexp(code))
            said = [str(error.entry.data) for error in errors]
            for text in said:
                messages.record(code, text)
            for what in mentioned:
                assert any(what in text for text in said), what

    def test_are_rejected_if_they_are_none(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        repository = replace(world.repository(), recipes=("bert.onnx",))  # type: ignore[arg-type]
        with messages.raises(ConfigurationError):
            TritonModel(stack, "Model", repository=repository, platform=world.platform)


class TestWorkThatTakesLong:
    @staticmethod
    def warnings(world: World, stack: cdk.Stack, minutes: float) -> list[str]:
        recipe = Slow("network", onnx="network.onnx", minutes=minutes)
        TritonModel(stack, "Model", repository=world.repository_with_plan(recipes=[recipe]), platform=world.platform)
        codes = Match.string_like_regexp(r"\[ack: cdk-triton:(LongBuild|BuildTimeout)\]")
        return [
            str(warning.entry.data) for warning in Annotations.from_stack(stack).find_warning("/Stack/Model", codes)
        ]

    def test_is_not_warned_about_below_a_deployments_patience(self, world: World, stack: cdk.Stack) -> None:
        assert self.warnings(world, stack, 30) == []

    def test_is_sent_to_the_command(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        (warning,) = self.warnings(world, stack, 60)

        messages.record("cdk-triton:LongBuild", warning)
        assert "`cdk-triton artifacts build`" in warning
        assert "[ack: cdk-triton:LongBuild]" in warning

    def test_needs_a_longer_timeout(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        _, warning = self.warnings(world, stack, 120)

        messages.record("cdk-triton:BuildTimeout", warning)
        assert "[ack: cdk-triton:BuildTimeout]" in warning
