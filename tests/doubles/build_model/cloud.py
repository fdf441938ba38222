"""The AWS in memory, and the handlers in it."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

import artifacts
from artifacts import copying
from artifacts.builders import Builders
from artifacts.failure import ArtifactError, NotYetError
from artifacts.storage import Storage
from build_model.faults import Fault, Killed
from build_model.plans import PLANS, Published, publish
from memory_aws import S3, Call, Client, Clock, CodeBuild, Logs, Processing, ProgramDouble, Wire
from memory_aws.turns import Turns

__all__ = ["STORE", "Cloud", "Killed", "Poll"]

STORE = "the-store"
STARTS = {"StartBuild", "CreateProcessingJob"}
INVOCATION_SECONDS = 5 * 60
"""How long a Lambda lives."""
ON_ITS_WAY_SECONDS = 60
"""How long a call may be on its way at most."""

SETTINGS: dict[str, Any] = {
    "codebuild": {"project": "the-project", "log_group": "/builds"},
    "processing": {
        "role": "arn:aws:iam::123456789012:role/builds",
        "subnets": ["subnet-1"],
        "security_groups": ["sg-1"],
        "kms_key": None,
        "volume_key_families": ["ml.p2", "ml.p3"],
    },
}
Event = dict[str, Any]


@dataclass(frozen=True)
class Poll:
    """What one call of `is_complete` did: `done`, or the failure's text, or that the process died."""

    done: bool = False
    failure: str | None = None
    killed: bool = False


class _StoreFolder:
    def __init__(self, s3: S3) -> None:
        self._s3 = s3

    def get(self, key: str) -> bytes | None:
        return self._s3.get(STORE, key)

    def put(self, key: str, body: bytes) -> None:
        self._s3.put(STORE, key, body)


class Cloud:
    """Services in memory, the store, and the plans among the assets.

    Attributes:
        start_fault: what goes wrong at the next start of a job, whoever asks for it.
        pace: how many seconds a call takes.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.s3 = S3(self.clock)
        self.program = ProgramDouble(_StoreFolder(self.s3), copying.PART_BYTES)
        self.codebuild = CodeBuild("the-project", self.clock, self.program)
        self.processing = Processing(self.clock, self.program)
        self.plans: list[Published] = [publish(self.s3, *plan) for plan in PLANS]
        self.start_fault: Fault | None = None
        self.pace = 0.0
        self._limbo: list[tuple[float, Call]] = []
        self.calls: set[tuple[str, str]] = set()
        self.turns = Turns()
        self.stack_status = {"a-stack": "UPDATE_IN_PROGRESS", "a-stack-that-rolls-back": "UPDATE_ROLLBACK_IN_PROGRESS"}
        self._tokens = itertools.count(1)
        self._doubles = {"codebuild": self.codebuild, "sagemaker": self.processing, "logs": Logs(), "s3": self.s3}

    # -- the handlers

    def poll(self, event: Event, fault: Fault | None = None) -> Poll:
        """One call of `is_complete`; anything but a legal answer is an error of the test."""
        fault = fault or Fault("none", 0)
        until = self.clock() + INVOCATION_SECONDS

        def around(service: str, operation: str, call: Call) -> dict[str, Any]:
            self.turns.pause()
            if self.clock() >= until:
                raise Killed
            self.tick(self.pace)  # which brings what is on its way
            meddler = fault
            if operation in STARTS and self.start_fault is not None:
                meddler, self.start_fault = self.start_fault, None
            return meddler.around(service, call, lambda late: self._limbo.append((self.clock(), late)))

        wire = Wire(self.calls, around)
        clients = {name: Client(name, double, wire) for name, double in self._doubles.items()}
        invocation = artifacts.Invocation(
            storage=Storage(cast(Any, clients["s3"]), STORE),
            builders=Builders(SETTINGS, STORE, clients.__getitem__),
            remaining_millis=lambda: 0 if fault.slow() else int((until - self.clock()) * 1000),
            now=self.clock,
            token=lambda: f"{next(self._tokens):016x}",
            stack_status=self.stack_status.__getitem__,
        )
        try:
            answer = artifacts.poll(event, invocation)
        except Killed:
            return Poll(killed=True)
        except ArtifactError as error:
            text, cause = str(error), error.__cause__
            assert text.isascii(), text
            assert text.isprintable(), text
            assert 0 < len(text) <= 1000, text
            legal = cause is None or isinstance(cause, ArtifactError | ClientError | BotoCoreError | NotYetError)
            assert legal, f"a mistake of ours: {cause!r}"
            return Poll(failure=text)
        answers = {"IsComplete": True}, {"IsComplete": False, "Seconds": 30}, {"IsComplete": False, "Seconds": 2}
        assert answer in answers, f"illegal answer {answer}"
        return Poll(done=answer["IsComplete"])

    def accept(self, event: Event) -> Event:
        """`on_event`, and what the framework makes of its answer."""
        accepted = artifacts.on_event(event, None)
        if "StartedAt" in accepted:
            accepted["StartedAt"] = self.clock()
        return {**event, **accepted}

    def together(self, polls: Sequence[Callable[[], Poll]], order: Iterator[int], pace: float = 0) -> list[Poll]:
        """Several polls whose calls interleave and take so many seconds each."""
        self.pace = pace
        results = self.turns.run(polls, order)
        self.pace = 0
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    # -- time

    def deliver(self, sent_until: float = math.inf) -> None:
        """The services see what was on its way, if it was sent by then."""
        ready = [call for sent, call in self._limbo if sent <= sent_until]
        self._limbo = [(sent, call) for sent, call in self._limbo if sent > sent_until]
        for call in ready:
            with suppress(ClientError):
                call()

    def tick(self, seconds: float) -> None:
        """Time passes; nothing stays on its way for as long as a minute."""
        self.deliver(self.clock() + seconds - ON_ITS_WAY_SECONDS)
        self.clock.now += seconds
        if seconds > 7 * 86_400:
            self.s3.expire(STORE, "staging/")

    # -- what is there

    def live_jobs(self) -> dict[str, str]:
        """Every running job to its build."""
        return {**self.codebuild.live(), **self.processing.live()}

    def hang(self, longer_than: float) -> list[str]:
        """The running jobs that are older than that."""
        return [
            job
            for service in (self.codebuild, self.processing)
            for job in service.live()
            if service.age(job) > longer_than
        ]

    def end(self, job: str, status: str, outcomes: Any) -> None:
        """A job ends; its output is there before its status says so."""
        self.program.finish(self.live_jobs()[job], outcomes)
        service = self.codebuild if job in self.codebuild.live() else self.processing
        service.end(job, status, "exit status 1")

    def vanish(self, job: str) -> None:
        """A job is gone without a trace."""
        service = self.codebuild if job in self.codebuild.live() else self.processing
        service.vanish(job)

    def is_lost(self, job: str | None) -> bool:
        """Whether a job has vanished."""
        return job is not None and not self.codebuild.knows(job) and not self.processing.knows(job)

    def state_of(self, key: str) -> dict[str, Any] | None:
        """The build that a key's lock points to."""
        lock = self.read(f"staging/locks/{key}.json")
        return None if lock is None else self.read(f"staging/{lock['build']}/state.json")

    def states(self) -> list[dict[str, Any]]:
        """Every build."""
        return [found for found in map(self.read, self._state_keys()) if found is not None]

    def changes(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Every change of every build: what its document said, and what it said next."""
        for key in self._state_keys():
            versions = [json.loads(text) for text in self.s3.history[STORE, key]]
            yield from itertools.pairwise(versions)

    def jobs(self) -> list[str]:
        """The build of every job that there is or was, without those that vanished."""
        builds = [request["idempotencyToken"] for request in self.codebuild.requests()]
        return builds + [request["ProcessingJobName"] for request in self.processing.requests()]

    def _state_keys(self) -> list[str]:
        return [key for bucket, key in self.s3.history if bucket == STORE and key.endswith("state.json")]

    def read(self, key: str) -> dict[str, Any] | None:
        """A JSON document of the store."""
        text = self.s3.get(STORE, key)
        return None if text is None else cast(dict[str, Any], json.loads(text))

    def assert_delivered(self, plan: Published, *, rehearsed: bool = True) -> None:
        """Every archive of a plan is there, is what a build made, and its manifest and its passes say so."""
        for each in plan.rehearsals if rehearsed else ():
            self.assert_rehearsed(each)
        for commit in plan.document["commits"]:
            archive, manifest = self.s3.get(STORE, commit["archive"]), self.read(commit["manifest"])
            assert archive is not None, f"{commit['archive']} is not there"
            assert manifest is not None, f"{commit['manifest']} is not there"
            assert manifest["archive"]["size"] == len(archive)
            if commit["build"] is None:
                continue
            assert archive in self.program.built.get(commit["artifact_key"], []), f"no build made {archive!r}"
            if "archive" in manifest["build"]:  # else its report had expired
                assert manifest["build"]["archive"]["sha256"] == hashlib.sha256(archive).hexdigest()
        fleet = plan.document["fleet"]
        for copy in fleet["copies"] if fleet else ():
            assert self.s3.get(STORE, copy["target"]) == self.s3.get(STORE, copy["archive"])

    def assert_rehearsed(self, rehearsal: Mapping[str, Any]) -> None:
        """The pass of a rehearsal is there, and is for the archive that is there."""
        place = f"artifacts/{rehearsal['repository']}/{rehearsal['artifact_key']}"
        archive, found = self.s3.get(STORE, f"{place}/model.tar.gz"), self.pass_of(rehearsal)
        assert found is not None, f"{place} has no pass of {rehearsal['key']}"
        assert archive is not None
        assert found["archive"]["sha256"] == hashlib.sha256(archive).hexdigest()
        assert found["archive"]["size"] == len(archive)

    def pass_of(self, rehearsal: Mapping[str, Any]) -> dict[str, Any] | None:
        """The pass of a rehearsal."""
        place = f"artifacts/{rehearsal['repository']}/{rehearsal['artifact_key']}"
        return self.read(f"{place}/rehearsals/{rehearsal['key']}.json")


@contextmanager
def small_parts() -> Iterator[None]:
    """Archives of a few bytes have several parts."""
    before = copying.PART_BYTES
    copying.PART_BYTES = 16
    try:
        yield
    finally:
        copying.PART_BYTES = before
