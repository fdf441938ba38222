"""Model-based test of the build step: generated sequences of what CloudFormation, services, people and time may do.

pytest tests/handlers/test_build_model.py                        a fixed few hundred sequences, in seconds
pytest tests/handlers/test_build_model.py --sequences 10000      other ones each time

Each sequence ends with the question whether one more deployment succeeds. The AWS is in memory (`build_model`).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from build_model import FAULTS, PLANS, Cloud, Fault, Operation, Poll, Stack
from build_model.cloud import STORE, small_parts
from memory_aws import refusal

pytestmark = pytest.mark.timeout(7200)

STACKS = st.integers(0, 1)
NUMBERS = st.integers(0, 60)
STINTS = st.lists(st.integers(0, 50), max_size=5)
"""After how many calls it is the other poll's turn: few changes at any place meet more than many at random do."""
PACES = st.sampled_from([0, 0, 1, 10, 40])
"""How many seconds a call takes: with the largest an invocation is killed after eight of them."""
FAULT = st.one_of(
    st.none(),
    st.builds(Fault, st.sampled_from(FAULTS), NUMBERS),
    st.builds(Fault, st.sampled_from(FAULTS), st.integers(0, 2), st.just(True)),
)
START_FAULTS = st.sampled_from(["crash before", "crash after", "limbo", "lost", "late"])
TIMES = st.sampled_from([30, 30, 60, 200, 400, 700, 1800, 3 * 3600, 8 * 86_400])
OUTCOMES = st.dictionaries(
    st.sampled_from(["text", "image", "audio", "rehearsal of text", "rehearsal of plain"]),
    st.sampled_from(["failed", "missing", "corrupt", "cut"]),
    max_size=2,
)
STATUSES = st.sampled_from(["FAULT", "SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"])
REFUSALS = {
    "throttled": refusal("ThrottlingException", "Rate exceeded"),
    "not yet allowed": refusal("AccessDeniedException", "User is not authorized to perform: codebuild:StartBuild"),
    "role not yet there": refusal("ValidationException", "Could not assume role arn:aws:iam::123456789012:role/builds"),
    "invalid": refusal("InvalidInputException", "Invalid image"),
    "broken": refusal("InternalFailure", "internal", 500),
}
LISTED_SECONDS = 5 * 60


class Deployments(RuleBasedStateMachine):
    """Two stacks that share a store."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud = Cloud()
        self.stacks = [Stack(self.cloud), Stack(self.cloud)]

    # -- what CloudFormation does

    @initialize(plan=st.integers(0, len(PLANS) - 1), polls=st.integers(0, 2), kind=st.one_of(st.none(), START_FAULTS))
    def begin(self, plan: int, polls: int, kind: str | None) -> None:
        if kind is not None:
            self.the_next_start_goes_wrong(kind)
        self.deploy(0, plan, polls)

    @rule(number=STACKS, plan=st.integers(0, len(PLANS) - 1), polls=st.integers(0, 2))
    def deploy(self, number: int, plan: int, polls: int) -> None:
        stack = self.stacks[number]
        if stack.operation is None:
            stack.deploy(self.cloud.plans[plan])
        self.poll_some_times(number, polls)

    @rule(number=STACKS, fault=FAULT)
    def poll_once(self, number: int, fault: Fault | None) -> None:
        stack = self.stacks[number]
        if stack.operation is not None:
            stack.settle(self.poll(stack.operation, fault))
            self.cloud.tick(30)

    @rule(number=STACKS, polls=st.integers(2, 4))
    def poll_some_times(self, number: int, polls: int) -> None:
        stack = self.stacks[number]
        for _ in range(polls):
            if stack.operation is not None:
                stack.settle(self.poll(stack.operation, None))
                self.cloud.tick(30)

    @precondition(lambda self: self.operations())
    @rule(first=STACKS, second=STACKS, faults=st.tuples(FAULT, FAULT), stints=STINTS, pace=PACES)
    def poll_together(self, first: int, second: int, faults: Any, stints: list[int], pace: int) -> None:
        """Two stacks at once, or one event twice."""
        operations = self.operations()
        chosen = [operations[number % len(operations)] for number in (first, second)]
        polls = [
            partial(self.cloud.poll, operation.event, fault) for operation, fault in zip(chosen, faults, strict=True)
        ]
        order = (number % 2 for number, stint in enumerate(stints) for _ in range(stint))
        results = self.cloud.together(polls, order, pace)
        for operation, result in zip(chosen, results, strict=True):
            self.check(operation, result)
            for stack in self.stacks:
                if stack.operation is operation:
                    stack.settle(result)
        self.cloud.tick(30)

    @precondition(lambda self: self.past())
    @rule(number=st.integers(0, 30), fault=FAULT)
    def repeat_an_old_event(self, number: int, fault: Fault | None) -> None:
        past = self.past()
        operation = past[number % len(past)]
        self.check(operation, self.cloud.poll(operation.event, fault))

    @rule(number=STACKS)
    def delete(self, number: int) -> None:
        self.stacks[number].delete()

    # -- what services, people and time do

    @rule(seconds=TIMES)
    def time_passes(self, seconds: int) -> None:
        self.cloud.tick(seconds)

    @rule()
    def what_was_on_its_way_arrives(self) -> None:
        self.cloud.deliver()

    @precondition(lambda self: self.cloud.live_jobs())
    @rule(number=st.integers(0, 5))
    def a_job_succeeds(self, number: int) -> None:
        jobs = sorted(self.cloud.live_jobs())
        self.cloud.end(jobs[number % len(jobs)], "SUCCEEDED", {})

    @precondition(lambda self: self.cloud.live_jobs())
    @rule(number=st.integers(0, 5), status=STATUSES, outcomes=OUTCOMES)
    def a_job_ends(self, number: int, status: str, outcomes: Any) -> None:
        jobs = sorted(self.cloud.live_jobs())
        self.cloud.end(jobs[number % len(jobs)], status, outcomes)

    @precondition(lambda self: self.cloud.live_jobs())
    @rule(number=st.integers(0, 5))
    def a_job_vanishes(self, number: int) -> None:
        jobs = sorted(self.cloud.live_jobs())
        self.cloud.vanish(jobs[number % len(jobs)])

    @rule(which=st.sampled_from(["none", *REFUSALS]), times=st.integers(1, 3), room=st.sampled_from([10, 0, 1]))
    def starts_are_refused(self, which: str, times: int, room: int) -> None:
        for service in (self.cloud.codebuild, self.cloud.processing):
            service.refusals = [REFUSALS[which]] * times if which in REFUSALS else []
            service.room = room

    @rule(kind=START_FAULTS)
    def the_next_start_goes_wrong(self, kind: str) -> None:
        """Starts are rare among calls, and what goes wrong at them matters most."""
        self.cloud.start_fault = Fault(kind, 0)

    # -- what must hold

    @invariant()
    def at_most_one_live_build_per_key(self) -> None:
        keys = [key for build in self.cloud.live_jobs().values() for key in self.cloud.program.members(build)]
        assert len(keys) == len(set(keys)), f"built twice at once: {keys}"

    @invariant()
    def a_build_has_one_job(self) -> None:
        builds = self.cloud.jobs()
        assert len(builds) == len(set(builds)), f"started twice: {builds}"

    @invariant()
    def a_committed_artifact_never_changes(self) -> None:
        for (bucket, key), contents in self.cloud.s3.history.items():
            if bucket == STORE and key.startswith("artifacts/"):
                assert len(contents) == 1, f"{key} was written {len(contents)} times"
                assert self.cloud.s3.get(bucket, key) is not None, f"{key} was deleted"

    @invariant()
    def a_job_finds_its_inputs(self) -> None:
        assert self.cloud.program.incomplete == []

    def documents_change_by_the_rules(self) -> None:
        """Nobody takes a lease that has not run out, what is fixed stays fixed, and what was given up has no job."""
        jobs = self.cloud.jobs()
        for before, after in self.cloud.changes():
            lease, taken = before["lease"], after["lease"]
            if lease is not None and taken is not None and taken["token"] != lease["token"]:
                assert after["worked_at"] >= lease["until"], f"taken before its end: {lease}"
            if lease is not None and after["ended"] is not None and after["ended"]["status"] == "ABANDONED":
                assert after["ended"]["at"] >= lease["until"], f"ended before its end: {lease}"
            for name in ("members", "job", "ended"):
                assert before[name] in (None, after[name]), f"{name} changed: {before} to {after}"
            if after["ended"] is not None and after["job"] is None:
                assert after["build"] not in jobs, f"given up, and its job exists: {after}"

    def check(self, operation: Operation, result: Poll) -> None:
        note(f"{operation.event['RequestType']} {operation.plan.properties['PlanSha256'][:6]}: {result}")
        if result.done:
            self.cloud.assert_delivered(operation.plan, rehearsed=not operation.rollback)

    def poll(self, operation: Operation, fault: Fault | None) -> Poll:
        ended = {state["job"] for state in self.cloud.states() if state["ended"] is not None}
        self.cloud.codebuild.asked.clear()
        self.cloud.processing.asked.clear()
        refused = len(self.cloud.codebuild.refusals) + len(self.cloud.processing.refusals)
        disturbed = fault is not None or refused > 0 or self.cloud.start_fault is not None
        result = self.cloud.poll(operation.event, fault)
        self.check(operation, result)
        asked = {*self.cloud.codebuild.asked, *self.cloud.processing.asked}
        assert not asked & ended, f"asked about an ended job: {asked & ended}"
        if not disturbed and result == Poll():
            self.nothing_waits_for_what_has_ended(operation)
        return result

    def nothing_waits_for_what_has_ended(self, operation: Operation) -> None:
        """A poll that says "not yet" has a reason: a job that runs, one that is being started, one just lost."""
        live = set(self.cloud.live_jobs().values())
        waits = []
        missing = [
            commit["artifact_key"]
            for commit in operation.plan.builds
            if self.cloud.s3.get(STORE, commit["manifest"]) is None
        ]
        missing += [each["key"] for each in operation.plan.rehearsals if self.cloud.pass_of(each) is None]
        for state in map(self.cloud.state_of, missing):
            if state is not None:
                waits.append(
                    state["build"] in live
                    or state["state"] in {"preparing", "starting"}
                    or state["started_at"] == self.cloud.clock()  # found by this very poll
                    or (self.cloud.is_lost(state["job"]) and self.cloud.clock() - state["started_at"] < LISTED_SECONDS)
                )
        assert any(waits), "it waits, and nothing is under way"

    def teardown(self) -> None:
        """After faults stop, one more deployment of each stack converges."""
        self.faults_stop()
        plans = [self.cloud.plans[7], self.cloud.plans[8]]  # one ensemble by different builders, with other requests
        for stack, plan in zip(self.stacks, plans, strict=True):
            stack.deploy(plan)
        for number in range(100):
            for stack in self.stacks:
                if stack.operation is not None:
                    result = self.poll(stack.operation, None)
                    assert result.failure is None, f"it does not converge: {result.failure}"
                    stack.settle(result)
            self.at_most_one_live_build_per_key()
            if not self.operations():
                break
            self.cloud.tick(30)
            if number % 4 == 3:
                for job in self.cloud.live_jobs():
                    self.cloud.end(job, "SUCCEEDED", {})
        for stack, plan in zip(self.stacks, plans, strict=True):
            assert stack.plan is plan, "it does not converge"
        self.a_build_has_one_job()
        self.a_committed_artifact_never_changes()
        self.documents_change_by_the_rules()

    def faults_stop(self) -> None:
        self.cloud.deliver()
        self.starts_are_refused("none", 0, 10)
        self.cloud.start_fault = None
        for stack in self.stacks:
            stack.operation = None
        for job in self.cloud.hang(100 * 60):  # to hang until the service ends it is a fault
            self.cloud.end(job, "TIMED_OUT", dict.fromkeys(["text", "image", "audio"], "missing"))
        self.cloud.tick(30)

    # --

    def operations(self) -> list[Operation]:
        return [stack.operation for stack in self.stacks if stack.operation is not None]

    def past(self) -> list[Operation]:
        return [operation for stack in self.stacks for operation in stack.past]


@pytest.mark.slow
def test_whatever_happens_each_key_is_built_once_and_the_next_deployment_converges(sequences: int | None) -> None:
    logging.getLogger("artifacts").setLevel(logging.WARNING)
    with small_parts():
        run_state_machine_as_test(
            Deployments,
            settings=settings(
                max_examples=sequences or 100,
                stateful_step_count=40,
                derandomize=sequences is None,
                database=None,
                verbosity=Verbosity.normal,
                phases=[Phase.generate, Phase.shrink],
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
