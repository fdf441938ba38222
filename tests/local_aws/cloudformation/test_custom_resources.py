"""The custom resource protocol, with functions that run: behind the CDK's Provider framework and without it."""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer, Rejected

    from golden_messages import Messages

ROLE = "arn:aws:iam::123456789012:role/handlers"

# Every request is kept as an object, so that a test can read what a handler was sent.
RECORD = """
import json, os, boto3

def record(event):
    s3 = boto3.client("s3")
    number = len(s3.list_objects_v2(Bucket=os.environ["REQUESTS"]).get("Contents", []))
    s3.put_object(Bucket=os.environ["REQUESTS"], Key=f"{number:03}", Body=json.dumps(event))
    return number
"""


@pytest.fixture(scope="module", autouse=True)
def role(deployer: Deployer) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    deployer.aws.client("iam").create_role(RoleName="handlers", AssumeRolePolicyDocument=trust)


def function(code: str, handler: str, **variables: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Code": {"ZipFile": RECORD + textwrap.dedent(code)},
            "Handler": f"index.{handler}",
            "Role": ROLE,
            "Runtime": "python3.13",
            "Timeout": 30,
            "Environment": {"Variables": {"REQUESTS": {"Ref": "Requests"}, **variables}},
        },
    }


def provider(
    code: str, properties: dict[str, Any], *, interval: int = 5, attempts: int = 12, poll: bool = True
) -> dict[str, Any]:
    """What `aws_cdk.custom_resources.Provider` and `CustomResource` synthesise, less the roles."""
    definition = {
        "StartAt": "framework-isComplete-task",
        "States": {
            "framework-isComplete-task": {
                "Type": "Task",
                "Resource": "arn",
                "End": True,
                "Retry": [
                    {
                        "ErrorEquals": ["States.ALL"],
                        "IntervalSeconds": interval,
                        "MaxAttempts": attempts,
                        "BackoffRate": 1,
                    }
                ],
            }
        },
    }
    variables: dict[str, Any] = {"USER_ON_EVENT_FUNCTION_ARN": {"Fn::GetAtt": ["OnEvent", "Arn"]}}
    if poll:
        variables["USER_IS_COMPLETE_FUNCTION_ARN"] = {"Fn::GetAtt": ["IsComplete", "Arn"]}
        variables["WAITER_STATE_MACHINE_ARN"] = {"Ref": "Waiter"}
    framework = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Code": {"ZipFile": "// not run"},
            "Handler": "framework.onEvent",
            "Role": ROLE,
            "Runtime": "nodejs22.x",
            "Environment": {"Variables": variables},
        },
    }
    waiter = {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {"RoleArn": ROLE, "DefinitionString": json.dumps(definition)},
    }
    return {
        "Resources": {
            "Requests": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"},
            "OnEvent": function(code, "on_event"),
            "IsComplete": function(code, "is_complete"),
            "Waiter": waiter,
            "Framework": framework,
            "Thing": {
                "Type": "Custom::Thing",
                "Properties": {"ServiceToken": {"Fn::GetAtt": ["Framework", "Arn"]}, **properties},
            },
        },
        "Outputs": {"Requests": {"Value": {"Ref": "Requests"}}, "Id": {"Value": {"Ref": "Thing"}}},
    }


def requests(deployer: Deployer, bucket: str) -> list[dict[str, Any]]:
    s3 = deployer.aws.client("s3")
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    return [json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in sorted(keys)]


def outputs(deployer: Deployer, name: str) -> dict[str, str]:
    return {each["OutputKey"]: each["OutputValue"] for each in deployer.describe(name)["Outputs"]}


def failure(deployer: Deployer, name: str) -> str:
    """The reason of the first failed resource."""
    failed = [each for each in deployer.raw_events(name) if each["ResourceStatus"].endswith("_FAILED")]
    reason: str = failed[0]["ResourceStatusReason"]
    return reason


GOOD = """
def on_event(event, context):
    record(event)
    return {"PhysicalResourceId": "thing-" + event["ResourceProperties"]["Version"]}

def is_complete(event, context):
    number = record(event)
    return {"IsComplete": number % 2 == 0, **({"Data": {"Answer": "42"}} if number % 2 == 0 else {})}
"""


def test_a_provider_gets_the_documented_requests_through_a_whole_life(deployer: Deployer) -> None:
    name = deployer.new_name()
    first = provider(GOOD, {"Version": 1, "Flag": True, "List": [1, {"Deep": False}]})
    first["Outputs"]["Answer"] = {"Value": {"Fn::GetAtt": ["Thing", "Answer"]}}
    assert deployer.deploy(first, name) == "CREATE_COMPLETE"
    assert (outputs(deployer, name)["Id"], outputs(deployer, name)["Answer"]) == ("thing-1", "42")
    bucket = outputs(deployer, name)["Requests"]
    create, poll, again = requests(deployer, bucket)
    assert create["RequestType"] == "Create"
    assert "PhysicalResourceId" not in create
    assert create["LogicalResourceId"] == "Thing"
    assert create["ResourceType"] == "Custom::Thing"
    assert create["StackId"] == deployer.describe(name)["StackId"]
    # Every scalar is text.
    properties = {
        "ServiceToken": create["ServiceToken"],
        "Version": "1",
        "Flag": "true",
        "List": ["1", {"Deep": "false"}],
    }
    assert create["ResourceProperties"] == properties
    assert poll == again == {**create, "PhysicalResourceId": "thing-1"}

    second = provider(GOOD, {"Version": 2})
    assert deployer.deploy(second, name) == "UPDATE_COMPLETE"
    update, _, delete_old, *_ = requests(deployer, bucket)[3:]
    assert (update["RequestType"], update["PhysicalResourceId"]) == ("Update", "thing-1")
    assert update["OldResourceProperties"] == properties
    # Another physical id is a replacement: the old one is deleted in the cleanup.
    assert (delete_old["RequestType"], delete_old["PhysicalResourceId"]) == ("Delete", "thing-1")
    assert delete_old["ResourceProperties"] == properties


def test_a_physical_id_is_the_request_id_until_the_handler_gives_one(deployer: Deployer) -> None:
    name = deployer.new_name()
    code = "def on_event(event, context):\n    record(event)\n"
    assert deployer.deploy(provider(code, {"Version": 1}, poll=False), name) == "CREATE_COMPLETE"
    (request,) = requests(deployer, outputs(deployer, name)["Requests"])
    assert outputs(deployer, name)["Id"] == request["RequestId"]


def test_an_exception_in_on_event_fails_the_resource_and_its_delete_is_not_passed_on(deployer: Deployer) -> None:
    name = deployer.new_name()
    code = "def on_event(event, context):\n    raise ValueError('no such model: ' + event['RequestType'])\n"
    assert deployer.deploy(provider(code, {}, poll=False), name) == "ROLLBACK_COMPLETE"
    reason = failure(deployer, name)
    assert reason.startswith(
        "Received response status [FAILED] from custom resource. Message returned: Error: no such model: Create"
    )
    assert "Logs: /aws/lambda/" in reason
    # The resource has the framework's marker as its id, so it is deleted, without asking the handler.
    assert [each for each in deployer.events(name) if each.startswith("Thing")] == [
        "Thing CREATE_IN_PROGRESS",
        "Thing CREATE_FAILED",
        "Thing DELETE_IN_PROGRESS",
        "Thing DELETE_COMPLETE",
    ]


def test_an_exception_in_is_complete_fails_at_once(deployer: Deployer) -> None:
    name = deployer.new_name()
    code = """
    def on_event(event, context):
        return {"PhysicalResourceId": "thing"}
    def is_complete(event, context):
        if event["RequestType"] != "Delete":
            raise RuntimeError("the build failed")
        return {"IsComplete": True}
    """
    assert deployer.deploy(provider(code, {}), name) == "ROLLBACK_COMPLETE"
    assert "Message returned: Error: the build failed" in failure(deployer, name)


def test_polling_ends_with_the_waiters_total_timeout(deployer: Deployer) -> None:
    name = deployer.new_name()
    code = """
    def on_event(event, context):
        return {}
    def is_complete(event, context):
        return {"IsComplete": event["RequestType"] == "Delete"}
    """
    assert deployer.deploy(provider(code, {}, interval=1, attempts=1), name) == "ROLLBACK_COMPLETE"
    assert "Message returned: Operation timed out" in failure(deployer, name)


def failure_of_answer(deployer: Deployer, answer: str) -> str:
    """The reason of a resource whose handler gives this answer."""
    name = deployer.new_name()
    code = f"def on_event(event, context):\n    return {answer} if event['RequestType'] == 'Create' else {{}}\n"
    deployer.deploy(provider(code, {}, poll=False), name)
    return failure(deployer, name)


def test_an_answer_that_is_too_long_fails_the_resource_in_cloudformations_words(deployer: Deployer) -> None:
    assert "Response object is too long." in failure_of_answer(deployer, '{"Data": {"x": "y" * 4096}}')


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('{"PhysicalResourceId": "x" * 1025}', id="long physical id"),
        pytest.param("[1]", id="a list"),
        pytest.param('{"Data": [1]}', id="data in a list"),
    ],
)
def test_an_answer_that_breaks_the_protocol_fails_the_resource(
    messages: Messages, deployer: Deployer, answer: str
) -> None:
    reason = failure_of_answer(deployer, answer)
    messages.record("CREATE_FAILED", re.sub(r"RequestId: [-0-9a-f]+", "RequestId: ID", reason))


def test_data_before_completion_is_rejected_as_the_framework_rejects_it(deployer: Deployer) -> None:
    name = deployer.new_name()
    code = """
    def on_event(event, context):
        return {}
    def is_complete(event, context):
        return {"IsComplete": event["RequestType"] == "Delete", "Data": {"too": "early"}}
    """
    deployer.deploy(provider(code, {}), name)
    assert '"Data" is not allowed if "IsComplete" is "False"' in failure(deployer, name)


def test_an_attribute_that_the_answer_lacks_fails_whoever_asks_for_it(deployer: Deployer) -> None:
    name = deployer.new_name()
    template = provider(GOOD, {"Version": 1})
    template["Resources"]["User"] = {
        "Type": "AWS::SSM::Parameter",
        "Properties": {"Type": "String", "Value": {"Fn::GetAtt": ["Thing", "Nope"]}},
    }
    assert deployer.deploy(template, name) == "ROLLBACK_COMPLETE"
    assert "Vendor response doesn't contain Nope attribute in object thing-1" in failure(deployer, name)


def test_a_failed_update_is_followed_by_another_with_old_and_new_swapped(deployer: Deployer) -> None:
    name = deployer.new_name()
    code = """
    def on_event(event, context):
        record(event)
        if event["ResourceProperties"]["Version"] == "2":
            raise ValueError("not two")
        return {"PhysicalResourceId": "thing"}
    """
    assert deployer.deploy(provider(code, {"Version": 1}, poll=False), name) == "CREATE_COMPLETE"
    assert deployer.deploy(provider(code, {"Version": 2}, poll=False), name) == "UPDATE_ROLLBACK_COMPLETE"
    _, there, back = requests(deployer, outputs(deployer, name)["Requests"])
    assert (there["RequestType"], back["RequestType"]) == ("Update", "Update")
    assert there["ResourceProperties"] == back["OldResourceProperties"]
    assert there["OldResourceProperties"] == back["ResourceProperties"]
    assert there["PhysicalResourceId"] == back["PhysicalResourceId"] == "thing"


def test_the_service_token_cannot_be_changed(deployer: Deployer) -> None:
    name = deployer.new_name()
    before = provider(GOOD, {"Version": 1})
    deployer.deploy(before, name)
    after = provider(GOOD, {"Version": 1})
    after["Resources"]["Other"] = after["Resources"]["Framework"]
    after["Resources"]["Thing"]["Properties"]["ServiceToken"] = {"Fn::GetAtt": ["Other", "Arn"]}
    assert deployer.deploy(after, name) == "UPDATE_ROLLBACK_COMPLETE"
    assert failure(deployer, name) == "Modifying service token is not allowed."


PLAIN = """
import urllib.request

def handler(event, context):
    answer = {
        "Status": "SUCCESS",
        "PhysicalResourceId": "plain",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Type": event["RequestType"]},
    }
    urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT"))
"""


def plain(code: str, **properties: Any) -> dict[str, Any]:
    return {
        "Resources": {
            "Requests": {"Type": "AWS::S3::Bucket"},
            "Handler": function(code, "handler"),
            "Thing": {
                "Type": "AWS::CloudFormation::CustomResource",
                "Properties": {"ServiceToken": {"Fn::GetAtt": ["Handler", "Arn"]}, **properties},
            },
        },
        "Outputs": {"Type": {"Value": {"Fn::GetAtt": ["Thing", "Type"]}}},
    }


def test_a_function_without_the_framework_answers_through_its_response_url(deployer: Deployer) -> None:
    name = deployer.new_name()
    assert deployer.deploy(plain(PLAIN), name) == "CREATE_COMPLETE"
    assert outputs(deployer, name) == {"Type": "Create"}
    assert deployer.delete(name) == "DELETE_COMPLETE"


def test_the_cdk_cli_is_told_at_the_end_of_an_operation_because_it_asks_every_five_seconds(deployer: Deployer) -> None:
    variables = deployer.aws.environment()
    cli = boto3.client(
        "cloudformation",
        endpoint_url=deployer.aws.url,
        region_name=deployer.aws.region,
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        config=Config(user_agent_extra="aws-cdk/2.1148.1"),
    )
    name = deployer.new_name()
    cli.create_stack(StackName=name, TemplateBody=json.dumps(plain(PLAIN)))
    assert deployer.describe(name)["StackStatus"] == "CREATE_IN_PROGRESS"
    assert cli.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    identifier = deployer.describe(name)["StackId"]
    cli.delete_stack(StackName=name)
    assert cli.describe_stacks(StackName=identifier)["Stacks"][0]["StackStatus"] == "DELETE_COMPLETE"


def test_a_function_that_never_answers_fails_after_the_service_timeout(deployer: Deployer) -> None:
    name = deployer.new_name()
    silent = PLAIN.replace(
        "def handler(event, context):", "def handler(event, context):\n    if event['RequestType'] == 'Create': return"
    )
    deployer.deploy(plain(silent, ServiceTimeout=1), name)
    assert "CloudFormation did not receive a response from your Custom Resource" in failure(deployer, name)


def test_a_function_that_fails_without_a_response_says_why(deployer: Deployer) -> None:
    name = deployer.new_name()
    broken = PLAIN.replace(
        "def handler(event, context):",
        "def handler(event, context):\n    if event['RequestType'] == 'Create': raise ValueError('no such model')",
    )
    deployer.deploy(plain(broken), name)
    reason = failure(deployer, name)
    assert "CloudFormation did not receive a response from your Custom Resource" in reason
    assert "no such model" in reason


def test_a_function_writes_into_the_log_group_of_its_logging_configuration(deployer: Deployer) -> None:
    name, logs = deployer.new_name(), deployer.aws.client("logs")
    template = plain(PLAIN.replace("def handler(event, context):", "def handler(event, context):\n    print('seen')"))
    template["Resources"]["Logs"] = {"Type": "AWS::Logs::LogGroup"}
    template["Resources"]["Handler"]["Properties"]["LoggingConfig"] = {"LogGroup": {"Ref": "Logs"}}
    template["Outputs"] |= {"Logs": {"Value": {"Ref": "Logs"}}, "Handler": {"Value": {"Ref": "Handler"}}}
    assert deployer.deploy(template, name) == "CREATE_COMPLETE"
    found = outputs(deployer, name)
    events = logs.filter_log_events(logGroupName=found["Logs"])["events"]
    assert "seen" in [each["message"] for each in events]
    assert deployer.delete(name) == "DELETE_COMPLETE"
    groups = logs.describe_log_groups()["logGroups"]
    assert not {found["Logs"], f"/aws/lambda/{found['Handler']}"} & {each["logGroupName"] for each in groups}


def test_a_function_that_cannot_run_here_is_rejected_before_anything_is_created(
    deployer: Deployer, rejected: Rejected
) -> None:
    template = plain(PLAIN)
    template["Resources"]["Handler"]["Properties"].update({"Runtime": "nodejs22.x"})
    with rejected("ValidationError"):
        deployer.deploy(template, deployer.new_name())
