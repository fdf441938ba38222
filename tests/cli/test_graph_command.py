"""`cdk-triton graph`: its formats, and an extra that is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages

SVG = "{http://www.w3.org/2000/svg}"


def test_the_text_ends_with_the_findings(run: Any, repository: Path) -> None:
    (repository / "echo" / "01").mkdir()
    (repository / "echo" / "01" / "model.py").write_text("")

    outcome = run("graph", repository)

    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("model echo, batches of up to 8")
    assert "\n!1 warning CT112: " in outcome.out


def test_the_json_has_boxes_arrows_and_findings(run: Any, repository: Path) -> None:
    (graph,) = json.loads(run("graph", repository, "--format", "json").out)["graphs"]
    assert [box["name"] for box in graph["boxes"]] == ["request", "echo", "response"]
    assert [(each["source"], each["target"], each["tensor"], each["dims"]) for each in graph["arrows"]] == [
        ("request", "0", "x", [4]),
        ("0", "response", "y", [4]),
    ]
    assert graph["findings"] == []


def test_mermaid_is_a_flowchart(run: Any, repository: Path) -> None:
    lines = run("graph", repository, "--format", "mermaid").out.splitlines()
    assert lines[0] == "flowchart LR"
    assert '    request -->|"x<br/>FP32 #91;4#93;"| step0' in lines


def test_the_svg_has_every_step_and_tensor_and_is_the_same_each_time(run: Any, repository: Path) -> None:
    pytest.importorskip("pygraphviz")
    first, second = (run("graph", repository, "--format", "svg") for _ in range(2))
    picture = ElementTree.fromstring(first.out)
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert {"request", "echo", "Python, CPU", "x", "FP32 [4]", "y", "response"} <= {*texts}
    assert len([*picture.iter(f"{SVG}path")]) == 5  # an arrow's head, and four lines
    assert first.out == second.out


def test_without_its_extra_the_svg_is_a_sentence_and_the_others_work(
    run: Any, repository: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    outcome = run("graph", repository, "--format", "svg")
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton graph", outcome.said)
    assert run("graph", repository).status == run("graph", repository, "--format", "mermaid").status == 0


@pytest.mark.parametrize("place", ["missing", "file"])
def test_a_directory_that_cannot_be_read_is_a_sentence_and_2(
    run: Any, tmp_path: Path, messages: Messages, place: str
) -> None:
    (tmp_path / "file").write_text("")
    outcome = run("graph", tmp_path / place)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton graph", outcome.said)
