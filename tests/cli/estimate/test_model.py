"""The model of `estimate`: the documented rules, minute by minute."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cdk_triton.cli.estimate.cron import cron
from cdk_triton.cli.estimate.model import Outcome, simulate
from cdk_triton.cli.estimate.policies import Policy, Schedule, of_text
from cdk_triton.cli.estimate.trace import Instance
from cdk_triton.errors import ConfigurationError

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
TEN_A_SECOND = Instance(600, None, start_minutes=8)


def run(requests: list[float], policy: str | Policy, instance: Instance = TEN_A_SECOND) -> Outcome:
    return simulate(requests, MONDAY, of_text(policy, None) if isinstance(policy, str) else policy, instance)


def test_two_minutes_above_the_target_add_nothing_and_three_do() -> None:
    """The target is 300 requests per minute: half of what an instance answers."""
    two = run([0.0, 900, 900, 0, 0, 0], "min=1 max=8")
    three = run([0.0, 900, 900, 900, 900, 900], "min=1 max=8")

    assert two.paid == (1,) * 6
    assert three.paid == (1, 1, 1, 3, 3, 3)  # 900 are three times the target


def test_new_instances_are_paid_at_once_and_answer_after_their_start() -> None:
    found = run([1800.0] * 20, "min=1 max=6")

    assert found.paid == (1, 1, *[6] * 18)
    # For ten minutes one instance answers 600 of 1,800 in each.
    assert found.over == 10 * 1200


def test_nothing_exceeds_the_maximum() -> None:
    assert max(run([60_000.0] * 60, "min=1 max=4").paid) == 4


def test_instances_go_one_at_a_time_after_fifteen_minutes_below_and_a_cooldown() -> None:
    found = run([1200.0] * 30 + [0.0] * 60, "min=1 max=4").paid[30:]

    assert found[:14] == (4,) * 14
    changes = [minute for minute in range(1, 60) if found[minute] != found[minute - 1]]
    assert len(changes) == 3
    assert all(found[minute] == found[minute - 1] - 1 for minute in changes)
    assert changes[0] == 14  # the fifteenth minute
    assert all(later - earlier >= 15 for earlier, later in itertools.pairwise(changes))


def test_fourteen_minutes_below_take_nothing_away() -> None:
    pattern = [1200.0] * 30 + ([0.0] * 14 + [1100.0]) * 5

    assert run(pattern, "min=1 max=4").paid[30:] == (4,) * 75


def test_between_nine_tenths_and_the_target_nothing_changes() -> None:
    assert run([1200.0] * 30 + [1090.0] * 100, "min=1 max=4").paid[-1] == 4


def test_several_policies_add_when_one_asks_and_remove_when_all_agree() -> None:
    gpu = Instance(600, gpu_percent=50, start_minutes=1)
    loose = "min=1 max=8 safety_factor=1"

    alone = run([550.0] * 30, loose, gpu)
    both = run([550.0] * 30, f"{loose} gpu=20", gpu)

    assert max(alone.paid) == 1
    assert max(both.paid) == 3  # 20 of 50 percent: 240 requests per instance


def test_a_policy_on_the_gpu_needs_its_utilization() -> None:
    with pytest.raises(ConfigurationError, match="add --gpu-percent"):
        run([1.0], "min=1 max=2 gpu=60")


def test_a_schedule_changes_the_limits_in_its_time_zone() -> None:
    morning, evening = cron("cron(0 7 ? * MON-FRI *)", "Europe/Berlin"), cron("cron(0 19 * * ? *)", "Europe/Berlin")
    assert morning is not None
    assert evening is not None
    schedules = [Schedule(morning, 4, None), Schedule(evening, 1, None)]
    policy = Policy("office", None, 1, 8, requests=300, schedules=schedules)

    found = run([0.0] * 24 * 60, policy).paid

    assert found[5 * 60 + 59] == 1
    assert found[6 * 60] == 4  # 7 o'clock in Berlin, in winter
    assert found[18 * 60 - 1] == 4
    assert found[-1] == 1


def test_a_day_of_the_week_counts_from_sunday_as_in_aws() -> None:
    made = cron("cron(30 6,18 ? * 2-3 *)", "UTC")

    assert made is not None
    assert made.matches(datetime(2026, 1, 5, 6, 30, tzinfo=ZoneInfo("UTC")))  # a Monday
    assert not made.matches(datetime(2026, 1, 4, 6, 30, tzinfo=ZoneInfo("UTC")))
    assert not made.matches(datetime(2026, 1, 5, 7, 30, tzinfo=ZoneInfo("UTC")))


@pytest.mark.parametrize(
    "expression",
    ["rate(1 day)", "cron(0 7 1 * ? *)", "cron(0/5 * * * ? *)", "at(2027-01-31T07:00:00)", "cron(0 7 ? * SAT-SUN *)"],
)
def test_a_schedule_that_is_not_modelled_is_none(expression: str) -> None:
    assert cron(expression, "UTC") is None


def test_the_published_half_holds_for_two_endpoints_that_are_nearly_idle() -> None:
    """Two endpoints on ml.g4dn.4xlarge become one: half the hours, $13,000 a year at $1.484 an hour."""
    year = [6.0] * 60
    apart = [run(year, "min=1 max=4"), run(year, "min=1 max=4")]
    together = run([12.0] * 60, "min=1 max=4")

    saved = sum(each.instance_hours for each in apart) - together.instance_hours
    assert together.instance_hours == sum(each.instance_hours for each in apart) / 2
    assert saved * 8760 * 1.484 == pytest.approx(13_000, rel=0.001)


def test_the_published_half_does_not_hold_under_load() -> None:
    busy = [600.0] * 600  # what one instance answers
    apart = [run(busy, "min=1 max=8"), run(busy, "min=1 max=8")]
    together = run([1200.0] * 600, "min=1 max=8")

    assert together.instance_hours == pytest.approx(sum(each.instance_hours for each in apart), rel=0.01)
