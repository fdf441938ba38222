"""TensorRT's parser in a process of its own: how a parser that crashes, hangs or prints is survived."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from cdk_triton.tensorrt_models.reader.parser import NetworkTensor, ParsedNetwork, ParserFault, TensorRTParser
from cdk_triton.tensorrt_models.recipe import ProfileShapes

if TYPE_CHECKING:
    from golden_messages import Messages


GOOD = ProfileShapes((1, 128), (8, 128), (16, 128))


class Ask(Protocol):
    """Asks a program in the parser's place."""

    def __call__(self, program: str, seconds: float = ...) -> ParsedNetwork: ...


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def ask_program(program: str, seconds: float = 60) -> ParsedNetwork:
        (tmp_path / "program.py").write_text(program)
        profile = {"ids": GOOD}
        reader = TensorRTParser(TensorRTParser.for_profiles([profile]).profiles, tmp_path / "program.py", seconds)
        return reader(tmp_path / "model.onnx")

    return ask_program


@pytest.mark.parametrize(
    ("program", "told"),
    [
        pytest.param("import os; os.kill(os.getpid(), 11)", "SIGSEGV", id="a crash"),
        pytest.param(
            "import os, sys; print('[TRT] out of memory', file=sys.stderr, flush=True); os.abort()",
            "[TRT] out of memory",
            id="an abort with words",
        ),
        pytest.param("raise SystemExit('no module')", "no module", id="an error"),
        pytest.param("print('[TRT] hello')", "[TRT] hello", id="no answer"),
    ],
)
def test_a_parser_that_does_not_answer_is_a_value(messages: Messages, ask: Ask, program: str, told: str) -> None:
    failure = ask(program).failure
    assert failure is not None
    assert told in failure
    messages.record("Network.failure", failure)


def test_a_parser_has_a_time_limit(messages: Messages, ask: Ask) -> None:
    failure = ask("import time; time.sleep(60)", seconds=0.2).failure
    assert failure is not None
    messages.record("Network.failure", failure)


def test_the_parser_is_asked_about_the_file_and_its_profiles(ask: Ask, tmp_path: Path) -> None:
    program = f"""
import json, sys
request = json.load(sys.stdin)
assert request == {{"onnx": {str(tmp_path / "model.onnx")!r}, "profiles": [{{"ids": [[1, 128], [8, 128], [16, 128]]}}]}}
json.dump({{"version": "1", "faults": [["Det", "n", "false"]], "inputs": [["x", "INT64", [-1, 4]]],
           "outputs": [["y", "FP4", []]], "rejections": ["no"]}}, sys.stdout)
"""
    assert ask(program) == ParsedNetwork(
        version="1",
        faults=(ParserFault("Det", "n", "false"),),
        inputs=(NetworkTensor("x", "TYPE_INT64", (-1, 4)),),
        outputs=(NetworkTensor("y", "", ()),),
        rejections=("no",),
    )
