"""The results of `estimate`: policies side by side, and separate endpoints against a multi-model one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cdk_triton.cli.artifacts.text import table
from cdk_triton.cli.estimate.model import Outcome
from cdk_triton.cli.estimate.policies import Policy
from cdk_triton.cli.estimate.price import Price

__all__ = ["HEADING", "Report", "Row", "as_json", "as_text"]

HEADING = "a model, not AWS"


@dataclass(frozen=True)
class Row:
    """A policy.

    Attributes:
        policy: the policy.
        gpus: the number of GPUs of an instance; None if the type is not known.
        price: the price of an instance; None if no price is given.
        together: one endpoint for all requests.
        apart: an endpoint for each ensemble of the trace; empty if the trace has only one ensemble.
    """

    policy: Policy
    gpus: int | None
    price: Price | None
    together: Outcome
    apart: Sequence[Outcome]


@dataclass(frozen=True)
class Report:
    """The result of an estimate.

    Attributes:
        source: the origin of the requests.
        minutes: how long the trace is.
        rate: requests per second of one instance.
        rows: the policies.
        notes: what is not known or not modelled, as sentences.
    """

    source: str
    minutes: int
    rate: float
    rows: Sequence[Row]
    notes: Sequence[str]


def _parts(row: Row) -> Iterator[tuple[str, Sequence[Outcome]]]:
    yield ("multi-model" if row.apart else "one endpoint"), [row.together]
    if row.apart:
        yield f"{len(row.apart)} endpoints", row.apart


def _hours(outcomes: Sequence[Outcome]) -> float:
    return sum(each.instance_hours for each in outcomes)


def _over(outcomes: Sequence[Outcome]) -> float:
    requests = sum(each.requests for each in outcomes)
    return sum(each.over for each in outcomes) / requests if requests else 0.0


def as_json(report: Report) -> dict[str, Any]:
    """For a program; these names are a contract."""
    return {
        "heading": HEADING,
        "trace": report.source,
        "hours": report.minutes / 60,
        "requests_per_second": report.rate,
        "estimates": [
            {
                "policy": row.policy.name,
                "serves": serves,
                "instance_type": row.policy.instance_type,
                "instances_at_most": sum(each.most for each in outcomes),
                "instance_hours": round(_hours(outcomes), 3),
                "gpu_hours": None if row.gpus is None else round(_hours(outcomes) * row.gpus, 3),
                "cost_usd": None if row.price is None else round(_hours(outcomes) * row.price.per_hour, 2),
                "price_source": None if row.price is None else row.price.source,
                "over_capacity": round(_over(outcomes), 6),
            }
            for row in report.rows
            for serves, outcomes in _parts(row)
        ],
        "notes": list(report.notes),
    }


def as_text(report: Report) -> Iterator[str]:
    """For a person."""
    yield f"{HEADING}: {report.source}, {report.minutes / 60:,.1f} hours; one instance answers {report.rate:g}/s"
    headings = ("POLICY", "SERVES", "TYPE", "MOST", "INSTANCE HOURS", "GPU HOURS", "USD", "OVER CAPACITY")
    rows = [
        (
            row.policy.name,
            serves,
            row.policy.instance_type or "",
            str(sum(each.most for each in outcomes)),
            f"{_hours(outcomes):,.1f}",
            "" if row.gpus is None else f"{_hours(outcomes) * row.gpus:,.1f}",
            "" if row.price is None else f"{_hours(outcomes) * row.price.per_hour:,.2f}",
            f"{_over(outcomes):.2%}",
        )
        for row in report.rows
        for serves, outcomes in _parts(row)
    ]
    yield from table(headings, rows)
    for row in report.rows:
        if row.apart:
            yield f"{row.policy.name}: {_compared(row)}"
    yield from dict.fromkeys(
        f"price: {row.price.per_hour:g} USD per instance hour ({row.price.source})"
        for row in report.rows
        if row.price is not None
    )
    yield from report.notes


def _compared(row: Row) -> str:
    apart, together = _hours(row.apart), _hours([row.together])
    share = 1 - together / apart if apart else 0.0
    if share <= 0:
        return "one multi-model endpoint does not cost less than separate endpoints"
    over = " and it is over capacity more often" if _over([row.together]) > _over(row.apart) + 1e-9 else ""
    return f"one multi-model endpoint costs {share:.0%} less than {len(row.apart)} endpoints{over}"
