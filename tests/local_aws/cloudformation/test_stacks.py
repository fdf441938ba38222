"""Operations on stacks: which events appear in which order, and what is left behind."""

from __future__ import annotations

from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "x.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
# A role that AWS rejects: the managed policy does not exist.
BROKEN = {
    "Type": "AWS::IAM::Role",
    "Properties": {"AssumeRolePolicyDocument": TRUST, "ManagedPolicyArns": ["arn:aws:iam::aws:policy/NoSuchPolicy"]},
}


def parameter(value: Any, **more: Any) -> dict[str, Any]:
    properties = {"Type": "String", "Value": value}
    return {"Type": "AWS::SSM::Parameter", "Properties": {**properties, **more.pop("Properties", {})}, **more}


def template(**resources: Any) -> dict[str, Any]:
    return {"Resources": resources}


def created(name: str) -> list[str]:
    """CREATE_IN_PROGRESS twice: asked for, then taken on ("Resource creation Initiated")."""
    return [f"{name} CREATE_IN_PROGRESS", f"{name} CREATE_IN_PROGRESS", f"{name} CREATE_COMPLETE"]


def deleted(name: str) -> list[str]:
    return [f"{name} DELETE_IN_PROGRESS", f"{name} DELETE_COMPLETE"]


def test_resources_are_created_after_what_they_refer_to_and_deleted_backwards(deployer: Deployer) -> None:
    name = deployer.new_name()
    both = template(
        Second=parameter({"Fn::Sub": "after ${First}"}),
        First=parameter("x"),
        Third=parameter("z", DependsOn=["Second"]),
    )
    assert deployer.deploy(both, name) == "CREATE_COMPLETE"
    assert deployer.events(name) == [
        "- CREATE_IN_PROGRESS",
        *created("First"),
        *created("Second"),
        *created("Third"),
        "- CREATE_COMPLETE",
    ]
    identifier, since = deployer.describe(name)["StackId"], deployer.count(name)
    assert deployer.delete(name) == "DELETE_COMPLETE"
    assert deployer.events(identifier, since) == [
        "- DELETE_IN_PROGRESS",
        *deleted("Third"),
        *deleted("Second"),
        *deleted("First"),
        "- DELETE_COMPLETE",
    ]
    with pytest.raises(ClientError, match=f"Stack with id {name} does not exist"):
        deployer.describe(name)


def test_the_second_event_of_a_creation_carries_the_physical_id(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy(template(P=parameter("x", Properties={"Name": f"/{name}"})), name)
    told = [
        (each["PhysicalResourceId"], each.get("ResourceStatusReason"))
        for each in deployer.raw_events(name)
        if each["LogicalResourceId"] == "P"
    ]
    assert told == [("", None), (f"/{name}", "Resource creation Initiated"), (f"/{name}", None)]


def test_no_two_events_share_a_millisecond_because_the_cli_sorts_by_time(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy(template(**{f"P{number}": parameter("x") for number in range(5)}), name)
    times = [each["Timestamp"] for each in deployer.raw_events(name)]
    assert all((late - early).total_seconds() >= 0.001 for early, late in pairwise(times))


def test_a_failed_creation_is_rolled_back_and_can_only_be_deleted(deployer: Deployer) -> None:
    name = deployer.new_name()
    failing = template(
        Kept=parameter("x", DeletionPolicy="Retain"),
        OnlyWhenCreated=parameter("x", DeletionPolicy="RetainExceptOnCreate"),
        Gone=parameter("x"),
        Broken={**BROKEN, "DependsOn": ["Kept", "OnlyWhenCreated", "Gone"]},
    )
    assert deployer.deploy(failing, name) == "ROLLBACK_COMPLETE"
    # A creation that never had a physical resource is DELETE_COMPLETE at once; Retain is skipped,
    # RetainExceptOnCreate is not.
    assert (
        deployer.events(name)[-9:]
        == [
            "Broken CREATE_IN_PROGRESS",
            "Broken CREATE_FAILED",
            "- ROLLBACK_IN_PROGRESS",
            "Broken DELETE_COMPLETE",
            *deleted("Gone"),
            *deleted("OnlyWhenCreated"),
            "Kept DELETE_SKIPPED",
            "- ROLLBACK_COMPLETE",
        ][-9:]
    )
    reasons = {each["ResourceStatus"]: each.get("ResourceStatusReason", "") for each in deployer.raw_events(name)}
    assert "NoSuchPolicy" in reasons["CREATE_FAILED"]
    assert reasons["ROLLBACK_IN_PROGRESS"] == (
        "The following resource(s) failed to create: [Broken]. Rollback requested by user."
    )
    with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        deployer.deploy(failing, name)
    assert deployer.delete(name) == "DELETE_COMPLETE"


def test_an_update_touches_what_changed_and_cleans_up_last(deployer: Deployer) -> None:
    name = deployer.new_name()
    before = template(
        Same=parameter("x"),
        Changed=parameter("old"),
        Replaced=parameter("x", Properties={"Name": f"/{name}/old"}),
        Follower=parameter({"Fn::Sub": "of ${Replaced}"}),
        Dropped=parameter("x"),
        DroppedButKept=parameter("x", DeletionPolicy="Retain"),
    )
    after = template(
        Same=parameter("x"),
        Changed=parameter("new"),
        Replaced=parameter("x", Properties={"Name": f"/{name}/new"}),
        Follower=parameter({"Fn::Sub": "of ${Replaced}"}),
        Added=parameter("x"),
    )
    deployer.deploy(before, name)
    since = deployer.count(name)
    assert deployer.deploy(after, name) == "UPDATE_COMPLETE"
    assert deployer.events(name, since) == [
        "- UPDATE_IN_PROGRESS",
        "Changed UPDATE_IN_PROGRESS",
        "Changed UPDATE_COMPLETE",
        "Replaced UPDATE_IN_PROGRESS",  # "Requested update requires the creation of a new physical resource; ..."
        "Replaced UPDATE_IN_PROGRESS",  # "Resource creation Initiated"
        "Replaced UPDATE_COMPLETE",
        "Follower UPDATE_IN_PROGRESS",
        "Follower UPDATE_COMPLETE",
        *created("Added"),
        "- UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "DroppedButKept DELETE_SKIPPED",
        *deleted("Dropped"),
        *deleted("Replaced"),
        "- UPDATE_COMPLETE",
    ]
    ssm = deployer.aws.client("ssm")
    found = {
        each["Name"]: each["Value"] for each in ssm.get_parameters(Names=[f"/{name}/old", f"/{name}/new"])["Parameters"]
    }
    assert found == {f"/{name}/new": "x"}


def test_update_replace_policy_keeps_the_old_physical_resource(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy(template(P=parameter("x", Properties={"Name": f"/{name}/1"})), name)
    since = deployer.count(name)
    kept = parameter("x", Properties={"Name": f"/{name}/2"}, UpdateReplacePolicy="Retain")
    deployer.deploy(template(P=kept), name)
    assert deployer.events(name, since)[-3:] == [
        "- UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "P DELETE_SKIPPED",
        "- UPDATE_COMPLETE",
    ]
    both = deployer.aws.client("ssm").get_parameters(Names=[f"/{name}/1", f"/{name}/2"])["Parameters"]
    assert len(both) == 2


def test_the_events_of_each_deployment_and_of_each_rollback_have_an_operation_of_their_own(deployer: Deployer) -> None:
    """Without this, the CLI shows the failure of an earlier deployment as one of this deployment."""
    name = deployer.new_name()
    deployer.deploy(template(Good=parameter("x")), name)
    for _ in range(2):
        assert deployer.deploy(template(Good=parameter("x"), Broken=BROKEN), name) == "UPDATE_ROLLBACK_COMPLETE"

    parts = [list(part) for _, part in groupby(deployer.raw_events(name), itemgetter("OperationId"))]

    begun = [part[0]["ResourceStatus"] for part in parts]
    assert begun == ["CREATE_IN_PROGRESS", *["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"] * 2]
    assert len({part[0]["OperationId"] for part in parts}) == len(parts)


def test_a_failed_update_goes_back_to_what_was_and_removes_what_it_made(deployer: Deployer) -> None:
    name = deployer.new_name()
    before = template(
        Changed=parameter("old"),
        Replaced=parameter("x", Properties={"Name": f"/{name}/old"}),
        Dropped=parameter("x"),
    )
    after = template(
        Changed=parameter("new"),
        Replaced=parameter("x", Properties={"Name": f"/{name}/new"}),
        Added=parameter("x"),
        Broken={**BROKEN, "DependsOn": ["Changed", "Replaced", "Added"]},
    )
    deployer.deploy(before, name)
    since = deployer.count(name)
    assert deployer.deploy(after, name) == "UPDATE_ROLLBACK_COMPLETE"
    assert deployer.events(name, since) == [
        "- UPDATE_IN_PROGRESS",
        "Changed UPDATE_IN_PROGRESS",
        "Changed UPDATE_COMPLETE",
        "Replaced UPDATE_IN_PROGRESS",
        "Replaced UPDATE_IN_PROGRESS",
        "Replaced UPDATE_COMPLETE",
        *created("Added"),
        "Broken CREATE_IN_PROGRESS",
        "Broken CREATE_FAILED",
        "- UPDATE_ROLLBACK_IN_PROGRESS",
        "Changed UPDATE_IN_PROGRESS",  # updated back
        "Changed UPDATE_COMPLETE",
        "Replaced UPDATE_COMPLETE",  # the old physical resource was never touched
        "- UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        "Broken DELETE_COMPLETE",
        *deleted("Added"),
        *deleted("Replaced"),
        "- UPDATE_ROLLBACK_COMPLETE",
    ]
    assert deployer.describe(name)["StackStatusReason"].startswith(
        "The following resource(s) failed to create: [Broken]"
    )
    values = deployer.aws.client("ssm").get_parameters(Names=[f"/{name}/old", f"/{name}/new"])["Parameters"]
    assert [each["Name"] for each in values] == [f"/{name}/old"]
    changed = deployer.client.describe_stack_resource(StackName=name, LogicalResourceId="Changed")
    physical = changed["StackResourceDetail"]["PhysicalResourceId"]
    assert deployer.aws.client("ssm").get_parameter(Name=physical)["Parameter"]["Value"] == "old"
    # The stack is as good as before: the same update without its fault works, and the rolled-back resource is still
    # in it.
    del after["Resources"]["Broken"]
    assert deployer.deploy(after, name) == "UPDATE_COMPLETE"


def test_a_parameter_has_the_tags_of_its_template_which_are_a_map(deployer: Deployer) -> None:
    name = deployer.new_name()
    tagged = parameter("x", Properties={"Name": f"/{name}", "Tags": {"team": "search"}})
    assert deployer.deploy(template(P=tagged), name) == "CREATE_COMPLETE"
    tags = deployer.aws.client("ssm").list_tags_for_resource(ResourceType="Parameter", ResourceId=f"/{name}")["TagList"]
    assert {"Key": "team", "Value": "search"} in tags


def test_a_model_has_the_tags_of_its_newest_template(deployer: Deployer) -> None:
    name = deployer.new_name()
    tags = {"before": {"team": "search", "owner": "x"}, "after": {"team": "images"}}
    seen = {}
    for version, given in tags.items():
        properties = {
            "ExecutionRoleArn": "arn:aws:iam::123456789012:role/r",
            "PrimaryContainer": {"Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/triton:1"},
            "Tags": [{"Key": key, "Value": value} for key, value in given.items()],
        }
        deployer.deploy(template(M={"Type": "AWS::SageMaker::Model", "Properties": properties}), name)
        found = deployer.client.describe_stack_resource(StackName=name, LogicalResourceId="M")
        arn = found["StackResourceDetail"]["PhysicalResourceId"]
        listed = deployer.aws.client("sagemaker").list_tags(ResourceArn=arn)["Tags"]
        seen[version] = [(tag["Key"], tag["Value"]) for tag in listed if not tag["Key"].startswith("aws:")]
    assert {version: dict(found) for version, found in seen.items()} == tags
    assert len(seen["after"]) == 1


def test_what_cannot_be_deleted_fails_the_deletion_and_keeps_what_it_needs(deployer: Deployer) -> None:
    name = deployer.new_name()
    bucket = {
        "Type": "AWS::S3::Bucket",
        "Properties": {"BucketName": f"{name}-full", "Tags": [{"Key": "k", "Value": {"Ref": "Needed"}}]},
    }
    deployer.deploy(template(Needed=parameter("x"), Full=bucket, Free=parameter("x")), name)
    deployer.aws.client("s3").put_object(Bucket=f"{name}-full", Key="object", Body=b"")
    since = deployer.count(name)
    assert deployer.delete(name) == "DELETE_FAILED"
    assert deployer.events(name, since) == [
        "- DELETE_IN_PROGRESS",
        *deleted("Free"),
        "Full DELETE_IN_PROGRESS",
        "Full DELETE_FAILED",
        "- DELETE_FAILED",
    ]
    assert deployer.describe(name)["StackStatusReason"] == "The following resource(s) failed to delete: [Full]. "
    deployer.aws.client("s3").delete_object(Bucket=f"{name}-full", Key="object")
    assert deployer.delete(name) == "DELETE_COMPLETE"


def test_a_cleanup_that_fails_leaves_the_update_complete_and_says_so(deployer: Deployer) -> None:
    name = deployer.new_name()
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": f"{name}-full"}}
    deployer.deploy(template(Full=bucket, P=parameter("x")), name)
    deployer.aws.client("s3").put_object(Bucket=f"{name}-full", Key="object", Body=b"")
    assert deployer.deploy(template(P=parameter("x")), name) == "UPDATE_COMPLETE"
    assert deployer.describe(name)["StackStatusReason"] == (
        "Update successful. One or more resources could not be deleted."
    )


def test_an_unchanged_template_is_no_update(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy(template(P=parameter("x")), name)
    with pytest.raises(ClientError, match=r"No updates are to be performed\."):
        deployer.deploy(template(P=parameter("x")), name)


def test_scalars_are_converted_as_cloudformation_converts_them(deployer: Deployer) -> None:
    name = deployer.new_name()
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": name, "RetentionInDays": "7"}}
    assert deployer.deploy(template(G=group), name) == "CREATE_COMPLETE"
    (found,) = deployer.aws.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert found["retentionInDays"] == 7


def test_an_export_in_use_can_be_neither_changed_nor_deleted(deployer: Deployer) -> None:
    owner, user = deployer.new_name(), deployer.new_name()
    exporting = {
        **template(P=parameter("x")),
        "Outputs": {"O": {"Value": "first", "Export": {"Name": f"{owner}:value"}}},
    }
    deployer.deploy(exporting, owner)
    deployer.deploy(template(P=parameter({"Fn::ImportValue": f"{owner}:value"})), user)
    assert deployer.client.list_imports(ExportName=f"{owner}:value")["Imports"] == [user]

    changed = {**exporting, "Outputs": {"O": {"Value": "second", "Export": {"Name": f"{owner}:value"}}}}
    assert deployer.deploy(changed, owner) == "UPDATE_ROLLBACK_COMPLETE"
    assert deployer.describe(owner)["StackStatusReason"] == (
        f"Export {owner}:value cannot be updated as it is in use by {user}"
    )
    assert deployer.describe(owner)["Outputs"][0]["OutputValue"] == "first"
    assert deployer.delete(owner) == "DELETE_FAILED"
    deployer.delete(user)
    assert deployer.delete(owner) == "DELETE_COMPLETE"


def test_an_import_that_becomes_the_value_itself_frees_the_export(deployer: Deployer) -> None:
    """As "How do I resolve the error 'Export … cannot be updated as it is in use by …'" of AWS's re:Post advises."""
    owner, user = deployer.new_name(), deployer.new_name()
    exported = {"Outputs": {"O": {"Value": "first", "Export": {"Name": f"{owner}:value"}}}}
    deployer.deploy({**template(P=parameter("x")), **exported}, owner)
    deployer.deploy(template(P=parameter({"Fn::ImportValue": f"{owner}:value"})), user)

    weak = {"Fn::GetStackOutput": {"StackName": owner, "OutputName": "O"}}
    assert deployer.deploy(template(P=parameter(weak)), user) == "UPDATE_COMPLETE"
    assert deployer.deploy(template(P=parameter("x")), owner) == "UPDATE_COMPLETE"
    with pytest.raises(ClientError, match="is not imported by any stack"):
        deployer.client.list_imports(ExportName=f"{owner}:value")


def test_a_condition_leaves_out_resources_outputs_and_branches(deployer: Deployer) -> None:
    name = deployer.new_name()
    conditional = {
        "Parameters": {"Stage": {"Type": "String", "Default": "test"}},
        "Conditions": {"IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]}},
        "Resources": {
            "Always": parameter({"Fn::If": ["IsProd", {"Ref": "OnlyProd"}, "nothing"]}),
            "OnlyProd": parameter("x", Condition="IsProd"),
        },
        "Outputs": {"Prod": {"Condition": "IsProd", "Value": {"Ref": "OnlyProd"}}},
    }
    deployer.deploy(conditional, name)
    assert list(_resources(deployer, name)) == ["Always"]
    assert "Outputs" not in deployer.describe(name) or deployer.describe(name)["Outputs"] == []
    deployer.deploy(conditional, name, Parameters=[{"ParameterKey": "Stage", "ParameterValue": "prod"}])
    assert sorted(_resources(deployer, name)) == ["Always", "OnlyProd"]


def test_termination_protection_protects(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy(template(P=parameter("x")), name)
    deployer.client.update_termination_protection(StackName=name, EnableTerminationProtection=True)
    with pytest.raises(ClientError, match="cannot be deleted while TerminationProtection is enabled"):
        deployer.client.delete_stack(StackName=name)


def _resources(deployer: Deployer, name: str) -> dict[str, str]:
    found = deployer.client.list_stack_resources(StackName=name)["StackResourceSummaries"]
    return {each["LogicalResourceId"]: each["ResourceType"] for each in found}


def test_the_permissions_boundary_of_a_role_comes_and_goes(deployer: Deployer) -> None:
    name, arn = deployer.new_name(), "arn:aws:iam::123456789012:policy/Boundary"
    iam = deployer.aws.client("iam")

    def boundary(**properties: Any) -> str | None:
        role = {"RoleName": f"role-{name}", "AssumeRolePolicyDocument": TRUST, **properties}
        deployer.deploy(template(Role={"Type": "AWS::IAM::Role", "Properties": role}), name)
        found: dict[str, str] = iam.get_role(RoleName=f"role-{name}")["Role"].get("PermissionsBoundary", {})
        return found.get("PermissionsBoundaryArn")

    assert [boundary(PermissionsBoundary=arn), boundary(), boundary(PermissionsBoundary=arn)] == [arn, None, arn]
