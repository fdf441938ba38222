"""Generated sequences of a publisher whose repositories are built: builds that fail, and that outlive their machine.

pytest tests/handlers/test_publisher_builds_model.py                        a fixed few hundred sequences, in seconds
pytest tests/handlers/test_publisher_builds_model.py --sequences 10000      other ones each time

As in `test_publisher_model.py`, several executions run at once, and their functions in every order that the definition
allows. Builds end at any time, after a success or a failure, whether or not the execution that started them goes on.
Meanwhile people roll ensembles back and unpublish them.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from typing import Any

import pytest

from build_model.faults import Fault
from publisher_builds import BuildingMachine, built_keys
from publisher_executions import Execution, Meanwhile
from publisher_machine import EXECUTION, STORE, packed

pytestmark = pytest.mark.timeout(7200)

FAULTS = ("crash before", "crash after", "limbo", "unsent", "lost", "late", "asked twice", "throttled", "broken")
SOURCES = [packed({"text/config.pbtxt": b"name: 'text'", "text/model.onnx": f"{n}".encode()}) for n in range(3)]
KEYS = [built_keys(each) for each in SOURCES]
TARGETS = [f"{keys.source[:10]}.tar.gz" for keys in KEYS]
NAMES = ("one", "two", "three")


class World:
    """A store, its publishers and its builds, and the rules that hold whatever happens."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.machine = BuildingMachine()
        self.machine.watch = self.check
        self.executions: list[Execution] = []
        self.asked: dict[str, dict[str, str]] = {}
        self.entries: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
        self.numbers = Counter[str]()
        self.is_meanwhile = False

    def run(self) -> None:
        """One sequence, and then one publication of everything without a fault; some begin with such ones."""
        for number in range(self.random.choice((0, 0, 1, 2))):
            self.publish_all("first", number)
        for _ in range(self.random.randint(10, 80)):
            self.random.choices(
                [self.publish, self.change, self.step, self.end, self.abort, self.again, self.replay, self.rest],
                [2, 2, 20, 4, 1, 2, 1, 2],
            )[0]()
        for execution in self.executions:
            execution.abort()
        # A build that was started just now ends before the last execution begins, so the execution may build again.
        self.machine.tick(2 * 60 * 60 + 1)
        self.publish_all("last", 2)
        assert not self.machine.program.incomplete
        for key, bodies in self.machine.program.built.items():
            assert len(bodies) == 1, f"{key} was built {len(bodies)} times"
        for name in NAMES:
            twice = [execution for execution, times in Counter(self.machine.changes(name)).items() if times > 1]
            assert not twice, f"{twice} changed {name} twice"

    def publish_all(self, kind: str, number: int) -> None:
        self.start(kind, dict.fromkeys(NAMES, number))
        for _ in range(300):
            if self.executions[-1].has_ended:
                break
            self.executions[-1].step(0, None)
            self.machine.end_builds()
        assert self.executions[-1].has_ended
        assert self.executions[-1].failure is None
        assert all(self.entries[name][-1]["current"] == f"{name}-{TARGETS[number]}" for name in NAMES)

    def publish(self) -> None:
        chosen = self.random.sample(NAMES, self.random.randint(1, 3))
        self.start("publish", {name: self.random.randrange(3) for name in chosen})

    def change(self) -> None:
        """Roll ensembles back, unpublish or forget them; mostly those that were published."""
        action = self.random.choice(("roll_back", "roll_back", "unpublish", "forget"))
        names = [name for name in NAMES if self.entries[name]] or NAMES
        publication, chosen = self.name(action.replace("_", "-")), self.random.sample(names, 1)
        self.machine.upload(publication, [{"ensemble": name, "action": action} for name in chosen])
        self.execute(publication, 1, dict.fromkeys(chosen, action))
        execution = self.executions[-1]
        for _ in range(self.random.choice((0, 4))):  # some while others build, and some at once
            self.step_of(execution)
        for number in range(len(execution.past)):  # Lambda may call a function twice
            execution.replay(number, None)

    def start(self, kind: str, sources: dict[str, int]) -> None:
        publication = self.name(kind)
        self.machine.publish_sources(publication, None, **{name: SOURCES[number] for name, number in sources.items()})
        self.execute(publication, 1, {name: f"{name}-{TARGETS[number]}" for name, number in sources.items()})

    def name(self, kind: str) -> str:
        self.numbers[kind] += 1
        return f"{kind}-{self.numbers[kind]}"

    def execute(self, publication: str, number: int, asked: dict[str, str]) -> None:
        execution = Execution(self.machine, publication, f"{publication}-{number}")
        self.executions.append(execution)
        self.asked[execution.name] = asked

    def again(self) -> None:
        """Start a machine again that has failed or was aborted, with the same request."""
        if ended := [each for each in self.executions if each.has_ended]:
            before = self.random.choice(ended)
            self.numbers[before.publication] += 1
            self.execute(before.publication, self.numbers[before.publication] + 1, self.asked[before.name])

    def step(self) -> None:
        if running := [each for each in self.executions if not each.has_ended]:
            self.step_of(self.random.choice(running[:2] if self.random.random() < 0.8 else running))

    def step_of(self, execution: Execution) -> None:
        if not execution.has_ended:
            execution.step(self.random.randrange(9), self.fault())
            if execution.has_ended and execution.failure is None:
                self.check_done(execution)

    def meanwhile(self) -> None:
        self.is_meanwhile = True
        self.step()
        self.is_meanwhile = False

    def replay(self) -> None:
        if self.executions:
            self.random.choice(self.executions).replay(self.random.randrange(99), self.fault())

    def abort(self) -> None:
        """Stop a machine, whose builds run on."""
        if running := [each for each in self.executions if not each.has_ended]:
            self.random.choice(running).abort()

    def end(self) -> None:
        """End what is built now; some of it may fail."""
        self.machine.end_builds(*self.random.sample(NAMES, self.random.choice((0, 0, 1))))

    def rest(self) -> None:
        self.machine.tick(self.random.choice((60, 15 * 60)))

    def fault(self) -> Fault | None:
        kind, number = self.random.choice((None, None, None, *FAULTS, "meanwhile")), self.random.randrange(12)
        if kind == "meanwhile":
            # Two objects are read at once, and a third reader would wait in this thread for ever.
            return None if self.is_meanwhile else Meanwhile(number, self.meanwhile)
        return None if kind is None else Fault(kind, number, jobs=self.random.random() < 0.3)

    def check(self) -> None:
        """After each attempt: what is live is the archive of its key, and each change is one that was asked for."""
        for name, entries in self.entries.items():
            for entry in self.machine.documents(name)[len(entries) :]:
                entries.append(entry)
                self.check_change(name, *entries[-2:])
            if entries and (current := entries[-1]["current"]) is not None:
                archive = self.machine.live(name)  # an error if it is not there
                key = entries[-1]["versions"][0]["artifact_key"]
                assert archive in self.machine.program.built[key], f"{current} is not what was built"

    def check_change(self, name: str, *entries: dict[str, Any]) -> None:
        """An execution has written an entry: it has done what it was asked for, and the rest stays listed."""
        before, after = entries if len(entries) == 2 else ({"current": None, "versions": []}, entries[0])
        execution = (after["unpublished"] or after["versions"][0]["live"])["execution"]
        asked = self.asked[execution.removeprefix(EXECUTION)][name]
        was, listed = before["current"], [version["target_model"] for version in before["versions"]]
        earlier = next((target for target in listed if target != was), None)
        wanted = {"unpublish": None, "forget": None, "roll_back": earlier}.get(asked, asked)
        assert after["current"] == wanted, f"{execution} made {after['current']} live, and was asked for {asked}"
        if asked == "forget":
            assert listed, f"{execution} changed nothing of {name}"
            assert not after["versions"], f"{execution} has not forgotten {name}"
            return
        assert after["current"] != was, f"{execution} changed nothing of {name}"
        assert set(listed) <= {version["target_model"] for version in after["versions"]}, f"a version of {name} is lost"

    def check_done(self, execution: Execution) -> None:
        """An execution that has succeeded has changed everything as asked, or found it so."""
        for name, asked in self.asked[execution.name].items():
            entries = self.entries[name]
            is_listed = any(EXECUTION + execution.name in entry["executions"] for entry in entries)
            found = {"unpublish": None, "forget": None}.get(asked, asked)
            assert is_listed or any(entry["current"] == found for entry in entries), f"{asked} of {name} is not done"


@pytest.mark.slow
def test_whatever_happens_to_builds_nothing_is_lost_or_built_twice(sequences: int | None) -> None:
    logging.getLogger("artifacts").setLevel(logging.CRITICAL)
    first = 0 if sequences is None else time.time_ns()
    for seed in range(first, first + (sequences or 80)):
        try:
            World(seed).run()
        except Exception as error:
            raise AssertionError(f"the sequence of the seed {seed}: {error}") from error


@pytest.mark.slow
def test_two_publishers_that_need_the_same_archive_have_it_built_once() -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0])
    machine.publish_sources("second", two=SOURCES[0])
    executions = [Execution(machine, each, each) for each in ("first", "second")]
    for _ in range(20):
        for execution in executions:
            if not execution.has_ended:
                execution.step(0, None)
    assert len(machine.codebuild.live()) == 1
    machine.end_builds()
    while not all(each.has_ended for each in executions):
        for execution in executions:
            if not execution.has_ended:
                execution.step(0, None)
    assert [each.failure for each in executions] == [None, None]
    assert machine.live("one") == machine.live("two") == machine.program.built[KEYS[0].artifact][0]
    assert all(machine.s3.get(STORE, f"artifacts/{name}/{KEYS[0].artifact}/manifest.json") for name in ("one", "two"))


@pytest.mark.slow
def test_a_build_that_outlives_its_machine_is_found_by_the_next_one() -> None:
    machine = BuildingMachine()
    machine.publish_sources("first", one=SOURCES[0], two=SOURCES[1])
    aborted = Execution(machine, "first", "first-1")
    for _ in range(9):
        aborted.step(0, None)
        aborted.step(1, None)
    assert len(machine.codebuild.live()) == 2  # two builds may run at once
    aborted.abort()
    machine.end_builds("two")
    machine.tick(60)

    again = Execution(machine, "first", "first-2")
    for _ in range(40):
        if not again.has_ended:
            again.step(0, None)
            machine.end_builds()
    assert again.failure is None  # the build that had failed before it began was made again
    assert machine.live("one") is not None
    assert len(machine.codebuild.requests()) == 3
