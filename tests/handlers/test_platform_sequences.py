"""Generated sequences of publishers and of people who change the platform of a `TritonMultiModel`, back and forth.

pytest tests/handlers/test_platform_sequences.py                        a fixed few hundred sequences, in seconds
pytest tests/handlers/test_platform_sequences.py --sequences 10000      other ones each time

The machines of both platforms run at once, with faults, while deployments compare the catalogues and change the
platform. A failing sequence is run again by its seed, which the message has.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import artifacts
from artifacts.archive_keys import archive_keys
from artifacts.failure import ArtifactError
from artifacts.invocation import Invocation
from build_model.faults import Fault
from cdk_triton.protocol import layout
from protocol.plan import ServedArchives, StackPlan
from publisher_executions import Execution
from publisher_machine import EXECUTION, FLEET, KEYS, STORE, Machine, packed, storage_on

pytestmark = pytest.mark.timeout(7200)

ASSETS = "the-assets"
FAULTS = ("crash before", "crash after", "limbo", "unsent", "lost", "late", "asked twice", "throttled", "broken")
VERSIONS = [packed({"text/config.pbtxt": b"name: 'text'", "text/1/model.py": f"# {n}".encode()}) for n in range(3)]
TARGETS = {f"{archive_keys(iter([each]), KEYS, 'it').source[:10]}.tar.gz": each for each in VERSIONS}
NAMES = ("one", "two", "three")
PUBLISHER, NEXT_PUBLISHER = (EXECUTION.replace(":machine:", f":{name}:") for name in ("Publisher", "NextPublisher"))
OTHER = replace(KEYS, target={"image": "image:26.05", "gpu": {"name": "A10G"}})


class World:
    """A store, the publishers of two platforms, and the endpoint, which serves one of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.serving = Machine(executions=PUBLISHER)
        self.following = Machine(self.serving.s3, platform="26.05-a10g", keys=OTHER, executions=NEXT_PUBLISHER)
        self.serving.watch = self.following.watch = self.check
        self.executions: list[Execution] = []
        self.started = Counter[str]()
        self.changes = self.left_behind = self.met = 0

    def run(self) -> None:
        """One sequence, then a publication of everything and a change without a fault."""
        for _ in range(self.random.randint(10, 60)):
            self.random.choices(
                [self.publish, self.unpublish, self.publish_all, self.step, self.change, self.roll_back],
                [3, 1, 3, 20, 2, 1],
            )[0]()
        for execution in self.executions:
            while not execution.has_ended:
                execution.step(0, None)
        self.publish_all()
        while not self.executions[-1].has_ended:
            self.executions[-1].step(0, None)
        changes = self.changes
        self.change()
        assert self.changes == changes + 1

    # -- what people do

    def publish(self) -> None:
        """Publish some versions, mostly for the platform that serves."""
        machine = self.random.choice((self.serving, self.serving, self.following))
        chosen = self.random.sample(NAMES, self.random.randint(1, 3))
        archives = {name: self.random.choice(VERSIONS) for name in sorted(chosen)}
        publication = digest([[name, VERSIONS.index(archive)] for name, archive in archives.items()], machine)
        machine.publish(publication, **archives)
        self._start(machine, publication)

    def unpublish(self) -> None:
        machine = self.random.choice((self.serving, self.serving, self.following))
        self._start_items(machine, [{"ensemble": self.random.choice(NAMES), "action": "unpublish"}])

    def publish_all(self) -> None:
        """As `cdk-triton fleet publish --all` does for the platform that does not serve."""
        items = []
        for name, entry in live(self.serving).items():
            if live(self.following).get(name, {}).get("current") != entry["current"]:
                keys = archive_keys(iter([self.serving.live(name) or b""]), self.following.keys, "it")
                keyed = {"source_key": keys.source, "artifact_key": keys.artifact, "repository": name}
                copied = {"from_platform": self.serving.platform, **keyed}
                items.append({"ensemble": name, "action": "publish", **copied})
        nothing = [{"ensemble": "nobody", "action": "roll_back"}]  # a request has at least one item
        self._start_items(self.following, items or nothing)

    def change(self) -> None:
        """Deploy the change of the platform; the publishers change their places."""
        before = live(self.serving)
        expected = {name for name, entry in before.items() if not self.is_ready(name, entry)}
        if expected:
            with pytest.raises(ArtifactError, match=f"^{len(expected)} live ensemble"):
                deploy(self.serving, self.following, "UPDATE_IN_PROGRESS")
            return
        deploy(self.serving, self.following, "UPDATE_IN_PROGRESS")
        self._switch()
        assert {name: live(self.serving)[name]["current"] for name in before} == {
            name: entry["current"] for name, entry in before.items()
        }

    def roll_back(self) -> None:
        """A change whose deployment fails later: CloudFormation brings the platform before back, whatever is there.

        Publishers go on in between. So what is live for the new platform may be missing for the one before.
        """
        if all(self.is_ready(name, entry) for name, entry in live(self.serving).items()):
            deploy(self.serving, self.following, "UPDATE_IN_PROGRESS")
            self._switch()
            for _ in range(self.random.randrange(8)):
                self.random.choice([self.publish, self.unpublish, self.step, self.step])()
            expected = live(self.following)
            self.left_behind += any(not self.is_ready(name, entry) for name, entry in live(self.serving).items())
            deploy(self.serving, self.following, "UPDATE_ROLLBACK_IN_PROGRESS")
            self._switch()
            assert live(self.serving) == expected
            self.check()

    def is_ready(self, name: str, entry: dict[str, Any]) -> bool:
        return bool(live(self.following).get(name, {}).get("current") == entry["current"])

    def _switch(self) -> None:
        self.serving, self.following = self.following, self.serving
        self.serving.executions, self.following.executions = PUBLISHER, NEXT_PUBLISHER
        self.changes += 1

    def _start_items(self, machine: Machine, items: list[dict[str, Any]]) -> None:
        publication = digest(items, machine)
        machine.upload(publication, items)
        self._start(machine, publication)

    def _start(self, machine: Machine, publication: str) -> None:
        """Start an execution as the command does: its name is new for its machine, and not for others."""
        arn = machine.executions + publication
        self.started[arn] += 1
        execution = Execution(machine, publication, f"{publication}-{self.started[arn]}")
        written = [*storage_on(machine.s3).keys(execution.place.failures)]
        assert not written, written
        assert machine.s3.get(STORE, execution.place.items) is None
        self.met += any(other != arn and other.endswith(f":{publication}") for other in self.started)
        self.executions.append(execution)

    # -- what Step Functions does, and what holds

    def step(self) -> None:
        if running := [each for each in self.executions if not each.has_ended]:
            kind = self.random.choice((None, None, None, *FAULTS))
            fault = None if kind is None else Fault(kind, self.random.randrange(8))
            self.random.choice(running).step(self.random.randrange(9), fault)

    def check(self) -> None:
        """After each attempt: what is live on a platform is the archive of its name, with the keys of the platform."""
        for machine in (self.serving, self.following):
            for name, entry in live(machine).items():
                archive = machine.live(name)  # an error if it is not there
                assert archive == TARGETS[entry["current"].removeprefix(f"{name}-")]
                key = layout.fleet_prefix(FLEET, machine.platform) + entry["current"]
                owner = machine.s3.head_object({"Bucket": STORE, "Key": key})["Metadata"]["artifact-key"]
                assert owner == archive_keys(iter([archive or b""]), machine.keys, "it").artifact


def digest(items: list[Any], machine: Machine) -> str:
    """The id of a publication; the items that publish have keys of their platform."""
    return hashlib.sha256(json.dumps([items, machine.platform]).encode()).hexdigest()[:40]


def live(machine: Machine) -> dict[str, dict[str, Any]]:
    """The entries of what is live for a platform."""
    found = {name: machine.entry(name) for name in NAMES}
    return {name: entry for name, entry in found.items() if entry is not None and entry["current"] is not None}


def deploy(old: Machine, new: Machine, status: str) -> None:
    """The update of the custom resource when the platform changes."""
    text = StackPlan((), ServedArchives(FLEET, index(new), ())).text()
    sha256 = hashlib.sha256(text).hexdigest()
    new.s3.put(ASSETS, f"triton-plan-{sha256}.json", text)
    storage = storage_on(new.s3)
    place = {"PlanBucket": ASSETS, "PlanKey": f"triton-plan-{sha256}.json", "PlanSha256": sha256}
    event = {
        "RequestType": "Update",
        "StackId": "the stack",
        "ResourceProperties": place | {"PublishedPlatform": new.platform, "PublishCommand": "the command"},
        "OldResourceProperties": {"PublishedPlatform": old.platform, "PublishCommand": "the command"},
    }
    answer = artifacts.poll(event, Invocation(storage, {}, lambda: 300_000, stack_status=lambda stack: status))
    assert answer["IsComplete"]


def index(machine: Machine) -> str:
    return layout.index_key(FLEET, machine.platform)


@pytest.mark.slow
def test_whatever_happens_a_change_of_the_platform_leaves_no_live_ensemble_behind(sequences: int | None) -> None:
    logging.getLogger("artifacts").setLevel(logging.CRITICAL)
    first = 0 if sequences is None else time.time_ns()
    left_behind = met = 0
    for seed in range(first, first + (sequences or 100)):
        world = World(seed)
        try:
            world.run()
        except Exception as error:
            raise AssertionError(f"the sequence of the seed {seed}: {error}") from error
        left_behind, met = left_behind + world.left_behind, met + world.met
    assert left_behind  # else no rollback has met what the comparison rejects
    assert met  # else no two machines have executed the same publication
