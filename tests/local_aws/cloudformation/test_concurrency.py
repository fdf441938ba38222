"""Custom resources that begin at the same time, in an account with ten concurrent executions of Lambda."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton_local.cloudformation.resource_types import custom

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

ROLE = "arn:aws:iam::123456789012:role/together"
MANY = 12
ANSWER = """
import json, time, urllib.request

def handler(event, context):
    time.sleep(1)  # longer than it takes to start all of them
    keys = "StackId", "RequestId", "LogicalResourceId"
    answer = {key: event[key] for key in keys} | {"Status": "SUCCESS", "PhysicalResourceId": event["LogicalResourceId"]}
    request = urllib.request.Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT")
    urllib.request.urlopen(request).close()

def on_event(event, context):
    if event["RequestType"] == "Create":
        time.sleep(1)  # longer than the framework tries
    return {"PhysicalResourceId": event["LogicalResourceId"]}
"""


@pytest.fixture(scope="module", autouse=True)
def role(deployer: Deployer) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    deployer.aws.client("iam").create_role(RoleName="together", AssumeRolePolicyDocument=trust)


def template(provider: str) -> dict[str, Any]:
    """Many custom resources of one provider: a function, or CDK's framework around it."""
    function = {"Code": {"ZipFile": ANSWER}, "Role": ROLE, "Runtime": "python3.13", "Timeout": 30}
    own = {"USER_ON_EVENT_FUNCTION_ARN": {"Fn::GetAtt": ["OnEvent", "Arn"]}}
    framework = {**function, "Runtime": "nodejs22.x", "Environment": {"Variables": own}}
    made = {
        "Function": {**function, "Handler": "index.handler"},
        "OnEvent": {**function, "Handler": "index.on_event"},
        "Framework": {**framework, "Handler": "framework.onEvent"},
    }
    functions = {name: {"Type": "AWS::Lambda::Function", "Properties": each} for name, each in made.items()}
    thing = {"Type": "Custom::Thing", "Properties": {"ServiceToken": {"Fn::GetAtt": [provider, "Arn"]}}}
    return {"Resources": {**functions, **{f"Thing{number}": thing for number in range(MANY)}}}


@pytest.mark.slow
def test_a_request_that_lambda_throttles_is_delivered_later(deployer: Deployer) -> None:
    name = deployer.new_name()
    deployer.deploy(template("Function"), name)

    executions = deployer.aws.executions
    assert deployer.describe(name)["StackStatus"] == "CREATE_COMPLETE"
    assert executions.peak == 10
    assert executions.throttled


@pytest.mark.slow
def test_a_framework_whose_function_calls_another_one_fails(
    deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom, "FRAMEWORK_PAUSE_SECONDS", 0.05)
    name = deployer.new_name()
    deployer.deploy(template("Framework"), name)

    failed = [each for each in deployer.raw_events(name) if each["ResourceStatus"] == "CREATE_FAILED"]
    assert deployer.describe(name)["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "Rate Exceeded" in failed[0]["ResourceStatusReason"]
