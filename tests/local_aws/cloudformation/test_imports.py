"""Resources that exist already and join a stack: by a change set of the type IMPORT, and found by a deployment.

The sentences are those of AWS (the docstring of `resource_imports` has their source).
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer, Rejected

    from cdk_triton_local.aws import LocalAws

PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "kept"}}


def bucket(name: Any, policy: str | None = "Retain") -> dict[str, Any]:
    policies = {} if policy is None else {"DeletionPolicy": policy}
    return {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name}, **policies}


def named(name: str, **more: Any) -> dict[str, Any]:
    identifier = {"BucketName": name}
    return {"ResourceType": "AWS::S3::Bucket", "LogicalResourceId": "B", "ResourceIdentifier": identifier, **more}


class Imports:
    """A stack with one parameter, and a bucket of the same name that no stack has."""

    def __init__(self, local_aws: LocalAws, deployer: Deployer) -> None:
        self.deployer = deployer
        self.name = deployer.new_name() + "-bucket"
        self.s3 = local_aws.client("s3")
        self.s3.create_bucket(Bucket=self.name)
        self.s3.put_object(Bucket=self.name, Key="kept", Body=b"kept")
        deployer.deploy({"Resources": {"P": PARAMETER}}, self.name)
        self.template: dict[str, Any] = {"Resources": {"P": PARAMETER, "B": bucket(self.name)}}

    def plan(self, template: dict[str, Any] | None = None, stack: str | None = None, **more: Any) -> dict[str, Any]:
        """The change set of an import."""
        created = self.deployer.client.create_change_set(
            StackName=stack or self.name,
            ChangeSetName="import",
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps(self.template if template is None else template),
            **{"ResourcesToImport": [named(self.name)], **more},
        )
        described: dict[str, Any] = self.deployer.client.describe_change_set(ChangeSetName=created["Id"])
        return described

    def execute(self, change_set: dict[str, Any]) -> str:
        self.deployer.client.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
        return self.deployer.wait(change_set["StackId"])

    def exists(self) -> bool:
        return "Contents" in self.s3.list_objects_v2(Bucket=self.name)


@pytest.fixture
def imports(local_aws: LocalAws, deployer: Deployer) -> Imports:
    return Imports(local_aws, deployer)


def test_a_stack_takes_a_resource_in_and_updates_and_keeps_it(imports: Imports) -> None:
    deployer, seen = imports.deployer, imports.deployer.count(imports.name)
    change_set = imports.plan()
    assert change_set["Changes"] == [
        {
            "Type": "Resource",
            "ResourceChange": {
                "Action": "Import",
                "LogicalResourceId": "B",
                "PhysicalResourceId": imports.name,
                "ResourceType": "AWS::S3::Bucket",
                "Scope": [],
                "Details": [],
            },
        }
    ]
    assert imports.execute(change_set) == "IMPORT_COMPLETE"
    assert deployer.events(imports.name, seen) == [
        "- IMPORT_IN_PROGRESS",
        "B IMPORT_IN_PROGRESS",
        "B IMPORT_IN_PROGRESS",
        "B IMPORT_COMPLETE",
        "B UPDATE_IN_PROGRESS",
        "B UPDATE_COMPLETE",
        "- IMPORT_COMPLETE",
    ]

    updated = copy.deepcopy(imports.template)
    updated["Resources"]["B"]["Properties"]["VersioningConfiguration"] = {"Status": "Enabled"}
    updated["Outputs"] = {"Arn": {"Value": {"Fn::GetAtt": ["B", "Arn"]}}}
    assert deployer.deploy(updated, imports.name) == "UPDATE_COMPLETE"
    assert imports.s3.get_bucket_versioning(Bucket=imports.name)["Status"] == "Enabled"
    assert deployer.describe(imports.name)["Outputs"][0]["OutputValue"] == f"arn:aws:s3:::{imports.name}"

    assert deployer.delete(imports.name) == "DELETE_COMPLETE"
    assert imports.exists()


def test_a_stack_can_begin_with_what_it_imports(imports: Imports) -> None:
    stack, template = imports.deployer.new_name(), {"Resources": {"B": bucket(imports.name)}}
    change_set = imports.plan(template, stack)
    assert imports.deployer.describe(stack)["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert imports.execute(change_set) == "IMPORT_COMPLETE"
    assert imports.deployer.deploy({"Resources": {**template["Resources"], "P": PARAMETER}}, stack) == "UPDATE_COMPLETE"


@pytest.mark.parametrize(
    ("resources", "requested", "sentence"),
    [
        pytest.param({}, [], "Must Provide at least one resource to import", id="none"),
        pytest.param({}, ["twice"], "Every resource to import must have unique LogicalResourceId", id="twice"),
        pytest.param(
            {},
            [{"LogicalResourceId": "X"}],
            "The logical resource ids [X] provided in ResourceToImport do not exist in the template.",
            id="not-in-the-template",
        ),
        pytest.param(
            {},
            [{"ResourceIdentifier": {"Arn": "arn:aws:s3:::bucket"}}],
            "Invalid resource identifier for resource type AWS::S3::Bucket. Expected [BucketName]",
            id="identifier",
        ),
        pytest.param(
            {},
            [{"ResourceType": "AWS::SageMaker::Model", "ResourceIdentifier": {"ModelArn": "arn"}}],
            "Resource type of [B] passed in ResourceToImport does not match with resource type defined in the "
            "template. Resource type in ResourceToImport: AWS::SageMaker::Model; Resource type in Template: "
            "AWS::S3::Bucket.",
            id="type",
        ),
        pytest.param(
            {"B": None},
            [{"LogicalResourceId": "P", "ResourceType": "AWS::SSM::Parameter", "ResourceIdentifier": {"Name": "P"}}],
            "The template should contain at least one new resource to import.",
            id="nothing-new",
        ),
        pytest.param(
            {},
            [{"LogicalResourceId": "P", "ResourceType": "AWS::SSM::Parameter", "ResourceIdentifier": {"Name": "P"}}],
            "Resources [P] passed in ResourceToImport are already in a stack and cannot be imported.",
            id="in-the-stack",
        ),
        pytest.param(
            {"N": PARAMETER, "P": None},
            [{}],
            "Resources [N] is missing from ResourceToImport list",
            id="adds-another",
        ),
        pytest.param(
            {"P": None},
            [{}],
            "You have modified resources [P] in your template that are not being imported. Update, create or delete "
            "operations cannot be executed during import operations.",
            id="removes-another",
        ),
        pytest.param(
            {"B": bucket("not-there", None)},
            [{"ResourceIdentifier": {"BucketName": "not-there"}}],
            "The following resources to import [B] must have DeletionPolicy attribute specified in the template.",
            id="without-a-deletion-policy",
        ),
    ],
)
def test_a_request_that_aws_rejects_is_rejected_with_its_sentence(
    imports: Imports, resources: dict[str, Any], requested: list[Any], sentence: str
) -> None:
    template = {"Resources": {**imports.template["Resources"], **resources}}
    template["Resources"] = {name: body for name, body in template["Resources"].items() if body is not None}
    entry = named(imports.name)
    entries = [entry, entry] if requested == ["twice"] else [{**entry, **each} for each in requested]
    with pytest.raises(ClientError) as caught:
        imports.plan(template, ResourcesToImport=entries)
    assert caught.value.response["Error"]["Message"] == sentence
    assert not imports.deployer.client.list_change_sets(StackName=imports.name)["Summaries"]


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"Tags": [{"Key": "team", "Value": "search"}]}, "Tags"),
        ({"template": {"Outputs": {"Name": {"Value": {"Ref": "B"}}}}}, "Outputs"),
    ],
)
def test_an_import_changes_neither_outputs_nor_tags(imports: Imports, more: dict[str, Any], name: str) -> None:
    template = {**imports.template, **more.pop("template", {})}
    with pytest.raises(ClientError, match=rf"you cannot modify or add \[{name}\]"):
        imports.plan(template, **more)


@pytest.mark.parametrize(
    ("type_name", "identifier", "reason"),
    [
        ("AWS::S3::Bucket", {"BucketName": "not-there"}, "Bucket not found"),
        *(
            (
                f"AWS::SageMaker::{noun}",
                {f"{noun}Arn": f"arn:aws:sagemaker:us-east-1:123456789012:{noun.lower()}/not-there"},
                f"Resource of type 'AWS::SageMaker::{noun}' with identifier "
                f"'arn:aws:sagemaker:us-east-1:123456789012:{noun.lower()}/not-there' was not found.",
            )
            for noun in ("Model", "Endpoint")
        ),
    ],
)
def test_an_import_of_what_does_not_exist_fails_the_change_set(
    imports: Imports, type_name: str, identifier: dict[str, str], reason: str
) -> None:
    properties = {"AWS::SageMaker::Endpoint": {"EndpointConfigName": "any"}}.get(type_name, {})
    missing = {"Type": type_name, "DeletionPolicy": "Retain", "Properties": properties}
    change_set = imports.plan(
        {"Resources": {"P": PARAMETER, "B": missing}},
        ResourcesToImport=[{"ResourceType": type_name, "LogicalResourceId": "B", "ResourceIdentifier": identifier}],
    )
    assert (change_set["Status"], change_set["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert (change_set["StatusReason"], change_set["Changes"]) == (reason, [])


def test_a_resource_of_a_stack_cannot_join_another(imports: Imports) -> None:
    imports.execute(imports.plan())
    owner = imports.deployer.describe(imports.name)["StackId"]
    change_set = imports.plan({"Resources": {"B": bucket(imports.name)}}, imports.deployer.new_name())
    assert (change_set["Status"], change_set["StatusReason"]) == (
        "FAILED",
        f"{imports.name} already exists in stack {owner}",
    )


def test_a_resource_that_is_gone_when_the_import_begins_rolls_the_import_back(imports: Imports) -> None:
    change_set = imports.plan()
    imports.s3.delete_object(Bucket=imports.name, Key="kept")
    imports.s3.delete_bucket(Bucket=imports.name)
    assert imports.execute(change_set) == "IMPORT_ROLLBACK_COMPLETE"
    listed = imports.deployer.client.list_stack_resources(StackName=imports.name)["StackResourceSummaries"]
    assert [each["LogicalResourceId"] for each in listed] == ["P"]


def found(imports: Imports, resource: dict[str, Any], **others: Any) -> dict[str, Any]:
    """The change set of `cdk deploy --import-existing-resources`."""
    created = imports.deployer.client.create_change_set(
        StackName=imports.name,
        ChangeSetName="deploy",
        TemplateBody=json.dumps({"Resources": {"P": PARAMETER, "B": resource, **others}}),
        ImportExistingResources=True,
        Tags=[{"Key": "team", "Value": "search"}],
    )
    described: dict[str, Any] = imports.deployer.client.describe_change_set(ChangeSetName=created["Id"])
    return described


@pytest.mark.parametrize("policy", ["Retain", "RetainExceptOnCreate"])
def test_a_deployment_takes_in_what_exists_under_a_literal_name(imports: Imports, policy: str) -> None:
    change_set = found(imports, bucket(imports.name, policy), N=PARAMETER)
    actions = {
        each["ResourceChange"]["LogicalResourceId"]: each["ResourceChange"]["Action"] for each in change_set["Changes"]
    }
    assert actions == {"B": "Import", "N": "Add"}
    assert imports.execute(change_set) == "UPDATE_COMPLETE"
    assert imports.s3.get_bucket_tagging(Bucket=imports.name)["TagSet"] == [{"Key": "team", "Value": "search"}]
    assert imports.exists()


def test_a_computed_name_is_created_even_if_it_exists(imports: Imports) -> None:
    change_set = found(imports, bucket({"Fn::Sub": "${AWS::StackName}"}))
    assert change_set["Changes"][0]["ResourceChange"]["Action"] == "Add"
    assert imports.execute(change_set) == "UPDATE_ROLLBACK_COMPLETE"
    assert imports.exists()


@pytest.mark.parametrize("policy", ["Delete", None])
def test_a_deployment_takes_in_only_what_its_template_retains(imports: Imports, policy: str | None) -> None:
    change_set = found(imports, bucket(imports.name, policy))
    assert change_set["Status"] == "FAILED"
    assert change_set["StatusReason"].endswith(
        "for successful import. The affected resources are B ({BucketName=" + imports.name + "})"
    )


def test_a_deployment_that_fails_gives_up_what_it_took_in_and_deletes_nothing_of_it(imports: Imports) -> None:
    failing = {**bucket("cdk-triton-elsewhere"), "DependsOn": "B"}
    imports.s3.create_bucket(Bucket="cdk-triton-elsewhere")
    change_set = found(imports, bucket(imports.name, "RetainExceptOnCreate"), F=failing)
    imports.s3.delete_bucket(Bucket="cdk-triton-elsewhere")
    seen = imports.deployer.count(imports.name)
    assert imports.execute(change_set) == "UPDATE_ROLLBACK_COMPLETE"
    assert "B IMPORT_ROLLBACK_COMPLETE" in imports.deployer.events(imports.name, seen)
    assert imports.exists()


def test_a_type_that_is_not_modelled_is_named(imports: Imports, rejected: Rejected) -> None:
    queue = {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Retain", "Properties": {}}
    entry = {
        "ResourceType": "AWS::SQS::Queue",
        "LogicalResourceId": "Q",
        "ResourceIdentifier": {"QueueUrl": "https://queue"},
    }
    with rejected("ValidationError"):
        imports.plan({"Resources": {"P": PARAMETER, "Q": queue}}, ResourcesToImport=[entry])


def test_the_summary_of_a_template_lists_what_identifies_each_resource(imports: Imports) -> None:
    summary = imports.deployer.client.get_template_summary(TemplateBody=json.dumps(imports.template))
    assert summary["ResourceIdentifierSummaries"] == [
        {"ResourceType": "AWS::S3::Bucket", "LogicalResourceIds": ["B"], "ResourceIdentifiers": ["BucketName"]}
    ]
