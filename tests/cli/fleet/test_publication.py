"""The request of a publication."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdk_triton.cli.fleet.publication import Publication
from cdk_triton.protocol import layout
from cdk_triton.protocol.publication import Item


def test_the_digest_of_a_publication_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is part of the object key of each build, and grows with their number."""
    publication = Publication("fleet", "AROAEXAMPLE:alice", tuple(Item(str(number), "forget") for number in range(3)))
    calls = []
    dumps = json.dumps

    def counted(*arguments: Any, **named: Any) -> str:
        calls.append(arguments)
        return dumps(*arguments, **named)

    monkeypatch.setattr(json, "dumps", counted)
    keys = {layout.uploaded_build_key("fleet", publication.name, f"key{number}") for number in range(3)}
    assert (len(keys), len(calls)) == (3, 1)
