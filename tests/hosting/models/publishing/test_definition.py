"""The definition of a publisher's machine, run by moto's interpreter with the real functions."""

from __future__ import annotations

import io
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils

from artifacts import clients, publishing, storage
from cdk_triton.hosting.models.publishing.definition import Builds, Functions, definition
from cdk_triton.protocol import layout
from golden_messages import Messages
from publisher_machine import CALLER, FLEET, KEYS, PLATFORM, STORE, Machine, packed, packed_keys

NAMES = ("prepare", "change", "record", "count")
ARNS = Functions(*(f"arn:aws:lambda:us-east-1:123456789012:function:{name}" for name in NAMES))
PREFIX = layout.publishing_prefix(FLEET, PLATFORM)
ARCHIVES = [packed({"text/config.pbtxt": str(number).encode()}) for number in range(3)]


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 300_000


@dataclass
class FunctionDouble:
    """Lambda's client, which the interpreter calls; the first calls of a function may not be run.

    Attributes:
        throttled: how many calls of a function are not run.
        calls: how often a function was called.
        after: is called with the name of each function that has run.
    """

    throttled: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    after: Callable[[str], None] = lambda name: None

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803  Lambda's names
        name = FunctionName.rsplit(":", 1)[-1]
        self.calls[name] += 1
        try:
            if self.calls[name] <= self.throttled[name]:
                raise TimeoutError
            answer, fault = getattr(publishing, name)(json.loads(Payload), Context()), {}
            self.after(name)
        except Exception as error:
            kind = "Lambda.TooManyRequestsException" if isinstance(error, TimeoutError) else type(error).__name__
            answer, fault = {"errorMessage": str(error), "errorType": kind}, {"FunctionError": "Unhandled"}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode()), **fault}


@pytest.fixture(name="functions")
def _functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[FunctionDouble]:
    variables = {"STORE_BUCKET": STORE, "FLEET": FLEET, "PLATFORM": PLATFORM, "KEYS": json.dumps(asdict(KEYS))}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    for name, value in (variables | {"AWS_DEFAULT_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    functions = FunctionDouble()
    monkeypatch.setattr(lambda_eval_utils, "boto_client_for", lambda **_: functions)
    clients.client.cache_clear()
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        boto3.client("s3").create_bucket(Bucket=STORE)
        document = definition(ARNS, bucket=STORE, prefix=PREFIX, platform=PLATFORM, partition="aws", max_concurrency=8)
        role = "arn:aws:iam::123456789012:role/publisher"
        client = boto3.client("stepfunctions")
        client.create_state_machine(name="publisher", definition=json.dumps(document), roleArn=role)
        yield functions
    clients.client.cache_clear()


def upload(publication: str, **archives: bytes) -> None:
    machine = Machine()
    machine.publish(publication, **archives)
    for (_, key), bodies in machine.s3.history.items():
        boto3.client("s3").put_object(Bucket=STORE, Key=key, Body=bodies[-1])


def run(publication: str, name: str = "") -> dict[str, Any]:
    """An execution, once it has ended."""
    client = boto3.client("stepfunctions")
    arn = client.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    text = json.dumps({"publish": f"{CALLER}/{publication}"})
    execution = client.start_execution(stateMachineArn=arn, name=name or publication, input=text)["executionArn"]
    while (found := dict(client.describe_execution(executionArn=execution)))["status"] == "RUNNING":
        threading.Event().wait(0.01)
    return found


def live(ensemble: str) -> bytes | None:
    s3 = boto3.client("s3")
    key = layout.catalogue_key(FLEET, PLATFORM, ensemble)
    if not s3.list_objects_v2(Bucket=STORE, Prefix=key).get("Contents"):
        return None
    current = json.loads(s3.get_object(Bucket=STORE, Key=key)["Body"].read())["current"]
    if current is None:
        return None
    found: bytes = s3.get_object(Bucket=STORE, Key=layout.fleet_prefix(FLEET, PLATFORM) + current)["Body"].read()
    return found


@pytest.mark.slow
def test_a_bad_ensemble_fails_alone_and_the_next_execution_does_what_is_left(functions: FunctionDouble) -> None:
    one, two, three = ARCHIVES
    upload("first", one=one, two=two, three=three)
    bad = f"{layout.publish_prefix(FLEET, CALLER)}archives/{packed_keys(two).artifact}.tar.gz"
    boto3.client("s3").put_object(Bucket=STORE, Key=bad, Body=b"damaged")

    failed = run("first")

    assert (failed["status"], failed["error"]) == ("FAILED", "ArtifactError")
    message = json.loads(failed["cause"])["errorMessage"]
    assert message.startswith("1 of 3 ensembles could not be changed")
    assert "'two': the archive" in message
    assert [live(name) for name in ("one", "two", "three")] == [one, None, three]

    upload("first", one=one, two=two, three=three)
    again = run("first", "first-again")
    assert (again["status"], json.loads(again["output"])) == ("SUCCEEDED", {"changed": 3})
    assert live("two") == two
    assert functions.calls["record"] == 1


@pytest.mark.slow
def test_a_function_that_lambda_does_not_run_is_called_again(functions: FunctionDouble) -> None:
    functions.throttled = Counter(prepare=1, change=1, count=1)
    upload("first", one=ARCHIVES[0])
    assert run("first")["status"] == "SUCCEEDED"
    assert functions.calls["record"] == 0


@pytest.mark.slow
def test_an_archive_that_is_in_its_place_is_not_read_again_by_the_next_attempt(
    functions: FunctionDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = storage.Storage.open, storage.Storage.write
    opened, faults = list[str](), iter([ConnectionError("the connection broke")])

    def counted(self: storage.Storage, key: str) -> Any:
        opened.append(key)
        return read(self, key)

    def broken(self: storage.Storage, key: str, body: bytes, **condition: Any) -> str:
        if key.startswith("catalogue/") and (fault := next(faults, None)) is not None:
            raise fault
        return write(self, key, body, **condition)

    monkeypatch.setattr(storage.Storage, "open", counted)
    monkeypatch.setattr(storage.Storage, "write", broken)
    upload("first", one=ARCHIVES[0])
    assert run("first")["status"] == "SUCCEEDED"
    assert live("one") == ARCHIVES[0]
    assert functions.calls["change"] == 2
    assert len(opened) == 1


@pytest.mark.slow
def test_a_request_that_is_missing_fails_the_execution(functions: FunctionDouble) -> None:
    failed = run("nobody")
    assert failed["status"] == "FAILED"
    assert "nobody/request.json is missing" in failed["cause"]


@pytest.mark.slow
@pytest.mark.parametrize("function", ["prepare", "change"])
def test_an_execution_changes_nothing_for_the_platform_that_a_deployment_brings(
    messages: Messages, functions: FunctionDouble, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """An execution keeps its definition, and its functions get the variables of the new platform meanwhile."""
    upload("first", one=ARCHIVES[0])
    assert run("first")["status"] == "SUCCEEDED"
    before = keys()
    functions.after = lambda name: monkeypatch.setenv("PLATFORM", "26.05-a10g") if name == function else None
    machine = Machine()
    machine.upload("second", [{"ensemble": "one", "action": "unpublish"}])
    for (_, key), bodies in machine.s3.history.items():
        boto3.client("s3").put_object(Bucket=STORE, Key=key, Body=bodies[-1])

    failed = run("second")

    assert failed["status"] == "FAILED"
    messages.record("ArtifactError", json.loads(failed["cause"])["errorMessage"])
    assert {key for key in keys() - before if not key.startswith("staging/")} == set()
    assert (live("one") is None) is (function == "change")  # for its own platform it is unpublished, or it is not


def keys() -> set[str]:
    """The keys of all objects."""
    return {each["Key"] for each in boto3.client("s3").list_objects_v2(Bucket=STORE)["Contents"]}


def test_every_task_of_a_child_leads_to_its_end() -> None:
    states = definition(ARNS, bucket=STORE, prefix=PREFIX, platform=PLATFORM, partition="aws", max_concurrency=3)[
        "States"
    ]
    assert states["Ensembles"]["MaxConcurrency"] == 3
    child = states["Ensembles"]["ItemProcessor"]["States"]
    for state in (each for each in child.values() if each["Type"] == "Task"):
        assert [catcher["ErrorEquals"] for catcher in state["Catch"]] == [["States.ALL"]]
    assert child["Done"] == {"Type": "Pass", "Result": {}, "End": True}


def test_a_child_that_fails_does_not_stop_the_others() -> None:
    arns, builds = replace(ARNS, build=ARNS.change), Builds(2, "assets", "description", "0" * 64, "image")
    document = definition(
        arns, bucket=STORE, prefix=PREFIX, platform=PLATFORM, partition="aws", max_concurrency=3, builds=builds
    )
    maps = {name: state for name, state in document["States"].items() if state["Type"] == "Map"}
    assert maps.keys() == {"Builds", "Ensembles"}
    for each in maps.values():
        assert each["ToleratedFailureCount"] > 10_000_000
        assert "ToleratedFailurePercentage" not in each  # the lower threshold would end the map run


def test_the_outputs_of_children_do_not_become_the_output_of_a_map() -> None:
    """Step Functions fails an execution whose state has an output of more than 256 KiB."""
    arns, builds = replace(ARNS, build=ARNS.change), Builds(2, "assets", "description", "0" * 64, "image")
    document = definition(
        arns, bucket=STORE, prefix=PREFIX, platform=PLATFORM, partition="aws", max_concurrency=3, builds=builds
    )
    maps = [state for state in document["States"].values() if state["Type"] == "Map"]
    assert len(maps) == 2
    for each in maps:
        assert each["ResultWriter"] == {
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": {"Bucket": STORE, "Prefix": f"{PREFIX}results"},
        }
        ends = [state for state in each["ItemProcessor"]["States"].values() if state["Type"] in {"Pass", "Succeed"}]
        assert [end.get("Result") for end in ends] == [{}]
