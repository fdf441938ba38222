"""The local AWS as its clients see it: one port, real functions, endpoints that become ready or say why not."""

from __future__ import annotations

import errno
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError
from cdk_triton.local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local.conftest import EndpointDouble, Refused, Signed

    from golden_messages import Messages


def zipped(code: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("index.py", code)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def role(local_aws: LocalAws) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    created = local_aws.client("iam").create_role(RoleName="functions", AssumeRolePolicyDocument=trust)
    arn: str = created["Role"]["Arn"]
    return arn


def make_function(local_aws: LocalAws, role: str, name: str, code: str, **more: Any) -> None:
    local_aws.client("lambda").create_function(
        FunctionName=name,
        Role=role,
        Runtime="python3.13",
        Handler="index.handler",
        Code={"ZipFile": zipped(code)},
        **more,
    )


def invoke(local_aws: LocalAws, name: str, event: Any = None) -> tuple[Any, str | None]:
    answer = local_aws.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event))
    return json.loads(answer["Payload"].read()), answer.get("FunctionError")


# ------------------------------------------------------------------------------------------------- clients


def test_the_environment_is_all_that_a_client_needs(local_aws: LocalAws) -> None:
    """boto3 in a process that has nothing but these variables finds this AWS."""
    code = """
import boto3
print(boto3.client("sts").get_caller_identity()["Account"], boto3.client("s3").meta.endpoint_url)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], env=local_aws.environment(), check=True, capture_output=True, text=True
    ).stdout.split()
    assert found == ["123456789012", local_aws.url]


def test_the_environment_of_a_process_keeps_the_rest_and_drops_what_leads_elsewhere(local_aws: LocalAws) -> None:
    base = {"PATH": "/bin", "AWS_PROFILE": "p", "AWS_ENDPOINT_URL_STS": "http://elsewhere", "no_proxy": "a.example, b"}
    found = local_aws.process_environment(base)
    assert {name: found.get(name) for name in base} == {
        "PATH": "/bin",
        "AWS_PROFILE": None,
        "AWS_ENDPOINT_URL_STS": None,
        "no_proxy": "a.example,b,127.0.0.1,localhost",
    }
    assert found["AWS_ENDPOINT_URL"] == local_aws.url
    assert "AWS_PROFILE" in base


def test_another_account_and_region_can_be_played(tmp_path: Path, endpoint_double: EndpointDouble) -> None:
    code = f"""
import sys
from pathlib import Path
from cdk_triton.local.aws import LocalAws
from unittest.mock import Mock
place = Path({str(tmp_path)!r})
with LocalAws(place, account="210987654321", region="eu-west-3", host_factory=lambda aws: Mock()) as aws:
    aws.client("s3").create_bucket(Bucket="bucket", CreateBucketConfiguration={{"LocationConstraint": "eu-west-3"}})
    print(aws.client("sts").get_caller_identity()["Account"], aws.client("sns").create_topic(Name="t")["TopicArn"])
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.split() == ["210987654321", "arn:aws:sns:eu-west-3:210987654321:t"]


def test_accounts_have_keys_of_their_own_because_the_cdk_remembers_whose_a_key_is(tmp_path: Path) -> None:
    played = [LocalAws(tmp_path, account=account) for account in ("123456789012", "210987654321")]
    keys = [aws.environment()["AWS_ACCESS_KEY_ID"] for aws in played]
    assert len(set(keys)) == 2


def test_one_process_holds_one_local_aws(
    messages: Messages, local_aws: LocalAws, tmp_path: Path, endpoint_double: EndpointDouble
) -> None:
    with messages.raises(LocalError):
        LocalAws(tmp_path, host_factory=lambda _: endpoint_double).start()
    assert local_aws.client("sts").get_caller_identity()["Account"] == "123456789012"


def test_it_listens_on_loopback_only(local_aws: LocalAws) -> None:
    port = int(local_aws.url.rsplit(":", 1)[1])
    listening = {each.laddr for each in psutil.Process().net_connections("inet") if each.status == psutil.CONN_LISTEN}
    assert {each.ip for each in listening if each.port == port} == {"127.0.0.1"}


def test_a_bucket_that_enforces_ssl_can_still_be_used(local_aws: LocalAws) -> None:
    s3 = local_aws.client("s3")
    s3.create_bucket(Bucket="enforced")
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::enforced", "arn:aws:s3:::enforced/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    s3.put_bucket_policy(Bucket="enforced", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    s3.put_object(Bucket="enforced", Key="k", Body=b"x")
    assert s3.get_object(Bucket="enforced", Key="k")["Body"].read() == b"x"
    assert "SecureTransport" in s3.get_bucket_policy(Bucket="enforced")["Policy"]


# ------------------------------------------------------------------------------------------------- functions


def test_a_function_sees_its_own_environment_and_modules_and_nothing_of_ours(
    local_aws: LocalAws, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    code = """
import os, sys
def handler(event, context):
    return {
        "own": os.environ["OWN"],
        "secret": os.environ.get("SECRET_OF_THE_USER"),
        "region": os.environ["AWS_REGION"],
        "endpoint": os.environ["AWS_ENDPOINT_URL"],
        "path": sys.path[0],
        "root": os.environ["LAMBDA_TASK_ROOT"],
        "name": context.function_name,
        "left": 0 < context.get_remaining_time_in_millis() <= 30_000,
        "event": event,
    }
"""
    make_function(local_aws, role, "sees", code, Timeout=30, Environment={"Variables": {"OWN": "1"}})
    seen, error = invoke(local_aws, "sees", {"a": [1, "ü"]})
    assert error is None
    assert seen.pop("path") == seen.pop("root")
    assert seen == {
        "own": "1",
        "secret": None,
        "region": "us-east-1",
        "endpoint": local_aws.url,
        "name": "sees",
        "left": True,
        "event": {"a": [1, "ü"]},
    }


def test_a_function_stays_warm_until_it_is_updated(local_aws: LocalAws, role: str) -> None:
    code = """
import os
calls = 0
def handler(event, context):
    global calls
    calls += 1
    return [os.getpid(), calls]
"""
    make_function(local_aws, role, "warm", code)
    (first, one), (second, two) = invoke(local_aws, "warm")[0], invoke(local_aws, "warm")[0]
    assert (first, one, two) == (second, 1, 2)
    local_aws.client("lambda").update_function_code(FunctionName="warm", ZipFile=zipped(code + "# changed\n"))
    third, three = invoke(local_aws, "warm")[0]
    assert (third != first, three) == (True, 1)
    assert not psutil.pid_exists(first)


def test_a_function_is_ended_at_its_timeout_and_works_again(local_aws: LocalAws, role: str) -> None:
    code = "import time\ndef handler(event, context):\n    time.sleep(60 if event else 0)\n    return 'done'\n"
    make_function(local_aws, role, "slow", code, Timeout=1)
    failure, error = invoke(local_aws, "slow", True)
    assert (error, failure["errorMessage"]) == ("Unhandled", "Task timed out after 1.00 seconds")
    assert invoke(local_aws, "slow", False) == ("done", None)


@pytest.mark.parametrize(
    ("code", "error_type", "message"),
    [
        ("def handler(event, context):\n    raise KeyError('k')\n", "KeyError", "'k'"),
        ("def handler(event, context):\n    return object()\n", "TypeError", "not JSON serializable"),
        ("import no_such_module\n", "ModuleNotFoundError", "no_such_module"),
        ("def other(event, context): pass\n", "AttributeError", "handler"),
        ("import os\ndef handler(event, context):\n    os._exit(3)\n", "Runtime.ExitError", "status 3"),
        ("import sys\ndef handler(event, context):\n    sys.exit('bye')\n", "SystemExit", "bye"),
    ],
    ids=["raises", "returns no JSON", "does not import", "has no handler", "dies", "exits"],
)
def test_a_function_that_fails_is_reported_as_lambda_reports_it(
    local_aws: LocalAws, role: str, code: str, error_type: str, message: str, request: pytest.FixtureRequest
) -> None:
    name = "fails-" + error_type.replace(".", "-")
    make_function(local_aws, role, name, code)
    failure, error = invoke(local_aws, name)
    assert (error, failure["errorType"]) == ("Unhandled", error_type)
    assert message in failure["errorMessage"]


def test_calls_at_the_same_time_do_not_wait_for_each_other(local_aws: LocalAws, role: str) -> None:
    """Two calls meet at a barrier in S3: each answers only when the other has begun."""
    code = """
import boto3, time
def handler(event, context):
    s3 = boto3.client("s3")
    s3.put_object(Bucket="barrier", Key=event, Body=b"")
    while s3.list_objects_v2(Bucket="barrier")["KeyCount"] < 2:
        time.sleep(0.01)
    return event
"""
    local_aws.client("s3").create_bucket(Bucket="barrier")
    make_function(local_aws, role, "meets", code, Timeout=60)
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda k=key: answers.append(invoke(local_aws, "meets", k))) for key in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [("a", None), ("b", None)]


def test_another_runtime_is_refused_by_name(local_aws: LocalAws, refused: Refused, role: str) -> None:
    local_aws.client("lambda").create_function(
        FunctionName="node", Role=role, Runtime="nodejs22.x", Handler="index.handler", Code={"ZipFile": zipped("")}
    )
    with refused("ResourceNotFoundException") as caught:
        invoke(local_aws, "node")
    assert "'nodejs22.x'" in caught.value.response["Error"]["Message"]


# ------------------------------------------------------------------------------------------------- endpoints


def make_endpoint_config(local_aws: LocalAws, name: str, **environment: str) -> None:
    sagemaker = local_aws.client("sagemaker")
    sagemaker.create_model(
        ModelName=name,
        PrimaryContainer={
            "Image": "example.com/triton:1",
            "Mode": "MultiModel",
            "ModelDataUrl": "s3://models/fleet/",
            "Environment": environment,
            "MultiModelConfig": {"ModelCacheSetting": "Disabled"},
        },
    )
    variant = {"VariantName": "main", "ModelName": name, "InitialInstanceCount": 1, "InstanceType": "ml.g6e.2xlarge"}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])


def until_settled(local_aws: LocalAws, name: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = local_aws.client("sagemaker").describe_endpoint(EndpointName=name)
        if found["EndpointStatus"] not in ("Creating", "Updating"):
            return found
        threading.Event().wait(0.01)


def test_an_endpoint_lives_in_its_host(local_aws: LocalAws, endpoint_double: EndpointDouble) -> None:
    sagemaker = local_aws.client("sagemaker")
    make_endpoint_config(local_aws, "one", SAGEMAKER_TRITON_LOG_VERBOSE="0")
    make_endpoint_config(local_aws, "two")
    sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="one")
    assert until_settled(local_aws, "e")["EndpointStatus"] == "InService"
    (variant,) = endpoint_double.endpoints["e"].variants
    assert (variant.name, variant.weight, variant.instance_type) == ("main", 1.0, "ml.g6e.2xlarge")
    assert (variant.container.mode, variant.container.model_cache) == ("MultiModel", False)
    assert variant.container.environment == {"SAGEMAKER_TRITON_LOG_VERBOSE": "0"}

    sagemaker.update_endpoint(EndpointName="e", EndpointConfigName="two")
    assert until_settled(local_aws, "e")["EndpointConfigName"] == "two"
    assert endpoint_double.endpoints["e"].config_name == "two"
    sagemaker.delete_endpoint(EndpointName="e")
    assert "e" not in endpoint_double.endpoints


def test_an_endpoint_that_cannot_be_served_fails_and_says_why(local_aws: LocalAws) -> None:
    make_endpoint_config(local_aws, "refused", REFUSE="the archive has no config.pbtxt")
    local_aws.client("sagemaker").create_endpoint(EndpointName="bad", EndpointConfigName="refused")
    failed = until_settled(local_aws, "bad")
    assert (failed["EndpointStatus"], failed["FailureReason"]) == ("Failed", "the archive has no config.pbtxt")


def test_a_failed_update_leaves_the_old_configuration_in_service(local_aws: LocalAws) -> None:
    sagemaker = local_aws.client("sagemaker")
    make_endpoint_config(local_aws, "good")
    make_endpoint_config(local_aws, "worse", REFUSE="no")
    sagemaker.create_endpoint(EndpointName="kept", EndpointConfigName="good")
    until_settled(local_aws, "kept")
    sagemaker.update_endpoint(EndpointName="kept", EndpointConfigName="worse")
    found = until_settled(local_aws, "kept")
    assert (found["EndpointStatus"], found["EndpointConfigName"], found["FailureReason"]) == ("InService", "good", "no")


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        (
            "create_endpoint",
            {"EndpointName": "x", "EndpointConfigName": "none"},
            "Could not find endpoint configuration",
        ),
        ("update_endpoint", {"EndpointName": "none", "EndpointConfigName": "none"}, 'Could not find endpoint "none"'),
        (
            "update_endpoint_weights_and_capacities",
            {"EndpointName": "none", "DesiredWeightsAndCapacities": [{"VariantName": "main", "DesiredWeight": 1}]},
            'Could not find endpoint "none"',
        ),
    ],
)
def test_what_sagemaker_would_refuse_or_is_not_modelled_is_a_sentence(
    local_aws: LocalAws, operation: str, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClientError, match=message):
        getattr(local_aws.client("sagemaker"), operation)(**request_)


def test_an_instance_type_that_sagemaker_does_not_have_is_refused(local_aws: LocalAws) -> None:
    variant = {"VariantName": "v", "ModelName": "m", "InitialInstanceCount": 1, "InstanceType": "ml.g99.xlarge"}
    with pytest.raises(ClientError, match=r"ml\.g99\.xlarge"):
        local_aws.client("sagemaker").create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])


def test_an_invocation_reaches_the_host_with_its_headers(local_aws: LocalAws) -> None:
    answer = local_aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="any name", Body=b"\x00\xff", ContentType="application/octet-stream", TargetModel="text-1.tar.gz"
    )
    assert answer["Body"].read() == b"\x00\xff"
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-target"] == "text-1.tar.gz"


def test_invocations_share_a_connection(local_aws: LocalAws, signed: Signed) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(local_aws.url.rsplit(":", 1)[1]))
    connection.connect()
    before = connection.sock.getsockname()
    for body in (b"one", b"two"):
        headers = signed(local_aws, "POST", "/endpoints/e/invocations", body)
        connection.request("POST", "/endpoints/e/invocations", body, headers)
        assert connection.getresponse().read() == body
    assert connection.sock.getsockname() == before
    connection.close()


@pytest.mark.parametrize("operation", ["invoke_endpoint_async", "invoke_endpoint_with_response_stream"])
def test_runtime_operations_that_are_not_modelled_are_refused(
    local_aws: LocalAws, refused: Refused, operation: str
) -> None:
    runtime = local_aws.client("sagemaker-runtime")
    request = {"InputLocation": "s3://b/k"} if operation.endswith("async") else {"Body": b""}
    with refused("ValidationError"):
        getattr(runtime, operation)(EndpointName="e", **request)


def test_a_function_on_a_full_disk_fails_with_a_sentence(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, local_aws: LocalAws, role: str
) -> None:
    make_function(local_aws, role, "full", "def handler(event, context):\n    return 1\n")

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "functions/full")

    monkeypatch.setattr("cdk_triton.local.lambdas.runtime.LambdaRuntime._unpack", fail)
    with pytest.raises(ClientError) as failed:
        invoke(local_aws, "full", 1)
    assert failed.value.response["Error"]["Code"] == "ServiceException"
    messages.record("ServiceException", failed.value.response["Error"]["Message"])
    monkeypatch.undo()
    assert invoke(local_aws, "full", 1) == (1, None)


@pytest.mark.parametrize("name", ["../../out", "a/b", "a b", "x" * 200])
def test_a_function_name_that_lambda_does_not_have_is_found_nowhere(local_aws: LocalAws, name: str) -> None:
    with pytest.raises(LocalError):
        local_aws.invoke_function(name, {})


def test_a_port_in_use_is_a_sentence(messages: Messages, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = f"""
from pathlib import Path
from cdk_triton.errors import LocalError
from cdk_triton.local.aws import LocalAws
try:
    LocalAws(Path({str(tmp_path)!r}), port={port}, host_factory=None).start()
except LocalError as error:
    print(error)
"""
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert f"port {port} " in out
    messages.record("LocalError", out.replace(str(port), "PORT"))


def test_what_a_function_prints_is_in_its_log_group(local_aws: LocalAws, role: str) -> None:
    make_function(
        local_aws, role, "prints", "def handler(event, context):\n    print('told', event)\n    raise ValueError('x')\n"
    )
    invoke(local_aws, "prints", "once")
    events = local_aws.client("logs").filter_log_events(logGroupName="/aws/lambda/prints")["events"]
    messages = [each["message"] for each in events]
    assert "told once" in messages
    assert messages[-1] == "ValueError: x"


@pytest.mark.parametrize(
    ("correction", "without_it"),
    [
        (
            "a bucket policy's Deny is applied without its Condition",
            """
from moto.s3.models import FakeBucket
from moto.iam.access_control import PermissionResult
statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*",
             "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
bucket = FakeBucket("b", "123456789012", "us-east-1")
bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
assert bucket.get_permission("s3:GetObject", "arn:aws:s3:::b/k") == PermissionResult.DENIED
""",
        ),
        (
            "newer instance types are unknown",
            """
from moto.sagemaker.exceptions import ValidationError
from moto.sagemaker.models import FakeEndpointConfig
try:
    FakeEndpointConfig.validate_instance_type(None, "ml.g6e.2xlarge")
except ValidationError:
    pass
else:
    raise AssertionError
""",
        ),
        (
            "an endpoint configuration forgets its shadow",
            """
import inspect
from moto.sagemaker.models import SageMakerModelBackend
assert "shadow_production_variants" not in inspect.signature(SageMakerModelBackend.create_endpoint_config).parameters
""",
        ),
        (
            "there is no UpdateEndpoint",
            """
from moto.sagemaker.responses import SageMakerResponse
assert not hasattr(SageMakerResponse, "update_endpoint")
""",
        ),
    ],
    ids=lambda value: value if "\n" not in value else "",
)
def test_moto_still_needs_our_corrections(correction: str, without_it: str) -> None:
    """When one of these fails, moto has been mended, and `moto_state` or `server` can lose a few lines."""
    subprocess.run([sys.executable, "-c", f"import json\n{without_it}"], check=True)
