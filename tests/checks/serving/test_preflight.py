"""The rules CT701 and CT704: what TensorRT's own parser finds before a plan is built.

The parser is the extra `preflight` (`make preflight`); without it, tests that need its answers are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.contents.tensorrt import Network, TensorRTParser
from sample_repositories.plans import GOOD, OPEN, checked, needs_parser, network

VERSIONS = "TensorRT-RTX 1.7.1.116 (25.09 has TensorRT 10.13.3.9)"


@needs_parser
@pytest.mark.parametrize(
    ("graph", "opset", "words"),
    [
        pytest.param(
            "network (float[b, 4, 4] x) => (float[b] y) { y = Det (x) }", '"" : 17', "the operator Det", id="operator"
        ),
        pytest.param(
            "network (float[b, 4] x) => (float[b, 4] y) { y = com.acme.Mine (x) }",
            '"" : 17, "com.acme" : 1',
            "the operator Mine: ",
            id="operator of nobody",
        ),
        pytest.param(
            "network (string[b, 4] x) => (string[b, 4] y) { y = Identity (x) }", '"" : 17', "the file: ", id="text"
        ),
    ],
)
def test_what_the_parser_does_not_take_is_a_warning(tmp_path: Path, graph: str, opset: str, words: str) -> None:
    (finding,) = checked(tmp_path, network(graph, opset), config=OPEN, preflight=True)
    assert (finding.code, finding.severity, finding.path) == ("CT701", "warning", "bert/1/model.onnx")
    assert finding.message.startswith(f"the parser of {VERSIONS} does not take {words}")
    assert "if the release's own agrees, no plan can be built for 'bert'" in finding.message


@needs_parser
def test_each_operator_is_named_once(tmp_path: Path) -> None:
    graph = "network (float[b, 4, 4] x) => (float[b] y) { a = Det (x)  c = Det (x)  y = Add (a, c) }"
    (finding,) = checked(tmp_path, graph, config=OPEN, preflight=True)
    assert "the operator Det" in finding.message


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
    assert finding.message.startswith(
        f"{VERSIONS} would not build 'bert' for the shapes of its config.pbtxt (ids 1x128 to 16x128, mask 1x128 to "
        "16x128): "
    )


def test_what_only_tensorrt_sees_in_a_recipes_profile_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.triton.contents.tensorrt.is_installed", lambda: True)
    monkeypatch.setattr(TensorRTParser, "__call__", lambda reader, file: Network("1.7.1.116", refusals=("too long",)))
    (finding,) = checked(tmp_path, profiles=({"ids": GOOD, "mask": GOOD},), preflight=True)
    assert (finding.code, finding.severity, finding.path) == ("CT704", "warning", "bert/bert.onnx")
    assert finding.message == (
        f"{VERSIONS} would not build 'bert' for the shapes of its recipe (ids 1x128 to 16x128, mask 1x128 to 16x128): "
        "too long; if the release's own agrees, there will be no plan"
    )


def test_nobody_asks_the_parser_unless_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.triton.contents.tensorrt.is_installed", lambda: True)
    monkeypatch.setattr(TensorRTParser, "__call__", lambda reader, file: pytest.fail("asked"))
    assert checked(tmp_path, b"not a network") == []


def test_a_preflight_without_the_extra_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.triton.contents.tensorrt.is_installed", lambda: False)
    with pytest.raises(ConfigurationError) as raised:
        checked(tmp_path, preflight=True)
    assert str(raised.value) == (
        "the preflight needs TensorRT's own parser, which is not installed; pip install 'cdk-triton[preflight]'"
    )


def test_a_parser_that_fails_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.triton.contents.tensorrt.is_installed", lambda: True)
    failed = Network("1.7.1.116", failure="was ended by SIGSEGV")
    monkeypatch.setattr(TensorRTParser, "__call__", lambda reader, file: failed)
    (finding,) = checked(tmp_path, preflight=True)
    assert (finding.code, finding.severity, finding.path) == ("CT701", "warning", "bert/1/model.onnx")
    assert finding.message.startswith(f"the parser of {VERSIONS} was ended by SIGSEGV")
