"""An app with every resource that this library makes: what reaches all of them is tried on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from cdk_triton import (
    AsyncInference,
    Capacity,
    CodeBuildGpuBuilder,
    DataCapture,
    Rolling,
    SageMakerProcessingBuilder,
    TensorRTPlan,
    TritonArtifactStore,
    TritonComponents,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.artifacts import S3File

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from cdk_triton.hosting import ITritonModel

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")


def add_everything(world: World, app: cdk.App) -> list[cdk.Stack]:
    """A store in a VPC with both builders; a model and a fleet, each with an endpoint that has every option.

    The model is an inference component besides, and the fleet has a publisher.
    """
    artifacts, serving = (cdk.Stack(app, name, env=IRELAND) for name in ("Artifacts", "Serving"))
    vpc = some_vpc(artifacts)
    store = TritonArtifactStore(
        artifacts,
        "Store",
        builders=[CodeBuildGpuBuilder(vpc=vpc), SageMakerProcessingBuilder(vpc=vpc)],
        encryption_key=kms.Key(artifacts, "Key", enable_key_rotation=True),
        access_logs_bucket=s3.Bucket.from_bucket_name(artifacts, "AccessLogs", "access-logs"),
        export_prefix="triton-artifacts",
        vpc=vpc,
    )
    fleet = TritonMultiModel(
        serving, "Fleet", ensembles={"text": world.repository()}, platform=world.platform, store=store
    )
    fleet.add_publisher(recipes=[TensorRTPlan("bert", onnx=S3File("weights", "bert.onnx", "0" * 64))])
    models: dict[str, ITritonModel] = {
        "Single": TritonModel(
            serving, "Model", repository=world.repository(), platform=world.platform, store=store, vpc=some_vpc(serving)
        ),
        "Multi": fleet,
    }
    on_l4 = replace(world.platform, instance_type="ml.g6.2xlarge")
    pools = TritonVariant(
        model=TritonModel(serving, "OnA10G", repository=world.repository(), platform=world.platform, store=store),
        fallback_models=[
            TritonModel(serving, "OnL4", repository=world.repository(), platform=on_l4, store=store),
        ],
    )
    count = TritonEndpoint(serving, "Pools", variants=[pools]).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
    captured = s3.Bucket.from_bucket_name(serving, "Captured", "captured")
    for name, model in models.items():
        endpoint = TritonEndpoint(
            serving,
            name,
            model=model,
            endpoint_name=name.lower(),
            ssm_parameter_path=f"/triton/{name.lower()}",
            data_capture=DataCapture(bucket=captured, sampling_percentage=10, prefix=name.lower()),
        )
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        topic = endpoint.add_rollback_notification()
        endpoint.monitor(topic=topic)
    components = TritonComponents(serving, "Components", platform=world.platform, max_instance_count=2)
    policy = Rolling(batch=Capacity(50), wait=cdk.Duration.minutes(10))
    text = components.add_component(
        "Text",
        model=models["Single"],
        accelerators=1,
        memory=cdk.Size.gibibytes(8),
        copies=2,
        deployment_policy=policy,
    )
    text.scale_to_zero("Idle", max_capacity=2, max_requests_per_second=40)
    text.roll_back_on(components.monitor(topic=topic).components["Text"].server_errors)
    _add_queued(serving, models["Single"])
    return [artifacts, serving]


def _add_queued(serving: cdk.Stack, model: ITritonModel) -> None:
    """An asynchronous endpoint that scales to zero, with a bucket of its own."""
    key = kms.Key(serving, "QueuedKey", enable_key_rotation=True)
    topic = sns.Topic(serving, "QueuedTopic", master_key=key, enforce_ssl=True)
    endpoint = TritonEndpoint(
        serving,
        "Queued",
        model=model,
        ssm_parameter_path="/triton/queued",
        asynchronous=AsyncInference(
            encryption_key=key,
            access_logs_bucket=s3.Bucket.from_bucket_name(serving, "QueuedLogs", "access-logs"),
            success_topic=topic,
            error_topic=topic,
            max_concurrent_invocations_per_instance=4,
        ),
    )
    count = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=4)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)


def some_vpc(stack: cdk.Stack) -> ec2.IVpc:
    """A VPC that exists."""
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["eu-west-1a", "eu-west-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )
