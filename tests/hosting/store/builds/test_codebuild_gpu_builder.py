"""The project of CodeBuild: its settings, what it may do, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk.assertions import Template

from cdk_triton import CodeBuildGpuBuilder, ServingPlatform, TritonArtifactStore
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

PROJECT = "AWS::CodeBuild::Project"
PLACEHOLDER_IMAGE = "public.ecr.aws/amazonlinux/amazonlinux:2023"
BUCKET = "<StoreBucket4FBDE984.Arn>"


class TestTheProject:
    def test_has_one_a10g_no_privileges_and_its_own_log(self, ireland: cdk.Stack) -> None:
        TritonArtifactStore(ireland, "Store", builders=[CodeBuildGpuBuilder()])

        template = Template.from_stack(ireland)
        template.has_resource_properties(
            PROJECT,
            {
                "Artifacts": {"Type": "NO_ARTIFACTS"},
                "EncryptionKey": "alias/aws/s3",
                "Environment": {
                    "Type": "LINUX_GPU_CONTAINER",
                    "ComputeType": "BUILD_GENERAL1_SMALL",
                    "Image": PLACEHOLDER_IMAGE,
                    "ImagePullCredentialsType": "SERVICE_ROLE",
                    "PrivilegedMode": False,
                },
                "LogsConfig": {
                    "CloudWatchLogs": {"Status": "ENABLED", "GroupName": {"Ref": "StoreCodeBuildLogsE4D6CBA8"}}
                },
                "TimeoutInMinutes": 120,
                "QueuedTimeoutInMinutes": 480,
            },
        )
        group = template.find_resources("AWS::Logs::LogGroup")["StoreCodeBuildLogsE4D6CBA8"]
        assert group["Properties"] == {"RetentionInDays": 90}

    def test_runs_the_program_in_the_staged_folder_and_uploads_its_output(
        self, world: World, ireland: cdk.Stack
    ) -> None:
        TritonArtifactStore(ireland, "Store", builders=[CodeBuildGpuBuilder()])

        source = world.only(ireland, PROJECT)["Properties"]["Source"]
        assert source["Type"] == "NO_SOURCE"
        assert json.loads(source["BuildSpec"]) == {
            "version": "0.2",
            "phases": {"build": {"commands": ["mkdir -p out", "python3 program.pyz . out"]}},
            "artifacts": {"base-directory": "out", "files": ["**/*"]},
        }

    def test_takes_timeouts_retention_and_a_key(self, world: World, ireland: cdk.Stack) -> None:
        builder = CodeBuildGpuBuilder(
            timeout=cdk.Duration.hours(36),
            queued_timeout=cdk.Duration.minutes(5),
            log_retention=logs.RetentionDays.ONE_WEEK,
            encryption_key=kms.Key(ireland, "Key"),
        )
        TritonArtifactStore(ireland, "Store", builders=[builder])

        properties = world.only(ireland, PROJECT)["Properties"]
        assert (properties["TimeoutInMinutes"], properties["QueuedTimeoutInMinutes"]) == (2160, 5)
        assert properties["EncryptionKey"] == {"Fn::GetAtt": ["Key961B73FD", "Arn"]}
        assert world.resources(ireland, "AWS::Logs::LogGroup")["StoreCodeBuildLogsE4D6CBA8"]["Properties"] == {
            "RetentionInDays": 7
        }

    def test_may_do_exactly_this(self, ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]]) -> None:
        key = kms.Key(ireland, "Key")
        TritonArtifactStore(ireland, "Store", builders=[CodeBuildGpuBuilder(encryption_key=key)])

        assert grants(ireland, "StoreCodeBuildRole") == {
            "ecr:GetAuthorizationToken on *",
            "logs:CreateLogStream on <StoreCodeBuildLogsE4D6CBA8.Arn>",
            "logs:PutLogEvents on <StoreCodeBuildLogsE4D6CBA8.Arn>",
            f"s3:GetObject on {BUCKET}/staging/*/in/*",
            f"s3:GetObjectVersion on {BUCKET}/staging/*/in/*",
            f"s3:PutObject on {BUCKET}/staging/*/out/*",
            f"s3:AbortMultipartUpload on {BUCKET}/staging/*/out/*",
            f's3:ListBucket on {BUCKET} {{"StringLike": {{"s3:prefix": "staging/*/in*"}}}}',
            f"s3:GetBucketAcl on {BUCKET}",
            f"s3:GetBucketLocation on {BUCKET}",
            "kms:Decrypt on <Key961B73FD.Arn>",
            "kms:GenerateDataKey on <Key961B73FD.Arn>",
        }
        assert grants(ireland, "StoreIsCompleteRole") >= {
            "codebuild:StartBuild on <StoreCodeBuildProject235ACAF9.Arn>",
            "codebuild:BatchGetBuilds on <StoreCodeBuildProject235ACAF9.Arn>",
            "codebuild:ListBuildsForProject on <StoreCodeBuildProject235ACAF9.Arn>",
            "logs:GetLogEvents on <StoreCodeBuildLogsE4D6CBA8.Arn>",
            "kms:Decrypt on <Key961B73FD.Arn>",
        }

    @pytest.mark.parametrize("region", [None, "eu-west-1", "cn-north-1", "us-gov-west-1", "eu-north-1"])
    def test_needs_no_image_of_sagemaker_in_its_region(self, world: World, region: str | None) -> None:
        env = None if region is None else cdk.Environment(account="111122223333", region=region)
        stack = cdk.Stack(world.app(), "Stack", env=env)
        arn = "arn:aws:codebuild:eu-west-1:111122223333:fleet/Mine:298f7d6e-0000"
        fleet = codebuild.Fleet.from_fleet_arn(stack, "Fleet", arn)
        TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4")])

        environment = world.only(stack, PROJECT)["Properties"]["Environment"]
        assert environment["Image"] == PLACEHOLDER_IMAGE
        assert environment["ImagePullCredentialsType"] == "SERVICE_ROLE"
        assert "Mappings" not in world.template(stack)

    def test_serves_models_with_an_image_of_their_own_in_govcloud(self, world: World) -> None:
        env = cdk.Environment(account="111122223333", region="us-gov-west-1")
        stack = cdk.Stack(world.app(), "Stack", env=env)
        arn = "arn:aws-us-gov:codebuild:us-gov-west-1:111122223333:fleet/Mine:298f7d6e-0000"
        fleet = codebuild.Fleet.from_fleet_arn(stack, "Fleet", arn)
        store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4")])
        image = f"111122223333.dkr.ecr.us-gov-west-1.amazonaws.com/triton@sha256:{'0' * 64}"
        platform = ServingPlatform(release="25.09", instance_type="ml.g6.xlarge", image=image)

        assert store._builder_for(stack, platform, [])._kind == "codebuild"

    def test_builds_on_a_fleet(self, world: World, ireland: cdk.Stack) -> None:
        arn = "arn:aws:codebuild:eu-west-1:111122223333:fleet/Mine:298f7d6e-0000"
        fleet = codebuild.Fleet.from_fleet_arn(ireland, "Fleet", arn)
        TritonArtifactStore(ireland, "Store", builders=[CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4")])

        assert world.only(ireland, PROJECT)["Properties"]["Environment"]["Fleet"] == {"FleetArn": arn}

    def test_rejects_fleets_whose_gpu_or_vpc_it_would_have_to_guess(
        self, messages: Messages, ireland: cdk.Stack
    ) -> None:
        arn = "arn:aws:codebuild:eu-west-1:111122223333:fleet/Mine:298f7d6e-0000"
        fleet = codebuild.Fleet.from_fleet_arn(ireland, "Fleet", arn)
        with messages.raises(ConfigurationError):
            CodeBuildGpuBuilder(fleet=fleet)
        with messages.raises(ConfigurationError):
            CodeBuildGpuBuilder(gpu="NVIDIA L4")
        with messages.raises(ConfigurationError):
            CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4", vpc=ec2.Vpc(ireland, "Vpc"))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        pytest.param("compute_type", codebuild.ComputeType.LARGE, id="an old GPU"),
        pytest.param("compute_type", codebuild.ComputeType.MEDIUM, id="no GPU"),
        pytest.param("timeout", cdk.Duration.minutes(9), id="a short timeout"),
        pytest.param("timeout", cdk.Duration.hours(37), id="a long timeout"),
        pytest.param("timeout", cdk.Duration.seconds(630), id="a fraction of minutes"),
        pytest.param("timeout", cdk.Duration.minutes(cdk.Token.as_number({"Ref": "Minutes"})), id="a token"),
        pytest.param("queued_timeout", cdk.Duration.minutes(4), id="a short queued timeout"),
        pytest.param("vpc_subnets", ec2.SubnetSelection(), id="subnets of no VPC"),
    ],
)
def test_codebuild_rejects_what_it_cannot_do(messages: Messages, argument: str, value: Any) -> None:
    with messages.raises(ConfigurationError) as caught:
        CodeBuildGpuBuilder(**{argument: value})
    assert argument in str(caught.value)
