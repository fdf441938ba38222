"""The weights and instance counts of an endpoint's variants, as DescribeEndpoint tells them.

They begin as the endpoint configuration says, are changed by UpdateEndpointWeightsAndCapacities, and an UpdateEndpoint
starts over with those of its new configuration unless it is told to retain them (API reference of the two operations).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

__all__ = ["NUMBERS", "Summary", "initial", "retained"]

NUMBERS = {"DesiredInstanceCount": "CurrentInstanceCount", "DesiredWeight": "CurrentWeight"}
"""What can be asked of a variant, which is also what a VariantPropertyType may be; and what says that it is so. Here
both change at once."""

Summary = dict[str, Any]


def initial(variants: Sequence[Mapping[str, Any]]) -> list[Summary]:
    """The summaries (ProductionVariantSummary) of variants as an endpoint configuration has them."""
    return [
        {"VariantName": variant["VariantName"]}
        | _number("DesiredInstanceCount", variant.get("InitialInstanceCount", 1))
        | _number("DesiredWeight", variant.get("InitialVariantWeight", 1.0))
        | ({"RoutingConfig": variant["RoutingConfig"]} if "RoutingConfig" in variant else {})
        for variant in variants
    ]


def retained(
    fresh: Sequence[Summary], before: Sequence[Mapping[str, Any]], excluded: Collection[str] = ()
) -> list[Summary]:
    """`fresh` with the numbers that variants of the same names had before, but for the `excluded` ones."""
    known = {summary["VariantName"]: summary for summary in before}
    result = []
    for summary in fresh:
        old, kept = known.get(summary["VariantName"], {}), dict[str, Any]()
        for name in NUMBERS.keys() & old.keys() - set(excluded):
            kept |= _number(name, old[name])
        result.append({**summary, **kept})
    return result


def _number(name: str, value: float) -> Summary:
    return {name: value, NUMBERS[name]: value}
