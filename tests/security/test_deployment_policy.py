"""The policy for CloudFormation's role: complete, free of wildcards, and small enough for IAM."""

from __future__ import annotations

import ast
import inspect
import json
import re
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from tests.hosting.conftest import ROOT
from tests.permissions.bootstrap import BOUNDARY, of_the_bootstrap
from tests.permissions.judging import Decision, Policies, Request, document, judge
from tests.permissions.requests import actions_of
from tests.security.everything import IRELAND, add_everything

from cdk_triton import add_vpc_endpoints
from cdk_triton_local.cloudformation.resource_types import find

if TYPE_CHECKING:
    from tests.hosting.conftest import World

NOT_SET = {
    "AWS::ApplicationAutoScaling::ScalableTarget": {
        "ServiceNamespace of Lambda": {
            "lambda:DeleteProvisionedConcurrencyConfig",
            "lambda:GetProvisionedConcurrencyConfig",
            "lambda:PutProvisionedConcurrencyConfig",
        }
    },
    "AWS::EC2::VPCEndpoint": {
        "ServiceNetworkArn": {"vpc-lattice:CreateServiceNetworkVpcEndpointAssociation"},
        "ServiceRegion": {"vpce:AllowMultiRegion"},
    },
    "AWS::IAM::ManagedPolicy": {
        "Groups": {"iam:AttachGroupPolicy", "iam:DetachGroupPolicy"},
        "Users": {"iam:AttachUserPolicy", "iam:DetachUserPolicy"},
    },
    "AWS::IAM::Policy": {
        "Groups": {"iam:DeleteGroupPolicy", "iam:GetGroupPolicy", "iam:PutGroupPolicy"},
        "Users": {"iam:DeleteUserPolicy", "iam:GetUserPolicy", "iam:PutUserPolicy"},
    },
    "AWS::KMS::Key": {
        "Enabled": {"kms:DisableKey", "kms:EnableKey"},
        "EnableKeyRotation of false": {"kms:DisableKeyRotation"},
    },
    "AWS::Lambda::Function": {
        "CapacityProviderConfig": {"lambda:PassCapacityProvider", "lambda:PublishVersion"},
        "CodeSigningConfigArn": {
            "lambda:DeleteFunctionCodeSigningConfig",
            "lambda:GetCodeSigningConfig",
            "lambda:PutFunctionCodeSigningConfig",
        },
        "FileSystemConfigs": {"elasticfilesystem:DescribeMountTargets", "s3files:ListMountTargets"},
        "FunctionScalingConfig": {"lambda:PutFunctionScalingConfig"},
        "KmsKeyArn": {"kms:Encrypt"},
        "Layers": {"lambda:GetLayerVersion"},
        "ReservedConcurrentExecutions": {"lambda:DeleteFunctionConcurrency", "lambda:PutFunctionConcurrency"},
        "RuntimeManagementConfig": {"lambda:PutRuntimeManagementConfig"},
        "S3ObjectVersion": {"s3:GetObjectVersion"},
    },
    "AWS::Logs::LogGroup": {
        "BearerTokenAuthenticationEnabled": {"logs:PutBearerTokenAuthentication"},
        "DataProtectionPolicy": {
            "firehose:TagDeliveryStream",  # of its destinations
            "logs:CreateLogDelivery",
            "logs:DeleteDataProtectionPolicy",
            "logs:PutDataProtectionPolicy",
        },
        "DeletionProtectionEnabled": {"logs:PutLogGroupDeletionProtection"},
        "FieldIndexPolicies": {"logs:DeleteIndexPolicy", "logs:PutIndexPolicy"},
        "ResourcePolicyDocument": {"logs:DeleteResourcePolicy", "logs:PutResourcePolicy"},
    },
    "AWS::S3::Bucket": {
        "AbacStatus": {"s3:PutBucketAbac"},
        "AccelerateConfiguration": {"s3:PutAccelerateConfiguration"},
        "AccessControl": {"s3:DeleteObject", "s3:GetBucketAcl", "s3:PutBucketAcl", "s3:PutObjectAcl"},
        "AnalyticsConfigurations": {"s3:PutAnalyticsConfiguration"},
        "CorsConfiguration": {"s3:PutBucketCORS"},
        "IntelligentTieringConfigurations": {"s3:PutIntelligentTieringConfiguration"},
        "InventoryConfigurations": {"s3:PutInventoryConfiguration"},
        "MetadataConfiguration": {
            "s3:CreateBucketMetadataTableConfiguration",
            "s3:DeleteBucketMetadataTableConfiguration",
            "s3:GetBucketMetadataTableConfiguration",
            "s3:UpdateBucketMetadataAnnotationTableConfiguration",
            "s3:UpdateBucketMetadataInventoryTableConfiguration",
            "s3:UpdateBucketMetadataJournalTableConfiguration",
            "s3tables:CreateNamespace",
            "s3tables:CreateTable",
            "s3tables:CreateTableBucket",
            "s3tables:GetTable",
            "s3tables:GetTableMetadataLocation",
            "s3tables:PutTableBucketPolicy",
            "s3tables:PutTableEncryption",
            "s3tables:PutTablePolicy",
            "s3tables:UpdateTableMetadataLocation",
        },
        "MetricsConfigurations": {"s3:PutMetricsConfiguration"},
        "NotificationConfiguration": {"s3:PutBucketNotification"},
        "ObjectLockConfiguration": {"s3:PutBucketObjectLockConfiguration"},
        "ReplicationConfiguration": {"s3:PutReplicationConfiguration"},
        "WebsiteConfiguration": {"s3:DeleteBucketWebsite", "s3:PutBucketWebsite"},
    },
    "AWS::SNS::Topic": {
        "DataProtectionPolicy": {"sns:PutDataProtectionPolicy"},
        "Subscription": {"sns:Subscribe", "sns:Unsubscribe"},
    },
    "AWS::StepFunctions::StateMachine": {"DefinitionS3Location": {"s3:GetObjectVersion"}},
}
"""By type and property: what a handler needs only for a property that the library does not set."""

OTHERWISE_NEEDED = {
    "codebuild:BatchGetProjects",  # of a type in NO_LISTS
    "codebuild:CreateProject",
    "codebuild:DeleteProject",
    "codebuild:UpdateProject",
    "lambda:InvokeFunction",  # of the functions of custom resources
    # "Autoscaling prerequisites" in SageMaker's developer guide
    "sagemaker:UpdateEndpointWeightsAndCapacities",
}
"""What no handler of the registry declares."""

NO_LISTS = {"AWS::CodeBuild::Project"}
"""The types whose schemas have no `handlers`, because CloudFormation does not make them by a registry's handler."""

MAX_CHARACTERS = 6144
"""Of a managed policy, without whitespace ("IAM and AWS STS quotas")."""


def policy() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "docs" / "assets" / "deployment_policy.json").read_text())
    return document


def actions() -> set[str]:
    allowed = [statement["Action"] for statement in policy()["Statement"]]
    return {action for each in allowed for action in ([each] if isinstance(each, str) else each)}


def page() -> str:
    text = (ROOT / "docs" / "account.md").read_text(encoding="utf-8")
    return text.partition("\n## Permissions of a deployment\n")[2]


def test_the_page_lists_the_actions_of_the_policy() -> None:
    rows = "\n".join(line for line in page().splitlines() if line.startswith("|"))

    assert set(re.findall(r"`([a-z0-9-]+:[A-Z]\w+)`", rows)) == actions()


@pytest.fixture(name="resources", scope="module")
def _resources(shared_world: World) -> list[dict[str, Any]]:
    """All resources that the constructs make."""
    world, app = shared_world, shared_world.app()
    network = cdk.Stack(app, "Network", env=IRELAND)
    vpc = ec2.Vpc.from_vpc_attributes(
        network,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        vpc_cidr_block="10.0.0.0/16",
        availability_zones=["eu-west-1a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    )
    add_vpc_endpoints(vpc, store_functions=True)
    return [
        resource
        for stack in [*add_everything(world, app), network]
        for resource in Template.from_stack(stack).to_json()["Resources"].values()
    ]


def test_the_page_has_every_type_of_resource(resources: list[dict[str, Any]]) -> None:
    assert {each["Type"] for each in resources} <= set(re.findall(r"`(\w+::[\w:]+)`", page()))


def test_the_policy_has_what_the_handlers_of_cloudformation_declare(resources: list[dict[str, Any]]) -> None:
    """Except for reads of drift detection, which no other handler declares."""
    types = {each["Type"] for each in resources if each["Type"].startswith("AWS::")}
    assert {name for name in types if not declared(name)} == NO_LISTS
    lacking = {name: declared(name) - actions() for name in types}
    not_set = {name: set().union(*NOT_SET[name].values()) if name in NOT_SET else set() for name in types}
    assert {name: lacking[name] ^ not_set[name] for name in types if lacking[name] != not_set[name]} == {}


def test_the_policy_has_nothing_else() -> None:
    """A handler declares each action, most for reading a resource or its tags; what is left has another reason."""
    types = re.findall(r"`(AWS::[\w:]+)`", page())
    assert actions() - set().union(*map(mentioned, types)) == OTHERWISE_NEEDED


def test_the_properties_without_permissions_are_not_set(resources: list[dict[str, Any]]) -> None:
    for each in resources:
        assert not {*NOT_SET.get(each["Type"], {})} & {*each.get("Properties", {})}, each["Type"]


def mentioned(type_name: str) -> set[str]:
    """The actions of all handlers, and those on tags."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-west-1", type_name).schema
    lists = [*schema.get("handlers", {}).values(), schema.get("tagging", {})]
    return {action for each in lists if isinstance(each, dict) for action in each.get("permissions", ())}


def declared(type_name: str) -> set[str]:
    """The actions of the handlers that deployments call; the schemas also have names that are no actions of IAM."""
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-west-1", type_name).schema.get("handlers", {})
    found = {
        action for name in ("create", "update", "delete") for action in handlers.get(name, {}).get("permissions", ())
    }
    return {action for action in found if is_known(action)}


def is_known(action: str) -> bool:
    service, _, name = action.partition(":")
    return name.lower() in known_actions().get(service, {}).get("Actions", {})


@cache
def known_actions() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(files("cfnlint.data.AdditionalSpecs").joinpath("Policies.json").read_text())
    return known


def test_what_the_local_cloudformation_calls_for_these_types_is_allowed() -> None:
    for name in re.findall(r"`(AWS::[\w:]+)`", page()):
        needed = {action for each in calls(type(find(name))) for action in actions_of(each[0], operation(*each))}
        assert needed <= actions(), name


def calls(resource_type: type) -> set[tuple[str, str]]:
    """The calls of AWS in a class: `context.client(service).method(…)`, or by a variable that holds the client."""
    found = set()
    for function in ast.walk(ast.parse(inspect.getsource(resource_type))):
        if isinstance(function, ast.FunctionDef):
            text = ast.unparse(function)
            found |= set(re.findall(r"context\.client\('([\w-]+)'\)\.(\w+)\(", text))
            for variable, service in re.findall(r"(\w+) = context\.client\('([\w-]+)'\)\n", text):
                found |= {(service, method) for method in re.findall(rf"\b{variable}\.(\w+)\(", text)}
    return found


def operation(service: str, method: str) -> str:
    """CreateModel for `create_model`."""
    client = boto3.client(service, region_name="eu-west-1")  # type: ignore[call-overload]  # known names only
    name: str = client.meta.method_to_api_mapping[method]
    return name


def test_every_action_exists_and_is_written_out() -> None:
    assert [action for action in actions() if not is_known(action)] == []


def test_roles_are_passed_to_known_services_only() -> None:
    conditions = {statement["Sid"]: statement.get("Condition") for statement in policy()["Statement"]}

    assert conditions["Roles"]["StringEquals"]["iam:PassedToService"] == [
        f"{service}.amazonaws.com" for service in ("codebuild", "lambda", "sagemaker", "scheduler", "states")
    ]
    assert conditions["ServiceLinkedRole"]["StringEquals"]["iam:AWSServiceName"] == (
        "sagemaker.application-autoscaling.amazonaws.com"
    )


def judged(*requests: Request, boundary: str | None = None) -> list[str]:
    """The actions that the policy allows, as another project's simulator of IAM decides."""
    account = str(IRELAND.account)
    role, identity = f"arn:aws:iam::{account}:role/cfn-exec-role", (document(policy()),)
    key = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "kms:*", "Resource": "*"}
    of_key = document({"Version": "2012-10-17", "Statement": [key]})  # "Default key policy" in KMS's guide

    def decision(request: Request) -> Decision:
        of_resource = of_key if request.action.startswith("kms:") else None
        return Decision(role, request, Policies(identity, boundary, of_resource), "")

    verdicts = judge(map(decision, requests), account)
    assert {
        request.action: verdict.error for request, verdict in zip(requests, verdicts, strict=True) if verdict.error
    } == {}
    return [each.action for each, verdict in zip(requests, verdicts, strict=True) if verdict.allowed]


@pytest.mark.slow
def test_the_handlers_may_do_what_they_declare() -> None:
    """Each action on any resource, with the condition keys of the service authorization reference."""
    types = set(re.findall(r"`(AWS::[\w:]+)`", page())) - NO_LISTS
    not_set = {action for name in types & {*NOT_SET} for each in NOT_SET[name].values() for action in each}
    declared_actions = {action for name in types for action in declared(name)}
    context = {
        "iam:PassRole": {"iam:PassedToService": "states.amazonaws.com"},
        "iam:CreateServiceLinkedRole": {"iam:AWSServiceName": "sagemaker.application-autoscaling.amazonaws.com"},
        "kms:Decrypt": {"kms:ViaService": "states.eu-west-1.amazonaws.com"},
        "kms:GenerateDataKey": {"kms:ViaService": "states.eu-west-1.amazonaws.com"},
    }
    wanted = sorted(declared_actions - (not_set - actions()))

    assert judged(*(Request(action, None, context.get(action, {})) for action in wanted)) == wanted
    assert judged(*(Request(action, None) for action in context)) == []


@pytest.mark.parametrize(
    ("action", "context", "is_allowed"),
    [
        ("iam:CreateRole", {"iam:PermissionsBoundary": BOUNDARY}, True),
        ("iam:CreateRole", {}, False),
        ("iam:PutRolePermissionsBoundary", {"iam:PermissionsBoundary": BOUNDARY}, True),
        ("iam:DeleteRolePermissionsBoundary", {}, False),
        ("iam:PutRolePolicy", {}, True),
    ],
)
def test_under_the_boundary_of_the_bootstrap_roles_have_to_have_it(
    action: str, context: dict[str, str], is_allowed: bool
) -> None:
    """As docs/platform_teams.md says."""
    request = Request(action, f"arn:aws:iam::{IRELAND.account}:role/Artifacts-StoreProvideRole", context)
    assert judged(request, boundary=of_the_bootstrap()) == [action] * is_allowed


@pytest.mark.parametrize(
    "host", ["eu-west-1.amazonaws.com", "us-gov-west-1.amazonaws.com", "cn-north-1.amazonaws.com.cn"]
)
def test_state_machines_are_encrypted_in_each_partition(host: str) -> None:
    (condition,) = (each["Condition"] for each in policy()["Statement"] if each["Sid"] == "EncryptedStateMachines")
    assert any(fnmatchcase(f"states.{host}", pattern) for pattern in condition["StringLike"]["kms:ViaService"])


def test_it_is_small_enough_for_a_managed_policy() -> None:
    assert len(json.dumps(policy(), separators=(",", ":"))) <= MAX_CHARACTERS
