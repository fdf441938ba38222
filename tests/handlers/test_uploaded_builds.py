"""How an archive is built, as a caller uploads it: what the functions take, the build program takes too."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gpu_build.test_plan import DOCUMENT, KEY

from build_program.plan import read_plan
from golden_messages import Messages
from protocol.documents import DocumentError
from protocol.publication import Item, UploadedBuild

ITEM = Item("one", "publish", "text", "0" * 64, KEY, built=True)
BUILD = {"recipes": [0], "ensemble": DOCUMENT["ensembles"][0]}

VALUES: list[object] = [None, 1, "", "a", "../a", "/a", "a/./b", "a\0", KEY, [], {}, [{}], ["a"], {"a": KEY}, [[]]]
values = st.sampled_from(VALUES)
places = st.sampled_from(
    [
        ("recipes",),
        ("recipes", 0),
        ("ensemble",),
        *(("ensemble", name) for name in BUILD["ensemble"]),
        *(("ensemble", "inputs", 0, name) for name in ("path", "sha256", "to")),
        *(("ensemble", "steps", 0, name) for name in ("recipe", "name")),
        ("ensemble", "remove", 0),
        ("ensemble", "files", "bert/config.pbtxt"),
    ]
)


def changed(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(BUILD)
    inner: Any = document
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return document


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=places, value=values)
def test_the_build_program_reads_what_is_taken(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    try:
        found = UploadedBuild.parse(json.dumps(changed(place, value)).encode(), ITEM)
    except DocumentError:
        return
    (tmp_path / "plan.json").write_text(json.dumps(DOCUMENT | {"ensembles": [found.ensemble]}))
    (ensemble,) = read_plan(tmp_path / "plan.json").ensembles
    assert (ensemble.repository, ensemble.artifact_key) == ("text", KEY)
    assert ensemble.sources == f"sources/{KEY}.tar.gz"
    assert found.recipes == (0,) or place[0] == "recipes"


def test_a_build_is_taken_as_it_is() -> None:
    found = UploadedBuild.parse(json.dumps(BUILD).encode(), ITEM)
    assert found.ensemble == BUILD["ensemble"] | {"sources": f"sources/{KEY}.tar.gz"}


@pytest.mark.parametrize(
    "text",
    [
        b"?",
        b"[" * 100_000,
        b"[]",
        json.dumps(changed(("recipes",), "0")).encode(),
        json.dumps(changed(("ensemble", "artifact_key"), "0" * 64)).encode(),
        json.dumps(changed(("ensemble", "steps"), [{}])).encode(),
        json.dumps(changed(("ensemble", "steps", 0, "name"), 1)).encode(),
        json.dumps(changed(("ensemble", "files"), ["a"])).encode(),
        json.dumps(changed(("ensemble", "remove", 0), "../a")).encode(),
        json.dumps(changed(("ensemble", "inputs", 0, "sha256"), "0")).encode(),
    ],
    ids=["no JSON", "nested", "list", "recipes", "key", "no recipe", "name", "files", "path", "hash"],
)
def test_another_document_is_rejected_with_the_reason(messages: Messages, text: bytes) -> None:
    with messages.raises(DocumentError):
        UploadedBuild.parse(text, ITEM)
