"""The results of `estimate`: policies side by side, and separate endpoints against a multi-model one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cdk_triton.cli.artifacts.text import table
from cdk_triton.cli.estimate.model import Outcome
from cdk_triton.cli.estimate.policies import Policy
from cdk_triton.cli.estimate.price import Price

__all__ = ["HEADING", "Report", "Row", "as_json", "as_text"]

HEADING = "a model, not AWS"

_MONTH_HOURS = 730
"""A twelfth of a year."""


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


class _Line(NamedTuple):
    """A line of the table; the costs are in US dollars, and None where a price or type is not known."""

    name: str
    serves: str
    instance_type: str | None
    outcomes: Sequence[Outcome]
    gpu_hours: float | None
    cost: float | None
    price_source: str | None = None


def _lines(rows: Sequence[Row]) -> Iterator[_Line]:
    for row in rows:
        parts = [("multi-model" if row.apart else "one endpoint", [row.together])]
        parts += [(f"{len(row.apart)} endpoints", list(row.apart))] if row.apart else []
        for serves, outcomes in parts:
            hours = _hours(outcomes)
            yield _Line(
                row.policy.name,
                serves,
                row.policy.instance_type,
                outcomes,
                None if row.gpus is None else hours * row.gpus,
                None if row.price is None else hours * row.price.per_hour,
                None if row.price is None else row.price.source,
            )


def _totals(rows: Sequence[Row]) -> Iterator[_Line]:
    """The sums of each endpoint with several variants."""
    for endpoint in dict.fromkeys(row.policy.endpoint for row in rows if row.policy.endpoint is not None):
        variants = [row for row in rows if row.policy.endpoint == endpoint]
        lines = list(_lines(variants)) if len(variants) > 1 else []
        number, of = len(variants), variants[0].policy.variants
        which = "all variants" if number == of else f"{number} of {of} variants"
        for serves in dict.fromkeys(line.serves for line in lines):
            same = [line for line in lines if line.serves == serves]
            outcomes = [each for line in same for each in line.outcomes]
            gpu_hours, cost = _sum(line.gpu_hours for line in same), _sum(line.cost for line in same)
            yield _Line(f"{endpoint}, {which}", serves, None, outcomes, gpu_hours, cost)


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(each for each in known if each is not None)


def _hours(outcomes: Sequence[Outcome]) -> float:
    return sum(each.instance_hours for each in outcomes)


def _most(outcomes: Sequence[Outcome]) -> int:
    """The most instances at one time."""
    by_minute: list[int] = [sum(minute) for minute in zip(*(each.paid for each in outcomes), strict=True)]
    return max(by_minute)


def _over(outcomes: Sequence[Outcome]) -> float:
    requests = sum(each.requests for each in outcomes)
    return sum(each.over for each in outcomes) / requests if requests else 0.0


def _per_month(cost: float | None, report: Report) -> float | None:
    return None if cost is None else cost * _MONTH_HOURS * 60 / report.minutes


def as_json(report: Report) -> dict[str, Any]:
    """For a program; these names are a contract."""
    return {
        "heading": HEADING,
        "trace": report.source,
        "hours": report.minutes / 60,
        "requests_per_second": report.rate,
        "estimates": [
            {
                "policy": line.name,
                "serves": line.serves,
                "instance_type": line.instance_type,
                "instances_at_most": _most(line.outcomes),
                "instance_hours": round(_hours(line.outcomes), 3),
                "gpu_hours": _rounded(line.gpu_hours, 3),
                "cost_usd": _rounded(line.cost, 2),
                "cost_usd_per_month": _rounded(_per_month(line.cost, report), 2),
                "price_source": line.price_source,
                "over_capacity": round(_over(line.outcomes), 6),
            }
            for line in _lines(report.rows)
        ],
        "notes": list(report.notes),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def as_text(report: Report) -> Iterator[str]:
    """For a person."""
    yield f"{HEADING}: {report.source}, {report.minutes / 60:,.1f} hours; one instance answers {report.rate:g}/s"
    headings = ("POLICY", "SERVES", "TYPE", "MOST", "INSTANCE HOURS", "GPU HOURS", "USD", "USD/MONTH", "OVER CAPACITY")
    rows = [
        (
            line.name,
            line.serves,
            line.instance_type or "",
            str(_most(line.outcomes)),
            f"{_hours(line.outcomes):,.1f}",
            "" if line.gpu_hours is None else f"{line.gpu_hours:,.1f}",
            *("" if each is None else f"{each:,.2f}" for each in (line.cost, _per_month(line.cost, report))),
            f"{_over(line.outcomes):.2%}",
        )
        for line in (*_lines(report.rows), *_totals(report.rows))
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
