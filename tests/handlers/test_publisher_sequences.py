"""Generated sequences of executions, run twice: by moto's interpreter of the definition, and by the machine in memory.

pytest tests/handlers/test_publisher_sequences.py                        a fixed few sequences
pytest tests/handlers/test_publisher_sequences.py --sequences 100        other ones each time

Both have the same requests and meet the same fault at the same call of a service. Sometimes two executions run at once,
or one is aborted while a function runs, and started again. The functions run in the same order both ways. Every object,
every job and every outcome has to be the same. So what `test_publisher_model.py` and `test_publisher_builds_model.py`
find out about the machine in memory is true of the definition, without recipes and with them. Time passes while the
definition waits.
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

from artifacts.publication import Place
from build_model.faults import Fault, Killed
from cdk_triton.hosting.models.publishing.definition import Builds, Functions, definition
from cdk_triton.protocol import layout
from cdk_triton_local.moto_state.machines import correct_machines
from memory_aws import Client, Wire
from protocol.publication import Item
from publisher_builds import ASSETS, BUILDS, DESCRIPTION, BuildingMachine
from publisher_executions import Execution
from publisher_machine import CALLER, FLEET, PLATFORM, STORE, Machine, packed

NAMES = ("one", "two", "three")
PREFIX = layout.publishing_prefix(FLEET, PLATFORM)
VERSIONS = [packed({"text/1/model.py": f"# {number}".encode()}) for number in range(3)]
SOURCES = [packed({"text/config.pbtxt": b"name: 'text'", "text/model.onnx": f"{n}".encode()}) for n in range(3)]
ACTIONS = ("publish", "publish", "roll_back", "unpublish", "forget")
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
    """The definition, whose functions and objects are those of a machine in memory.

    Each call of a function waits for the turn of its execution, so executions that run at once have a fixed order.
    """

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
        self._turns = threading.Condition()
        self._waiting: set[str] = set()
        self._next: str | None = None
        self._called: str | None = None

    def client(self, *, service: str, **_: Any) -> Any:
        """The client of a service, for the interpreter."""
        return self if service == "lambda" else Client("s3", self.machine.s3, Wire())

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803  Lambda's names
        """Call a function."""
        event = json.loads(Payload)
        self._wait_for_turn(event.get("Publication", event)["execution"])
        try:
            answer = self._call(FunctionName.rsplit(":", 1)[-1], event)
        except (Exception, Killed) as error:
            kind = "Runtime.ExitError" if isinstance(error, Killed) else type(error).__name__
            payload = {"errorMessage": str(error), "errorType": kind}
            return {"Payload": io.BytesIO(json.dumps(payload).encode()), "FunctionError": "Unhandled"}
        finally:
            self._end_turn()
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

    def start(self, publication: str, name: str) -> str:
        """Start an execution, which goes on to its first function; returns its ARN."""
        text = json.dumps({"publish": f"{CALLER}/{publication}"})
        started = self._states.start_execution(stateMachineArn=self._arn, name=name, input=text)
        self._settle(started["executionArn"])
        return str(started["executionArn"])

    def step(self, execution: str, *, is_last: bool = False) -> None:
        """Let an execution call the function for which it waits, and go on to the next one.

        Args:
            execution: its ARN.
            is_last: whether it is aborted while the function runs.
        """
        with self._turns:
            assert execution in self._waiting, "it has ended before the machine in memory"
            self._waiting.remove(execution)
            if is_last:
                self._states.stop_execution(executionArn=execution)
            self._next = execution
            self._turns.notify_all()
            assert self._turns.wait_for(lambda: self._called is None and self._next is None, timeout=60)
        self._settle(execution)

    def outcome(self, execution: str) -> str | None:
        """None after a success, or why it failed."""
        found = self._states.describe_execution(executionArn=execution)
        if found["status"] == "FAILED":
            return f"{found['error']}: {json.loads(found['cause'])['errorMessage']}"
        return None if found["status"] == "SUCCEEDED" else str(found["status"])

    def _wait_for_turn(self, execution: str) -> None:
        with self._turns:
            self._waiting.add(execution)
            self._turns.notify_all()
            assert self._turns.wait_for(lambda: self._next == execution, timeout=60)
            self._next, self._called = None, execution

    def _end_turn(self) -> None:
        with self._turns:
            self._called = None
            self._turns.notify_all()

    def _settle(self, execution: str) -> None:
        """Wait until an execution waits for its turn, or has ended."""
        while not self._is_waiting(execution):
            if self._states.describe_execution(executionArn=execution)["status"] != "RUNNING":
                break

    def _is_waiting(self, execution: str) -> bool:
        with self._turns:
            return self._turns.wait_for(lambda: execution in self._waiting, timeout=0.01)


@pytest.fixture(name="interpreter")
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Interpreter]]:
    """The interpreter that runs now, alone in a list."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    current: list[Interpreter] = []
    correct_machines()
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
    aborted: str | None = None
    for number in range(chance.randint(2, 4)):
        some: list[str] = []
        for _ in range(chance.choice((1, 1, 1, 2))):
            if aborted is not None and not some:
                some.append(aborted)  # started again
            elif publications and chance.random() < 0.25:
                some.append(chance.choice(publications))  # started again, even while it runs
            else:
                some.append(f"{seed}-{len(publications)}")
                action = chance.choice(ACTIONS) if publications else "publish"
                request(chance, some[-1], action, machine, interpreter.machine)
                publications.append(some[-1])
        builds(chance, machine, interpreter.machine)
        has_builds = isinstance(machine, BuildingMachine)
        kind, jobs = chance.choice(FAULTS), has_builds and chance.random() < 0.3
        call = chance.randrange(6 if jobs else 200 if has_builds else 20)
        abort = chance.randrange(8) if aborted is None and chance.random() < 0.25 else None
        note = f"the sequence of the seed {seed}, executions {number} of {some}, {kind} at call {call}, abort {abort}"
        for where in (machine, interpreter.machine):
            where.fault = None if kind is None else Fault(kind, call, jobs)
        names = [f"{seed}-execution-{number}-{index}" for index in range(len(some))]
        executions = [Execution(machine, *each) for each in zip(some, names, strict=True)]
        arns = [interpreter.start(*each) for each in zip(some, names, strict=True)]
        aborted = None
        turns = 0
        while running := [index for index, each in enumerate(executions) if not each.has_ended]:
            index = chance.choice(running)
            if turns == abort:
                aborted = some[index]
                executions[index].cut_off(machine.fault)
                executions[index].failure = "ABORTED"
            else:
                executions[index].step(0, machine.fault)
            interpreter.step(arns[index], is_last=turns == abort)
            turns += 1
        assert [each.failure for each in executions] == [interpreter.outcome(arn) for arn in arns], note
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
