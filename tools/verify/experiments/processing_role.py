"""The role of a Processing job in a VPC with a key: whether SageMaker's validation accepts it, without a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import PLATFORM, outputs, store
from tools.verify.trial import Trial, error_of, prefix_of

from cdk_triton import SageMakerProcessingBuilder
from cdk_triton.sagemaker.platform import platform_of

_JOB_SECONDS = 30 * 60
_ENDED = ("Completed", "Failed", "Stopped")


def _stacks(app: cdk.App) -> None:
    stack = cdk.Stack(app, prefix_of("processing_role"))
    isolated = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=[isolated])
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    key = kms.Key(stack, "Key", removal_policy=cdk.RemovalPolicy.DESTROY, pending_window=cdk.Duration.days(7))
    builder = SageMakerProcessingBuilder(
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(subnets=vpc.isolated_subnets),
        security_groups=[group],
        encryption_key=key,
    )
    roles = [each for each in store(stack, builders=[builder]).node.find_all() if isinstance(each, iam.CfnRole)]
    (role,) = (
        each for each in roles if "sagemaker.amazonaws.com" in str(stack.resolve(each.assume_role_policy_document))
    )
    outputs(
        stack,
        Role=role.attr_arn,
        Key=key.key_arn,
        Group=group.security_group_id,
        Subnets=cdk.Fn.join(",", [each.subnet_id for each in vpc.isolated_subnets]),
    )


def _observe(trial: Trial) -> Iterator[Observation]:
    deployed = trial.deploy()
    sagemaker = trial.client("sagemaker")
    network = {"SecurityGroupIds": [deployed["Group"]], "Subnets": deployed["Subnets"].split(",")}
    job = f"{trial.prefix}-{deployed['Bucket'][-12:]}"
    code, message = error_of(
        sagemaker.create_processing_job,
        ProcessingJobName=job,
        RoleArn=deployed["Role"],
        AppSpecification={
            "ImageUri": platform_of(PLATFORM).image_uri(trial.place.region),
            "ContainerEntrypoint": ["true"],
        },
        NetworkConfig={"VpcConfig": network},
        ProcessingResources={
            "ClusterConfig": {
                "InstanceCount": 1,
                "InstanceType": "ml.m5.xlarge",
                "VolumeSizeInGB": 50,
                "VolumeKmsKeyId": deployed["Key"],
            }
        },
        StoppingCondition={"MaxRuntimeInSeconds": _JOB_SECONDS},
    )
    if code:
        yield Observation("role", False, f"{code}: {message}")
        return
    trial.at_end.callback(error_of, sagemaker.stop_processing_job, ProcessingJobName=job)

    def ended() -> dict[str, str] | None:
        found: dict[str, str] = sagemaker.describe_processing_job(ProcessingJobName=job)
        return found if found["ProcessingJobStatus"] in _ENDED else None

    end = trial.until(ended, seconds=_JOB_SECONDS, every=20)
    status = end["ProcessingJobStatus"] if end else "still running"
    yield Observation(
        "role", status == "Completed", f"{status}: {end.get('FailureReason', 'no reason') if end else ''}"
    )


EXPERIMENT = Experiment(
    parts=("role",),
    minutes=40,
    dollars=1.20,
    spends="a month of a KMS key, which is deleted after 7 days, and half an hour of an ml.m5.xlarge",
    observe=_observe,
    stacks=_stacks,
)
