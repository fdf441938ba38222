"""Endpoints and what to send them, as lines for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cdk_triton.cli.artifacts.text import table
from cdk_triton.cli.endpoints.reading import Kind, ReadEndpoint

__all__ = ["as_json", "as_text"]

_SHOWN = 20
"""Target models of one endpoint that a person reads; JSON has all."""


def as_text(endpoints: Sequence[ReadEndpoint]) -> Iterator[str]:
    """A table with a row for each endpoint, target model and component."""
    rows = [row for endpoint in endpoints for row in _rows(endpoint)]
    yield from table(("ENDPOINT", "STATUS", "KIND", "ASK FOR"), rows)


def _rows(endpoint: ReadEndpoint) -> Iterator[tuple[str, str, str, str]]:
    asked = list(_asked(endpoint))
    first = asked[0] if asked else endpoint.hidden or _nothing(endpoint)
    yield endpoint.name, endpoint.status, endpoint.kind.value, first
    for each in asked[1:_SHOWN]:
        yield "", "", "", each
    if len(asked) > _SHOWN:
        yield "", "", "", f"and {len(asked) - _SHOWN:,} more; --format json lists all"


def _asked(endpoint: ReadEndpoint) -> Iterator[str]:
    for name, target in zip(endpoint.names, endpoint.current, strict=True):
        archive = f"  ({target.name})" if name != target.name else ""
        yield f"--target-model {name}{archive}"
    for component in endpoint.components:
        yield f"--component {component.name}"


def _nothing(endpoint: ReadEndpoint) -> str:
    if endpoint.kind is Kind.MULTI:
        return "it has no target model yet"
    return "it has no component yet" if endpoint.kind is Kind.COMPONENTS else ""


def as_json(endpoints: Sequence[ReadEndpoint]) -> list[dict[str, Any]]:
    """The endpoints for a program; these names are a contract."""
    return [
        {
            "endpoint": endpoint.name,
            "status": endpoint.status,
            "kind": endpoint.kind.value,
            "variants": [each.name for each in endpoint.variants],
            "target_models": [{"target_model": each.name, "ensemble": each.ensemble} for each in endpoint.targets],
            "components": [each.name for each in endpoint.components],
            "hidden": endpoint.hidden or None,
        }
        for endpoint in endpoints
    ]
