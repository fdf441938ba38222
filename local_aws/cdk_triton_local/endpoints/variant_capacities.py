"""The weights and instance counts of an endpoint's variants, as DescribeEndpoint reports them.

They begin with the values of the endpoint configuration. UpdateEndpointWeightsAndCapacities changes them. An
UpdateEndpoint replaces them by the values of its new configuration, unless the request retains them (API
reference of the two operations).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

__all__ = ["CURRENT_FIELD", "Summary", "initial_summaries", "retained_summaries"]

CURRENT_FIELD = {"DesiredInstanceCount": "CurrentInstanceCount", "DesiredWeight": "CurrentWeight"}
"""Maps each desired value of a variant (a VariantPropertyType) to the field that reports its current value.

Both change at once here."""

Summary = dict[str, Any]

_REPEATED = ("CapacityReservationConfig", "RoutingConfig")
"""Fields of a variant that its summary repeats. Nothing is reserved here, so the numbers of a reservation's instances,
which ProductionVariantCapacityReservationSummary also has, are absent."""


def initial_summaries(variants: Sequence[Mapping[str, Any]]) -> list[Summary]:
    """The summaries (ProductionVariantSummary) of variants as an endpoint configuration has them."""
    return [
        {"VariantName": variant["VariantName"]}
        | _desired_and_current("DesiredInstanceCount", variant.get("InitialInstanceCount", 1))
        | _desired_and_current("DesiredWeight", variant.get("InitialVariantWeight", 1.0))
        | {name: variant[name] for name in _REPEATED if name in variant}
        for variant in variants
    ]


def retained_summaries(
    fresh: Sequence[Summary], before: Sequence[Mapping[str, Any]], excluded: Collection[str] = ()
) -> list[Summary]:
    """`fresh` with the numbers that variants of the same names had before, except the `excluded` ones."""
    known = {summary["VariantName"]: summary for summary in before}
    result = []
    for summary in fresh:
        old, kept = known.get(summary["VariantName"], {}), dict[str, Any]()
        for name in CURRENT_FIELD.keys() & old.keys() - set(excluded):
            kept |= _desired_and_current(name, old[name])
        result.append({**summary, **kept})
    return result


def _desired_and_current(name: str, value: float) -> Summary:
    return {name: value, CURRENT_FIELD[name]: value}
