"""`cdk-triton config`: the first configuration of a network, and the ensemble of several models."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from cdk_triton.triton import ModelRepository, parse_model_config
from cdk_triton.triton.schema import DataType

if TYPE_CHECKING:
    from golden_messages import Messages


HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
NETWORK = "network (float[N,2] x) => (float[N,3] scores) { scores = Concat<axis=1>(x, x) }"
PYTHON = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "{read}").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("{made}", values)])
"""
COMPLETED = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "TEXT", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "x", "data_type": "TYPE_FP32", "dims": [2]})
        config.set_max_batch_size(4)
        return config

    def execute(self, requests):
        return []
"""
CONFIG = """
backend: "python"
max_batch_size: 16
input [{ name: "scores" data_type: TYPE_FP32 dims: [ 3 ] }]
output [{ name: "LABEL" data_type: TYPE_STRING dims: [ 1 ] }]
"""


def network(path: Path, graph: str = NETWORK) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model(f"{HEAD} {graph}"), path)
    return path


def python(path: Path, read: str, made: str) -> Path:
    path.write_text(PYTHON.format(read=read, made=made))
    return path


def configured(directory: Path) -> Path:
    """The directory of a Python model with its configuration."""
    (directory / "1").mkdir(parents=True)
    (directory / "config.pbtxt").write_text(CONFIG)
    (directory / "1" / "model.py").write_text(PYTHON.format(read="scores", made="LABEL"))
    return directory


def said(outcome: Any) -> dict[str, dict[str, str]]:
    """The guesses of a JSON answer: file → field → reason."""
    guesses: dict[str, dict[str, str]] = {}
    for each in json.loads(outcome.out)["guesses"]:
        guesses.setdefault(each["path"], {})[each["field"]] = each["reason"]
    return guesses


@pytest.mark.parametrize(
    ("graph", "size", "dims"),
    [
        ("n (float[N,2] x) => (float[M,3] y) { y = Concat<axis=1>(x, x) }", 8, [[2], [3]]),
        ("n (float[1,T] x) => (float[1,T] y) { y = Relu(x) }", 0, [[1, -1], [1, -1]]),
        ("n (float[N,T] x) => (float[2] y) { y = Foo(x) }", 0, [[-1, -1], [2]]),
    ],
    ids=["an open first dimension", "a fixed first dimension", "one of both"],
)
def test_the_batch_dimension_is_what_every_tensor_has_open_at_its_beginning(
    run: Any, tmp_path: Path, graph: str, size: int, dims: list[list[int]]
) -> None:
    outcome = run("config", network(tmp_path / "net.onnx", graph))

    config = parse_model_config(outcome.out)
    assert (config.backend, config.max_batch_size) == ("onnxruntime", size)
    assert [list(config.input[0].dims), list(config.output[0].dims)] == dims
    assert "# Guessed: " in outcome.out.partition("max_batch_size")[0]


def test_a_scalar_for_each_element_of_a_batch_is_reshaped(run: Any, tmp_path: Path) -> None:
    graph = "n (int64[N] k) => (float[N] y) { y = Cast<to=1>(k) }"
    (given,) = parse_model_config(run("config", network(tmp_path / "net.onnx", graph)).out).input
    assert (list(given.dims), given.HasField("reshape"), list(given.reshape.shape)) == ([1], True, [])


def test_labels_beside_the_network_belong_to_the_output_of_their_number(run: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\ndog\nbird\n")
    file = network(tmp_path / "net.onnx")
    (output,) = parse_model_config(run("config", file).out).output
    assert output.label_filename == "labels.txt"

    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    outcome = run("config", file, "--format", "json")
    assert "2 lines" in said(outcome)["net/config.pbtxt"]["output"]


@pytest.mark.parametrize("place", ["net.onnx", "net/1/model.onnx", "net/model.onnx"])
def test_the_name_is_the_files_or_the_models_directory(run: Any, tmp_path: Path, place: str) -> None:
    outcome = run("config", network(tmp_path / place), "--format", "json")
    assert [each["path"] for each in json.loads(outcome.out)["files"]] == ["net/config.pbtxt"]


@pytest.mark.slow
def test_several_models_become_an_ensemble_without_findings(run: Any, tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(COMPLETED)
    models = [tmp_path / "first.py", network(tmp_path / "net.onnx"), configured(tmp_path / "names")]

    outcome = run("config", *models, "--into", tmp_path / "models", "--ensemble", "all")

    assert outcome.status == 0
    repository = ModelRepository.from_directory(tmp_path / "models")
    assert repository.check() == ()
    model = repository.model("all")
    assert model is not None
    assert model.config is not None
    assert model.config.max_batch_size == 4  # the smallest of its models
    assert [each.name for each in model.config.input] == ["TEXT"]
    assert [each.name for each in model.config.output] == ["LABEL"]
    inner = {name: [step.model_name for step in each.readers] for name, each in model.graph.tensors.items()}
    assert inner == {"TEXT": ["first"], "LABEL": [], "first_x": ["net"], "net_scores": ["names"]}
    kept = repository.model("names")
    assert kept is not None
    assert kept.config_text == CONFIG


@pytest.mark.slow
def test_a_single_model_gets_an_ensemble_if_one_is_named(run: Any, tmp_path: Path) -> None:
    file = network(tmp_path / "net.onnx")
    assert run("config", file, "--into", tmp_path / "models", "--ensemble", "all").status == 0
    repository = ModelRepository.from_directory(tmp_path / "models")
    assert [each.name for each in repository.models] == ["all", "net"]
    assert repository.check("multi") == ()


def test_a_tensor_without_a_type_gets_that_of_the_tensor_that_it_is_connected_to(run: Any, tmp_path: Path) -> None:
    models = [python(tmp_path / "first.py", "AMOUNT", "FEATURES"), network(tmp_path / "net.onnx")]

    outcome = run("config", *models, "--format", "json")

    files = {each["path"]: parse_model_config(each["content"]) for each in json.loads(outcome.out)["files"]}
    (features,) = files["first/config.pbtxt"].output
    assert list(features.dims) == [2]
    assert {*said(outcome)["first/config.pbtxt"]} == {"input[0].data_type", "input[0].dims"}
    guesses = said(outcome)["ensemble/config.pbtxt"]
    assert guesses.pop('ensemble_scheduling.step[1].input_map["x"]')
    assert {*guesses} == {"input[0].data_type", "input[0].dims"}
    assert {*guesses.values()} == {
        "it repeats the guess in first/config.pbtxt; correct that one, and write this file again"
    }


def test_a_guess_that_the_ensemble_repeats_is_marked_there_and_named_at_the_end(
    run: Any, tmp_path: Path, messages: Messages
) -> None:
    models = [network(tmp_path / "net.onnx"), python(tmp_path / "post.py", "scores", "LABEL")]

    outcome = run("config", *models, "--into", tmp_path / "models")

    text = (tmp_path / "models" / "ensemble" / "config.pbtxt").read_text()
    mark = (
        "    # Guessed: it repeats the guess in post/config.pbtxt; correct that one, and write this file again.\n    "
    )
    assert f'name: "LABEL"\n{mark}data_type: TYPE_FP32\n{mark}dims: [ -1 ]\n' in text
    assert "repeats" not in outcome.out
    messages.record("cdk-triton config", outcome.out.splitlines()[-4])


def corrected(run: Any, directory: Path) -> tuple[Path, list[str]]:
    """A repository whose Python model was corrected, and the command that it was told to run then."""
    models = [network(directory / "net.onnx"), python(directory / "post.py", "scores", "LABEL")]
    told = run("config", *models, "--into", directory / "models", "--ensemble", "all").out.splitlines()[-2]
    config = directory / "models" / "post" / "config.pbtxt"
    head, name, output = config.read_text().partition('name: "LABEL"')
    config.write_text(f"{head}{name}{output.replace('TYPE_FP32', 'TYPE_STRING').replace('[ -1 ]', '[ 1 ]')}")
    return directory / "models", shlex.split(told)[1:]


@pytest.mark.slow
def test_the_command_that_is_printed_writes_the_ensemble_again_after_a_correction(run: Any, tmp_path: Path) -> None:
    models, command = corrected(run, tmp_path)

    assert run(*command).status == 0

    repository = ModelRepository.from_directory(models)
    assert repository.check() == ()
    ensemble = repository.model("all")
    assert ensemble is not None
    assert ensemble.config is not None
    (label,) = ensemble.config.output
    assert (label.data_type, list(label.dims)) == (DataType.Value("TYPE_STRING"), [1])
    assert "repeats" not in str(ensemble.config_text)


def test_an_ensemble_that_was_changed_by_hand_is_not_replaced(
    run: Any, tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    models, command = corrected(run, tmp_path)
    config = models / "all" / "config.pbtxt"
    mine = config.read_text().replace("model_version: -1", "model_version: 1")
    config.write_text(mine)

    outcome = run(*command)

    assert (outcome.status, outcome.out, config.read_text()) == (2, "", mine)
    messages.record("cdk-triton config", outcome.said)


def test_an_ensemble_that_cannot_be_replaced_leaves_no_new_files(run: Any, tmp_path: Path) -> None:
    models, _ = corrected(run, tmp_path)
    before = {file: file.read_bytes() for file in models.rglob("*") if file.is_file()}
    (models / "all" / ".config.pbtxt.new").mkdir()  # where the new text is written first

    other = python(tmp_path / "other.py", "x", "y")
    outcome = run("config", models / "post", other, "--into", models, "--ensemble", "all")

    assert outcome.status != 0
    assert {file: file.read_bytes() for file in models.rglob("*") if file.is_file()} == before


def test_two_outputs_that_fit_leave_the_input_to_the_caller(run: Any, tmp_path: Path, messages: Messages) -> None:
    two = "two (float[N,2] k) => (float[N,2] a, float[N,2] b, float[N,3] z) { a = Relu(k) b = Relu(k) z = Foo(k) }"
    reads = "reads (float[N,2] x, float[N,3] z) => (float[N,2] y) { y = Foo(x, z) }"
    models = [network(tmp_path / "two.onnx", two), network(tmp_path / "reads.onnx", reads)]

    outcome = run("config", *models, "--format", "json")

    reason = said(outcome)["ensemble/config.pbtxt"]['ensemble_scheduling.step[1].input_map["x"]']
    messages.record("cdk-triton config", reason)


def test_a_network_in_a_repository_gets_its_configuration_there(run: Any, tmp_path: Path) -> None:
    file = network(tmp_path / "models" / "net" / "1" / "model.onnx")
    before = file.read_bytes()

    assert run("config", file, "--into", tmp_path / "models").status == 0

    assert file.read_bytes() == before
    assert ModelRepository.from_directory(tmp_path / "models").check() == ()


def test_weights_of_their_own_file_are_copied_with_the_network(run: Any, tmp_path: Path) -> None:
    file = _external(tmp_path / "net.onnx")
    assert run("config", file, "--into", tmp_path / "models").status == 0
    assert (tmp_path / "models" / "net" / "1" / "weights.bin").stat().st_size == 4096


def _external(path: Path) -> Path:
    weights = numpy_helper.from_array(np.ones((2, 512), np.float32), "weights")
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size]) for name, size in (("x", 2), ("y", 512))
    )
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "weights"], ["y"])], "net", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_nothing_is_overwritten_and_what_is_in_the_way_is_named(
    run: Any, tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    models = tmp_path / "models"
    (models / "net").mkdir(parents=True)
    (models / "net" / "config.pbtxt").write_text("mine")

    outcome = run("config", network(tmp_path / "net.onnx"), "--into", models)

    assert (outcome.status, outcome.out) == (2, "")
    assert [path.name for path in models.rglob("*") if path.is_file()] == ["config.pbtxt"]
    assert (models / "net" / "config.pbtxt").read_text() == "mine"
    messages.record("cdk-triton config", outcome.said)


@pytest.mark.parametrize(
    "case",
    [
        "missing",
        "a text",
        "missing weights",
        "a sequence",
        "into a file",
        "unconnected",
        "a class too few",
        "twice",
    ],
)
def test_what_cannot_be_used_is_a_sentence_and_2(
    run: Any, tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    arguments: list[Path | str] = [tmp_path / "net.onnx"]
    if case == "a text":
        (tmp_path / "net.onnx").write_text("not a network")
    elif case == "missing weights":
        _external(tmp_path / "net.onnx")
        (tmp_path / "weights.bin").unlink()
    elif case == "a sequence":
        network(tmp_path / "net.onnx", "n (float[N] x) => (seq(float[N]) y) { y = SequenceConstruct(x) }")
    elif case == "into a file":
        (tmp_path / "file").write_text("")
        arguments = [network(tmp_path / "net.onnx"), "--into", tmp_path / "file"]
    elif case == "unconnected":
        other = "n (int64[N,5] ids) => (int64[N,5] same) { same = Identity(ids) }"
        arguments = [network(tmp_path / "net.onnx"), network(tmp_path / "other.onnx", other)]
    elif case == "a class too few":
        (tmp_path / "net.py").write_text("class Model: ...\n")
        arguments = [tmp_path / "net.py"]
    elif case == "twice":
        arguments = [network(tmp_path / "net.onnx"), network(tmp_path / "net" / "1" / "model.onnx")]

    outcome = run("config", *arguments)

    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton config", outcome.said)


def test_a_network_that_is_cut_off_or_has_a_type_that_is_not_served_says_so(
    run: Any, tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    typed = network(tmp_path / "net.onnx", "n (bfloat16[N] x) => (bfloat16[N] y) { y = Identity(x) }")
    with_type = run("config", typed)
    whole = network(tmp_path / "net.onnx").read_bytes()
    typed.write_bytes(whole[: len(whole) // 2])
    half = run("config", typed)

    assert (with_type.status, half.status) == (2, 2)
    assert "the tensor 'x' of BF16, which the ONNX Runtime backend does not serve" in with_type.said
    assert "or the file is cut off" in half.said
    messages.record("cdk-triton config", with_type.said)
    messages.record("cdk-triton config", half.said)


def test_a_file_that_cannot_be_written_leaves_nothing_behind(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", fails)

    outcome = run("config", network(tmp_path / "net.onnx"), "--into", tmp_path / "models")

    assert (outcome.status, outcome.out) == (1, "")
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)])
def test_models_in_another_order_than_a_request_passes_them_are_connected_if_their_tensors_show_it(
    run: Any, tmp_path: Path, order: tuple[int, ...]
) -> None:
    models = [
        python(tmp_path / "pre.py", "TEXT", "FEATURES"),
        network(tmp_path / "net.onnx"),
        python(tmp_path / "post.py", "SCORES", "LABEL"),
    ]

    outcome = run("config", *(models[each] for each in order), "--format", "json")

    files = {each["path"]: parse_model_config(each["content"]) for each in json.loads(outcome.out)["files"]}
    ensemble = files["ensemble/config.pbtxt"]
    assert [each.name for each in ensemble.input] == ["TEXT"]
    assert [each.name for each in ensemble.output] == ["LABEL"]
