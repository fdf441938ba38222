"""Generated sequences of executions, run twice: by moto's interpreter of the definition, and by the machine in memory.

pytest tests/handlers/test_publisher_sequences.py                        a fixed few sequences
pytest tests/handlers/test_publisher_sequences.py --sequences 100        other ones each time

Both have the same requests and meet the same fault at the same call of S3. Every object and every outcome has to be
the same. So what `test_publisher_model.py` finds out about the machine in memory is true of the definition.
"""

from __future__ import annotations

import io
import json
import logging
import random
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_map.item_reader.eval import resource_eval_s3 as reader
from moto.stepfunctions.parser.asl.component.state.exec.state_map.result_writer.resource_eval import (
    resource_eval_s3 as writer,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils

from artifacts.publication import Item, Place
from build_model.faults import Fault, Killed
from cdk_triton.artifacts import layout
from cdk_triton.hosting.publishing.definition import Functions, definition
from memory_aws import Client, Wire
from publisher_machine import CALLER, FLEET, PLATFORM, STORE, Machine, packed

NAMES = ("one", "two", "three")
PREFIX = layout.publishing_prefix(FLEET, PLATFORM)
VERSIONS = [packed({"text/1/model.py": f"# {number}".encode()}) for number in range(3)]
FAULTS = (None, "crash before", "crash after", "limbo", "unsent", "lost", "late", "asked twice", "throttled", "broken")
FUNCTIONS = Functions(
    *(f"arn:aws:lambda:us-east-1:123456789012:function:{name}" for name in ("prepare", "change", "record", "count"))
)


class Interpreter:
    """The definition, whose functions and objects are those of a machine in memory."""

    def __init__(self) -> None:
        self.machine = Machine()
        self._states = boto3.client("stepfunctions")
        document = json.dumps(
            definition(FUNCTIONS, bucket=STORE, prefix=PREFIX, platform=PLATFORM, partition="aws", max_concurrency=1)
        )
        role = "arn:aws:iam::123456789012:role/publisher"
        self._arn = self._states.create_state_machine(name="machine", definition=document, roleArn=role)[
            "stateMachineArn"
        ]

    def client(self, *, service: str, **_: Any) -> Any:
        """The client of a service, for the interpreter."""
        return self if service == "lambda" else Client("s3", self.machine.s3, Wire())

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803  Lambda's names
        """Call a function."""
        try:
            answer = self._call(FunctionName.rsplit(":", 1)[-1], json.loads(Payload))
        except (Exception, Killed) as error:
            kind = "Runtime.ExitError" if isinstance(error, Killed) else type(error).__name__
            payload = {"errorMessage": str(error), "errorType": kind}
            return {"Payload": io.BytesIO(json.dumps(payload).encode()), "FunctionError": "Unhandled"}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}

    def _call(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        item = Item.parse(event["item"]) if "item" in event else Item("", "")
        work = {
            "prepare": lambda publisher: publisher.prepare(event["publish"]),
            "change": lambda publisher: publisher.change(event["publish"], item),
            "record": lambda publisher: publisher.record(item, event["failure"]),
            "count": lambda publisher: publisher.count(),
        }[name]
        return self.machine.attempt(Place(FLEET, PLATFORM, event["execution"]), work)

    def run(self, publication: str, execution: str) -> str | None:
        """Run an execution to its end: None, or why it failed."""
        text = json.dumps({"publish": f"{CALLER}/{publication}"})
        started = self._states.start_execution(stateMachineArn=self._arn, name=execution, input=text)
        while (found := self._states.describe_execution(**_arn_of(started)))["status"] == "RUNNING":
            threading.Event().wait(0.002)
        return None if found["status"] == "SUCCEEDED" else str(json.loads(found["cause"])["errorMessage"])


def _arn_of(started: dict[str, Any]) -> dict[str, str]:
    return {"executionArn": started["executionArn"]}


@pytest.fixture(name="interpreter")
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Interpreter]]:
    """The interpreter that runs now, alone in a list."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    current: list[Interpreter] = []
    for module in (lambda_eval_utils, reader, writer):
        monkeypatch.setattr(module, "boto_client_for", lambda **named: current[-1].client(**named))
    monkeypatch.setattr(retrier_decl, "time", SimpleNamespace(sleep=lambda seconds: None))
    logging.getLogger("artifacts").setLevel(logging.ERROR)
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield current


@pytest.mark.slow
def test_the_interpreter_and_the_machine_in_memory_leave_the_same(
    interpreter: list[Interpreter], sequences: int | None
) -> None:
    first = 0 if sequences is None else time.time_ns()
    interpreter.append(Interpreter())
    for seed in range(first, first + (sequences or 12)):
        interpreter[-1].machine = Machine()
        compare(interpreter[-1], seed)


def compare(interpreter: Interpreter, seed: int) -> None:
    """Run one sequence both ways."""
    chance, machine = random.Random(seed), Machine()
    publications: list[str] = []
    for number in range(chance.randint(2, 4)):
        publication = f"{seed}-{number}"
        if publications and chance.random() < 0.25:
            publication = chance.choice(publications)  # started again
        else:
            publications.append(publication)
            request(chance, publication, machine, interpreter.machine)
        kind, call = chance.choice(FAULTS), chance.randrange(20)
        outcomes = []
        for runner, where in ((machine, machine), (interpreter, interpreter.machine)):
            where.fault = None if kind is None else Fault(kind, call)
            outcomes.append(runner.run(publication, f"{seed}-execution-{number}"))
        note = f"the sequence of the seed {seed}, execution {number}, {kind} at call {call}"
        assert outcomes[0] == outcomes[1], note
        assert stored(machine) == stored(interpreter.machine), note


def request(chance: random.Random, publication: str, *machines: Machine) -> None:
    """Write a request to each machine: a publication, a rollback, or the end of one."""
    chosen = chance.sample(NAMES, chance.randint(1, 3))
    action = chance.choice(("publish", "publish", "roll_back", "unpublish"))
    archives = {name: chance.choice(VERSIONS) for name in chosen}
    for machine in machines:
        if action == "publish":
            machine.publish(publication, **archives)
        else:
            machine.upload(publication, [{"ensemble": name, "action": action} for name in chosen])


def stored(machine: Machine) -> dict[str, list[bytes]]:
    """Every body of every object, in order, without the results of the map, which nothing reads."""
    return {key: bodies for (_, key), bodies in machine.s3.history.items() if not key.startswith(f"{PREFIX}results/")}
