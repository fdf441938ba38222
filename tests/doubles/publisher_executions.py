"""Executions of a publisher's machine whose functions run in any order that the definition allows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from artifacts.failure import ArtifactError
from artifacts.publication import Place
from build_model.faults import Fault, Killed
from memory_aws import Call
from protocol.publication import Item
from publisher_builds import BuildingMachine
from publisher_machine import ATTEMPTS, CALLER, FLEET, STORE, Machine, Work

__all__ = ["Execution", "Meanwhile"]


class Meanwhile(Fault):
    """At the call of a number, something else happens before the service sees it."""

    def __init__(self, number: int, what: Callable[[], None]) -> None:
        super().__init__("meanwhile", number)
        self._what = what

    def around(self, service: str, call: Call, later: Callable[[Call], None]) -> dict[str, Any]:
        """Make the call, after what happens meanwhile."""
        self.seen += 1
        if self.seen == self.number + 1:
            self._what()
        return call()


@dataclass(eq=False)
class _Task:
    """A state that waits for its function, and the state that follows."""

    work: Work
    done: Callable[[dict[str, Any]], None]
    failed: Callable[[BaseException], None]
    attempts: int = 0


@dataclass
class Execution:
    """An execution, whose states run one attempt at a time.

    The state that follows another one takes its place. So the first state in each step gives the order of an
    interpreter that runs one child of a map at a time.

    Attributes:
        machine: the store and the functions.
        publication: the id of its request.
        name: its name.
        place: the places of its documents.
        failure: why it has failed; None while it runs, and after a success.
        has_ended: whether it has ended, or was aborted.
    """

    machine: Machine
    publication: str
    name: str
    failure: str | None = None
    has_ended: bool = False
    past: list[Work] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = Place(FLEET, self.machine.platform, self.machine.executions + self.name)
        builds = self.machine.max_builds if isinstance(self.machine, BuildingMachine) else 0
        self._tasks = [
            _Task(
                lambda publisher: publisher.prepare(f"{CALLER}/{self.publication}", builds), self._prepared, self._fail
            )
        ]
        self._children = 0
        self._batches = 0

    def step(self, choice: int, fault: Fault | None) -> None:
        """One attempt of one of the functions that may run now."""
        task = self._tasks[choice % len(self._tasks)]
        self.past.append(task.work)
        task.attempts += 1
        try:
            answer = self._attempt(task.work, fault)
        except AssertionError:
            raise
        except (Exception, Killed) as error:
            if (isinstance(error, ArtifactError) or task.attempts >= ATTEMPTS) and self._end(task):
                task.failed(error)
        else:
            if self._end(task):
                task.done(answer)

    def _end(self, task: _Task) -> bool:
        """Leave a state, unless a call that ran meanwhile has done so."""
        if task not in self._tasks:
            return False
        self._tasks.remove(task)
        return True

    def replay(self, choice: int, fault: Fault | None) -> None:
        """Run a function again that has run: Step Functions or Lambda may call it twice, and late."""
        if self.past:
            try:
                self._attempt(self.past[choice % len(self.past)], fault)
            except AssertionError:
                raise
            except (Exception, Killed):
                return  # nobody waits for the answer

    def abort(self) -> None:
        """Stop it."""
        self.has_ended = True
        self._tasks.clear()

    def cut_off(self, fault: Fault | None) -> None:
        """Stop it while the first of its functions runs, which runs on, and nobody waits for its answer."""
        self.past.append(self._tasks[0].work)
        self.abort()
        self.replay(-1, fault)

    def _attempt(self, work: Work, fault: Fault | None) -> dict[str, Any]:
        outer, self.machine.fault = self.machine.fault, fault
        try:
            return self.machine.attempt(self.place, work)
        finally:
            self.machine.fault = outer

    def _prepared(self, answer: dict[str, Any]) -> None:
        if not answer.get("has_builds"):
            self._change(answer)
            return
        batches = json.loads(self.machine.s3.get(STORE, answer["builds"]) or b"[]")
        self._batches = len(batches)
        self._follow(*(self._build(answer, batch) for batch in batches))

    def _follow(self, *tasks: _Task) -> None:
        self._tasks[:0] = tasks

    def _build(self, answer: dict[str, Any], batch: list[dict[str, Any]]) -> _Task:
        """The child of a batch; the state `Wait` lets time pass."""
        assert isinstance(self.machine, BuildingMachine)
        machine = self.machine

        def polled(found: dict[str, Any]) -> None:
            if found["IsComplete"]:
                self._batch_ended(answer)
            else:
                machine.tick(found["Seconds"])
                self._follow(self._build(answer, batch))

        def failed(error: BaseException) -> None:
            items = [Item.parse(each) for each in batch]
            work: Work = lambda publisher: publisher.record_builds(items, _failure(error))  # noqa: E731
            self._follow(_Task(work, lambda _: self._batch_ended(answer), lambda _: self._batch_ended(answer)))

        return _Task(machine.build(answer, batch), polled, failed)

    def _batch_ended(self, answer: dict[str, Any]) -> None:
        self._batches -= 1
        if self._batches == 0:
            self._change(answer)

    def _change(self, answer: dict[str, Any]) -> None:
        items = [Item.parse(each) for each in json.loads(self.machine.s3.get(STORE, answer["items"]) or b"[]")]
        self._children = len(items)
        self._follow(*(self._child(answer["publish"], item) for item in items))

    def _child(self, publication: str, item: Item) -> _Task:
        return _Task(
            lambda publisher: publisher.change(publication, item),
            self._child_ended,
            lambda error: self._record(item, error),
        )

    def _record(self, item: Item, error: BaseException) -> None:
        failure = _failure(error)
        self._follow(_Task(lambda publisher: publisher.record(item, failure), self._child_ended, self._child_ended))

    def _child_ended(self, _: object) -> None:
        self._children -= 1
        if self._children == 0:
            self._follow(_Task(lambda publisher: publisher.count(), self._succeed, self._fail))

    def _succeed(self, _: object) -> None:
        self.has_ended = True

    def _fail(self, error: BaseException) -> None:
        self.has_ended, self.failure = True, f"{type(error).__name__}: {error}"


def _failure(error: BaseException) -> dict[str, str]:
    """A failure, as Step Functions hands it on."""
    return {"Error": type(error).__name__, "Cause": json.dumps({"errorMessage": str(error)})}
