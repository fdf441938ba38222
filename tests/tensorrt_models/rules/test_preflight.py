"""The rules CT701 and CT704: what TensorRT's own parser finds before a plan is built.

The parser is the extra `preflight` (`make preflight`); without it, tests that need its answers are skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages, Place

from cdk_triton.errors import ConfigurationError
from cdk_triton.tensorrt_models.reader.parser import ParsedNetwork, ParserFault, TensorRTParser
from sample_repositories.plans import GOOD, OPEN, checked, needs_parser, network


@needs_parser
@pytest.mark.parametrize(
    ("graph", "opset", "what"),
    [
        pytest.param("network (float[b, 4, 4] x) => (float[b] y) { y = Det (x) }", '"" : 17', "Det", id="operator"),
        pytest.param(
            "network (float[b, 4] x) => (float[b, 4] y) { y = com.acme.Mine (x) }",
            '"" : 17, "com.acme" : 1',
            "Mine",
            id="operator of nobody",
        ),
        pytest.param(
            "network (string[b, 4] x) => (string[b, 4] y) { y = Identity (x) }", '"" : 17', "the file", id="text"
        ),
    ],
)
def test_what_the_parser_does_not_take_is_a_warning(tmp_path: Path, graph: str, opset: str, what: str) -> None:
    (finding,) = checked(tmp_path, network(graph, opset), config=OPEN, preflight=True)
    assert (finding.code, finding.severity, finding.path) == ("CT701", "warning", "bert/1/model.onnx")
    assert what in finding.message
    assert ": false" not in finding.message


@needs_parser
def test_each_operator_is_named_once(tmp_path: Path) -> None:
    graph = "network (float[b, 4, 4] x) => (float[b] y) { a = Det (x)  c = Det (x)  y = Add (a, c) }"
    (finding,) = checked(tmp_path, graph, config=OPEN, preflight=True)
    assert "Det" in finding.message


@needs_parser
def test_a_file_that_is_no_network_is_a_warning(tmp_path: Path) -> None:
    (finding,) = checked(tmp_path, b"not a network", preflight=True)
    assert finding.code == "CT701"
    assert "Failed to parse the ONNX model" in finding.message


STATIC = "network (int32[1, 128] ids, int32[1, 128] mask) => (int32[1, 128] out) { out = Add (ids, mask) }"


@needs_parser
def test_a_network_without_a_dynamic_batch_does_not_take_the_configured_ones(tmp_path: Path) -> None:
    (finding,) = checked(tmp_path, STATIC, preflight=True)
    assert (finding.code, finding.severity, finding.path) == ("CT704", "warning", "bert/1/model.onnx")
    assert "(ids 1x128 to 16x128, mask 1x128 to 16x128)" in finding.message


@pytest.mark.parametrize(
    ("answer", "built", "place"),
    [
        pytest.param(
            ParsedNetwork("1.7.1.116", faults=(ParserFault("Det", "node", "no importer"),)),
            False,
            ("CT701", "bert/1/model.onnx", ""),
            id="CT701 an operator",
        ),
        pytest.param(
            ParsedNetwork("1.7.1.116", faults=(ParserFault("Det", "node", "false"),)),
            False,
            ("CT701", "bert/1/model.onnx", ""),
            id="CT701 an operator, without a reason",
        ),
        pytest.param(
            ParsedNetwork("1.7.1.116", faults=(ParserFault("", "", "Failed to parse"),)),
            False,
            ("CT701", "bert/1/model.onnx", ""),
            id="CT701 the file",
        ),
        pytest.param(
            ParsedNetwork("1.7.1.116", failure="was ended by SIGSEGV"),
            False,
            ("CT701", "bert/1/model.onnx", ""),
            id="CT701 a parser that fails",
        ),
        pytest.param(
            ParsedNetwork("1.7.1.116", rejections=("too long",)),
            False,
            ("CT704", "bert/1/model.onnx", ""),
            id="CT704 the configured shapes",
        ),
        pytest.param(
            ParsedNetwork("1.7.1.116", rejections=("too long",)),
            True,
            ("CT704", "bert/bert.onnx", ""),
            id="CT704 a recipe's profile",
        ),
    ],
)
def test_each_answer_of_the_parser_is_a_warning(
    messages: Messages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: ParsedNetwork,
    built: bool,
    place: Place,
) -> None:
    monkeypatch.setattr("cdk_triton.tensorrt_models.reader.parser.is_installed", lambda: True)
    monkeypatch.setattr(TensorRTParser, "__call__", lambda reader, file: answer)
    found = checked(tmp_path, profiles=({"ids": GOOD, "mask": GOOD},) if built else None, preflight=True)
    assert messages.of(found) == [place]
    assert found[0].severity == "warning"


def test_nobody_asks_the_parser_unless_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.tensorrt_models.reader.parser.is_installed", lambda: True)
    monkeypatch.setattr(TensorRTParser, "__call__", lambda reader, file: pytest.fail("asked"))
    assert checked(tmp_path, b"not a network") == []


def test_a_preflight_without_the_extra_is_one_sentence(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.tensorrt_models.reader.parser.is_installed", lambda: False)
    with messages.raises(ConfigurationError):
        checked(tmp_path, preflight=True)
