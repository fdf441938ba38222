"""The graph of an ONNX file is judged in a process of its own: within limits, once for each content."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy
import onnx.numpy_helper
import psutil
import pytest
from inotify_simple import INotify, flags

from cdk_triton.onnx_models.reader import graph as onnx_graph
from cdk_triton.onnx_models.reader.graph import Limits, onnx_graphs
from cdk_triton.onnx_models.reader.skeleton import onnx_skeleton
from sample_repositories.onnx_graphs import REFUSED, TAKEN, graph

pytestmark = pytest.mark.slow  # each starts a process


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered from another test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(onnx_graph, "_judged", {})


def written(path: Path, text: str) -> Path:
    path.write_bytes(graph(text).SerializeToString())
    return path


def test_a_verdict_on_each_file(tmp_path: Path) -> None:
    refused = {name: written(tmp_path / f"r{i}.onnx", text) for i, (name, (text, _)) in enumerate(REFUSED.items())}
    taken = {name: written(tmp_path / f"t{i}.onnx", text) for i, (name, text) in enumerate(TAKEN.items())}
    verdicts = onnx_graphs([*refused.values(), *taken.values()])
    found = {name: verdicts[file].faults[0].kind if verdicts[file].faults else "" for name, file in refused.items()}
    assert found == {name: kind for name, (_, kind) in REFUSED.items()}
    assert {name: verdicts[file].faults for name, file in taken.items()} == dict.fromkeys(taken, ())
    assert {verdict.unjudged for verdict in verdicts.values()} == {""}


def large(path: Path, rows: int) -> Path:
    """A product with a weight of some megabytes."""
    model = graph(TAKEN["sound"].replace("{ y = Relu(x) }", "{ y = MatMul(x, w) }"))
    weight = numpy.zeros((rows, 300_000), numpy.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_take_no_part_but_their_shapes_do(tmp_path: Path) -> None:
    sound, broken = large(tmp_path / "sound.onnx", 4), large(tmp_path / "broken.onnx", 5)
    assert len(onnx_skeleton(sound)) < 1000
    verdicts = onnx_graphs([sound, broken])
    assert [[fault.kind for fault in verdicts[file].faults] for file in (sound, broken)] == [[], ["shape"]]


def test_external_weights_are_not_read(tmp_path: Path) -> None:
    model = graph(TAKEN["sound"].replace("{ y = Relu(x) }", "{ y = MatMul(x, w) }"))
    weight = model.graph.initializer.add(name="w", data_type=1, dims=[5, 3 * 2**30], data_location=1)
    weight.external_data.add(key="location", value="missing.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (verdict,) = onnx_graphs([tmp_path / "model.onnx"]).values()
    assert [fault.operator for fault in verdict.faults] == ["MatMul"]


def test_hard_links_of_one_file_are_read_once(tmp_path: Path) -> None:
    file, link = large(tmp_path / "model.onnx", 4), tmp_path / "link.onnx"
    link.hardlink_to(file)
    os.utime(file, (0, 0))  # nobody writes to it now
    onnx_graphs([file])
    with INotify() as watch:
        watch.add_watch(tmp_path, flags.OPEN)
        assert not onnx_graphs([link])[link].faults
        opened = [event.name for event in watch.read(timeout=0) if not event.mask & flags.ISDIR]
    assert opened == []


PROGRAM = """
import sys
from pathlib import Path
from cdk_triton.onnx_models.reader.graph import onnx_graphs
(verdict,) = onnx_graphs([Path(sys.argv[1])]).values()
print(len(verdict.faults), sorted({"onnx", "numpy", "subprocess"} & {*sys.modules}))
"""


def test_a_content_is_judged_once_and_never_in_this_process(tmp_path: Path) -> None:
    def output(file: Path) -> str:
        done = subprocess.run([sys.executable, "-c", PROGRAM, file], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    first = written(tmp_path / "first.onnx", REFUSED["Add"][0])
    assert output(first) == "1 ['subprocess']"
    assert output(first) == "1 []"
    assert output(written(tmp_path / "copy.onnx", REFUSED["Add"][0])) == "1 []"
    assert output(written(tmp_path / "first.onnx", REFUSED["Gemm"][0])) == "1 ['subprocess']"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        pytest.param(Limits(seconds=0.001), "processor time", id="time"),
        pytest.param(Limits(wall_seconds=0.001), "no answer within", id="clock"),
        pytest.param(Limits(memory_bytes=60 * 2**20), "cannot be imported", id="memory"),
    ],
)
def test_a_graph_beyond_the_limits_is_not_judged(tmp_path: Path, limits: Limits, said: str) -> None:
    lines = "".join(f" a{i} = Relu(a{i - 1})" for i in range(1, 2000))
    text = TAKEN["sound"].replace("y = Relu(x)", f"a0 = Relu(x) {lines} y = Relu(a1999)")
    file = written(tmp_path / "model.onnx", text)
    (verdict,) = onnx_graphs([file], limits).values()
    assert said in verdict.unjudged
    assert verdict.faults == ()
    assert onnx_graphs([written(tmp_path / "next.onnx", REFUSED["Add"][0])])[tmp_path / "next.onnx"].faults


def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    file = written(tmp_path / "model.onnx", REFUSED["Add"][0])
    onnx_graphs([written(tmp_path / "other.onnx", TAKEN["sound"])])
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.ZombieProcess):  # of another test
            if any("_graph_program" in word for word in child.cmdline()):
                child.kill()
    assert onnx_graphs([file])[file].faults


@pytest.mark.parametrize("content", [b"", b"no model", b"\x3a\xff\xff\xff\x7f"], ids=["empty", "text", "truncated"])
def test_a_file_that_is_not_a_model_has_no_verdict(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    assert not any(verdict.faults for verdict in onnx_graphs([tmp_path / "model.onnx"]).values())
