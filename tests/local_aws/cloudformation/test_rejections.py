"""What the local CloudFormation rejects: before anything is created, or as a resource that AWS would not take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer, Rejected

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "x.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


def parameter(value: Any) -> dict[str, Any]:
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}}


def template(**resources: Any) -> dict[str, Any]:
    return {"Resources": resources}


def test_every_fault_that_the_template_shows_is_told_before_anything_is_created(
    deployer: Deployer, rejected: Rejected
) -> None:
    name = deployer.new_name()
    faulty = template(
        Database={"Type": "AWS::RDS::DBInstance"},
        Attribute=parameter({"Fn::GetAtt": ["Topic", "Nope"]}),
        Reference=parameter({"Ref": "Nobody"}),
        Topic={"Type": "AWS::SNS::Topic"},
    )
    with rejected("ValidationError") as raised:
        deployer.deploy(faulty, name)
    message = raised.value.response["Error"]["Message"]
    assert [each for each in faulty["Resources"] if f"'{each}'" in message] == ["Database", "Attribute", "Reference"]
    assert "TopicArn, TopicName" in message
    assert "Template format error: Unresolved resource dependencies [Nobody]" in message
    with pytest.raises(ClientError, match="does not exist"):
        deployer.describe(name)


@pytest.mark.parametrize(
    ("type_name", "properties", "named"),
    [
        pytest.param("AWS::SNS::Topic", {"Nope": 1}, "'Nope'", id="unknown"),
        pytest.param("AWS::SNS::Topic", {"FifoTopic": True}, "AWS::SNS::Topic.FifoTopic", id="not modelled"),
        pytest.param("AWS::SSM::Parameter", {"Type": "String"}, "'Value'", id="missing"),
        pytest.param(
            "AWS::SSM::Parameter", {"Type": "Strin", "Value": "x"}, "AWS::SSM::Parameter.Type", id="another value"
        ),
        pytest.param(
            "AWS::Logs::LogGroup", {"RetentionInDays": "week"}, "AWS::Logs::LogGroup.RetentionInDays", id="no number"
        ),
        pytest.param(
            "AWS::StepFunctions::StateMachine",
            {"RoleArn": "r", "DefinitionString": "{}"},
            "AWS::StepFunctions::StateMachine",
            id="no waiter",
        ),
        pytest.param("AWS::SNS::TopicInlinePolicy", {}, "of this service only AWS::SNS::Subscription", id="no type"),
        pytest.param("Custom::X", {"ServiceToken": "arn:aws:sns:us-east-1:1:topic"}, ":topic'", id="no function"),
    ],
)
def test_a_property_that_is_wrong_or_not_modelled_is_rejected_by_name(
    deployer: Deployer, rejected: Rejected, type_name: str, properties: dict[str, Any], named: str
) -> None:
    with rejected("ValidationError") as raised:
        deployer.deploy(template(R={"Type": type_name, "Properties": properties}), deployer.new_name())
    assert named in raised.value.response["Error"]["Message"]
    assert "'R'" in raised.value.response["Error"]["Message"]


def test_a_change_of_type_is_not_permitted(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy(template(X=parameter("x")), name)
    with pytest.raises(ClientError, match="Update of resource type is not permitted"):
        deployer.deploy(template(X={"Type": "AWS::SNS::Topic"}), name)


def test_a_stack_with_iam_resources_needs_the_callers_consent(deployer: Deployer) -> None:
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}
    with pytest.raises(ClientError, match=r"Requires capabilities : \[CAPABILITY_IAM\]"):
        deployer.client.create_stack(StackName=deployer.new_name(), TemplateBody=json.dumps(template(R=role)))


def test_a_role_whose_inline_policies_are_too_large_fails_as_on_aws(deployer: Deployer) -> None:
    name = deployer.new_name()
    policy = {
        "Type": "AWS::IAM::Policy",
        "Properties": {
            "PolicyName": "p",
            "Roles": [{"Ref": "Role"}],
            "PolicyDocument": {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "s3:GetObject",
                        "Resource": [f"arn:aws:s3:::{'b' * 100}/{n}" for n in range(100)],
                    }
                ],
            },
        },
    }
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}
    assert deployer.deploy(template(Role=role, Policy=policy), name) == "ROLLBACK_COMPLETE"
    failed = [each for each in deployer.raw_events(name) if each["ResourceStatus"] == "CREATE_FAILED"]
    assert "Maximum policy size of 10240 bytes exceeded" in failed[0]["ResourceStatusReason"]


def _managed(*resources: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": list(resources)}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"Roles": [{"Ref": "Role"}], "PolicyDocument": document}}


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([_managed(*(f"arn:aws:s3:::{'b' * 100}/{n}" for n in range(60)))], "Cannot exceed quota for PolicySize: 6144"),
        ([_managed("arn:aws:s3:::b/1")] * 11, "Cannot exceed quota for PoliciesPerRole: 10"),
    ],
    ids=["size", "number"],
)
def test_managed_policies_beyond_the_limits_fail_as_on_aws(
    deployer: Deployer, policies: list[dict[str, Any]], message: str
) -> None:
    name = deployer.new_name()
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}
    resources = {f"Policy{number}": policy for number, policy in enumerate(policies)}
    assert deployer.deploy(template(Role=role, **resources), name) == "ROLLBACK_COMPLETE"
    failed = [each for each in deployer.raw_events(name) if each["ResourceStatus"] == "CREATE_FAILED"]
    assert message in failed[0]["ResourceStatusReason"]


@pytest.mark.parametrize(
    "more",
    [{"DisableRollback": True}, {"OnFailure": "DO_NOTHING"}, {"StackPolicyBody": "{}"}],
    ids=lambda more: next(iter(more)),
)
def test_an_option_that_would_change_the_course_is_rejected(
    deployer: Deployer, rejected: Rejected, more: dict[str, Any]
) -> None:
    with rejected("ValidationError") as raised:
        deployer.deploy(template(P=parameter("x")), deployer.new_name(), **more)
    assert next(iter(more)) in raised.value.response["Error"]["Message"]


def test_an_operation_that_is_not_modelled_is_rejected_by_name(deployer: Deployer, rejected: Rejected) -> None:
    with rejected("ValidationError") as raised:
        deployer.client.detect_stack_drift(StackName="any")
    assert "DetectStackDrift" in raised.value.response["Error"]["Message"]
