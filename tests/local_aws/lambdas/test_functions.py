"""Functions on the local AWS, as a client of Lambda sees them."""

from __future__ import annotations

import errno
import io
import json
import os
import threading
import zipfile
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError
from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local_aws.conftest import Rejected

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


@pytest.mark.slow
def test_the_import_of_a_module_does_not_count_against_the_timeout(local_aws: LocalAws, role: str) -> None:
    """Lambda's init phase has a time of its own."""
    code = "import time\ntime.sleep(1.5)\ndef handler(event, context): return event"
    make_function(local_aws, role, "slow-start", code, Timeout=1)

    assert invoke(local_aws, "slow-start", "x") == ("x", None)


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


def test_another_runtime_is_rejected_by_name(local_aws: LocalAws, rejected: Rejected, role: str) -> None:
    local_aws.client("lambda").create_function(
        FunctionName="node", Role=role, Runtime="nodejs22.x", Handler="index.handler", Code={"ZipFile": zipped("")}
    )
    with rejected("ResourceNotFoundException") as caught:
        invoke(local_aws, "node")
    assert "'nodejs22.x'" in caught.value.response["Error"]["Message"]


@pytest.mark.parametrize("cause", [errno.ENOSPC, errno.EACCES], ids=["full disk", "file of another user"])
def test_a_function_that_cannot_be_unpacked_fails_with_a_sentence(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, local_aws: LocalAws, role: str, cause: int
) -> None:
    name = f"fails-by-{cause}"
    make_function(local_aws, role, name, "def handler(event, context):\n    return 1\n")

    def fail(*_: Any) -> None:
        raise OSError(cause, os.strerror(cause), "functions/full")

    monkeypatch.setattr("cdk_triton_local.lambdas.runtime.LambdaRuntime._unpack", fail)
    with pytest.raises(ClientError) as failed:
        invoke(local_aws, name, 1)
    assert failed.value.response["Error"]["Code"] == "ServiceException"
    messages.record("ServiceException", failed.value.response["Error"]["Message"])
    monkeypatch.undo()
    assert invoke(local_aws, name, 1) == (1, None)


@pytest.mark.parametrize("name", ["../../out", "a/b", "a b", "x" * 200])
def test_a_function_name_that_lambda_does_not_have_is_found_nowhere(local_aws: LocalAws, name: str) -> None:
    with pytest.raises(LocalError):
        local_aws.invoke_function(name, {})


def test_what_a_function_prints_is_in_its_log_group(local_aws: LocalAws, role: str) -> None:
    make_function(
        local_aws, role, "prints", "def handler(event, context):\n    print('told', event)\n    raise ValueError('x')\n"
    )
    invoke(local_aws, "prints", "once")
    events = local_aws.client("logs").filter_log_events(logGroupName="/aws/lambda/prints")["events"]
    messages = [each["message"] for each in events]
    assert "told once" in messages
    assert messages[-1] == "ValueError: x"
