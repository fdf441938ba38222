"""The faults of AWS that can be injected, as clients, functions and CloudFormation meet them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError
from cdk_triton.protocol.invocation import CALL_AGAIN
from cdk_triton_local.faults import FAULTS, Faults
from cdk_triton_local.lambdas import FunctionError
from cdk_triton_local.process import Call
from cdk_triton_local.skipped_time import SkippedTime

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

    from golden_messages import Messages

CODE = """
import json, threading, time, urllib.request
import boto3

requests = set()

def handler(event, context):
    if event is None:
        return "done"
    if isinstance(event, float):
        began = time.time()
        time.sleep(event)
        return time.time() - began
    if event == "background":
        thread = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
        thread.start()
        thread.join(0.1)
        return "returned"
    if event == "write":
        s3 = boto3.client("s3")
        s3.put_object(Bucket="written", Key="object", Body=b"", IfNoneMatch="*")
    print("a request")
    if event["RequestId"] in requests:
        raise ValueError("this request has been answered")
    requests.add(event["RequestId"])
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


def function_of(deployer: Deployer, stack: str) -> str:
    found = deployer.client.describe_stack_resource(StackName=stack, LogicalResourceId="Function")
    return str(found["StackResourceDetail"]["PhysicalResourceId"])


@pytest.fixture(autouse=True)
def _none_afterwards(deployer: Deployer) -> Iterator[None]:
    yield
    deployer.aws.inject()


def test_every_error_is_one_that_botocore_or_a_page_knows() -> None:
    """The errors of all operations of a service are on its page "Common Errors", and not in its model."""
    common = {
        *("AccessDenied", "ConditionalRequestConflict", "InternalError", "SlowDown"),  # S3, "Error responses"
        *("AccessDeniedException", "InternalError", "Throttling", "ThrottlingException", "ValidationException"),
    }
    session = botocore.session.get_session()
    for fault in FAULTS:
        for rejection in fault.rejections:
            model = session.get_service_model(rejection.service)
            assert rejection.operations <= {*model.operation_names}
            for operation in rejection.operations:
                shapes = {each.name: each for each in model.operation_model(operation).error_shapes}
                for error in rejection.errors:
                    assert error.code in shapes.keys() | common
                    if error.code in shapes:
                        known = shapes[error.code].metadata.get("error", {}).get("httpStatusCode", 400)
                        assert error.status == known


def test_the_faults_have_every_error_after_which_lambda_is_called_again() -> None:
    rejections = [each for fault in FAULTS for each in fault.rejections if "Invoke" in each.operations]

    assert {error.code for each in rejections for error in each.errors} == {*CALL_AGAIN}


def test_the_first_calls_of_an_inactive_function_fail(deployer: Deployer, stack: str) -> None:
    client, function = deployer.aws.client("lambda"), function_of(deployer, stack)

    injected = deployer.aws.inject("inactive-functions")

    codes = []
    for _ in range(4):
        with pytest.raises(ClientError) as caught:
            client.invoke(FunctionName=function)
        codes.append(caught.value.response["Error"]["Code"])
    assert codes == ["ResourceNotReadyException", *3 * ["CodeArtifactUserPendingException"]]
    assert json.loads(client.invoke(FunctionName=function)["Payload"].read()) == "done"
    assert injected.injected == {"inactive-functions": 4}


@pytest.mark.slow
def test_cloudformation_and_the_framework_wait_for_the_function(deployer: Deployer, stack: str) -> None:
    deployer.aws.inject("inactive-functions")

    assert deployer.deploy(template(2), stack) == "UPDATE_COMPLETE"


def test_an_event_is_delivered_twice_and_the_first_response_counts(deployer: Deployer, stack: str) -> None:
    log = deployer.aws.directory / "logs" / f"lambda-{function_of(deployer, stack)}.log"
    before = log.read_text().count("a request")
    deployer.aws.inject("duplicate-events")

    assert deployer.deploy(template(2), stack) == "UPDATE_COMPLETE"

    assert log.read_text().count("a request") == before + 2


@pytest.mark.parametrize(
    ("service", "operation", "code"),
    [
        ("s3", "list_buckets", "SlowDown"),
        ("cloudformation", "describe_stacks", "Throttling"),
        ("stepfunctions", "list_state_machines", "ThrottlingException"),
    ],
    ids=["XML", "Query", "JSON"],
)
def test_a_user_is_throttled_once_for_each_operation(
    deployer: Deployer, service: str, operation: str, code: str
) -> None:
    deployer.aws.inject("throttling")
    call = getattr(deployer.aws.client(service), operation)

    with pytest.raises(ClientError) as caught:
        call()
    assert caught.value.response["Error"]["Code"] == code
    assert call()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_an_error_of_a_head_request_has_no_body(deployer: Deployer) -> None:
    s3 = deployer.aws.client("s3")
    s3.create_bucket(Bucket="headed")
    deployer.aws.inject("throttling")

    with pytest.raises(ClientError) as caught:
        s3.head_bucket(Bucket="headed")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    s3.head_bucket(Bucket="headed")


def test_a_lost_response_makes_a_function_write_twice(deployer: Deployer, stack: str) -> None:
    """The second attempt of the client finds what the first one has written."""
    s3 = deployer.aws.client("s3")
    s3.create_bucket(Bucket="written")
    function = function_of(deployer, stack)
    deployer.aws.inject("lost-responses")

    with pytest.raises(FunctionError, match="PreconditionFailed"):
        deployer.aws.invoke_function(function, "write")

    s3.head_object(Bucket="written", Key="object")


def test_no_pause_is_skipped_while_a_job_works() -> None:
    """A job of a second is not polled for an hour."""
    time_of_jobs = SkippedTime(threading.Event())
    time_of_jobs.skips = True
    with time_of_jobs.working():
        time_of_jobs.sleep(0.1)
    assert time_of_jobs.ahead == 0

    time_of_jobs.sleep(600)
    assert 0 < time_of_jobs.ahead <= 600


def test_the_pauses_of_a_function_are_skipped_while_there_are_faults(deployer: Deployer, stack: str) -> None:
    function = function_of(deployer, stack)
    deployer.aws.inject("throttling")
    before = deployer.aws.time.now
    assert deployer.aws.invoke_function(function, 20.0) >= 20
    assert deployer.aws.time.now - before >= 20
    with pytest.raises(FunctionError, match=r"timed out after 30\.00 seconds"):
        deployer.aws.invoke_function(function, 1000.0)
    assert deployer.aws.time.now - before < 900, "the function is ended at its timeout, not at the end of the pause"
    assert deployer.aws.invoke_function(function, "background") == "returned"

    deployer.aws.inject()
    began = time.monotonic()
    deployer.aws.invoke_function(function, 0.05)
    assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize(
    ("create", "accepted"),
    [
        ("create_function", ["unscoped"]),
        ("create_model", ["scoped", "unscoped"]),
        ("create_processing_job", ["unscoped"]),
    ],
)
def test_a_role_in_a_vpc_needs_the_permissions_that_the_guides_list(
    deployer: Deployer, create: str, accepted: list[str]
) -> None:
    aws, network = deployer.aws, {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
    iam, sagemaker = aws.client("iam"), aws.client("sagemaker")
    name = deployer.new_name()
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": []}))["Role"]["Arn"]
    container = {"Image": "image"}
    calls = {
        "create_function": lambda: aws.client("lambda").create_function(
            FunctionName=deployer.new_name(),
            Role=role,
            Runtime="python3.13",
            Handler="index.handler",
            Code={"ZipFile": b""},
            VpcConfig={"SecurityGroupIds": ["sg-1"], "SubnetIds": ["subnet-1"]},
        ),
        "create_model": lambda: sagemaker.create_model(
            ModelName=deployer.new_name(), ExecutionRoleArn=role, PrimaryContainer=container, VpcConfig=network
        ),
        "create_processing_job": lambda: sagemaker.create_processing_job(
            ProcessingJobName=deployer.new_name(),
            RoleArn=role,
            NetworkConfig={"VpcConfig": network},
            AppSpecification={"ImageUri": "image", "ContainerEntrypoint": ["true"]},
            ProcessingResources={
                "ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.g5.xlarge", "VolumeSizeInGB": 1}
            },
        ),
    }
    deployer.aws.inject("validated-roles")

    found = []
    for scope, resource in {"none": None, "scoped": "arn:aws:ec2:*:*:subnet/subnet-1", "unscoped": "*"}.items():
        if resource is not None:
            statement = {"Effect": "Allow", "Action": "ec2:*", "Resource": resource}
            policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            iam.put_role_policy(RoleName=name, PolicyName="Own", PolicyDocument=policy)
        try:
            calls[create]()
        except ClientError as error:
            if "role" not in str(error):
                raise
        else:
            found.append(scope)
    assert found == accepted


@pytest.mark.parametrize(
    ("statement", "is_accepted"),
    [({"Action": "EC2:*"}, True), ({"Action": ["ec2:describe*"]}, False), ({"NotAction": "s3:*"}, False)],
    ids=["any case", "too little", "NotAction"],
)
def test_the_actions_of_a_role_in_a_vpc_count_in_any_case(statement: dict[str, Any], is_accepted: bool) -> None:
    role = {"Effect": "Allow", "Resource": "*", **statement}
    faults = Faults(["validated-roles"], statements=lambda _: [role])

    call = Call("user", "sagemaker", "CreateModel", {"ExecutionRoleArn": "role", "VpcConfig": {}})
    assert (faults.error(call) is None) == is_accepted


def test_a_call_in_a_vpc_without_a_role_passes_on_to_its_validation() -> None:
    call = Call("user", "sagemaker", "CreateModel", {"VpcConfig": {}})
    assert Faults(["validated-roles"]).error(call) is None


def test_a_role_that_does_not_exist_has_no_permissions(deployer: Deployer) -> None:
    deployer.aws.inject("validated-roles")
    with pytest.raises(ClientError, match="execution role does not have the EC2 permissions"):
        deployer.aws.client("sagemaker").create_model(
            ModelName=deployer.new_name(),
            ExecutionRoleArn="arn:aws:iam::123456789012:role/nobody",
            PrimaryContainer={"Image": "image"},
            VpcConfig={"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        )


def test_a_seed_determines_the_calls_with_a_fault() -> None:
    def failing(seed: int) -> list[int]:
        faults = Faults(["no-free-executions"], seed)
        call = Call("role-1", "lambda", "Invoke", {"FunctionName": "function-1"})
        return [number for number in range(30) if faults.error(call)]

    plans = [failing(seed) for seed in range(5)]
    assert [len(each) for each in plans] == 5 * [5]
    assert len({tuple(each) for each in plans}) > 1
    assert plans == [failing(seed) for seed in range(5)]


def test_no_other_fault_is_injected(messages: Messages, deployer: Deployer) -> None:
    with pytest.raises(LocalError) as caught:
        deployer.aws.inject("throttling", "rain")
    messages.record("LocalError", str(caught.value))
