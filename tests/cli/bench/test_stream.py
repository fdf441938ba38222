"""`cdk-triton bench --stream` against a real tritonserver behind the local AWS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from streaming_account import StreamingAccount, streaming_account

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome

Run = Callable[..., "Outcome"]
LOAD = ("--rate", "40", "--duration", "2", "--warm-up", "0", "--arrivals", "constant")


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamingAccount]:
    with streaming_account(tmp_path_factory.mktemp("streams")) as account:
        yield account


@pytest.fixture(autouse=True)
def _at_the_account(account: StreamingAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in account.aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def measured(found: Outcome) -> dict[str, Any]:
    (rate,) = json.loads(found.out)["rates"]
    return dict(rate)


def test_the_results_of_streams_are_measured(run: Run, account: StreamingAccount) -> None:
    given = ("--input", "PROMPT=hi", "--input", "COUNT=4")
    found = run("bench", account.endpoint(), "--stream", *given, *LOAD, "--format", "json")
    assert found.status == 0, found.err
    rate = measured(found)
    assert rate["errors"] == {}
    assert rate["results"] == 4 * rate["answered"] > 0
    assert rate["results_per_second"] == pytest.approx(4 * rate["achieved_per_second"], rel=0.01)
    assert 0 < rate["first_result_ms"]["p50"] <= rate["latency_ms"]["p50"]
    assert rate["gap_ms"]["p90"] > 0


def test_a_table_has_the_first_result_and_the_gaps(run: Run, account: StreamingAccount) -> None:
    found = run("bench", account.endpoint(), "--stream", "--input", "PROMPT=hi", *LOAD)
    assert found.status == 0, found.err
    heading = next(line for line in found.out.splitlines() if "RESULTS/S" in line)
    assert "FIRST P50 MS" in heading
    assert "GAP P50 MS" in heading


def test_a_stream_with_an_error_among_its_results_failed(run: Run, account: StreamingAccount) -> None:
    given = ("--input", "PROMPT=hi", "--input", "FAIL_AFTER=1")
    found = run("bench", account.endpoint(), "--stream", *given, *LOAD, "--format", "json")
    assert found.status == 1
    rate = measured(found)
    assert rate["answered"] == 0
    assert rate["errors"] == {"ModelError 200": rate["requests"]}
    assert json.loads(found.out)["messages"] == {"ModelError 200": "out of words"}


def test_an_error_within_a_success_ends_bench_before_the_load(run: Run, account: StreamingAccount) -> None:
    given = ("--input", "PROMPT=hi", "--input", "COUNT=2")
    found = run("bench", account.endpoint("generate"), "--stream", *given, *LOAD)
    assert (found.status, found.out) == (1, "")
    assert "generate expects model to produce exactly 1 response" in found.said


def test_a_load_of_the_other_protocol_is_a_usage_error(run: Run, account: StreamingAccount) -> None:
    found = run("bench", account.endpoint(), "--input", "PROMPT=hi", *LOAD)
    assert (found.status, found.out) == (2, "")
    assert "add --stream" in found.said
