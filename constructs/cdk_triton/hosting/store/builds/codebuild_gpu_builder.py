"""`CodeBuildGpuBuilder`: builds on CodeBuild's machine with an NVIDIA A10G, or on a fleet of the user's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import key_behind, require_key
from cdk_triton.hosting.access.network import Network, allow_network, build_network, check_network
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.access.trust import codebuild_of_the_account
from cdk_triton.hosting.naming.acknowledgements import acknowledge, acknowledge_nist
from cdk_triton.hosting.naming.per_construct import encryption_key_of, path_of
from cdk_triton.hosting.naming.stacks import region_of, require_own_region
from cdk_triton.hosting.store.builds.builders import (
    Builder,
    BuildService,
    build_role,
    key_statement,
    minutes,
    staging_statements,
)
from cdk_triton.sagemaker import (
    ServingPlatform,
    codebuild_gpu,
    codebuild_gpu_regions,
    gpu_instances,
)

__all__ = ["CodeBuildGpuBuilder"]

MAX_QUEUED_MINUTES = 8 * 60
"""CodeBuild takes 5 minutes to 8 hours (QueuedTimeoutInMinutes of AWS::CodeBuild::Project)."""

PLACEHOLDER_IMAGE: Final = "public.ecr.aws/amazonlinux/amazonlinux:2023"
"""A project must have an image, but no build runs in it, because each build names the image of its model.

The image has the same name in each region, even in China and GovCloud, where SageMaker has only older images of Triton
or none.
"""

BUILD_SPEC: Final = {
    "version": "0.2",
    "phases": {"build": {"commands": ["mkdir -p out", "python3 program.pyz . out"]}},
    "artifacts": {"base-directory": "out", "files": ["**/*"]},
}
"""The service downloads the staged folder and uploads `out`, even after a failed build; the program does the rest."""


@checked
@dataclass(frozen=True, kw_only=True)
class CodeBuildGpuBuilder(Builder):
    """Builds in a CodeBuild project. Without `fleet`, builds run on an NVIDIA A10G, the GPU of ml.g5 instances.

    The project's containers are not privileged, and its logs go to its own log group. In the store's bucket, the
    project reads and writes only the objects that are staged for builds.

    Attributes:
        timeout: how long a build may run, from 10 minutes to 36 hours; by default 2 hours. If a build runs longer than
            a deployment waits, the next deployment waits for the same build.
        queued_timeout: how long a build may wait for a machine, from 5 minutes to 8 hours; by default 8 hours.
        compute_type: SMALL, the machine with one A10G. LARGE is not allowed, because this machine has V100 GPUs, which
            TensorRT 10.5 and later do not support.
        fleet: your own CodeBuild fleet with the environment type LINUX_GPU_CONTAINER, for builds on another GPU. You
            also pay for a fleet while it is idle.
        gpu: the GPU of the fleet's machines, such as "NVIDIA L4". Required with `fleet`, and not allowed without it.
        vpc: the VPC in which builds run. Its subnets must have a route to Amazon ECR, S3, CloudWatch Logs and the hosts
            from which recipes download. Not allowed with `fleet`: set the VPC of the fleet itself.
        vpc_subnets: the subnets of the VPC; by default the private subnets.
        security_groups: security groups in the VPC; by default a new security group.
        log_retention: how long CloudWatch keeps the log.
        encryption_key: your own KMS key in the store's region, for the output of builds. By default the store's KMS
            key, or the AWS managed key for S3 if the store does not have a key.

    Raises:
        ConfigurationError: a duration is out of its range, the compute type is not SMALL, or the arguments contradict
            each other; the key is asymmetric, is for HMAC, or is an alias that was imported by its name only.
    """

    timeout: Duration | None = None
    queued_timeout: Duration | None = None
    compute_type: codebuild.ComputeType = codebuild.ComputeType.SMALL
    fleet: codebuild.IFleet | None = None
    gpu: str | None = None
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()
    log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS
    encryption_key: kms.IKey | None = None

    def __post_init__(self) -> None:
        minutes(self.timeout, "the timeout of CodeBuildGpuBuilder")
        self._queued_minutes()
        _check_compute_type(self.compute_type)
        _check_fleet(self)
        check_network(self.vpc, self.vpc_subnets, self.security_groups)
        if self.encryption_key is not None:
            require_key(self.encryption_key, "encryption_key of CodeBuildGpuBuilder")

    def _queued_minutes(self) -> int:
        what = "the queued_timeout of CodeBuildGpuBuilder"
        return minutes(self.queued_timeout, what, default=MAX_QUEUED_MINUTES, least=5, most=MAX_QUEUED_MINUTES)

    @property
    def _kind(self) -> Literal["codebuild"]:
        return "codebuild"

    @property
    def _timeout_minutes(self) -> int:
        return minutes(self.timeout, "the timeout of CodeBuildGpuBuilder")

    def _unsupported_reason(self, platform: ServingPlatform, region: str | None) -> str | None:
        if self.fleet is not None:
            return None if platform.gpu == self.gpu else f"its fleet has the GPU {self.gpu}"
        if platform.gpu != codebuild_gpu():
            return f"CodeBuild has the GPU {codebuild_gpu()} only"
        if region is not None and region not in codebuild_gpu_regions():
            return f"CodeBuild has no GPU on demand in {region}"
        return None

    def _gpu_count(self, platform: ServingPlatform) -> int | None:
        """Unknown for a fleet of the user's."""
        return None if self.fleet is not None else 1

    def _machine(self, platform: ServingPlatform) -> tuple[str | None, int | None]:
        """The project, not the job, sets the machine."""
        return None, None

    def _provide(self, scope: Construct, bucket: s3.IBucket) -> BuildService:
        """Create the project `Project`, its `Role` and its log group `Logs`.

        Raises:
            ConfigurationError: the builder's own key is in another region.
        """
        key = encryption_key_of(bucket)
        log_group = logs.LogGroup(
            scope, "Logs", retention=self.log_retention, removal_policy=RemovalPolicy.DESTROY, encryption_key=key
        )
        log_group_arn = log_group.log_group_arn
        staging, reasons = staging_statements(
            bucket,
            read=["s3:GetObject", "s3:GetObjectVersion"],
            of_bucket=["s3:GetBucketAcl", "s3:GetBucketLocation"],
        )
        logging = Statement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group_arn])
        statements = [logging, *staging]
        handler_statements = []
        own_key = None if self.encryption_key is None else key_behind(self.encryption_key)
        if own_key is not None:
            reason = f"builds write in their own region only: use a key in {region_of(scope)}"
            require_own_region(scope, own_key, reason)
            statements.append(key_statement(own_key))
            handler_statements.append(Statement(actions=["kms:Decrypt"], resources=[own_key.key_arn]))
        role = build_role(scope, codebuild_of_the_account(scope), statements, reasons)
        network = build_network(scope, self.vpc, self.vpc_subnets, self.security_groups)
        if network is not None:
            allow_network(
                role, network, permission=["ec2:CreateNetworkInterfacePermission"], authorized="codebuild.amazonaws.com"
            )
        project = self._project(scope, role, log_group, network, key if own_key is None else own_key)
        handler_statements += [
            Statement(
                actions=["codebuild:BatchGetBuilds", "codebuild:ListBuildsForProject", "codebuild:StartBuild"],
                resources=[project.attr_arn],
            ),
            Statement(actions=["logs:GetLogEvents"], resources=[log_group_arn]),
        ]
        settings = {"project": project.ref, "log_group": log_group.log_group_name}
        return BuildService(settings, role, handler_statements, network=network)

    def _project(
        self,
        scope: Construct,
        role: iam.Role,
        log_group: logs.LogGroup,
        network: Network | None,
        key: kms.IKey | None,
    ) -> codebuild.CfnProject:
        properties = codebuild.CfnProject
        fleet = None if self.fleet is None else properties.ProjectFleetProperty(fleet_arn=self.fleet.fleet_arn)
        project = codebuild.CfnProject(
            scope,
            "Project",
            description=f"cdk-triton: runs the builds of {path_of(scope)}"[:255],
            # The start of a build sets its source, artifacts and image.
            source=properties.SourceProperty(type="NO_SOURCE", build_spec=json.dumps(BUILD_SPEC, indent=1)),
            artifacts=properties.ArtifactsProperty(type="NO_ARTIFACTS"),
            environment=properties.EnvironmentProperty(
                type="LINUX_GPU_CONTAINER",
                compute_type="BUILD_GENERAL1_SMALL",
                image=PLACEHOLDER_IMAGE,
                image_pull_credentials_type="SERVICE_ROLE",
                privileged_mode=False,
                fleet=fleet,
            ),
            encryption_key="alias/aws/s3" if key is None else key.key_arn,
            service_role=role.role_arn,
            timeout_in_minutes=self._timeout_minutes,
            queued_timeout_in_minutes=self._queued_minutes(),
            logs_config=properties.LogsConfigProperty(
                cloud_watch_logs=properties.CloudWatchLogsConfigProperty(
                    status="ENABLED", group_name=log_group.log_group_name
                )
            ),
            vpc_config=None
            if network is None
            else properties.VpcConfigProperty(
                vpc_id=network.vpc.vpc_id,
                subnets=list(network.subnets),
                security_group_ids=list(network.security_groups),
            ),
        )
        # CodeBuild checks the permissions for a VPC when the project is created.
        project.node.add_dependency(role)
        reason = "A build runs in the image that serves, because a plan loads only in the TensorRT that built it."
        acknowledge(project, {"CB5": reason})
        reason = "The project has no source repository, because a build reads a folder of the store's bucket."
        acknowledge_nist(project, {"CodeBuildProjectSourceRepoUrl": reason})
        return project


def _check_compute_type(compute_type: Any) -> None:
    if compute_type == codebuild.ComputeType.LARGE:
        raise ConfigurationError(
            "compute_type LARGE of CodeBuild's GPU environment has NVIDIA V100s, which cannot build plans for other "
            "GPUs and which TensorRT supports up to 10.4 only: remove compute_type"
        )
    if compute_type != codebuild.ComputeType.SMALL:
        name = getattr(compute_type, "name", compute_type)
        raise ConfigurationError(f"CodeBuild's GPU environment has no compute_type {name}: remove compute_type")


def _check_fleet(builder: CodeBuildGpuBuilder) -> None:
    gpus = sorted({instance.gpu for instance in gpu_instances().values()})
    if builder.fleet is None:
        if builder.gpu is not None:
            raise ConfigurationError(
                f"gpu {builder.gpu!r} describes the machines of a fleet, but CodeBuildGpuBuilder has no fleet: give "
                f"fleet= too, or remove gpu= to build on CodeBuild's own {codebuild_gpu()}"
            )
        return
    if builder.gpu not in gpus:
        raise ConfigurationError(
            f"gpu is {builder.gpu!r}, but CodeBuild does not report the GPU of a fleet's machines: name one of "
            f"{', '.join(gpus)}"
        )
    if builder.vpc is not None:
        raise ConfigurationError(
            "a CodeBuild project with a fleet cannot have a VPC of its own: remove vpc=, and set the VPC of the fleet"
        )
