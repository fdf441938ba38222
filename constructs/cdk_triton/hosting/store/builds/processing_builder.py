"""`SageMakerProcessingBuilder`: builds as SageMaker Processing jobs, on the endpoint's own instance type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import ArnFormat, Duration, Size, SizeRoundingBehavior
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import key_behind, require_key
from cdk_triton.hosting.access.network import allow_processing_network, build_network, check_network
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.access.trust import sagemaker_processing
from cdk_triton.hosting.naming.per_construct import arn_of, encryption_key_of
from cdk_triton.hosting.naming.stacks import region_of, require_own_region, stack_of
from cdk_triton.hosting.store.builds.builders import (
    Builder,
    BuildService,
    build_role,
    key_statement,
    minutes,
    staging_statements,
)
from cdk_triton.sagemaker import (
    GpuInstance,
    ServingPlatform,
    gpu_instance,
    gpu_instances,
    instance_storage,
    processing_instance,
)

__all__ = ["SageMakerProcessingBuilder"]

JOB_PATTERN = "cdk-triton-*"
"""The names of the jobs: `cdk-triton-` and 16 hexadecimal digits."""

LOG_GROUP = "/aws/sagemaker/ProcessingJobs"
"""The log group of all Processing jobs of an account."""

DEFAULT_VOLUME_GB = 100
MAX_VOLUME_GB = 16384
"""ProcessingVolumeSizeInGB in botocore's model of SageMaker."""


@checked
@dataclass(frozen=True, kw_only=True)
class SageMakerProcessingBuilder(Builder):
    """Builds in SageMaker Processing jobs, which can run on the GPUs of nearly all endpoint instance types.

    Jobs get the tags of the store's bucket.

    Attributes:
        instance_type: the instance type that jobs run on. By default the endpoint's type, or one with the same GPU if
            Processing does not offer it.
        timeout: how long a job may run, from 10 minutes to 36 hours; by default 2 hours. If a job runs longer than a
            deployment waits, the next deployment waits for the same job.
        volume: the size of a job's disk, 1 to 16384 GiB; by default 100 GiB. On instance types with a local disk (all
            of ml.g4dn, ml.g5 and ml.g6), the volume cannot be larger than that disk, which has 125 GB on
            ml.g4dn.xlarge.
        vpc: the VPC in which jobs run. Its subnets must have a route to S3 and to the hosts from which recipes
            download.
        vpc_subnets: the subnets of the VPC; by default the private subnets.
        security_groups: security groups in the VPC; by default a new security group.
        encryption_key: your own KMS key in the store's region, for the output of jobs. By default the store's KMS key,
            or the AWS managed key for S3 if the store does not have a key. The KMS key also encrypts the volumes of
            instance types without local disks (ml.p2 and ml.p3). Other types encrypt their disks in hardware, and
            SageMaker rejects a KMS key for these disks.

    Raises:
        ConfigurationError: Processing does not offer the instance type, or a value is out of its range; or the key is
            asymmetric, is for HMAC, or is an alias that was imported by its name only.
    """

    instance_type: str | None = None
    timeout: Duration | None = None
    volume: Size | None = None
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()
    encryption_key: kms.IKey | None = None

    def __post_init__(self) -> None:
        minutes(self.timeout, "the timeout of SageMakerProcessingBuilder")
        _volume_gb(self.volume)
        if self.instance_type is not None:
            _check_instance(gpu_instance(self.instance_type))
        check_network(self.vpc, self.vpc_subnets, self.security_groups)
        if self.encryption_key is not None:
            require_key(self.encryption_key, "encryption_key of SageMakerProcessingBuilder")

    @property
    def _kind(self) -> Literal["processing"]:
        return "processing"

    @property
    def _timeout_minutes(self) -> int:
        return minutes(self.timeout, "the timeout of SageMakerProcessingBuilder")

    def _unsupported_reason(self, platform: ServingPlatform, region: str | None) -> str | None:
        """The region does not matter, because no source lists which region offers which instance type."""
        if self.instance_type is not None:
            gpu = gpu_instance(self.instance_type).gpu
            return None if gpu == platform.gpu else f"its {self.instance_type} has the GPU {gpu}"
        offered = processing_instance(platform.instance)
        return None if offered else "SageMaker Processing has no instance type with this GPU"

    def _gpu_count(self, platform: ServingPlatform) -> int | None:
        name, _ = self._machine(platform)
        return None if name is None else gpu_instance(name).gpu_count

    def _machine(self, platform: ServingPlatform) -> tuple[str | None, int | None]:
        offered = processing_instance(platform.instance)
        name = self.instance_type or (offered.name if offered else None)
        return name, _volume_gb(self.volume)

    def _provide(self, scope: Construct, bucket: s3.IBucket) -> BuildService:
        """Make the `Role` of the jobs, which are named `cdk-triton-…`.

        Raises:
            ConfigurationError: the builder's own key is in another region.
        """
        group, streams = _log_group(scope, "*"), _log_group(scope, f"log-stream:{JOB_PATTERN}")
        staging, reasons = staging_statements(bucket, read=["s3:GetObject"])
        reason = "SageMaker names the group and the streams; the name of a stream begins with the name of its job."
        reasons |= dict.fromkeys((group, streams), reason)
        statements = [*staging, *_use_of_logs(group, streams)]
        handler_statements, handler_reasons = _by_handler(scope, bucket, group, streams)
        key, families = encryption_key_of(bucket), []
        if self.encryption_key is not None and (key := key_behind(self.encryption_key)) is not None:
            reason = f"builds write in their own region only: use a key in {region_of(scope)}"
            require_own_region(scope, key, reason)
            families = _families_with_volumes(self.instance_type)
            statements.append(key_statement(key))
            if families:  # for the volumes of SageMaker, and not for what the code of a build asks for
                statements.append(
                    Statement(
                        actions=["kms:CreateGrant"],
                        resources=[key.key_arn],
                        conditions={"Bool": {"kms:GrantIsForAWSResource": "true"}},
                    )
                )
            handler_statements.append(Statement(actions=["kms:Decrypt"], resources=[key.key_arn]))
        if key is not None:  # every output names the key ("CreateProcessingJob API: Execution Role Permissions")
            statements.append(Statement(actions=["kms:Encrypt"], resources=[key.key_arn]))
        role = build_role(scope, sagemaker_processing(scope), statements, reasons)
        handler_statements.append(_passing(role))
        network = build_network(scope, self.vpc, self.vpc_subnets, self.security_groups)
        if network is not None:
            allow_processing_network(role)
        settings = {
            "role": role.role_arn,
            "subnets": [] if network is None else list(network.subnets),
            "security_groups": [] if network is None else list(network.security_groups),
            "kms_key": None if key is None else key.key_arn,
            "volume_key_families": families,
        }
        return BuildService(settings, role, handler_statements, handler_reasons, network)


def _volume_gb(volume: Size | None) -> int:
    if volume is None:
        return DEFAULT_VOLUME_GB
    if volume.is_unresolved():
        raise ConfigurationError(
            "volume of SageMakerProcessingBuilder is a CDK token, but build plans contain its size: write the size "
            "itself"
        )
    gibibytes = volume.to_gibibytes(rounding=SizeRoundingBehavior.FLOOR)
    if not 1 <= gibibytes <= MAX_VOLUME_GB:
        raise ConfigurationError(
            f"volume of SageMakerProcessingBuilder is {gibibytes:g} GiB: use 1 to {MAX_VOLUME_GB} GiB"
        )
    return int(gibibytes)


def _check_instance(instance: GpuInstance) -> None:
    offered = processing_instance(instance)
    if offered == instance:
        return
    raise ConfigurationError(
        f"SageMaker does not offer {instance.name} for Processing jobs: use {offered.name}, with the same GPU"
        if offered
        else f"SageMaker offers neither {instance.name} nor another instance type with its GPU for Processing jobs: "
        "remove instance_type"
    )


def _use_of_logs(group: str, streams: str) -> list[Statement]:
    """SageMaker writes a job's log and metrics with the job's role."""
    return [
        Statement(actions=["logs:CreateLogGroup", "logs:DescribeLogStreams"], resources=[group]),
        Statement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[streams]),
        Statement(
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": LOG_GROUP}},
        ),
    ]


def _families_with_volumes(instance_type: str | None) -> list[str]:
    """The families, such as `ml.p3`, on which jobs may run and whose disks are EBS volumes."""
    possible = (
        [gpu_instance(instance_type)]
        if instance_type
        else [each for each in gpu_instances().values() if processing_instance(each) == each]
    )
    return sorted({each.family for each in possible if not instance_storage(each).is_local})


def _by_handler(
    scope: Construct, bucket: s3.IBucket, group: str, streams: str
) -> tuple[list[Statement], dict[str, str]]:
    """The handler's permissions to start and watch jobs, and the reason for each ARN with a wildcard."""
    jobs = stack_of(scope).format_arn(service="sagemaker", resource="processing-job", resource_name=JOB_PATTERN)
    statements = [
        Statement(
            actions=["sagemaker:AddTags", "sagemaker:CreateProcessingJob", "sagemaker:DescribeProcessingJob"],
            resources=[jobs],
        ),
        Statement(actions=["s3:GetBucketTagging"], resources=[arn_of(bucket)]),
        Statement(actions=["logs:DescribeLogStreams"], resources=[group]),
        Statement(actions=["logs:GetLogEvents"], resources=[streams]),
    ]
    reason = "A job gets its name when it starts; the policy allows only names of cdk-triton."
    return statements, dict.fromkeys((jobs, group, streams), reason)


def _passing(role: iam.Role) -> Statement:
    return Statement(
        actions=["iam:PassRole"],
        resources=[role.role_arn],
        conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
    )


def _log_group(scope: Construct, below: str) -> str:
    return stack_of(scope).format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{LOG_GROUP}:{below}",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
