"""What `bench` prints of its measurements."""

from __future__ import annotations

import itertools

import pytest
from tests.cli.bench.measurements import rate
from tests.docs.blocks import of_kind

from cdk_triton.cli.bench.arrivals import send_times
from cdk_triton.cli.bench.kinds import Arrivals
from cdk_triton.cli.bench.measurement import Measurement
from cdk_triton.cli.bench.report import Report, as_json, as_text


def test_on_aws_the_settings_are_those_of_one_instance() -> None:
    report = Report("shop", is_local=False, instances=2, sweep=[rate(10, 5), rate(40, 5), rate(80, 50)])
    report.knee, report.at_knee, report.gpu_percent = report.sweep[1], rate(40, 5), 61.25

    assert list(as_text(report))[-2:] == ["max_requests_per_second=20", "target_utilization_percent=61.2"]
    assert as_json(report)["max_requests_per_second"] == 20


def test_the_page_shows_the_settings_as_they_are_printed() -> None:
    (shown,) = of_kind("cli/bench/test_report.py")
    report = Report("shop", is_local=False, instances=1, sweep=[rate(10, 5), rate(40, 5), rate(80, 50)])
    report.knee, report.at_knee, report.gpu_percent = report.sweep[1], rate(41.5, 5), 68.3

    assert list(as_text(report))[-2:] == shown.text.splitlines()


def test_minutes_at_the_knee_that_failed_give_no_setting() -> None:
    report = Report("shop", is_local=False, instances=1, sweep=[rate(10, 5), rate(40, 5), rate(80, 50)])
    report.knee, report.at_knee, report.gpu_percent = report.sweep[1], rate(40, 5), 61.25
    report.at_knee.errors["ModelError"] = 900

    assert list(as_text(report))[-1] == "no setting: in the minutes at the knee, 90.0% of the requests failed"
    found = as_json(report)
    assert (found["max_requests_per_second"], found["target_utilization_percent"]) == (None, None)


def test_an_interrupted_or_local_measurement_gives_no_setting() -> None:
    for is_local, is_interrupted in ((True, False), (False, True)):
        report = Report("shop", is_local, 1, sweep=[rate(10, 5)], is_interrupted=is_interrupted)
        report.knee = report.sweep[0]
        assert as_json(report)["max_requests_per_second"] is None


def test_an_interrupted_sweep_has_no_knee_that_nobody_saw() -> None:
    report = Report("shop", True, 1, sweep=[rate(10, 5), rate(12.5, 5)], ended="interrupted", is_interrupted=True)

    assert [line for line in as_text(report) if "knee" in line] == []


def test_the_knee_ends_for_the_reason_of_the_next_rate() -> None:
    report = Report(
        "shop", True, 1, sweep=[rate(10, 5), rate(40, 50), rate(80, 50)], ended="answers fall behind requests"
    )
    report.knee = report.sweep[0]

    assert "the knee is at 10/s: beyond it latency rises" in list(as_text(report))


def test_a_short_measurement_says_how_long_the_next_percentile_takes() -> None:
    few = Measurement(5, seconds=20, planned=90)
    for _ in range(90):
        few.latency.record_value(14_900_000)

    lines = list(as_text(Report("shop", True, 1, sweep=[few])))

    assert "14,9" in lines[1]
    assert lines[2] == "P90 needs 100 answers: --duration 30 or more at this rate"


@pytest.mark.parametrize("arrivals", Arrivals)
@pytest.mark.parametrize("share", [1.0, 0.7], ids="{:.0%} answered".format)
@pytest.mark.parametrize("per_second", [0.5, 5, 20])
def test_the_advised_duration_is_long_enough(per_second: float, share: float, arrivals: Arrivals) -> None:
    def measured(seconds: float, seed: int) -> Measurement:
        found = Measurement(per_second, seconds, planned=len(send_times(per_second, seconds, arrivals, seed)))
        found.latency.record_value(1000, int(found.planned * share))
        return found

    for seed, seconds in itertools.product(range(10), (40, 100, 300)):
        first = measured(seconds, seed)
        if first.next_percentile is not None:
            line = next(each for each in as_text(Report("shop", True, 1, sweep=[first])) if "--duration" in each)
            advised = int(line.split("--duration ")[1].split()[0])
            assert first.next_percentile[0] in measured(advised, seed).percentiles


def test_errors_are_shown_with_the_first_message_of_each_code() -> None:
    failing = rate(10, 5)
    failing.errors["ValidationError"] = 500
    report = Report("shop", True, 1, sweep=[failing], messages={"ValidationError": "the endpoint does not exist"})

    assert "ValidationError: the endpoint does not exist" in list(as_text(report))
    assert as_json(report)["messages"] == {"ValidationError": "the endpoint does not exist"}


def test_an_interruption_of_the_warm_up_has_no_results() -> None:
    assert list(as_text(Report("shop", True, 1, is_interrupted=True))) == ["interrupted before the first result"]
