"""The request of a publication."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdk_triton.cli.fleet.publication import Publication


def test_the_digest_of_a_publication_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is part of the object key of each build, and grows with their number."""
    publication = Publication("requests/", tuple({"ensemble": str(number)} for number in range(3)))
    calls = []
    dumps = json.dumps

    def counted(*arguments: Any, **named: Any) -> str:
        calls.append(arguments)
        return dumps(*arguments, **named)

    monkeypatch.setattr(json, "dumps", counted)
    keys = {publication.build_key(f"key{number}") for number in range(3)}
    assert (len(keys), len(calls)) == (3, 1)
