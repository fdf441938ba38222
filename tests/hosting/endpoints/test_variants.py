"""What a variant says to SageMaker: volumes, timeouts, routing; and a shadow beside the production variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match

from cdk_triton import ServingPlatform, TritonEndpoint, TritonModel, TritonMultiModel, TritonVariant
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from cdk_triton.hosting import ITritonModel
    from golden_messages import Messages

CONFIG = "AWS::SageMaker::EndpointConfig"
GB = 1_000_000_000


class Sized(TritonModel):
    """A model that says it is larger than it is."""

    said = 0

    @property
    def size(self) -> int:
        return self.said


@pytest.fixture(name="candidate")
def _candidate(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "Candidate", repository=world.repository("candidate"), platform=world.platform)


def model_on(world: World, stack: cdk.Stack, instance_type: str, release: str = "25.09") -> TritonModel:
    platform = ServingPlatform(release=release, instance_type=instance_type)
    return TritonModel(stack, instance_type.replace(".", ""), repository=world.repository(), platform=platform)


def configured(world: World, stack: cdk.Stack, variant: TritonVariant) -> dict[str, Any]:
    """A variant as the endpoint configuration says it."""
    TritonEndpoint(stack, "Endpoint", variants=[variant])
    (found,) = world.only(stack, CONFIG)["Properties"]["ProductionVariants"]
    return dict(found)


def warnings(stack: cdk.Stack, code: str) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"\[ack: {code}\]"))
    return [str(each.entry.data) for each in found]


class TestVolume:
    def test_a_type_without_disks_takes_a_size(self, world: World, stack: cdk.Stack) -> None:
        model = model_on(world, stack, "ml.p3.2xlarge", "24.09")
        variant = configured(world, stack, TritonVariant(model=model, volume_size=cdk.Size.gibibytes(64)))

        assert variant["VolumeSizeInGB"] == 64
        assert warnings(stack, "cdk-triton:VolumeSize") == []

    @pytest.mark.parametrize("instance_type", ["ml.g4dn.xlarge", "ml.g5.2xlarge", "ml.g6e.2xlarge", "ml.p4d.24xlarge"])
    def test_a_type_that_is_known_to_reject_it_is_rejected(
        self, messages: Messages, world: World, stack: cdk.Stack, instance_type: str
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonVariant(model=model_on(world, stack, instance_type), volume_size=cdk.Size.gibibytes(64))

    def test_a_type_with_disks_that_nobody_tried_is_warned_of(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        model = model_on(world, stack, "ml.p5.48xlarge")
        variant = configured(world, stack, TritonVariant(model=model, volume_size=cdk.Size.gibibytes(64)))

        assert variant["VolumeSizeInGB"] == 64
        (warning,) = warnings(stack, "cdk-triton:VolumeSize")
        messages.record("cdk-triton:VolumeSize", warning)

    @pytest.mark.parametrize(
        ("size", "said"),
        [
            (cdk.Size.gibibytes(0), "0 GiB"),
            (cdk.Size.gibibytes(513), "513 GiB"),
            (cdk.Size.mebibytes(1536), "1.5 GiB"),
        ],
        ids=["none", "too much", "a fraction"],
    )
    def test_a_size_that_sagemaker_does_not_take_is_rejected(
        self, messages: Messages, world: World, stack: cdk.Stack, size: cdk.Size, said: str
    ) -> None:
        model = model_on(world, stack, "ml.p3.2xlarge", "24.09")
        with messages.raises(ConfigurationError) as caught:
            TritonVariant(model=model, volume_size=size)
        assert said in str(caught.value)


class TestRouting:
    def test_it_is_sagemakers_own_unless_given(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        assert "RoutingConfig" not in configured(world, stack, TritonVariant(model=model))

    def test_a_strategy_is_passed_on(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        variant = TritonVariant(model=model, routing_strategy="LEAST_OUTSTANDING_REQUESTS")

        assert configured(world, stack, variant)["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}

    def test_another_strategy_is_rejected(self, messages: Messages, model: TritonModel) -> None:
        with messages.raises(ConfigurationError) as caught:
            TritonVariant(model=model, routing_strategy="ROUND_ROBIN")  # type: ignore[arg-type]
        assert "LEAST_OUTSTANDING_REQUESTS" in str(caught.value)


class TestTimeouts:
    START, DOWNLOAD = "ContainerStartupHealthCheckTimeoutInSeconds", "ModelDataDownloadTimeoutInSeconds"

    def timeouts(
        self, world: World, stack: cdk.Stack, size: int, **given: cdk.Duration
    ) -> tuple[int | None, int | None]:
        model = Sized(stack, "Model", repository=world.repository(), platform=world.platform)
        model.said = size
        variant = configured(world, stack, TritonVariant(model=model, **given))  # type: ignore[arg-type]
        return variant.get(self.START), variant.get(self.DOWNLOAD)

    @pytest.mark.parametrize(
        ("size", "start", "download"),
        [
            (GB, None, None),
            (GB + 1, 540, None),  # 480 + 40 seconds, in whole minutes
            (12 * GB, 960, None),
            (40 * GB, 2100, None),
            (41 * GB, 2160, 3600),
            (200 * GB, 3600, 3600),
        ],
    )
    def test_they_fit_the_size_of_the_model(
        self, world: World, stack: cdk.Stack, size: int, start: int | None, download: int | None
    ) -> None:
        assert self.timeouts(world, stack, size) == (start, download)

    def test_what_is_given_wins(self, world: World, stack: cdk.Stack) -> None:
        given = {
            "container_startup_timeout": cdk.Duration.minutes(2),
            "model_download_timeout": cdk.Duration.minutes(3),
        }
        assert self.timeouts(world, stack, 50 * GB, **given) == (120, 180)

    @pytest.mark.parametrize(
        ("timeout", "said"),
        [(cdk.Duration.millis(60_500), "60.5"), (600, "600")],
        ids=["a fraction", "a number"],
    )
    def test_what_is_no_number_of_seconds_is_rejected(
        self, messages: Messages, model: TritonModel, timeout: Any, said: str
    ) -> None:
        with messages.raises(ConfigurationError) as caught:
            TritonVariant(model=model, container_startup_timeout=timeout)
        assert "container_startup_timeout" in str(caught.value)
        assert said in str(caught.value)

    def test_the_size_of_a_model_is_that_of_its_files(self, world: World, model: TritonModel) -> None:
        assert model.size == sum(path.stat().st_size for path in model.repository.root.rglob("*") if path.is_file())

    def test_no_ensemble_changes_the_timeouts_of_a_fleet(self, world: World, stack: cdk.Stack) -> None:
        fleet = TritonMultiModel(
            stack, "Fleet", ensembles={"text": world.repository(weights="1" * 10_000)}, platform=world.platform
        )
        assert fleet.is_multi_model
        assert fleet.size == 0


class TestShadow:
    def test_it_stands_beside_the_production_variant(
        self, world: World, stack: cdk.Stack, model: TritonModel, candidate: TritonModel
    ) -> None:
        shadow = TritonVariant(model=candidate, variant_name="Shadow", initial_weight=0.25, initial_instance_count=2)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, shadow=shadow)

        properties = world.only(stack, CONFIG)["Properties"]
        (found,) = properties["ShadowProductionVariants"]
        assert [variant["VariantName"] for variant in properties["ProductionVariants"]] == ["AllTraffic"]
        assert (found["VariantName"], found["InitialVariantWeight"], found["InitialInstanceCount"]) == (
            "Shadow",
            0.25,
            2,
        )
        assert found["ModelName"] == stack.resolve(candidate.model_name)
        assert endpoint.shadow is shadow
        assert endpoint.variants == (endpoint.variant().variant,)

    def test_a_variant_that_the_endpoint_does_not_have_is_an_error(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model)
        with messages.raises(ConfigurationError):
            endpoint.variant("Blue")

    def test_it_has_metrics_and_the_endpoint_keeps_those_of_production(
        self, stack: cdk.Stack, model: TritonModel, candidate: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(
            stack, "Endpoint", model=model, shadow=TritonVariant(model=candidate, variant_name="Shadow")
        )
        assert endpoint.variant("Shadow").metric_dimensions["VariantName"] == "Shadow"
        assert endpoint.metric_dimensions["VariantName"] == "AllTraffic"

    def test_the_endpoint_goes_before_the_shadows_policy_does(
        self, world: World, stack: cdk.Stack, model: TritonModel, candidate: TritonModel
    ) -> None:
        TritonEndpoint(stack, "Endpoint", model=model, shadow=TritonVariant(model=candidate, variant_name="Shadow"))

        waits_for = world.only(stack, "AWS::SageMaker::Endpoint")["DependsOn"]
        policies = [name for name in world.resources(stack, "AWS::IAM::ManagedPolicy") if name.startswith("Candidate")]
        assert policies
        assert set(policies) <= set(waits_for)

    def test_it_may_run_on_another_instance_type(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        shadow = TritonVariant(model=model_on(world, stack, "ml.g6.2xlarge"), variant_name="Shadow")
        TritonEndpoint(stack, "Endpoint", model=model, shadow=shadow)

        (found,) = world.only(stack, CONFIG)["Properties"]["ShadowProductionVariants"]
        assert found["InstanceType"] == "ml.g6.2xlarge"

    def test_a_multi_model_endpoint_has_none(
        self, messages: Messages, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Fleets", model=fleet, shadow=TritonVariant(model=fleet, variant_name="Shadow"))
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Mixed", model=model, shadow=TritonVariant(model=fleet, variant_name="Shadow"))

    def test_it_shadows_one_variant(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, candidate: TritonModel
    ) -> None:
        variants = [TritonVariant(model=model, variant_name=name) for name in ("Blue", "Green")]
        shadow = TritonVariant(model=candidate, variant_name="Shadow")
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", variants=variants, shadow=shadow)

    def test_it_needs_a_name_of_its_own(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, candidate: TritonModel
    ) -> None:
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", model=model, shadow=TritonVariant(model=candidate))

    def test_it_gets_no_more_than_every_request(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, candidate: TritonModel
    ) -> None:
        shadow = TritonVariant(model=candidate, variant_name="Shadow", initial_weight=50)
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", model=model, shadow=shadow)

    @pytest.mark.parametrize("weight", [0, 0.1])
    def test_without_a_weight_it_gets_nothing(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, candidate: TritonModel, weight: float
    ) -> None:
        shadow = TritonVariant(model=candidate, variant_name="Shadow", initial_weight=weight)
        TritonEndpoint(stack, "Endpoint", model=model, shadow=shadow)

        found = warnings(stack, "cdk-triton:ShadowWithoutCopies")
        assert len(found) == (not weight)
        for warning in found:
            messages.record("cdk-triton:ShadowWithoutCopies", warning)


class TestTargetModels:
    """A request that names no variant may reach any that has a weight."""

    CODE = "cdk-triton:VariantsServeDifferentModels"

    @pytest.fixture
    def fleets(self, world: World, stack: cdk.Stack) -> list[TritonMultiModel]:
        """Two, of which the second has one ensemble in a newer version."""
        repositories = [{"text": world.repository("text"), "image": world.repository(name)} for name in ("old", "new")]
        (world.directory / "repositories/new/network/1/weights.bin").write_text("2")
        repositories[1]["image"] = world.repository_again("new")
        return [
            TritonMultiModel(stack, name, ensembles=ensembles, platform=world.platform)
            for name, ensembles in zip(("Old", "New"), repositories, strict=True)
        ]

    def test_fleets_of_which_one_has_a_newer_ensemble_are_warned_of(
        self, messages: Messages, stack: cdk.Stack, fleets: list[TritonMultiModel]
    ) -> None:
        old, new = fleets
        TritonEndpoint(
            stack,
            "Endpoint",
            variants=[TritonVariant(model=old, variant_name="A"), TritonVariant(model=new, variant_name="B")],
        )
        (warning,) = warnings(stack, self.CODE)
        missing = ", ".join(map(repr, sorted([old.target_models["image"], new.target_models["image"]])))
        assert missing in warning
        messages.record(self.CODE, warning.replace(missing, "OLD, NEW"))

    def test_a_fleet_beside_a_single_model_is_warned_of(
        self, stack: cdk.Stack, fleets: list[TritonMultiModel], model: TritonModel
    ) -> None:
        TritonEndpoint(
            stack,
            "Endpoint",
            variants=[TritonVariant(model=fleets[0], variant_name="A"), TritonVariant(model=model, variant_name="B")],
        )
        assert len(warnings(stack, self.CODE)) == 1

    def test_who_must_be_named_is_not_reached_by_others(self, stack: cdk.Stack, fleets: list[TritonMultiModel]) -> None:
        old, new = fleets
        TritonEndpoint(
            stack,
            "Endpoint",
            variants=[
                TritonVariant(model=old, variant_name="A"),
                TritonVariant(model=new, variant_name="B", initial_weight=0),
            ],
        )
        assert warnings(stack, self.CODE) == []

    def test_equal_fleets_and_single_models_are_fine(
        self, world: World, stack: cdk.Stack, fleets: list[TritonMultiModel], model: TritonModel, candidate: TritonModel
    ) -> None:
        newer = ServingPlatform(release="26.03", instance_type="ml.g6.2xlarge")
        ensembles = {"text": world.repository_again("text"), "image": world.repository_again("old")}
        same = TritonMultiModel(stack, "Same", ensembles=ensembles, platform=newer)
        pairs: dict[str, tuple[ITritonModel, ITritonModel]] = {
            "Fleets": (fleets[0], same),
            "Singles": (model, candidate),
        }
        for name, models in pairs.items():
            variants = [TritonVariant(model=each, variant_name=f"V{i}") for i, each in enumerate(models)]
            TritonEndpoint(stack, name, variants=variants)
        assert warnings(stack, self.CODE) == []


class TestEncryptionKey:
    def test_it_is_the_one_of_the_volumes(self, world: World, stack: cdk.Stack) -> None:
        key = kms.Key(stack, "Key")
        TritonEndpoint(stack, "Endpoint", model=model_on(world, stack, "ml.p3.2xlarge", "24.09"), encryption_key=key)

        assert world.only(stack, CONFIG)["Properties"]["KmsKeyId"] == stack.resolve(key.key_arn)
        assert warnings(stack, "cdk-triton:EncryptionKeyOfLocalDisks") == []

    def test_disks_that_it_does_not_encrypt_are_warned_of_once(
        self, messages: Messages, world: World, stack: cdk.Stack, model: TritonModel, candidate: TritonModel
    ) -> None:
        TritonEndpoint(
            stack,
            "Endpoint",
            model=model,
            shadow=TritonVariant(model=candidate, variant_name="Shadow"),
            encryption_key=kms.Key(stack, "Key"),
        )
        assert "KmsKeyId" in world.only(stack, CONFIG)["Properties"]
        (warning,) = warnings(stack, "cdk-triton:EncryptionKeyOfLocalDisks")
        messages.record("cdk-triton:EncryptionKeyOfLocalDisks", warning)


def test_several_platforms_fit_on_one_endpoint(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    newer = model_on(world, stack, "ml.g6.2xlarge", "26.03")
    TritonEndpoint(
        stack,
        "Endpoint",
        variants=[TritonVariant(model=model, variant_name="A10G"), TritonVariant(model=newer, variant_name="L4")],
    )
    found = world.only(stack, CONFIG)["Properties"]["ProductionVariants"]
    assert [variant["InstanceType"] for variant in found] == ["ml.g5.2xlarge", "ml.g6.2xlarge"]
    assert [variant["InferenceAmiVersion"] for variant in found] == [
        model.platform.inference_ami_version,
        newer.platform.inference_ami_version,
    ]


def test_the_host_ami_may_be_given(world: World, stack: cdk.Stack) -> None:
    given = "al2-ami-sagemaker-inference-gpu-3-1"
    platform = ServingPlatform(release="24.09", instance_type="ml.g5.2xlarge", inference_ami_version=given)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)

    assert configured(world, stack, TritonVariant(model=model))["InferenceAmiVersion"] == given


@pytest.mark.parametrize("kind", ["Model", "EndpointConfig", "Endpoint"])
def test_tags_reach_all_that_sagemaker_tags(world: World, stack: cdk.Stack, model: TritonModel, kind: str) -> None:
    TritonEndpoint(stack, "Endpoint", model=model)
    cdk.Tags.of(stack).add("team", "search")

    assert world.only(stack, f"AWS::SageMaker::{kind}")["Properties"]["Tags"] == [{"Key": "team", "Value": "search"}]


class TestNetworks:
    CODE = "cdk-triton:VariantsInDifferentNetworks"

    @staticmethod
    def variants(world: World, stack: cdk.Stack, *networks: dict[str, Any]) -> list[TritonVariant]:
        """A variant for each network, and what else a model takes."""
        return [
            TritonVariant(
                model=TritonModel(
                    stack, name, repository=world.repository(name.lower()), platform=world.platform, **network
                ),
                variant_name=name,
            )
            for name, network in zip(("Blue", "Green"), networks, strict=True)
        ]

    def test_one_outside_the_vpc_and_isolated_is_warned_of(
        self, messages: Messages, world: World, stack: cdk.Stack
    ) -> None:
        inside = {"vpc": ec2.Vpc(stack, "Vpc", max_azs=2)}
        TritonEndpoint(stack, "Endpoint", variants=self.variants(world, stack, inside, {"network_isolation": True}))
        (warning,) = warnings(stack, self.CODE)
        messages.record(self.CODE, warning)

    def test_other_subnets_are_warned_of(self, world: World, stack: cdk.Stack) -> None:
        vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
        public = {"vpc": vpc, "vpc_subnets": ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC)}
        blue, green = self.variants(world, stack, {"vpc": vpc}, public)
        TritonEndpoint(stack, "Endpoint", variants=[blue], shadow=green)
        assert warnings(stack, self.CODE)

    @pytest.mark.parametrize("isolated", [False, True])
    def test_security_groups_of_their_own_are_not(self, world: World, stack: cdk.Stack, isolated: bool) -> None:
        inside = {"vpc": ec2.Vpc(stack, "Vpc", max_azs=2), "network_isolation": isolated}
        TritonEndpoint(stack, "Endpoint", variants=self.variants(world, stack, inside, inside))
        assert not warnings(stack, self.CODE)

    def test_models_in_no_vpc_are_not(self, world: World, stack: cdk.Stack) -> None:
        TritonEndpoint(stack, "Endpoint", variants=self.variants(world, stack, {}, {}))
        assert not warnings(stack, self.CODE)
