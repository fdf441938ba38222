"""The builders: the resources that a store makes for them, what these may do, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks

from cdk_triton import CodeBuildGpuBuilder, SageMakerProcessingBuilder, TritonArtifactStore
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

PROJECT = "AWS::CodeBuild::Project"
IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
BUCKET = "<StoreBucket4FBDE984.Arn>"
JOB_LOGS = "arn:aws:logs:eu-west-1:111122223333:log-group:/aws/sagemaker/ProcessingJobs"
INTERFACES = "arn:aws:ec2:eu-west-1:111122223333:network-interface/*"


@pytest.fixture(name="ireland")
def _ireland(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Stack", env=IRELAND)


@pytest.fixture(name="grants")
def _grants(world: World, flattened: Callable[[Any], str]) -> Callable[[cdk.Stack, str], set[str]]:
    """Every action of the role whose logical id begins so, with its resource and condition, as one line each."""

    def lines(stack: cdk.Stack, logical_id: str) -> set[str]:
        return {
            " ".join([action, "on", flattened(resource), *([json.dumps(s["Condition"])] if "Condition" in s else [])])
            for s in world.statements(stack, logical_id)
            for action in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
            for resource in (s["Resource"] if isinstance(s["Resource"], list) else [s["Resource"]])
        }

    return lines


def kinds(world: World, stack: cdk.Stack) -> dict[str, bool]:
    """The builders that the handler knows of."""
    found = world.resources(stack, "AWS::Lambda::Function").values()
    (variable,) = (
        f["Properties"]["Environment"]["Variables"]["BUILDERS"]
        for f in found
        if f["Properties"]["Handler"] == "artifacts.is_complete"
    )
    text = variable if isinstance(variable, str) else "".join(p for p in variable["Fn::Join"][1] if isinstance(p, str))
    return {kind: builder is not None for kind, builder in json.loads(text).items()}


class TestTheDefault:
    def test_is_both_where_codebuild_has_gpus(self, world: World, ireland: cdk.Stack) -> None:
        TritonArtifactStore(ireland, "Store")

        assert kinds(world, ireland) == {"codebuild": True, "processing": True}

    def test_is_processing_where_codebuild_has_none(self, world: World) -> None:
        stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-north-1"))
        TritonArtifactStore(stack, "Store")

        assert kinds(world, stack) == {"codebuild": False, "processing": True}
        assert not world.resources(stack, PROJECT)

    def test_is_processing_where_the_region_is_not_known(self, world: World, stack: cdk.Stack) -> None:
        TritonArtifactStore(stack, "Store")

        assert kinds(world, stack) == {"codebuild": False, "processing": True}

    def test_can_be_none(self, world: World, stack: cdk.Stack) -> None:
        TritonArtifactStore(stack, "Store", builders=[])

        assert kinds(world, stack) == {"codebuild": False, "processing": False}


def test_the_handlers_know_the_builders_by_their_names(
    world: World, ireland: cdk.Stack, flattened: Callable[[Any], str]
) -> None:
    TritonArtifactStore(ireland, "Store")

    known = {
        flattened(f["Properties"]["Environment"]["Variables"]["BUILDERS"])
        for f in world.resources(ireland, "AWS::Lambda::Function").values()
        if f["Properties"]["Handler"].startswith("artifacts.")
    }
    (project,) = world.resources(ireland, PROJECT)
    (group,) = (name for name in world.resources(ireland, "AWS::Logs::LogGroup") if "CodeBuild" in name)
    (role,) = (name for name in world.resources(ireland, "AWS::IAM::Role") if name.startswith("StoreProcessingRole"))
    assert [json.loads(text) for text in known] == [
        {
            "codebuild": {"project": f"<{project}>", "log_group": f"<{group}>"},
            "processing": {"role": f"<{role}.Arn>", "subnets": [], "security_groups": [], "kms_key": None},
        }
    ]


@pytest.mark.parametrize("builder", [CodeBuildGpuBuilder(), SageMakerProcessingBuilder()], ids=lambda each: each.kind)
def test_no_job_starts_before_its_role_may_do_what_it_needs(
    builder: CodeBuildGpuBuilder | SageMakerProcessingBuilder, world: World, ireland: cdk.Stack
) -> None:
    key = kms.Key(ireland, "Key")
    store = TritonArtifactStore(ireland, "Store", builders=[builder], encryption_key=key)
    key.add_to_resource_policy(
        iam.PolicyStatement(principals=[store.handler_role], actions=["kms:Decrypt"], resources=["*"])
    )

    functions = world.resources(ireland, "AWS::Lambda::Function")  # in no circle with the policy of the key
    (starts,) = (each for name, each in functions.items() if name.startswith("StoreIsComplete"))
    role = "CodeBuildRole" if builder.kind == "codebuild" else "ProcessingRole"
    assert {name[:-8] for name in starts["DependsOn"]} >= {f"Store{role}", f"Store{role}Permissions"}


def test_two_builders_of_one_kind_are_refused(stack: cdk.Stack) -> None:
    with pytest.raises(ConfigurationError, match="Stack/Store has two builders of the kind SageMakerProcessingBuilder"):
        TritonArtifactStore(stack, "Store", builders=[SageMakerProcessingBuilder(), SageMakerProcessingBuilder()])


def test_the_construct_ids_are_a_contract(ireland: cdk.Stack) -> None:
    store = TritonArtifactStore(ireland, "Store")

    # CDK's views of the roles, which it gets to grant nothing, are no contract.
    assert {child.node.id for child in store.node.children if "ImmutableRole" not in child.node.id} == {
        "Bucket",
        "Logs",
        "Code",
        "OnEvent",
        "OnEventRole",
        "IsComplete",
        "IsCompleteRole",
        "CodeBuild",
        "Processing",
        "Provider",
        "ProviderOnEventRole",
        "ProviderIsCompleteRole",
    }
    assert [c.node.id for c in store.node.find_child("CodeBuild").node.children] == ["Logs", "Role", "Project"]
    assert [c.node.id for c in store.node.find_child("Processing").node.children] == ["Role"]


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
                    "Image": "763104351884.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver:26.05-py3",
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

    def test_has_the_image_of_its_region_also_where_that_is_not_known(
        self, world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
    ) -> None:
        TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder()])

        image = world.only(stack, PROJECT)["Properties"]["Environment"]["Image"]
        assert flattened(image).startswith("<TritonImages2605.<AWS::Region>.account>.dkr.ecr.<AWS::Region>.")

    def test_has_the_newest_image_that_its_region_has(self, world: World) -> None:
        stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="cn-north-1"))
        TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder()])

        image = world.only(stack, PROJECT)["Properties"]["Environment"]["Image"]
        assert image == "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-tritonserver:25.04-py3"

    def test_builds_on_a_fleet(self, world: World, ireland: cdk.Stack) -> None:
        arn = "arn:aws:codebuild:eu-west-1:111122223333:fleet/Mine:298f7d6e-0000"
        fleet = codebuild.Fleet.from_fleet_arn(ireland, "Fleet", arn)
        TritonArtifactStore(ireland, "Store", builders=[CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4")])

        assert world.only(ireland, PROJECT)["Properties"]["Environment"]["Fleet"] == {"FleetArn": arn}

    def test_cannot_be_excused_by_a_refused_option(self, ireland: cdk.Stack) -> None:
        arn = "arn:aws:codebuild:eu-west-1:111122223333:fleet/Mine:298f7d6e-0000"
        fleet = codebuild.Fleet.from_fleet_arn(ireland, "Fleet", arn)
        with pytest.raises(ConfigurationError, match=r"gpu is None, but a fleet does not tell .* name one of NVIDIA"):
            CodeBuildGpuBuilder(fleet=fleet)
        with pytest.raises(ConfigurationError, match="gpu 'NVIDIA L4' says what the machines of a fleet have, and"):
            CodeBuildGpuBuilder(gpu="NVIDIA L4")
        with pytest.raises(ConfigurationError, match="leave vpc out and give it to the fleet"):
            CodeBuildGpuBuilder(fleet=fleet, gpu="NVIDIA L4", vpc=ec2.Vpc(ireland, "Vpc"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"compute_type": codebuild.ComputeType.LARGE},
            "compute_type LARGE of CodeBuild's GPU environment has NVIDIA V100s, which TensorRT supports up to 10.4 "
            "only, and which no plan for another GPU can be built on: leave compute_type out",
        ),
        (
            {"compute_type": codebuild.ComputeType.MEDIUM},
            "CodeBuild's GPU environment has no compute_type MEDIUM: leave compute_type out",
        ),
        (
            {"timeout": cdk.Duration.minutes(9)},
            "the timeout of CodeBuildGpuBuilder is 9 minutes: use whole minutes, from 10 to 2160",
        ),
        (
            {"timeout": cdk.Duration.hours(37)},
            "the timeout of CodeBuildGpuBuilder is 1 day 13 hours: use whole minutes, from 10 to 2160",
        ),
        (
            {"timeout": cdk.Duration.seconds(630)},
            "the timeout of CodeBuildGpuBuilder is 10 minutes 30 seconds: use whole minutes, from 10 to 2160",
        ),
        (
            {"timeout": cdk.Duration.minutes(cdk.Token.as_number({"Ref": "Minutes"}))},
            "the timeout of CodeBuildGpuBuilder is a CDK token, but plans say how long a job may take: write it out",
        ),
        (
            {"queued_timeout": cdk.Duration.minutes(4)},
            "the queued_timeout of CodeBuildGpuBuilder is 4 minutes: use whole minutes, from 5 to 480",
        ),
        (
            {"vpc_subnets": ec2.SubnetSelection()},
            "vpc_subnets and security_groups need their vpc: give it, or leave them out",
        ),
    ],
)
def test_codebuild_refuses_what_it_cannot_do(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CodeBuildGpuBuilder(**arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"timeout": cdk.Duration.minutes(5)},
            "the timeout of SageMakerProcessingBuilder is 5 minutes: use whole minutes, from 10 to 2160",
        ),
        (
            {"instance_type": "ml.p5.48xlarge"},
            "SageMaker does not offer ml.p5.48xlarge for Processing jobs: use ml.p5.4xlarge, with the same GPU",
        ),
        (
            {"instance_type": "ml.p4d.24xlarge"},
            "SageMaker does not offer ml.p4d.24xlarge for Processing jobs, nor another type with its GPU: leave "
            "instance_type out",
        ),
        ({"volume": cdk.Size.tebibytes(17)}, "the volume has 17408 GiB: use 1 to 16384"),
    ],
)
def test_processing_refuses_what_it_cannot_do(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        SageMakerProcessingBuilder(**arguments)
    assert str(caught.value) == message


def test_a_processing_job_may_do_exactly_this(ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]]) -> None:
    TritonArtifactStore(ireland, "Store", builders=[SageMakerProcessingBuilder()])

    assert grants(ireland, "StoreProcessingRole") == {
        "ecr:GetAuthorizationToken on *",
        f"s3:GetObject on {BUCKET}/staging/*/in/*",
        f"s3:PutObject on {BUCKET}/staging/*/out/*",
        f"s3:AbortMultipartUpload on {BUCKET}/staging/*/out/*",
        f's3:ListBucket on {BUCKET} {{"StringLike": {{"s3:prefix": "staging/*/in*"}}}}',
        f"logs:CreateLogGroup on {JOB_LOGS}:*",
        f"logs:DescribeLogStreams on {JOB_LOGS}:*",
        f"logs:CreateLogStream on {JOB_LOGS}:log-stream:cdk-triton-*",
        f"logs:PutLogEvents on {JOB_LOGS}:log-stream:cdk-triton-*",
        'cloudwatch:PutMetricData on * {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/ProcessingJobs"}}',
    }
    jobs = "arn:aws:sagemaker:eu-west-1:111122223333:processing-job/cdk-triton-*"
    condition = '{"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}'
    assert grants(ireland, "StoreIsCompleteRole") >= {
        f"sagemaker:CreateProcessingJob on {jobs}",
        f"sagemaker:DescribeProcessingJob on {jobs}",
        f"iam:PassRole on <StoreProcessingRoleBE818DA5.Arn> {condition}",
        f"logs:DescribeLogStreams on {JOB_LOGS}:*",
        f"logs:GetLogEvents on {JOB_LOGS}:log-stream:cdk-triton-*",
    }


class TestInAVpc:
    @pytest.fixture(name="subnet")
    def _subnet(self, ireland: cdk.Stack) -> str:
        vpc = ec2.Vpc.from_vpc_attributes(
            ireland,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            availability_zones=["eu-west-1a", "eu-west-1b"],
            private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        )
        there: Any = {"vpc": vpc, "vpc_subnets": ec2.SubnetSelection(availability_zones=["eu-west-1a"])}
        given = ec2.SecurityGroup.from_security_group_id(ireland, "Given", "sg-0123456789abcdef0")
        TritonArtifactStore(
            ireland,
            "Store",
            builders=[CodeBuildGpuBuilder(**there, security_groups=[given]), SageMakerProcessingBuilder(**there)],
            access_logs_bucket=s3.Bucket.from_bucket_name(ireland, "AccessLogs", "access-logs"),
            encryption_key=kms.Key.from_key_arn(ireland, "Key", "arn:aws:kms:eu-west-1:111122223333:key/abc"),
        )
        return "arn:aws:ec2:eu-west-1:111122223333:subnet/subnet-0123456789abcdef0"

    def test_a_project_is_put_there(self, world: World, ireland: cdk.Stack, subnet: str) -> None:
        project = world.only(ireland, PROJECT)

        assert project["Properties"]["VpcConfig"] == {
            "VpcId": "vpc-0123456789abcdef0",
            "Subnets": ["subnet-0123456789abcdef0"],
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
        }
        assert any(name.startswith("StoreCodeBuildRolePermissions") for name in project["DependsOn"])

    def test_a_job_gets_a_security_group_that_lets_nothing_in(
        self, world: World, ireland: cdk.Stack, flattened: Callable[[Any], str], subnet: str
    ) -> None:
        (name,) = world.resources(ireland, "AWS::EC2::SecurityGroup")

        assert "SecurityGroupIngress" not in world.only(ireland, "AWS::EC2::SecurityGroup")["Properties"]
        functions = json.dumps(world.resources(ireland, "AWS::Lambda::Function"))
        assert r"\"subnets\": [\"subnet-0123456789abcdef0\"], \"security_groups\": [\"" in functions
        assert f'{{"Fn::GetAtt": ["{name}", "GroupId"]}}' in functions

    def test_interfaces_are_made_in_its_subnets_only(
        self, ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]], subnet: str
    ) -> None:
        within = f'{{"ArnEquals": {{"ec2:Subnet": ["{subnet}"]}}}}'
        codebuild_only = f'{within[:-1]}, "StringEquals": {{"ec2:AuthorizedService": "codebuild.amazonaws.com"}}}}'
        describing = {
            f"ec2:Describe{what} on *"
            for what in ("DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs")
        }

        assert {line for line in grants(ireland, "StoreCodeBuildRole") if line.startswith("ec2:")} == {
            *describing,
            f"ec2:CreateNetworkInterface on {INTERFACES}",
            f"ec2:CreateNetworkInterface on {subnet}",
            "ec2:CreateNetworkInterface on arn:aws:ec2:eu-west-1:111122223333:security-group/sg-0123456789abcdef0",
            f"ec2:DeleteNetworkInterface on {INTERFACES} {within}",
            f"ec2:CreateNetworkInterfacePermission on {INTERFACES} {codebuild_only}",
        }
        assert grants(ireland, "StoreProcessingRole") >= {
            *describing,
            f"ec2:CreateNetworkInterface on {INTERFACES}",
            f"ec2:CreateNetworkInterface on {subnet}",
            f"ec2:DeleteNetworkInterface on {INTERFACES} {within}",
            f"ec2:CreateNetworkInterfacePermission on {INTERFACES} {within}",
            f"ec2:DeleteNetworkInterfacePermission on {INTERFACES} {within}",
        }

    def test_cdk_nag_finds_nothing_unexplained(self, ireland: cdk.Stack, subnet: str) -> None:
        report = AwsSolutionsChecks().validate_scope(ireland)

        assert [violation.rule_name for violation in report.violations or []] == []


def test_the_template_passes_cfn_lint_and_cdks_own_validation(world: World) -> None:
    app = world.app(validated=True)
    stack = cdk.Stack(app, "Stack", env=IRELAND)
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["eu-west-1a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
    )
    of_codebuild = CodeBuildGpuBuilder(vpc=vpc, encryption_key=kms.Key(stack, "Key", enable_key_rotation=True))
    store = TritonArtifactStore(stack, "Store", builders=[of_codebuild, SageMakerProcessingBuilder(vpc=vpc)])
    for instance_type in ("ml.g5.xlarge", "ml.g6.xlarge"):
        store.builder_for(store, replace(world.platform, instance_type=instance_type), [])
    app.synth()

    # W3005: CDK makes every Lambda function and state machine depend on the role that it refers to.
    lint = subprocess.run(
        [world.root / ".venv/bin/cfn-lint", "--ignore-checks", "W3005", "--", Path(app.outdir) / "Stack.template.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert (lint.returncode, lint.stdout) == (0, "")
    assert report["pluginReports"] == []
