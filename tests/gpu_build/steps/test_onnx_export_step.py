"""The step that exports a network: with the onnx of this interpreter, and without network access."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest

from build_program.onnx_export import build
from build_program.step import BuildError
from build_program.work import BuildWork

if TYPE_CHECKING:
    from golden_messages import Messages


Make = Callable[..., BuildWork]

# ids [batch] INT64 -> rows of a table, doubled where a branch (a graph inside of a node) says so.
EXPORT = """
import onnx
from onnx import TensorProto, helper, numpy_helper
import numpy as np

def export(path):
    table = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "table")
    zero = numpy_helper.from_array(np.array(0, dtype=np.int64), "zero")
    yes = numpy_helper.from_array(np.array(True), "yes")
    def branch(name):
        nodes = [  # Sub wants both of one type
            helper.make_node("Sub", ["ids", "zero"], [name + "_ids"]),
            helper.make_node("Gather", ["table", name + "_ids"], [name]),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])
    nodes = [
        helper.make_node("If", ["yes"], ["rows"], then_branch=branch("then"), else_branch=branch("else")),
        helper.make_node("Identity", ["ids"], ["same"]),
        helper.make_node("Cast", ["same"], ["wide"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 3]),
         helper.make_tensor_value_info("wide", TensorProto.FLOAT, ["n"])],
        [table, zero, yes],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
"""


def repository(directory: Path, code: str = EXPORT, requirements: str | None = None) -> Path:
    (directory / "bert").mkdir(exist_ok=True)
    (directory / "bert" / "export.py").write_text(code)
    pinned = f"onnx=={version('onnx')} \\\n    --hash=sha256:{'0' * 64}\n"
    (directory / "bert" / "requirements.txt").write_text(pinned if requirements is None else requirements)
    return directory


def step(*, outputs: tuple[str, ...] = ("rows", "wide"), integer_inputs: str | None = None) -> dict[str, Any]:
    return {
        "name": "the ONNX export of bert",
        "source": "bert/export.py",
        "function": "export",
        "target": "bert/bert.onnx",
        "requirements": "bert/requirements.txt",
        "outputs": list(outputs),
        "integer_inputs": integer_inputs,
    }


def rows(path: Path, ids: np.ndarray[Any, Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return list(session.run(["rows", "wide"], {"ids": ids}))


def test_a_function_writes_the_network(make_work: Make, tmp_path: Path) -> None:
    work = make_work(repository(tmp_path))
    assert build(step(), work) == {"outputs": ["bert/bert.onnx"], "parity": None}
    found, wide = rows(tmp_path / "bert" / "bert.onnx", np.array([2, 0], np.int64))
    assert found.tolist() == [[6, 7, 8], [0, 1, 2]]
    assert wide.tolist() == [2, 0]
    assert sorted(path.name for path in (tmp_path / "bert").iterdir()) == ["bert.onnx", "export.py", "requirements.txt"]


def test_integer_inputs_become_int32(make_work: Make, tmp_path: Path) -> None:
    build(step(integer_inputs="int32"), make_work(repository(tmp_path)))
    path = tmp_path / "bert" / "bert.onnx"
    assert onnx.load(path).graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.INT32
    found, wide = rows(path, np.array([3, 1], np.int32))
    assert found.tolist() == [[9, 10, 11], [3, 4, 5]]
    assert wide.tolist() == [3, 1]


def test_weights_beside_the_network_become_part_of_it(make_work: Make, tmp_path: Path) -> None:
    beside = "onnx.save(model, path, save_as_external_data=True, location='weights.bin', size_threshold=0)"
    build(step(), make_work(repository(tmp_path, EXPORT.replace("onnx.save(model, path)", beside))))
    assert sorted(path.name for path in (tmp_path / "bert").iterdir()) == ["bert.onnx", "export.py", "requirements.txt"]
    assert rows(tmp_path / "bert" / "bert.onnx", np.array([1], np.int64))[0].tolist() == [[3, 4, 5]]


@pytest.mark.parametrize(
    ("code", "outputs"),
    [
        (EXPORT, ("rows", "pooled")),
        (
            EXPORT.replace("onnx.save(model, path)", "model.graph.output[1].name = ''; onnx.save(model, path)"),
            ("rows", "wide"),
        ),
        ("def export(path): pass", ("rows",)),
        ("export = 3", ("rows",)),
        ("def export(path): open(path, 'w').write('no')", ("rows",)),
        (
            EXPORT.replace(
                "onnx.save(model, path)",
                "t = model.graph.initializer[0]; t.data_location = 1; t.ClearField('raw_data'); "
                "t.external_data.add(key='location', value='../../../../etc/passwd'); onnx.save(model, path)",
            ),
            ("rows", "wide"),
        ),
    ],
    ids=["names", "empty name", "no file", "no function", "no ONNX", "weights elsewhere"],
)
def test_what_is_not_declared_is_rejected(
    messages: Messages, make_work: Make, tmp_path: Path, code: str, outputs: tuple[str, ...]
) -> None:
    with messages.raises(BuildError):
        build(step(outputs=outputs), make_work(repository(tmp_path, code)))
    assert not (tmp_path / "bert" / "bert.onnx").exists()


@pytest.mark.parametrize(
    ("code", "place", "end"),
    [
        (
            "def export(path):\n    raise ValueError('checkpoint.pt is corrupt')\n",
            "export.py, line 2",
            ["    raise ValueError('checkpoint.pt is corrupt')", "ValueError: checkpoint.pt is corrupt"],
        ),
        (
            "import beside\n\ndef export(path):\n    beside.load()\n",
            "beside.py, line 4",
            [
                "    open(Path(__file__).with_name('no'))",
                "FileNotFoundError: [Errno 2] No such file or directory: 'no'",
            ],
        ),
        (
            "import json\nassert json.loads('')\n",
            "export.py, line 2",
            ["    assert json.loads('')", "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"],
        ),
        (
            "def export(path):\n    raise SystemExit\n",
            "export.py, line 2",
            ["    raise SystemExit", "SystemExit"],
        ),
        (
            "def export(path)\n",
            "export.py, line 1",
            ["SyntaxError: expected ':' (export.py, line 1)"],
        ),
    ],
    ids=["ValueError", "beside", "while imported", "exit", "syntax"],
)
def test_what_the_users_code_raises_is_said_with_its_line(
    messages: Messages, make_work: Make, tmp_path: Path, code: str, place: str, end: list[str]
) -> None:
    root = repository(tmp_path, code)
    beside = "from pathlib import Path\n\ndef load():\n    open(Path(__file__).with_name('no'))\n"
    (root / "bert" / "beside.py").write_text(beside)
    with messages.raises(BuildError) as raised:
        build(step(), make_work(root))
    assert place in raised.value.reason
    assert list(raised.value.log[-len(end) :]) == end
    assert not any("driver" in line or "/" in line for line in raised.value.log)


def test_code_that_ends_its_process_is_said(messages: Messages, make_work: Make, tmp_path: Path) -> None:
    """What it leaves is no exception, and no exit code that would tell of a fault."""
    work = make_work(repository(tmp_path, "import os\n\n\ndef export(path):\n    os._exit(0)\n"))
    with messages.raises(BuildError):
        build(step(), work)


def test_a_long_text_leaves_room_for_the_line(messages: Messages, make_work: Make, tmp_path: Path) -> None:
    code = "def export(path):\n    raise RuntimeError('weights ' * 500)\n"
    with messages.raises(BuildError) as raised:
        build(step(), make_work(repository(tmp_path, code)))
    assert "export.py, line 2" in raised.value.reason
    assert len(raised.value.reason) < 600


def test_the_export_sees_no_credentials_and_finds_files_beside_itself(
    make_work: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"AWS_SECRET_ACCESS_KEY": "s1", "CODEBUILD_AUTH_TOKEN": "s2", "HF_TOKEN": "s3"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    looking = f"""
import os
from pathlib import Path
import beside
assert not set({list(secrets)!r}) & set(os.environ), sorted(os.environ)
assert os.environ["HOME"] != {str(Path.home())!r}
assert Path(__file__).with_name("words.txt").read_text() == "a"
"""
    root = repository(tmp_path, looking + EXPORT)
    (root / "bert" / "beside.py").write_text("")
    (root / "bert" / "words.txt").write_text("a")
    build(step(), make_work(root))
    assert not list(root.rglob("__pycache__"))


def test_what_is_not_installed_is_installed_by_hash(
    make_work: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No index: what is asked of pip shows in the command, and the error says what a build needs.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    requirements = f"onnx==0.0.1 --hash=sha256:{'0' * 64}\n"
    work = make_work(repository(tmp_path, requirements=requirements))
    with pytest.raises(BuildError, match=r"No matching distribution found for onnx==0\.0\.1"):  # pip's words
        build(step(), work)
    assert {"--require-hashes", "--no-deps", ":all:"} <= set(work.commands[-1])
