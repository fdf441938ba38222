"""The rules CT322 and CT323: limits of steps, by the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from sample_repositories import platform_with
from sample_repositories.one_step import IN, OUT, ensemble, python, step, tensor

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write

LIMIT = "dynamic_batching { default_queue_policy { max_queue_size: 4 } }\n"
DEFAULT = "dynamic_batching.default_queue_policy.max_queue_size"
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
SECOND = tensor("output", "SECOND")
JOIN = tensor("input", "A") + tensor("input", "B") + OUT


def found(write: Write, change: Mapping[str, Change], release: str) -> list[Finding]:
    repository = write(change, base={})
    findings = repository.check(platform=platform_with(release), default_model="pipeline")
    return [each for each in findings if each.code in ("CT322", "CT323")]


def both(first: str, second: str) -> str:
    """Two steps that read the ensemble's input."""
    return step(first, {"IN": "IN"}, {"OUT": "OUT"}) + step(second, {"IN": "IN"}, {"OUT": "SECOND"})


def row(first: str, second: str) -> str:
    """Two steps, one after the other."""
    return step(first, {"IN": "IN"}, {"OUT": "t"}) + step(second, {"IN": "t"}, {"OUT": "OUT"})


LAST = ensemble(IN + OUT + SECOND, both("model", "limited")) | python() | python(LIMIT + IN + OUT, "limited")
FIRST = ensemble(IN + OUT + SECOND, both("limited", "model")) | python() | python(LIMIT + IN + OUT, "limited")
IN_A_ROW = ensemble(steps=row("model", "limited")) | python() | python(LIMIT + IN + OUT, "limited")
FOUND = [("CT322", "limited/config.pbtxt", DEFAULT)]


@pytest.mark.parametrize(
    ("change", "releases"),
    [
        pytest.param(LAST, {"25.09"}, id="the last of two that start together"),
        pytest.param(FIRST, {"25.09", "26.02", "26.03"}, id="the first of two that start together"),
        pytest.param(IN_A_ROW, set(), id="in a row"),
        pytest.param(
            ensemble(steps=row("limited", "model")) | python() | python(LIMIT + IN + OUT, "limited"),
            set(),
            id="the first of a row",
        ),
        pytest.param(
            IN_A_ROW | python(DECOUPLED + IN + OUT), {"25.09"}, id="after a decoupled step, which is still at work"
        ),
        pytest.param(
            IN_A_ROW | python(LIMIT + DECOUPLED + IN + OUT, "limited"), set(), id="decoupled itself, after another"
        ),
        pytest.param(
            ensemble(
                steps=step("model", {"IN": "IN"}, {"OUT": "a"})
                + step("limited", {"IN": "a"}, {"OUT": "b"})
                + step("join", {"A": "a", "B": "b"}, {"OUT": "OUT"})
            )
            | python()
            | python(LIMIT + IN + OUT, "limited")
            | python(JOIN, "join"),
            set(),
            id="a shortcut past the step",
        ),
        pytest.param(
            ensemble(
                steps=step("limited", {"IN": "IN"}, {"OUT": "a"})
                + step("model", {"IN": "IN"}, {"OUT": "b"})
                + step("limited", {"IN": "b"}, {"OUT": "c"})
                + step("join", {"A": "a", "B": "c"}, {"OUT": "OUT"})
            )
            | python()
            | python(LIMIT + IN + OUT, "limited")
            | python(JOIN, "join"),
            {"25.09", "26.02", "26.03"},
            id="two branches of unequal length",
        ),
    ],
)
@pytest.mark.parametrize("release", ["25.09", "26.02", "26.03", "26.04", "26.05"])
def test_a_full_queue_of_a_step(
    messages: Messages, write: Write, change: Mapping[str, Change], releases: set[str], release: str
) -> None:
    findings = messages.of(found(write, change, release))
    assert list(dict.fromkeys(findings)) == (FOUND if release in releases else [])


@pytest.mark.parametrize(
    ("batching", "fields"),
    [
        pytest.param(
            "default_queue_policy { default_timeout_microseconds: 9 timeout_action: REJECT }", [], id="a time"
        ),
        pytest.param("default_queue_policy { timeout_action: DELAY max_queue_size: 4 }", [DEFAULT], id="a delay"),
        pytest.param("priority_queue_policy { key: 1 value { max_queue_size: 4 } }", [], id="no levels"),
        pytest.param(
            "priority_levels: 2 default_priority_level: 2 priority_queue_policy { key: 1 value { max_queue_size: 4 } }",
            ['dynamic_batching.priority_queue_policy["1"].max_queue_size'],
            id="one of two levels",
        ),
        pytest.param(
            "priority_levels: 1 default_priority_level: 1 default_queue_policy { max_queue_size: 4 } "
            "priority_queue_policy { key: 1 value { default_timeout_microseconds: 9 } }",
            [],
            id="a default that no level uses",
        ),
        pytest.param(
            "priority_levels: 2 default_priority_level: 1 default_queue_policy { max_queue_size: 4 } "
            "priority_queue_policy { key: 1 value { default_timeout_microseconds: 9 } }",
            [DEFAULT],
            id="a default that one level uses",
        ),
    ],
)
def test_the_policies_that_requests_meet(write: Write, batching: str, fields: list[str]) -> None:
    limited = python(f"dynamic_batching {{ {batching} }}\n{IN}{OUT}", "limited")
    assert [each.field for each in found(write, LAST | limited, "25.09")] == fields


def test_the_steps_of_an_inner_ensemble_are_looked_at_there(messages: Messages, write: Write) -> None:
    inner = {name.replace("pipeline", "inner"): text for name, text in LAST.items()}
    change = ensemble(steps=step("inner", {"IN": "IN"}, {"OUT": "OUT"})) | inner
    assert messages.of(found(write, change, "25.09")) == FOUND


def test_nothing_is_said_without_a_release(write: Write) -> None:
    assert not [each for each in write(LAST, base={}).check(default_model="pipeline") if each.code == "CT322"]


SHARED = "ensemble_scheduling.max_inflight_requests"


@pytest.mark.parametrize("model", [python(), python(DECOUPLED + IN + OUT)], ids=["one answer", "many answers"])
@pytest.mark.parametrize(
    ("release", "findings"),
    [
        ("25.11", [("CT323", "pipeline/config.pbtxt", SHARED)]),
        ("26.03", [("CT323", "pipeline/config.pbtxt", SHARED)]),
        ("26.04", []),
        ("26.09", []),
    ],
)
def test_the_limit_of_an_ensemble(
    messages: Messages, write: Write, model: Mapping[str, Change], release: str, findings: list[Place]
) -> None:
    steps = "max_inflight_requests: 4\n" + step("model", {"IN": "IN"}, {"OUT": "OUT"})
    change = {**ensemble(steps=steps), **model}
    assert messages.of(found(write, change, release)) == findings


def test_no_limit_of_an_ensemble(write: Write) -> None:
    assert found(write, ensemble() | python(), "26.03") == []
