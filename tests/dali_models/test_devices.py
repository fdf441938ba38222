"""Which outputs of a DALI pipeline are in the memory of the GPU, as the definition shows it, and DALI as its judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.dali_models.definitions import HEAD, pipeline

from cdk_triton.dali_models.reader.definition import Definition, pipeline_definition
from cdk_triton.dali_models.reader.serialized import serialized_outputs_on_gpu
from cdk_triton_local.triton.backends.dali_definition import has_dali

E = "fn.external_source(name='A')"
CASES = {
    "on the CPU": (pipeline(f"return fn.decoders.image({E})"), ()),
    "mixed": (pipeline(f"return fn.decoders.image({E}, device='mixed')"), (0,)),
    "after it": (pipeline(f"x = fn.decoders.image({E}, device='mixed')", "return fn.resize(x, size=8)"), (0,)),
    "one of two": (pipeline(f"x = {E}", "return x, fn.decoders.image(x, device='mixed')"), (1,)),
    "gpu()": (pipeline(f"return {E}.gpu()"), (0,)),
    "back on the CPU": (pipeline(f"x = fn.resize({E}.gpu(), size=8)", "return x.cpu()"), ()),
    "arithmetic": (pipeline(f"x = {E}.gpu()", "return x * 2 + 1, 1 - x"), (0, 1)),
    "several results": (pipeline(f"x, y = fn.random_bbox_crop({E}, {E})[:2]", "return x"), ()),
    "a source": (pipeline("return fn.external_source(name='A', device='gpu')"), (0,)),
    "set anew": (pipeline(f"x = {E}.gpu()", f"x = {E}", "return x"), ()),
}
ASK = """
import json, sys
said = {}
for name, source in json.load(sys.stdin).items():
    exec(source, names := {})
    outputs = names["pipeline"](device_id=0)._graph_out  # the one place that has the devices without a GPU
    said[name] = [index for index, each in enumerate(outputs) if each.device == "gpu"]
print(json.dumps(said))
"""
UNKNOWN = {
    "a variable": pipeline(f"return fn.resize({E}, size=8, device=where)", arguments="where='gpu'"),
    "a branch": pipeline(f"x = {E}", "if kind:", "    x = x.gpu()", "return x", arguments="kind=True"),
    "two returns": pipeline(f"x = {E}", "if kind:", "    return x", "return x.gpu()", arguments="kind=False"),
    "a list": pipeline(f"x = [{E}.gpu()]", "return tuple(x)"),
    "several at once": pipeline(f"x = [{E}, {E}]", f"return *x, {E}.gpu()"),
    "another decorator": "def on_host(f): return lambda: f().cpu()\n"
    + pipeline(f"return {E}.gpu()", decorators="@autoserialize\n@pipeline_def(batch_size=8)\n@on_host\n"),
}


def read(source: str, directory: Path) -> tuple[int, ...]:
    file = directory / "dali.py"
    file.write_text(HEAD + source, encoding="utf-8")
    found = pipeline_definition((3, 12))(file)
    assert isinstance(found, Definition)
    return found.outputs_on_gpu


@pytest.mark.parametrize("name", CASES)
def test_the_definition_shows_which_outputs_are_on_the_gpu(tmp_path: Path, name: str) -> None:
    source, expected = CASES[name]
    assert read(source, tmp_path) == expected


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_claimed_of_an_output_that_the_definition_does_not_show(tmp_path: Path, name: str) -> None:
    assert read(UNKNOWN[name], tmp_path) == ()


@pytest.mark.slow
@pytest.mark.skipif(not has_dali(), reason="the extra dali is not installed")
def test_dali_says_the_same() -> None:
    """A process of its own, because the stand-in for the backend moves all operators of a process to the CPU."""
    sources = {name: HEAD + source for name, (source, _) in CASES.items()}
    done = subprocess.run(
        [sys.executable, "-c", ASK], input=json.dumps(sources), check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == {name: list(expected) for name, (_, expected) in CASES.items()}


def test_a_serialised_pipeline_has_the_devices(tmp_path: Path) -> None:
    content = Path(__file__).with_name("reader.dali").read_bytes()
    (tmp_path / "model.dali").write_bytes(content)
    assert serialized_outputs_on_gpu(tmp_path / "model.dali") == ()
    head, _, tail = content.rpartition(b"\x12\x03cpu")
    (tmp_path / "model.dali").write_bytes(head + b"\x12\x03gpu" + tail)
    assert serialized_outputs_on_gpu(tmp_path / "model.dali") == (0,)
