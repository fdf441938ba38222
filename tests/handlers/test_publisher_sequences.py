"""Generated sequences of executions, run twice: by moto's interpreter of the definition, and by the machine in memory.

pytest tests/handlers/test_publisher_sequences.py                        a fixed few sequences
pytest tests/handlers/test_publisher_sequences.py --sequences 100        other ones each time

Both have the same requests and meet the same fault at the same call of a service. Every object, every job and every
outcome has to be the same. So what `test_publisher_model.py` and `test_publisher_builds_model.py` find out about the
machine in memory is true of the definition, without recipes and with them. Time passes while the definition waits.
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
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction

from artifacts.publication import Item, Place
from build_model.faults import Fault, Killed
from cdk_triton.artifacts import layout
from cdk_triton.hosting.publishing.definition import Builds, Functions, definition
from memory_aws import Client, Wire
from publisher_builds import ASSETS, BUILDS, DESCRIPTION, BuildingMachine
from publisher_executions import Execution
from publisher_machine import CALLER, FLEET, PLATFORM, STORE, Machine, packed

NAMES = ("one", "two", "three")
PREFIX = layout.publishing_prefix(FLEET, PLATFORM)
VERSIONS = [packed({"text/1/model.py": f"# {number}".encode()}) for number in range(3)]
SOURCES = [packed({"text/config.pbtxt": b"name: 'text'", "text/model.onnx": f"{n}".encode()}) for n in range(3)]
ACTIONS = ("publish", "publish", "roll_back", "unpublish")
FAULTS = (None, "crash before", "crash after", "limbo", "unsent", "lost", "late", "asked twice", "throttled", "broken")
FUNCTIONS = Functions(
    *(
        f"arn:aws:lambda:us-east-1:123456789012:function:{name}"
        for name in ("prepare", "change", "record", "count", "build")
    )
)


class WaitingMachine(BuildingMachine):
    """A machine whose builds end while the definition waits.

    Attributes:
        polls: how many polls find that the builds run.
        bad: the repositories whose builds fail.
    """

    polls = 0
    bad: tuple[str, ...] = ()

    def tick(self, seconds: float) -> None:
        """Let time pass."""
        super().tick(seconds)
        self.polls -= 1
        if self.polls <= 0:
            self.end_builds(*self.bad)


class Interpreter:
    """The definition, whose functions and objects are those of a machine in memory."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._states = boto3.client("stepfunctions")
        builds = Builds(machine.max_builds, **BUILDS) if isinstance(machine, BuildingMachine) else None
        place = {"bucket": STORE, "prefix": PREFIX, "platform": PLATFORM, "partition": "aws"}
        document = definition(FUNCTIONS, **place, max_concurrency=1, builds=builds)
        if builds is not None:  # two children at once would make their calls in any order
            document["States"]["Builds"]["MaxConcurrency"] = 1
        role = "arn:aws:iam::123456789012:role/publisher"
        created = self._states.create_state_machine(name="machine", definition=json.dumps(document), roleArn=role)
        self._arn = created["stateMachineArn"]

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
        if name == "build":
            assert isinstance(self.machine, BuildingMachine)
            place = Place(FLEET, PLATFORM, event["Publication"]["execution"])
            return self.machine.attempt(place, self.machine.build_of_event(event))
        item = Item.parse(event["item"]) if "item" in event else Item("", "")
        batch = [Item.parse(each) for each in event.get("batch", [])]
        work = {
            "prepare": lambda publisher: publisher.prepare(event["publish"], event.get("max_builds", 0)),
            "change": lambda publisher: publisher.change(event["publish"], item),
            "record": lambda publisher: (
                publisher.record_builds(batch, event["failure"]) if batch else publisher.record(item, event["failure"])
            ),
            "count": lambda publisher: publisher.count(),
        }[name]
        return self.machine.attempt(Place(FLEET, PLATFORM, event["execution"]), work)

    def wait(self, seconds: float) -> None:
        """The state `Wait`."""
        assert isinstance(self.machine, BuildingMachine)
        self.machine.tick(seconds)

    def run(self, publication: str, execution: str) -> str | None:
        """Run an execution to its end: None, or why it failed."""
        text = json.dumps({"publish": f"{CALLER}/{publication}"})
        started = self._states.start_execution(stateMachineArn=self._arn, name=execution, input=text)
        while (found := self._states.describe_execution(**_arn_of(started)))["status"] == "RUNNING":
            threading.Event().wait(0.002)
        if found["status"] == "SUCCEEDED":
            return None
        return f"{found['error']}: {json.loads(found['cause'])['errorMessage']}"


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
    monkeypatch.setattr(WaitFunction, "_wait_interval", lambda _, env, wait_seconds: current[-1].wait(wait_seconds))
    logging.getLogger("artifacts").setLevel(logging.CRITICAL)
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield current


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Machine, WaitingMachine], ids=["without recipes", "with recipes"])
def test_the_interpreter_and_the_machine_in_memory_leave_the_same(
    interpreter: list[Interpreter], sequences: int | None, kind: type[Machine]
) -> None:
    first = 0 if sequences is None else time.time_ns()
    interpreter.append(Interpreter(kind()))
    for seed in range(first, first + (sequences or 12)):
        interpreter[-1].machine = kind()
        compare(interpreter[-1], kind(), seed)


def compare(interpreter: Interpreter, machine: Machine, seed: int) -> None:
    """Run one sequence both ways."""
    chance = random.Random(seed)
    publications: list[str] = []
    for number in range(chance.randint(2, 4)):
        publication = f"{seed}-{number}"
        if publications and chance.random() < 0.25:
            publication = chance.choice(publications)  # started again
        else:
            publications.append(publication)
            action = chance.choice(ACTIONS) if len(publications) > 1 else "publish"
            request(chance, publication, action, machine, interpreter.machine)
        builds(chance, machine, interpreter.machine)
        has_builds = isinstance(machine, BuildingMachine)
        kind, jobs = chance.choice(FAULTS), has_builds and chance.random() < 0.3
        call = chance.randrange(6 if jobs else 200 if has_builds else 20)
        note = f"the sequence of the seed {seed}, execution {number}, {kind} at call {call}"
        for where in (machine, interpreter.machine):
            where.fault = None if kind is None else Fault(kind, call, jobs)
        execution = Execution(machine, publication, name := f"{seed}-execution-{number}")
        while not execution.has_ended:
            execution.step(0, machine.fault)
        assert execution.failure == interpreter.run(publication, name), note
        assert found(machine) == found(interpreter.machine), note


def request(chance: random.Random, publication: str, action: str, *machines: Machine) -> None:
    """Write a request to each machine: a publication, a rollback, or the end of one."""
    chosen = chance.sample(NAMES, chance.randint(1, 3))
    numbers = {name: chance.randrange(3) for name in chosen}
    is_built, recipe = chance.random() < 0.8, chance.randrange(2)
    for machine in machines:
        if action != "publish":
            machine.upload(publication, [{"ensemble": name, "action": action} for name in chosen])
        elif is_built and isinstance(machine, BuildingMachine):
            sources = {name: SOURCES[number] for name, number in numbers.items()}
            machine.publish_sources(publication, dict.fromkeys(chosen, recipe), **sources)
        else:
            machine.publish(publication, **{name: VERSIONS[number] for name, number in numbers.items()})


def builds(chance: random.Random, *machines: Machine) -> None:
    """Decide how the builds of the next execution end."""
    polls, bad, pause = chance.randint(1, 3), chance.sample(NAMES, chance.choice((0, 0, 1))), chance.choice((60, 9000))
    description = chance.choice((DESCRIPTION, DESCRIPTION, DESCRIPTION, b"of another deployment"))  # builds nothing
    for machine in machines:
        if isinstance(machine, WaitingMachine):
            machine.clock.now += pause
            machine.polls, machine.bad = polls, tuple(bad)
            machine.s3.put(ASSETS, BUILDS["description"], description)


def found(machine: Machine) -> tuple[dict[str, list[bytes]], list[dict[str, Any]]]:
    """Every body of every object, in order, without the results of maps, which nothing reads; and every job."""
    bodies = {key: each for (_, key), each in machine.s3.history.items() if not key.startswith(f"{PREFIX}results/")}
    return bodies, machine.codebuild.requests() if isinstance(machine, BuildingMachine) else []
