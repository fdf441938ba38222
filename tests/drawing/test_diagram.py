"""The data flow of a repository as boxes and arrows, and as text."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from cdk_triton.drawing import Diagram, as_mermaid, as_text, diagrams
from cdk_triton.triton import ModelRepository

PYTHON = """
backend: "python"
max_batch_size: 8
input [{ name: "%s" data_type: TYPE_FP32 dims: [ 2 ] }]
output [{ name: "%s" data_type: TYPE_FP32 dims: [ 2 ] }]
"""
SOURCE = "class TritonPythonModel:\n    def execute(self, requests): return []\n"
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [{ name: "IN" data_type: TYPE_FP32 dims: [ 2 ] }]
output [{ name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }]
ensemble_scheduling { step [
  { model_name: "last" model_version: -1 input_map { key: "b" value: "scores" } output_map { key: "c" value: "OUT" } },
  { model_name: "network" model_version: -1
    input_map { key: "x" value: "features" } output_map { key: "y" value: "scores" } },
  { model_name: "first" model_version: -1 input_map { key: "a" value: "IN" } output_map { key: "f" value: "features" } }
] }
"""
NETWORK = '<ir_version: 8, opset_import: ["" : 17]> network (float[N,2] x) => (float[N,2] y) { y = Relu(x) }'


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An ensemble Python → ONNX → Python, whose steps are in another order than a request."""
    for name, config in {"first": PYTHON % ("a", "f"), "last": PYTHON % ("b", "c"), "ensemble": ENSEMBLE}.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(config)
        (tmp_path / name / "1" / "model.py").write_text(SOURCE)
    (tmp_path / "network" / "1").mkdir(parents=True)
    (tmp_path / "network" / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 8\n')
    onnx.save(onnx.parser.parse_model(NETWORK), tmp_path / "network" / "1" / "model.onnx")
    return tmp_path


def drawn(directory: Path) -> Diagram:
    repository = ModelRepository.from_directory(directory)
    (diagram,) = diagrams(repository, repository.check())
    return diagram


def change(directory: Path, model: str, old: str, new: str) -> None:
    file = directory / model / "config.pbtxt"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def crossings(diagram: Diagram) -> dict[str, str]:
    return {arrow.tensor: arrow.crossing for arrow in diagram.arrows if arrow.crossing}


def test_the_steps_are_in_the_order_of_a_request_with_their_backends(directory: Path) -> None:
    boxes = drawn(directory).boxes
    assert [(box.name, box.backend, box.place) for box in boxes] == [
        ("request", "", ""),
        ("first", "Python", "CPU"),
        ("network", "ONNX Runtime", "GPU"),
        ("last", "Python", "CPU"),
        ("response", "", ""),
    ]


def test_a_tensor_that_no_configuration_has_gets_its_shape_from_the_network(directory: Path) -> None:
    change(directory, "last", "dims: [ 2 ]", "dims: [ -1 ]")
    assert {arrow.tensor: arrow.shape for arrow in drawn(directory).arrows} == {
        "IN": "FP32 [2]",
        "features": "FP32 [2]",
        "scores": "FP32 [2]",
        "OUT": "FP32 [2]",
    }


def test_data_crosses_where_python_and_a_network_on_the_gpu_meet(directory: Path) -> None:
    assert crossings(drawn(directory)) == {"features": "CPU → GPU", "scores": "GPU → CPU"}


@pytest.mark.parametrize(
    ("model", "addition", "expected"),
    [
        ("network", "instance_group [{ kind: KIND_CPU }]", {}),
        (
            "last",
            'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }',
            {"features": "CPU → GPU"},
        ),
    ],
    ids=["a network on the CPU", "a Python model that takes tensors as they come"],
)
def test_data_stays_where_the_configuration_lets_it(
    directory: Path, model: str, addition: str, expected: dict[str, str]
) -> None:
    with (directory / model / "config.pbtxt").open("a") as file:
        file.write(addition)
    assert crossings(drawn(directory)) == expected


THRESHOLD = 'parameters { key: "transfer_threshold" value { string_value: "%s" } }'


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        ("", {"features": "CPU → GPU", "scores": "GPU → CPU"}),
        (THRESHOLD % "0", {"features": "CPU → GPU", "scores": "GPU → CPU"}),
        (THRESHOLD % "64", {}),
        ("instance_group [{ kind: KIND_CPU }]", {}),
    ],
    ids=["on the GPU", "every batch", "large batches", "on the CPU"],
)
def test_data_of_tree_models_crosses_if_every_batch_goes_to_the_gpu(
    directory: Path, addition: str, expected: dict[str, str]
) -> None:
    (directory / "network" / "config.pbtxt").write_text(
        f"""backend: "fil" max_batch_size: 8 {addition}
        input {{ name: "x" data_type: TYPE_FP32 dims: 2 }} output {{ name: "y" data_type: TYPE_FP32 dims: 2 }}"""
    )
    assert crossings(drawn(directory)) == expected


def test_nothing_is_claimed_of_a_source_that_hands_over_tensors(directory: Path) -> None:
    (directory / "first" / "1" / "model.py").write_text(f"{SOURCE}\n# pb_utils.Tensor.from_dlpack\n")
    assert "features" not in crossings(drawn(directory))


def test_a_finding_marks_the_step_or_the_tensor_that_it_is_about(directory: Path) -> None:
    change(directory, "ensemble", 'model_name: "last"', 'model_name: "lst"')
    change(directory, "ensemble", 'key: "a"', 'key: "aa"')
    repository = ModelRepository.from_directory(directory)
    diagram = next(each for each in diagrams(repository, repository.check()) if each.is_ensemble)

    marked = {box.name: [diagram.findings[each - 1].code for each in box.findings] for box in diagram.boxes}
    assert marked["lst"] == ["CT301"]
    of_tensors = {
        arrow.tensor: [diagram.findings[each - 1].code for each in arrow.findings] for arrow in diagram.arrows
    }
    assert of_tensors["IN"] == ["CT332"]
    assert "✗" in as_text(diagram)
    assert ":::error" in as_mermaid(diagram)


def test_a_configuration_that_cannot_be_read_is_drawn_with_its_finding(directory: Path) -> None:
    (directory / "first" / "config.pbtxt").write_text("max_batch_siz: 8")
    diagram = drawn(directory)
    first = next(box for box in diagram.boxes if box.name == "first")
    assert [diagram.findings[each - 1].code for each in first.findings] == ["CT101"]


def test_tensors_without_writer_or_reader_lead_to_nothing(directory: Path) -> None:
    change(directory, "ensemble", 'key: "x" value: "features"', 'key: "x" value: "featurs"')
    ends = {arrow.tensor: (arrow.source, arrow.target) for arrow in drawn(directory).arrows}
    assert ends["featurs"] == ("nothing", "1")
    assert ends["features"] == ("2", "nothing")


def test_a_model_without_an_ensemble_is_one_step(directory: Path) -> None:
    for name in ("ensemble", "first", "last"):
        (directory / name / "config.pbtxt").unlink()
        (directory / name / "1" / "model.py").unlink()
    diagram = drawn(directory)
    assert (diagram.title, [arrow.tensor for arrow in diagram.arrows]) == (
        "model network, batches of up to 8",
        ["x", "y"],
    )


def test_the_text_has_one_width_and_every_tensor(directory: Path) -> None:
    title, *lines = as_text(drawn(directory)).split("\n")
    assert title == "ensemble ensemble, batches of up to 8"
    assert len({len(line) for line in lines}) == 1
    assert "│   ← first     features  FP32 [2]  CPU → GPU │" in lines


def test_a_name_cannot_leave_its_label_in_mermaid(directory: Path) -> None:
    change(directory, "ensemble", 'value: "scores"', "value: 'a\"]; click x \"javascript'")
    line = next(each for each in as_mermaid(drawn(directory)).splitlines() if "click" in each)
    assert line.count('"') == 2
    assert ";" not in line.replace("#34;", "").replace("#93;", "").replace("#59;", "").replace("#91;", "")
