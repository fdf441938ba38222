"""Which builders a store has, in which order they are made, and what the handlers know of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from cdk_triton import CodeBuildGpuBuilder, SageMakerProcessingBuilder, TritonArtifactStore
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

PROJECT = "AWS::CodeBuild::Project"


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
        if "BUILDERS" in f["Properties"]["Environment"]["Variables"]
    }
    (project,) = world.resources(ireland, PROJECT)
    (group,) = (name for name in world.resources(ireland, "AWS::Logs::LogGroup") if "CodeBuild" in name)
    (role,) = (name for name in world.resources(ireland, "AWS::IAM::Role") if name.startswith("StoreProcessingRole"))
    assert [json.loads(text) for text in known] == [
        {
            "codebuild": {"project": f"<{project}>", "log_group": f"<{group}>"},
            "processing": {
                "role": f"<{role}.Arn>",
                "subnets": [],
                "security_groups": [],
                "kms_key": None,
                "volume_key_families": [],
            },
        }
    ]


@pytest.mark.parametrize("builder", [CodeBuildGpuBuilder(), SageMakerProcessingBuilder()], ids=lambda each: each._kind)
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
    role = "CodeBuildRole" if builder._kind == "codebuild" else "ProcessingRole"
    assert {name[:-8] for name in starts["DependsOn"]} >= {f"Store{role}", f"Store{role}Permissions"}


def test_two_builders_of_one_kind_are_rejected(messages: Messages, stack: cdk.Stack) -> None:
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", builders=[SageMakerProcessingBuilder(), SageMakerProcessingBuilder()])


def test_the_construct_ids_are_a_contract(ireland: cdk.Stack) -> None:
    store = TritonArtifactStore(ireland, "Store")

    # CDK's views of the roles, which it gets to grant nothing, are no contract.
    assert {child.node.id for child in store.node.children if "ImmutableRole" not in child.node.id} == {
        "Bucket",
        "Logs",
        "Code",
        "IsComplete",
        "IsCompleteRole",
        "CodeBuild",
        "Processing",
        "Provide",
        "ProvideRole",
        "Waiter",
        "WaiterRole",
    }
    assert [c.node.id for c in store.node.find_child("CodeBuild").node.children] == ["Logs", "Role", "Project"]
    assert [c.node.id for c in store.node.find_child("Processing").node.children] == ["Role"]


def test_the_template_passes_cfn_lint_and_cdks_own_validation(world: World) -> None:
    app = world.app(validated=True)
    stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
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
        store._builder_for(store, replace(world.platform, instance_type=instance_type), [])
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
