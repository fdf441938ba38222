"""A store with `vpc=`: where its functions run, what their roles may do there, and what they reach."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match

from cdk_triton import TritonArtifactStore, add_vpc_endpoints
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

SUBNETS = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
FUNCTION, GROUP = "AWS::Lambda::Function", "AWS::EC2::SecurityGroup"
NETWORK_ACTIONS = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}
"""Those of AWSLambdaVPCAccessExecutionRole, version 3."""


@pytest.fixture(name="vpc")
def _vpc(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-east-1a", "us-east-1b"],
        private_subnet_ids=SUBNETS,
    )


@pytest.fixture(name="isolated")
def _isolated(stack: cdk.Stack) -> ec2.Vpc:
    subnets = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    return ec2.Vpc(stack, "Own", max_azs=2, subnet_configuration=[subnets])


def no_way_out(stack: cdk.Stack) -> list[str]:
    """The warnings that the functions reach nothing."""
    pattern = Match.string_like_regexp(r"\[ack: cdk-triton:NoWayOut\]")
    return [str(each.entry.data) for each in Annotations.from_stack(stack).find_warning("*", pattern)]


def test_every_function_runs_in_the_private_subnets(world: World, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    TritonArtifactStore(stack, "Store", vpc=vpc)

    functions = world.resources(stack, FUNCTION)
    (group,) = world.resources(stack, GROUP)
    assert len(functions) == 2
    for function in functions.values():
        assert function["Properties"]["VpcConfig"] == {
            "SubnetIds": SUBNETS,
            "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}],
        }
    assert "SecurityGroupIngress" not in world.only(stack, GROUP)["Properties"]


def test_a_function_comes_after_its_permissions(world: World, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    TritonArtifactStore(stack, "Store", vpc=vpc)

    for function in world.resources(stack, FUNCTION).values():
        role = function["Properties"]["Role"]["Fn::GetAtt"][0][:-8]
        assert any(name.startswith(f"{role}Permissions") for name in function["DependsOn"])


def test_lambda_may_use_the_network_and_the_code_may_not(
    world: World, stack: cdk.Stack, vpc: ec2.IVpc, flattened: Callable[[Any], str]
) -> None:
    TritonArtifactStore(stack, "Store", vpc=vpc)

    for role in ("StoreIsCompleteRole", "StoreProvideRole"):
        statements = [each for each in world.statements(stack, role) if "ec2:" in str(each["Action"])]
        assert [set(each["Action"]) for each in statements] == [NETWORK_ACTIONS] * 2
        allowed, denied = statements
        assert (allowed["Effect"], allowed["Resource"], "Condition" in allowed) == ("Allow", "*", False)
        assert (denied["Effect"], denied["Resource"]) == ("Deny", "*")
        functions = flattened(denied["Condition"]["ArnLike"]["lambda:SourceFunctionArn"])
        assert functions == "arn:<AWS::Partition>:lambda:<AWS::Region>:<AWS::AccountId>:function:*"


def test_subnets_and_security_groups_may_be_given(world: World, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    group = ec2.SecurityGroup.from_security_group_id(stack, "Given", "sg-0123456789abcdef0")
    zone = ec2.SubnetSelection(availability_zones=["us-east-1b"])
    TritonArtifactStore(stack, "Store", vpc=vpc, vpc_subnets=zone, security_groups=[group])

    for function in world.resources(stack, FUNCTION).values():
        assert function["Properties"]["VpcConfig"] == {
            "SubnetIds": SUBNETS[1:],
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
        }
    assert not world.resources(stack, GROUP)


def test_subnets_without_a_vpc_are_rejected(messages: Messages, stack: cdk.Stack) -> None:
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", vpc_subnets=ec2.SubnetSelection(one_per_az=True))


def test_without_a_vpc_they_run_in_lambdas_own_network(world: World, stack: cdk.Stack) -> None:
    TritonArtifactStore(stack, "Store")

    assert all("VpcConfig" not in each["Properties"] for each in world.resources(stack, FUNCTION).values())
    assert "ec2:" not in str(world.policies(stack))


@pytest.mark.parametrize("pack", [cdk_nag.HIPAASecurityChecks, cdk_nag.PCIDSS321Checks, cdk_nag.NIST80053R5Checks])
def test_no_pack_finds_a_function_outside_a_vpc_and_none_is_excused(
    stack: cdk.Stack, vpc: ec2.IVpc, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged: list[str] = []
    monkeypatch.setattr(cdk.Validations, "acknowledge", lambda _, *all_: acknowledged.extend(a.id for a in all_))
    TritonArtifactStore(stack, "Store", vpc=vpc)

    found = [each.rule_name for each in pack().validate_scope(stack).violations or []]
    assert found
    assert not [rule for rule in (*found, *acknowledged) if "LambdaInsideVPC" in rule]


def test_cdk_nag_finds_nothing_unexplained(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    logs = s3.Bucket.from_bucket_name(stack, "AccessLogs", "access-logs")
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:us-east-1:111122223333:key/abc")
    TritonArtifactStore(stack, "Store", vpc=vpc, access_logs_bucket=logs, encryption_key=key)

    report = cdk_nag.AwsSolutionsChecks().validate_scope(stack)
    assert [violation.rule_name for violation in report.violations or []] == []


class TestInAVpcWithoutInternet:
    def test_a_warning_names_what_is_missing(self, messages: Messages, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        TritonArtifactStore(stack, "Store", vpc=isolated)

        (sentence,) = no_way_out(stack)
        messages.record("cdk-triton:NoWayOut", sentence)
        assert "for s3, states to the VPC" in sentence
        assert "add_vpc_endpoints(vpc, store_functions=True)" in sentence

    def test_the_endpoints_of_models_do_not_do(self, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        TritonArtifactStore(stack, "Store", vpc=isolated)
        add_vpc_endpoints(isolated)

        (sentence,) = no_way_out(stack)
        assert "for states to the VPC" in sentence

    def test_with_those_of_the_functions_nothing_is_missing(
        self, world: World, stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        TritonArtifactStore(stack, "Store", vpc=isolated)
        add_vpc_endpoints(isolated, store_functions=True)

        assert no_way_out(stack) == []
        for function in world.resources(stack, FUNCTION).values():
            assert {"OwnTritonS3", "OwnTritonStates"} <= {name[:-8] for name in function["DependsOn"]}

    def test_public_subnets_are_warned_of(self, messages: Messages, stack: cdk.Stack) -> None:
        vpc = ec2.Vpc(stack, "Public", max_azs=2)
        subnets = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC)
        TritonArtifactStore(stack, "Store", vpc=vpc, vpc_subnets=subnets)

        pattern = Match.string_like_regexp("PublicSubnets")
        (found,) = Annotations.from_stack(stack).find_warning("/Stack/Store", pattern)
        messages.record("cdk-triton:PublicSubnets", str(found.entry.data))

    def test_functions_reach_every_service_that_they_call(
        self, world: World, stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        handlers = "".join(path.read_text() for path in (world.root / "lambda").rglob("*.py"))
        called = set(re.findall(r"client\(\"([\w-]+)\"", handlers))
        names = {"sagemaker": "sagemaker.api", "stepfunctions": "states"}
        assert {names.get(each, each) for each in called} <= set(add_vpc_endpoints(isolated, store_functions=True))
