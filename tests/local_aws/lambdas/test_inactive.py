"""Functions that nobody called for weeks, as a client of Lambda and as CloudFormation meet them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

CODE = """
import json, urllib.request

def handler(event, context):
    if event is None:
        return "done"
    keys = "StackId", "RequestId", "LogicalResourceId"
    answer = {key: event[key] for key in keys} | {"Status": "SUCCESS", "PhysicalResourceId": "own"}
    request = urllib.request.Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT")
    urllib.request.urlopen(request).close()

def on_event(event, context):
    return {"PhysicalResourceId": "framed"}
"""


def template(things: int) -> dict[str, Any]:
    """Custom resources of a function, and of CDK's framework around another one."""
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}}
    resources: dict[str, Any] = {"Role": {"Type": "AWS::IAM::Role", "Properties": role}}

    def function(name: str, handler: str, **more: Any) -> None:
        own = {"Code": {"ZipFile": CODE}, "Runtime": "python3.13", "Handler": handler, "Timeout": 30, **more}
        properties = {"Role": {"Fn::GetAtt": ["Role", "Arn"]}, **own}
        resources[name] = {"Type": "AWS::Lambda::Function", "Properties": properties}

    function("Function", "index.handler")
    function("OnEvent", "index.on_event")
    variables = {"USER_ON_EVENT_FUNCTION_ARN": {"Fn::GetAtt": ["OnEvent", "Arn"]}}
    function("Framework", "framework.onEvent", Runtime="nodejs22.x", Environment={"Variables": variables})
    for number in range(things):
        for provider in ("Function", "Framework"):
            thing = {"ServiceToken": {"Fn::GetAtt": [provider, "Arn"]}}
            resources[f"{provider}{number}"] = {"Type": "Custom::Thing", "Properties": thing}
    return {"Resources": resources}


@pytest.fixture(name="stack")
def _stack(deployer: Deployer) -> str:
    name = deployer.new_name()
    assert deployer.deploy(template(1), name) == "CREATE_COMPLETE"
    return name


def test_the_first_call_fails_and_activates_the_function(deployer: Deployer, stack: str) -> None:
    client = deployer.aws.client("lambda")
    name = deployer.client.describe_stack_resource(StackName=stack, LogicalResourceId="Function")
    function = name["StackResourceDetail"]["PhysicalResourceId"]

    def code() -> str:
        with pytest.raises(ClientError) as caught:
            client.invoke(FunctionName=function)
        return str(caught.value.response["Error"]["Code"])

    deployer.aws.make_functions_inactive(1000)
    assert [code(), code(), code()] == ["ResourceNotReadyException", *2 * ["CodeArtifactUserPendingException"]]

    deployer.aws.make_functions_inactive(0)
    assert code() == "ResourceNotReadyException"
    assert json.loads(client.invoke(FunctionName=function)["Payload"].read()) == "done"


@pytest.mark.slow
def test_cloudformation_and_the_framework_wait_for_the_function(deployer: Deployer, stack: str) -> None:
    deployer.aws.make_functions_inactive(1)

    assert deployer.deploy(template(2), stack) == "UPDATE_COMPLETE"
