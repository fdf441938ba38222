"""Change sets: what they say before anything happens, and what executing one does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer, Rejected


def parameter(value: Any, name: str | None = None) -> dict[str, Any]:
    named = {} if name is None else {"Name": name}
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value, **named}}


def change_set(deployer: Deployer, name: str, template: dict[str, Any], kind: str = "UPDATE") -> dict[str, Any]:
    created = deployer.client.create_change_set(
        StackName=name, ChangeSetName="changes", ChangeSetType=kind, TemplateBody=json.dumps(template)
    )
    described: dict[str, Any] = deployer.client.describe_change_set(
        ChangeSetName=created["Id"], IncludePropertyValues=True
    )
    return described


def test_a_change_set_tells_actions_and_replacements_in_order(deployer: Deployer) -> None:
    name = deployer.new_name()
    before = {"A": parameter("1", f"/{name}/1"), "B": parameter({"Ref": "A"}), "C": parameter("1"), "D": parameter("1")}
    deployer.deploy({"Resources": before}, name)
    after = {"A": parameter("1", f"/{name}/2"), "B": parameter({"Ref": "A"}), "C": parameter("2"), "E": parameter("1")}
    described = change_set(deployer, name, {"Resources": after})
    told = [
        (
            each["ResourceChange"]["LogicalResourceId"],
            each["ResourceChange"]["Action"],
            each["ResourceChange"].get("Replacement"),
        )
        for each in described["Changes"]
    ]
    assert told == [
        ("A", "Modify", "True"),
        ("B", "Modify", "False"),
        ("C", "Modify", "False"),
        ("E", "Add", None),
        ("D", "Remove", None),
    ]
    target = described["Changes"][0]["ResourceChange"]["Details"][0]["Target"]
    assert (target["Name"], target["RequiresRecreation"]) == ("Name", "Always")
    assert (target["BeforeValue"], target["AfterValue"]) == (f"/{name}/1", f"/{name}/2")
    # The new name of A is known only when it exists.
    assert described["Changes"][1]["ResourceChange"]["Details"][0]["Target"]["AfterValue"].startswith(
        "{{changeSet:KNOWN"
    )
    deployer.client.execute_change_set(ChangeSetName=described["ChangeSetId"])
    assert deployer.wait(name) == "UPDATE_COMPLETE"


def test_a_change_set_without_changes_fails_with_the_words_that_the_cli_knows(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy({"Resources": {"A": parameter("1")}}, name)
    described = change_set(deployer, name, {"Resources": {"A": parameter("1")}})
    assert (described["Status"], described["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert described["StatusReason"].startswith("The submitted information didn't contain changes.")
    with pytest.raises(ClientError, match="cannot be executed in its current status"):
        deployer.client.execute_change_set(ChangeSetName=described["ChangeSetId"])


def test_a_new_stack_is_in_review_until_its_change_set_is_executed(deployer: Deployer) -> None:
    name = deployer.new_name()
    described = change_set(deployer, name, {"Resources": {"A": parameter("1")}}, "CREATE")
    assert deployer.describe(name)["StackStatus"] == "REVIEW_IN_PROGRESS"
    deployer.client.execute_change_set(ChangeSetName="changes", StackName=name)
    assert deployer.wait(described["StackId"]) == "CREATE_COMPLETE"
    assert deployer.events(name)[:2] == ["- REVIEW_IN_PROGRESS", "- CREATE_IN_PROGRESS"]


def test_a_change_set_changes_nothing_before_it_is_executed(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy({"Resources": {"A": parameter("1")}}, name)
    before = deployer.describe(name)
    settings = {
        "Capabilities": ["CAPABILITY_IAM"],
        "RoleARN": "arn:aws:iam::123456789012:role/deploys",
        "NotificationARNs": ["arn:aws:sns:us-east-1:123456789012:told"],
    }
    deployer.client.create_change_set(
        StackName=name,
        ChangeSetName="changes",
        TemplateBody=json.dumps({"Resources": {"A": parameter("2")}}),
        **settings,
    )
    described = deployer.client.describe_change_set(StackName=name, ChangeSetName="changes")
    assert described["Capabilities"] == ["CAPABILITY_IAM"]
    assert deployer.describe(name) == before
    deployer.client.execute_change_set(StackName=name, ChangeSetName="changes")
    deployer.wait(name)
    after = deployer.describe(name)
    assert {key: after[key] for key in settings} == settings


def test_a_change_set_that_is_gone_is_not_found_and_can_be_deleted_again(deployer: Deployer) -> None:
    name = deployer.new_name()
    described = change_set(deployer, name, {"Resources": {"A": parameter("1")}}, "CREATE")
    for _ in range(2):
        deployer.client.delete_change_set(ChangeSetName="changes", StackName=name)
    with pytest.raises(deployer.client.exceptions.ChangeSetNotFoundException):
        deployer.client.describe_change_set(ChangeSetName=described["ChangeSetId"])
    deployer.client.delete_stack(StackName=name)
    assert deployer.describe(described["StackId"])["StackStatus"] == "DELETE_COMPLETE"


def test_a_faulty_template_leaves_neither_change_set_nor_stack(deployer: Deployer, rejected: Rejected) -> None:
    name = deployer.new_name()
    with rejected("ValidationError"):
        change_set(deployer, name, {"Resources": {"D": {"Type": "AWS::RDS::DBInstance"}}}, "CREATE")
    with pytest.raises(ClientError, match="does not exist"):
        deployer.describe(name)
