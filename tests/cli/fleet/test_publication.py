"""The request of a publication."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdk_triton.artifacts.keys import Keys
from cdk_triton.cli.fleet.manifest import Listed
from cdk_triton.cli.fleet.publication import Publication, is_live
from cdk_triton.cli.fleet.verdicts import Verdict
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Change, Entry, Version
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


def test_other_golden_requests_are_another_publication() -> None:
    item = Item("cats", "publish", "cats", "1" * 64, "2" * 64, rehearsal="3" * 64)
    first, second = (Publication("fleet", "alice", (replace(item, rehearsal=key * 64),)) for key in "34")
    assert first.id != second.id


@pytest.mark.parametrize(
    ("rehearsal", "live", "is_as_published"),
    [("3", "3", True), ("3", "4", False), ("3", None, False), ("", "4", True), ("", None, True)],
)
def test_an_ensemble_is_live_if_it_has_passed_its_rehearsal(
    rehearsal: str, live: str | None, is_as_published: bool
) -> None:
    listed = Listed("cats", Path("cats"))
    verdict = Verdict(listed, "cats", (), (), Keys("1" * 64, "2" * 64, "3" * 64), (), None, None, None, rehearsal * 64)
    change = Change("2026-11-01T12:00:00+00:00", "alice", "execution")
    version = Version(verdict.target_model, "2" * 64, "1" * 64, "cats", change, rehearsal=live and live * 64)
    assert is_live(verdict, Entry("fleet", "cats", (version,))) is is_as_published
