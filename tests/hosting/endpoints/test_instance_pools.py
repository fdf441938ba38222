"""A variant with fallback models: the pools in the template, what belongs to every model, and what is rejected."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from cdk_triton import (
    CodeBuildGpuBuilder,
    DataCapture,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

CONFIG, ENDPOINT, MODEL = (f"AWS::SageMaker::{kind}" for kind in ("EndpointConfig", "Endpoint", "Model"))
HOST = "al2023-ami-sagemaker-inference-gpu-4-1"
A10G, L4, T4 = "ml.g5.2xlarge", "ml.g6.2xlarge", "ml.g4dn.2xlarge"


def model_on(
    world: World, stack: cdk.Stack, instance_type: str, *, name: str = "text", release: str = "25.09", **more: Any
) -> TritonModel:
    platform = ServingPlatform(release=release, instance_type=instance_type)
    id = f"{name}-{instance_type}-{release}".replace(".", "")
    return TritonModel(stack, id, repository=world.repository(name), platform=platform, **more)


@pytest.fixture(name="models")
def _models(world: World, stack: cdk.Stack) -> list[TritonModel]:
    """The same repository on three GPUs."""
    return [model_on(world, stack, each) for each in (A10G, L4, T4)]


def pooled(models: list[TritonModel], **more: Any) -> TritonVariant:
    return TritonVariant(model=models[0], fallback_models=models[1:], **more)


def configured(world: World, stack: cdk.Stack, variant: TritonVariant) -> dict[str, Any]:
    TritonEndpoint(stack, "Endpoint", variants=[variant])
    (found,) = world.only(stack, CONFIG)["Properties"]["ProductionVariants"]
    return dict(found)


def warnings(stack: cdk.Stack, code: str) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"\[ack: {code}\]"))
    return [str(each.entry.data) for each in found]


# The endpoint configuration.


def test_each_model_is_a_pool_and_the_first_is_the_variants(
    world: World, stack: cdk.Stack, models: list[TritonModel]
) -> None:
    variant = pooled(models, instance_provision_timeout=cdk.Duration.minutes(30))
    found = configured(world, stack, variant)

    names = [stack.resolve(model.model_name) for model in models]
    assert variant.models == tuple(models)
    assert found == {
        "VariantName": "AllTraffic",
        "ModelName": names[0],
        "InstancePools": [
            {"InstanceType": A10G, "Priority": 1},
            {"InstanceType": L4, "Priority": 2, "ModelNameOverride": names[1]},
            {"InstanceType": T4, "Priority": 3, "ModelNameOverride": names[2]},
        ],
        "VariantInstanceProvisionTimeoutInSeconds": 1800,
        "InferenceAmiVersion": HOST,
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1,
        "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
    }


def test_a_variant_with_one_model_has_no_pools(world: World, stack: cdk.Stack, models: list[TritonModel]) -> None:
    found = configured(world, stack, TritonVariant(model=models[0]))

    assert found["InstanceType"] == A10G
    assert not {"InstancePools", "RoutingConfig", "VariantInstanceProvisionTimeoutInSeconds"} & found.keys()


def test_one_instance_type_may_wait_for_capacity_too(world: World, stack: cdk.Stack, models: list[TritonModel]) -> None:
    variant = TritonVariant(model=models[0], instance_provision_timeout=cdk.Duration.hours(1))
    assert configured(world, stack, variant)["VariantInstanceProvisionTimeoutInSeconds"] == 3600


def test_models_of_one_gpu_share_an_archive(world: World, stack: cdk.Stack) -> None:
    models = [model_on(world, stack, each) for each in (A10G, "ml.g5.4xlarge", L4)]
    TritonEndpoint(stack, "Endpoint", variants=[pooled(models)])

    urls = {
        id: str(resource["Properties"]["PrimaryContainer"]["ModelDataUrl"])
        for id, resource in world.resources(stack, MODEL).items()
    }
    assert len(urls) == 3
    assert len(set(urls.values())) == 2


def test_the_longest_timeouts_hold_for_all(world: World, stack: cdk.Stack, models: list[TritonModel]) -> None:
    large = TritonModel.from_model_attributes(
        stack, "Large", model_name="large", platform=models[1].platform, role=models[1].role, size=50_000_000_000
    )
    found = configured(world, stack, TritonVariant(model=models[0], fallback_models=[large]))

    assert found["ContainerStartupHealthCheckTimeoutInSeconds"] == 2520
    assert found["ModelDataDownloadTimeoutInSeconds"] == 3600


def test_a_host_ami_that_one_platform_was_given_holds_for_all(world: World, stack: cdk.Stack) -> None:
    host = "al2030-ami-sagemaker-inference-gpu-9-1"
    chosen = ServingPlatform(release="25.09", instance_type=L4, inference_ami_version=host)
    fallback = TritonModel(stack, "Chosen", repository=world.repository(), platform=chosen)
    found = configured(world, stack, TritonVariant(model=model_on(world, stack, A10G), fallback_models=[fallback]))

    assert found["InferenceAmiVersion"] == host


# What belongs to every model.


def test_the_endpoint_outlives_the_roles_of_all_models(
    world: World, stack: cdk.Stack, models: list[TritonModel]
) -> None:
    captured = s3.Bucket.from_bucket_name(stack, "Captured", "captured")
    TritonEndpoint(
        stack,
        "Endpoint",
        variants=[pooled(models)],
        data_capture=DataCapture(bucket=captured, sampling_percentage=10),
    )

    after = set(world.only(stack, ENDPOINT)["DependsOn"])
    assert set(world.resources(stack, MODEL)) <= after
    policies = [each["Properties"] for each in world.policies(stack).values()]
    (policy,) = (each for each in policies if ":s3:::captured/" in str(each["PolicyDocument"]))
    assert len(policy["Roles"]) == 3


def test_a_scaled_endpoint_waits_by_the_store_of_any_model(world: World, stack: cdk.Stack) -> None:
    own = model_on(world, stack, L4)
    imported = TritonModel.from_model_attributes(
        stack, "Imported", model_name="mine", platform=world.platform, role=own.role
    )
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=imported, fallback_models=[own])])
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)

    assert len(world.resources(stack, "Custom::TritonEndpointWait")) == 2
    assert warnings(stack, "cdk-triton:NoEndpointWait") == []


def test_a_key_is_compared_with_the_disks_of_all_types(
    world: World, stack: cdk.Stack, models: list[TritonModel], messages: Messages
) -> None:
    TritonEndpoint(stack, "Endpoint", variants=[pooled(models)], encryption_key=kms.Key(stack, "Key"))

    (warning,) = warnings(stack, "cdk-triton:EncryptionKeyOfLocalDisks")
    messages.record("cdk-triton:EncryptionKeyOfLocalDisks", warning)
    assert all(each in warning for each in (A10G, L4, T4))


def test_pools_in_different_networks_are_warned_of(world: World, stack: cdk.Stack, messages: Messages) -> None:
    inside = model_on(world, stack, L4, vpc=ec2.Vpc(stack, "Vpc"))
    TritonEndpoint(
        stack, "Endpoint", variants=[TritonVariant(model=model_on(world, stack, A10G), fallback_models=[inside])]
    )

    (warning,) = warnings(stack, "cdk-triton:VariantsInDifferentNetworks")
    messages.record("cdk-triton:VariantsInDifferentNetworks", warning)


def test_a_fallback_in_another_stack_is_warned_of(world: World, stack: cdk.Stack) -> None:
    elsewhere = model_on(world, cdk.Stack(cdk.Stage.of(stack), "Elsewhere"), L4)
    TritonEndpoint(
        stack, "Endpoint", variants=[TritonVariant(model=model_on(world, stack, A10G), fallback_models=[elsewhere])]
    )

    (warning,) = warnings(stack, "cdk-triton:ModelInAnotherStack")
    assert elsewhere.node.path in warning


def test_a_fallback_of_another_region_is_rejected(messages: Messages, world: World) -> None:
    app = world.app()
    here, there = (
        cdk.Stack(app, name, env=cdk.Environment(account="123456789012", region=region))
        for name, region in (("Here", "us-east-1"), ("There", "eu-west-1"))
    )
    variant = TritonVariant(model=model_on(world, here, A10G), fallback_models=[model_on(world, there, L4)])
    with messages.raises(ConfigurationError):
        TritonEndpoint(here, "Endpoint", variants=[variant])


def test_a_gpu_that_no_builder_has_says_what_would_build_it(messages: Messages, world: World, stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder()])
    repository = world.repository_with_plan()
    TritonModel(stack, "A10G", repository=repository, platform=world.platform, store=store)
    with messages.raises(ConfigurationError) as caught:
        platform = ServingPlatform(release="25.09", instance_type=T4)
        TritonModel(stack, "T4", repository=repository, platform=platform, store=store)
    assert "SageMakerProcessingBuilder()" in str(caught.value)


# What is rejected.


def rejected(messages: Messages, *said: str, **variant: Any) -> None:
    with messages.raises(ConfigurationError) as caught:
        TritonVariant(**variant)
    assert all(each in str(caught.value) for each in said)


def test_too_many_pools_are_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    sizes = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge")
    first, *others = (model_on(world, stack, f"ml.g5.{size}") for size in sizes)
    rejected(messages, "at most 4 fallback_models", model=first, fallback_models=others)


def test_two_models_of_one_instance_type_are_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    model = model_on(world, stack, A10G)
    other = TritonModel(stack, "Other", repository=world.repository(), platform=world.platform)
    rejected(messages, A10G, other.node.path, model=model, fallback_models=[other])


def test_different_releases_are_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    older = model_on(world, stack, L4, release="25.04")
    rejected(messages, "25.04", "25.09", model=model_on(world, stack, A10G), fallback_models=[older])


def test_different_repositories_are_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    other = model_on(world, stack, L4, name="image")
    rejected(messages, "image", "text", model=model_on(world, stack, A10G), fallback_models=[other])


def test_different_limits_of_a_request_are_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    larger = model_on(world, stack, L4, release="26.05", max_payload=cdk.Size.mebibytes(500))
    rejected(
        messages,
        "524,288,000 bytes",
        "Triton's own limit",
        model=model_on(world, stack, A10G, release="26.05"),
        fallback_models=[larger],
    )


def test_different_recipes_of_one_repository_are_taken(world: World, stack: cdk.Stack) -> None:
    precisions: tuple[tuple[str, Literal["fp16", "fp32"]], ...] = ((A10G, "fp16"), (T4, "fp32"))
    store = TritonArtifactStore(stack, "Store")
    models = [
        TritonModel(
            stack,
            instance_type.replace(".", ""),
            repository=world.repository_with_plan(
                recipes=[TensorRTPlan("network", onnx="network.onnx", precision=precision)]
            ),
            platform=ServingPlatform(release="25.09", instance_type=instance_type),
            store=store,
        )
        for instance_type, precision in precisions
    ]
    assert TritonVariant(model=models[0], fallback_models=models[1:]).models == tuple(models)


@pytest.mark.parametrize("first", [True, False], ids=["model", "fallback"])
def test_a_multi_model_pool_is_rejected(messages: Messages, world: World, stack: cdk.Stack, first: bool) -> None:
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)
    single = model_on(world, stack, L4)
    pair = (fleet, single) if first else (single, fleet)
    rejected(messages, "TritonMultiModel", model=pair[0], fallback_models=pair[1:])


def test_a_reservation_is_rejected(messages: Messages, models: list[TritonModel]) -> None:
    plan = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/search"
    rejected(messages, "one instance type", model=models[0], fallback_models=models[1:], capacity_reservation_arn=plan)


def test_another_routing_is_rejected(messages: Messages, models: list[TritonModel]) -> None:
    rejected(
        messages, "LEAST_OUTSTANDING_REQUESTS", model=models[0], fallback_models=models[1:], routing_strategy="RANDOM"
    )


@pytest.mark.parametrize(
    ("timeout", "said"),
    [
        (cdk.Duration.seconds(299), "299"),
        (cdk.Duration.minutes(61), "3660"),
        (cdk.Duration.millis(400_500), "400.5"),
        (600, "600"),
    ],
    ids=["too short", "too long", "a fraction", "a number"],
)
def test_a_provision_timeout_out_of_range_is_rejected(
    messages: Messages, models: list[TritonModel], timeout: Any, said: str
) -> None:
    rejected(messages, said, model=models[0], instance_provision_timeout=timeout)


@pytest.mark.parametrize("given", ["one model", "a text"])
def test_fallback_models_of_another_type_are_rejected(
    messages: Messages, models: list[TritonModel], given: str
) -> None:
    value: Any = models[1] if given == "one model" else ["text"]
    rejected(messages, "fallback_models", model=models[0], fallback_models=value)


def test_gpus_without_a_common_host_are_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    blackwell = model_on(world, stack, "ml.g7e.2xlarge", release="25.04")
    ampere = model_on(world, stack, A10G, release="25.04")
    rejected(messages, "ml.g7e.2xlarge", A10G, model=ampere, fallback_models=[blackwell])


def test_a_volume_that_a_fallback_does_not_take_is_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    with_volume = model_on(world, stack, "ml.p3.2xlarge", release="24.09")
    with_disks = model_on(world, stack, A10G, release="24.09")
    size = cdk.Size.gibibytes(64)
    rejected(messages, A10G, model=with_volume, fallback_models=[with_disks], volume_size=size)


@pytest.mark.parametrize("pools_of", ["production", "shadow"])
def test_a_shadow_beside_pools_is_rejected(
    messages: Messages, stack: cdk.Stack, models: list[TritonModel], pools_of: str
) -> None:
    first, second = TritonVariant(model=models[0]), pooled(models[1:], variant_name="Pools")
    production, shadow = (second, first) if pools_of == "production" else (first, second)
    with messages.raises(ConfigurationError) as caught:
        TritonEndpoint(stack, "Endpoint", variants=[production], shadow=shadow)
    assert "Pools" in str(caught.value)


# The services' own schemas.


def test_cloudformation_its_linter_and_the_api_take_pools(world: World) -> None:
    app = world.app("linted", validated=True)
    stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="123456789012", region="us-east-1"))
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    models = [model_on(world, stack, each, role=role) for each in (A10G, "ml.g6.12xlarge")]
    endpoint = TritonEndpoint(
        stack, "Endpoint", variants=[pooled(models, instance_provision_timeout=cdk.Duration.minutes(5))]
    )
    endpoint.monitor()
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)

    app.synth()  # raises what CDK's validation finds
    template = Path(app.outdir) / "Stack.template.json"
    linted = subprocess.run(
        [world.root / ".venv" / "bin" / "cfn-lint", "--ignore-checks", "W3005", "--", template],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (linted.returncode, linted.stdout) == (0, "")
    properties = world.only(stack, CONFIG)["Properties"]
    for variant in properties["ProductionVariants"]:
        variant["ModelName"] = "first"
        variant["InstancePools"][1]["ModelNameOverride"] = "second"
    api = ServiceModel(Loader().load_service_model("sagemaker", "service-2"))
    shape = api.shape_for("CreateEndpointConfigInput")
    report = ParamValidator().validate({"EndpointConfigName": "it", **properties}, shape)
    assert not report.has_errors(), report.generate_report()
