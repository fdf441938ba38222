"""Generated sequences of what publishers, services and people may do to a publisher's machine.

pytest tests/handlers/test_publisher_model.py                        a fixed few hundred sequences, in seconds
pytest tests/handlers/test_publisher_model.py --sequences 10000      other ones each time

The real functions run in every order that the definition allows, several executions at once, against S3 in memory. A
failing sequence is run again by its seed, which the message has.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections import Counter
from typing import Any

import pytest

from build_model.faults import Fault
from publisher_executions import Execution, Meanwhile
from publisher_machine import FLEET, PLATFORM, STORE, Machine, packed, packed_keys

pytestmark = pytest.mark.timeout(7200)

FAULTS = ("crash before", "crash after", "limbo", "unsent", "lost", "late", "asked twice", "throttled", "broken")
VERSIONS = [packed({"text/config.pbtxt": b"name: 'text'", "text/1/model.py": f"# {n}".encode()}) for n in range(4)]
TARGETS = {f"{packed_keys(each).source[:10]}.tar.gz": each for each in VERSIONS}
NAMES = ("one", "two", "three")
SERVED = f"fleets/{FLEET}/{PLATFORM}/"


class World:
    """A store, its publishers, and the rules that hold whatever happens."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.machine = Machine()
        self.machine.watch = self.check
        self.executions: list[Execution] = []
        self.live: dict[str, str | None] = dict.fromkeys(NAMES)
        self.asked: dict[str, set[bytes]] = {name: set() for name in NAMES}
        self.unpublished: set[str] = set()
        self.forgotten: set[str] = set()
        self.listed: dict[str, set[str]] = {name: set() for name in NAMES}
        self.documents = Counter[str]()
        self.names = Counter[str]()

    def run(self) -> None:
        """One sequence, and then one publication of everything without a fault."""
        for _ in range(self.random.randint(5, 60)):
            self.random.choices(
                [self.publish, self.change, self.step, self.abort, self.again, self.replay, self.repeat],
                [3, 3, 24, 1, 2, 2, 3],
            )[0]()
        for execution in self.executions:
            execution.abort()
        self.start("last", dict.fromkeys(NAMES, VERSIONS[3]), {})
        while not self.executions[-1].has_ended:
            self.executions[-1].step(0, None)
        assert self.executions[-1].failure is None
        assert all(self.machine.live(name) == VERSIONS[3] for name in NAMES)
        for (bucket, key), bodies in self.machine.s3.history.items():
            if bucket == STORE and key.startswith(SERVED) and key.endswith(".tar.gz"):
                assert len(bodies) == 1, f"{key} was written {len(bodies)} times"
        for name in NAMES:  # however late a function was repeated
            twice = [execution for execution, times in Counter(self.machine.changes(name)).items() if times > 1]
            assert not twice, f"{twice} changed {name} twice"

    # -- what publishers do

    def publish(self) -> None:
        chosen = self.random.sample(NAMES, self.random.randint(1, 3))
        self.start("publish", {name: self.random.choice(VERSIONS) for name in chosen}, {})

    def change(self) -> None:
        action = self.random.choice(["roll_back", "roll_back", "unpublish", "forget"])
        self.start(action, {}, {self.random.choice(NAMES): action})

    def start(self, kind: str, archives: dict[str, bytes], changes: dict[str, str]) -> None:
        self.names[kind] += 1
        publication = f"{kind.replace('_', '-')}-{self.names[kind]}"
        if archives:
            self.machine.publish(publication, **archives)
        else:
            items = [{"ensemble": name, "action": action} for name, action in changes.items()]
            self.machine.upload(publication, items)
        for name, archive in archives.items():
            self.asked[name].add(archive)
        self.unpublished |= {name for name, action in changes.items() if action in ("unpublish", "forget")}
        self.forgotten |= {name for name, action in changes.items() if action == "forget"}
        self.executions.append(Execution(self.machine, publication, f"{publication}-1"))

    def again(self) -> None:
        """Start a machine again that has failed or was aborted, with the same request."""
        if ended := [each for each in self.executions if each.has_ended]:
            publication = self.random.choice(ended).publication
            self.names[publication] += 1
            self.executions.append(Execution(self.machine, publication, f"{publication}-{self.names[publication] + 1}"))

    # -- what Step Functions does

    def step(self) -> None:
        if running := [each for each in self.executions if not each.has_ended]:
            execution = self.random.choice(running)
            execution.step(self.random.randrange(9), self.fault())
            if execution.has_ended and execution.failure is None:
                self.check_done(execution)

    def replay(self) -> None:
        if self.executions:
            self.random.choice(self.executions).replay(self.random.randrange(99), self.fault())

    def repeat(self) -> None:
        """Run all functions of an execution again, however long ago they ran."""
        if self.executions:
            execution = self.random.choice(self.executions)
            for number in range(len(execution.past)):
                execution.replay(number, None)

    def abort(self) -> None:
        if running := [each for each in self.executions if not each.has_ended]:
            self.random.choice(running).abort()

    def fault(self) -> Fault | None:
        kind, number = self.random.choice((None, None, *FAULTS, "meanwhile", "meanwhile")), self.random.randrange(8)
        if kind == "meanwhile":
            return Meanwhile(number, self.step)
        return None if kind is None else Fault(kind, number)

    # -- what holds

    def check(self) -> None:
        """After each attempt: what is live is there and was asked for, and nothing that was live is lost."""
        for name in NAMES:
            entry = self.machine.entry(name)
            current = None if entry is None else entry["current"]
            if current is not None:
                archive = self.machine.live(name)  # an error if it is not there
                assert archive == TARGETS[current.removeprefix(f"{name}-")]
                assert archive in self.asked[name]
            elif self.live[name] is not None:
                assert name in self.unpublished, f"{name} was live"
            self.live[name] = current
            self.check_listed(name)

    def check_listed(self, name: str) -> None:
        """Each document lists what the one before listed, unless the ensemble is forgotten."""
        for entry in self.machine.documents(name)[self.documents[name] :]:
            self.documents[name] += 1
            listed = {version["target_model"] for version in entry["versions"]}
            if listed:
                lost = self.listed[name] - listed
                assert not lost, f"{lost} of {name} is not listed any more"
            else:
                assert name in self.forgotten, f"{name} was not to be forgotten"
            self.listed[name] = listed

    def check_done(self, execution: Execution) -> None:
        """An execution that has succeeded has published everything: each target is live, or was since."""
        request: Any = self.machine.s3.get(
            STORE, f"staging/publish/fleet/AROAEXAMPLE:alice/{execution.publication}/request.json"
        )
        for item in json.loads(request)["items"]:
            if item["action"] == "publish":
                target = f"{item['ensemble']}-{item['source_key'][:10]}.tar.gz"
                assert target in [entry["current"] for entry in self.machine.documents(item["ensemble"])]


@pytest.mark.slow
def test_whatever_happens_no_ensemble_is_lost_and_the_next_publication_succeeds(sequences: int | None) -> None:
    logging.getLogger("artifacts").setLevel(logging.ERROR)
    first = 0 if sequences is None else time.time_ns()
    for seed in range(first, first + (sequences or 200)):
        try:
            World(seed).run()
        except Exception as error:
            raise AssertionError(f"the sequence of the seed {seed}: {error}") from error
