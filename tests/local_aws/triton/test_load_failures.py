"""A model that does not load: one sentence that begins with the model and the cause, from the real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton._load_failures import load_failures, logged_exception, rejected_model
from cdk_triton.errors import LocalError

if TYPE_CHECKING:
    from golden_messages import Messages

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling { step { model_name: "step" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""
RAISES = """
class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("no tokenizer here")
"""
MACHINE = "x86_64-linux-gnu"
OWN = f"3{sys.version_info.minor}"
ENSEMBLE_FILES = {"ensemble/config.pbtxt": ENSEMBLE, "ensemble/1": None, "step/config.pbtxt": CONFIG}

BROKEN: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "an import in a step": ({**ENSEMBLE_FILES, "step/1/model.py": "import os\nimport pandaz\n"}, "model 'step' "),
    "an exception": ({"one/config.pbtxt": CONFIG, "one/1/model.py": RAISES}, "model 'one' "),
    "a file that is no configuration": (
        {"one/config.pbtxt": CONFIG.replace("FP32", "FP3"), "one/1/model.py": RAISES},
        "model 'one' ",
    ),
    "an ensemble that fits no step": (
        {
            **ENSEMBLE_FILES,
            "ensemble/config.pbtxt": ENSEMBLE.replace('key: "IN"', 'key: "INN"'),
            "step/1/model.py": "class TritonPythonModel:\n    pass\n",
        },
        "model 'ensemble' ",
    ),
    "no version": ({"one/config.pbtxt": CONFIG}, "model 'one' "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_failed_deployment_begins_with_the_model_and_its_cause(
    messages: Messages, new_bench: Any, packed: Callable[[Mapping[str, Any]], bytes], case: str
) -> None:
    files, beginning = BROKEN[case]
    bench = new_bench()
    default = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": min(files).partition("/")[0]}
    with messages.raises(LocalError) as caught:
        bench.single("one", packed(files), environment=default)
    text = str(caught.value)
    assert text.startswith(beginning)
    assert text.endswith(str(bench.directory / "logs" / "one" / "AllTraffic.log"))
    assert "\n" not in text
    assert "\\n" not in text


def test_a_target_model_that_does_not_load_is_a_line_of_the_log(
    messages: Messages, new_bench: Any, packed: Callable[[Mapping[str, Any]], bytes]
) -> None:
    bench = new_bench()
    bench.fleet("fleet", broken=packed(BROKEN["an import in a step"][0]))
    answer = bench.invoke("fleet", 1.0, model="broken")
    assert answer.status == 424
    # Callers read the same clause from the server's words, without the directory of the models.
    words = json.loads(json.loads(answer.body)["OriginalMessage"])["error"]
    clause = rejected_model(words)
    assert clause is not None
    assert bench.lines[-1].endswith(clause)
    assert "step/1/model.py, line 2" in bench.lines[-1]
    messages.record("log", bench.lines[-1])


def test_a_module_in_c_for_another_python_is_named(
    messages: Messages, new_bench: Any, packed: Callable[[Mapping[str, Any]], bytes]
) -> None:
    files = {
        "one/config.pbtxt": CONFIG,
        "one/1/model.py": "import words\n",
        "one/1/words/__init__.py": "from words.words import count\n",
    }
    there = {f"one/1/words/words.cpython-39-{MACHINE}.so": b"", f"one/1/words/other.cpython-{OWN}-{MACHINE}.so": b""}
    with messages.raises(LocalError) as caught:
        new_bench().single("one", packed(files | there))
    assert f"one/1/words/words.cpython-39-{MACHINE}.so is for Python 3.9" in str(caught.value)
    with pytest.raises(LocalError) as caught:
        new_bench().single("one", packed(files))
    assert "No module named 'words.words'" in str(caught.value)
    assert "is for Python" not in str(caught.value)


@pytest.mark.parametrize("name", [".", "..words", "words."])
def test_a_name_that_no_module_can_have_is_quoted(tmp_path: Path, name: str) -> None:
    cause = f"ModuleNotFoundError: No module named '{name}'"
    printed = f"error: failed to load 'one' version 1: Internal: {cause}\n"
    assert load_failures(printed, tmp_path) == f"model 'one' does not load: {cause}"


def test_a_server_that_reports_no_cause_is_quoted() -> None:
    assert load_failures("starting\nterminate called\n\n", Path("/models")) == "starting; terminate called"
    assert load_failures("", Path("/models")) == ""
    crashed = (
        "starting\nterminate called\n  what():  lock\nSignal (6) received.\n 0# 0x0 in tritonserver\n10# abort in l\n"
    )
    assert load_failures(crashed, Path("/models")) == "terminate called; what(): lock; Signal (6) received"


def test_each_model_at_fault_is_named_once() -> None:
    failed = "E1123 11:55:35.778503 8911 model_lifecycle.cc:642] \"failed to load '/r/::{}' version 1: Internal: {}\"\n"
    printed = failed.format("a", "no file") + failed.format("b", r"bad \"x\"\n\nAt:\n  /r/b/1/model.py(3): f\n") * 2
    assert load_failures(printed, Path("/r")) == (
        "model 'a' does not load: no file; model 'b' does not load: bad \"x\" (b/1/model.py, line 3)"
    )


TRACEBACK = """I1130 04:15:00.123456 7 model.cc:12] "served"
Exception in thread Thread-1 (generate):
Traceback (most recent call last):
  File "/usr/lib/python3.12/threading.py", line 1073, in _bootstrap_inner
    self.run()
  File "/opt/ml/model/one/1/model.py", line 7, in generate
    int(text)
ValueError: no number

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/ml/model/one/1/model.py", line 9, in generate
    raise KeyError
KeyError
"""


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (TRACEBACK, "ValueError: no number (one/1/model.py, line 7)"),
        (
            TRACEBACK.replace("    int(text)\n", f"    int(text)\n{TRACEBACK.splitlines()[0]}\n"),
            "ValueError: no number (one/1/model.py, line 7)",
        ),
        (TRACEBACK[:48], ""),
    ],
    ids=["the first of two", "the server between its lines", "none"],
)
def test_an_exception_in_the_output(printed: str, expected: str) -> None:
    assert logged_exception(printed.splitlines(), Path("/opt/ml/model")) == expected
