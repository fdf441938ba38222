"""The rules CT841 to CT853: what the corpus of real files does not show."""

from __future__ import annotations

import pickle
import zipfile
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from sample_repositories.torch_models import archive, torchscript

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write

CONFIG = "model/config.pbtxt"
MODEL = "model/1/model.pt"
X = 'input { name: "x" data_type: TYPE_FP32 dims: 4 }'
Y = 'output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }'
TENSOR = "def forward(self, x: Tensor) -> Tensor"


def tensor(name: str, kind: str = "FP32", side: str = "input") -> str:
    return f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: 4 }}'


def batch_input(target: str, source: str) -> str:
    kind = f'kind: BATCH_ELEMENT_COUNT target_name: "{target}" data_type: TYPE_FP32'
    return f'batch_input {{ {kind} source_input: "{source}" }}'


def sequence(inside: str, given: str = "INPUT__0") -> str:
    return f"max_batch_size: 8 {tensor(given)} {Y} sequence_batching {{ {inside} }}"


def control(name: str, values: str = "fp32_false_true: [ 0, 1 ]", kind: str = "START") -> str:
    return f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_{kind} {values} }} }}'


def state(given: str, returned: str, kind: str = "FP32") -> str:
    return f'state {{ input_name: "{given}" output_name: "{returned}" data_type: TYPE_{kind} dims: 4 }}'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", [("CT841", MODEL, "")], id="empty"),
        pytest.param(b"PK\x03\x04", [("CT841", MODEL, "")], id="four bytes"),
        pytest.param(b"<!DOCTYPE html>" * 100, [("CT841", MODEL, "")], id="a page"),
        pytest.param(archive({"a.txt": b""}), [("CT841", MODEL, "")], id="another archive"),
        pytest.param(archive({"data.pkl": b"\x80\x02}q\x00."}), [("CT841", MODEL, "")], id="no code"),
        pytest.param(archive({"data.pkl": b"not a pickle"}), [("CT841", MODEL, "")], id="no pickle"),
        pytest.param(archive({"data.pkl": pickle.dumps(Fraction(1), 4)}), [("CT841", MODEL, "")], id="protocol 4"),
        pytest.param(archive({"constants.pkl": b""}, zipfile.ZIP_LZMA), [("CT841", MODEL, "")], id="by LZMA"),
        pytest.param(archive({"constants.pkl": b"", "version": b"9" * 5000}), [], id="a version of 5,000 digits"),
        pytest.param(archive({".data/extern_modules": b""}), [("CT841", MODEL, "")], id="torch.package"),
        pytest.param(torchscript(version=10), [], id="the newest format"),
        pytest.param(torchscript(version=11), [("CT841", MODEL, "")], id="a format to come"),
        pytest.param(archive({"model.json": b"{}", "code/a.py": b""}), [], id="TorchScript of PyTorch 1.1"),
        pytest.param(torchscript("def encode(self, x: Tensor) -> Tensor"), [("CT841", MODEL, "")], id="no forward"),
        pytest.param(torchscript("def forward(self, x: oops oops)"), [], id="a signature that is not understood"),
        pytest.param(torchscript(code="x = 1"), [], id="no class"),
    ],
)
def test_what_the_file_is(messages: Messages, write: Write, content: bytes, expected: list[Place]) -> None:
    repository = write({CONFIG: f'backend: "pytorch" {X} {Y}', MODEL: content}, base={})
    assert messages.of(repository.check()) == expected


def test_a_model_in_python_has_no_torchscript(write: Write) -> None:
    repository = write({CONFIG: f'backend: "pytorch" runtime: "model.py" {X} {Y}', "model/1/model.py": ""}, base={})
    assert [each.code for each in repository.check()] == []


@pytest.mark.parametrize(
    ("forward", "config", "expected"),
    [
        pytest.param('x: Tensor, name: str="a, b): ("', X + Y, [("CT842", MODEL, "")], id="a text with brackets"),
        pytest.param("x: Tuple[Tensor, Tensor]", X + Y, [("CT842", MODEL, "")], id="a tuple"),
        pytest.param("x: Tensor, d: Dict[str, Tensor]", X + Y, [("CT842", MODEL, "")], id="a second dictionary"),
        pytest.param("d: Dict[str, Tensor], x: Tensor", X + Y, [("CT842", MODEL, "")], id="a first dictionary"),
        pytest.param("d: Dict[str, List[Tensor]]", X + Y, [("CT844", CONFIG, "input[0].data_type")], id="of lists"),
        pytest.param(
            "d: Dict[str, Tensor]",
            tensor("x", "STRING") + Y,
            [("CT844", CONFIG, "input[0].data_type")],
            id="text for a dictionary of tensors",
        ),
        pytest.param("x: Tensor, names: List[str]", X + tensor("names", "STRING") + Y, [], id="a tensor and texts"),
        pytest.param("names: List[str], x: Tensor", X + tensor("names", "STRING") + Y, [], id="in another order"),
        pytest.param(
            "names: List[str], x: Tensor",
            tensor("a") + tensor("b", "STRING") + Y,
            [("CT844", CONFIG, "input[0].data_type"), ("CT844", CONFIG, "input[1].data_type")],
            id="by their order",
        ),
        pytest.param(
            "x: Tensor, y: Tensor",
            batch_input("SIZE__1", "IN__0") + tensor("IN__0") + Y,
            [],
            id="a batch input",
        ),
        pytest.param(
            "x: Tensor, y: Tensor",
            batch_input("SIZE", "IN__0") + tensor("IN__0") + Y,
            [("CT848", CONFIG, "batch_input[0].target_name")],
            id="a batch input without an index",
        ),
        pytest.param(
            "x: Tensor, y: Tensor",
            batch_input("SIZE", "IN") + tensor("IN") + Y,
            [],
            id="a batch input by its order",
        ),
        pytest.param("x: Tensor, y: Tensor", X + tensor("z") + Y, [], id="the order agrees with the names"),
        pytest.param("x__1: Tensor, y: Tensor", tensor("y") + tensor("x__1") + Y, [], id="arguments with indexes"),
        pytest.param("", Y + X, [], id="no arguments"),
    ],
)
def test_arguments(messages: Messages, write: Write, forward: str, config: str, expected: list[Place]) -> None:
    signature = f"def forward({', '.join(filter(None, ['self', forward]))}) -> Tensor"
    repository = write({CONFIG: f'backend: "pytorch" {config}', MODEL: torchscript(signature)}, base={})
    assert messages.of(repository.check()) == expected


@pytest.mark.parametrize(
    ("result", "outputs", "expected"),
    [
        pytest.param("Tuple[Tensor, Tensor]", ["OUTPUT__1"], [], id="the second"),
        pytest.param("Tuple[Tensor, Tensor]", ["a", "b"], [], id="by order"),
        pytest.param("Tuple[Tensor, Tensor]", ["a", "b", "c"], [("CT846", CONFIG, "output[2].name")], id="a third"),
        pytest.param("Tuple[Tensor, List[Tensor]]", ["a"], [("CT845", MODEL, "")], id="a tuple with a list"),
        pytest.param("Tuple[Tensor, Tuple[Tensor]]", ["a"], [("CT845", MODEL, "")], id="a nested tuple"),
        pytest.param("Tuple[Tensor, Optional[Tensor]]", ["a", "b"], [], id="what may be missing"),
        pytest.param("Optional[Tensor]", ["a", "b"], [], id="what may be nothing"),
        pytest.param("__torch__.Output", ["a", "b"], [], id="a class"),
        pytest.param("NoneType", ["a"], [("CT845", MODEL, "")], id="nothing"),
        pytest.param("List[Tensor]", ["a"], [("CT845", MODEL, "")], id="a list"),
    ],
)
def test_results(messages: Messages, write: Write, result: str, outputs: list[str], expected: list[Place]) -> None:
    config = f'backend: "pytorch" {X} {"".join(tensor(name, side="output") for name in outputs)}'
    repository = write({CONFIG: config, MODEL: torchscript(f"def forward(self, x: Tensor) -> {result}")}, base={})
    assert messages.of(repository.check()) == expected


TWO = "def forward(self, x: Tensor, s: Tensor) -> Tuple[Tensor, Tensor]"
ID = "data_type: TYPE_{}"


@pytest.mark.parametrize(
    ("config", "platform", "expected"),
    [
        pytest.param(sequence(control("START__1")), None, [], id="a control"),
        pytest.param(sequence(control("s__1x")), None, [("CT849", CONFIG, "{control}")], id="no number"),
        pytest.param(sequence(control("my__s__1")), None, [("CT849", CONFIG, "{control}")], id="two delimiters"),
        pytest.param(sequence(control("s__1")), "23.07/ml.g5.xlarge", [], id="an old release"),
        pytest.param(sequence(state("S__1", "T__1")), None, [], id="a state"),
        pytest.param(
            sequence(state("S", "T__1")), None, [("CT850", CONFIG, "sequence_batching.state[0].input_name")], id="input"
        ),
        pytest.param(
            sequence(state("S__1", "T")),
            None,
            [("CT850", CONFIG, "sequence_batching.state[0].output_name")],
            id="output",
        ),
        pytest.param(
            sequence(state("S__1", "T__2")),
            None,
            [("CT846", CONFIG, "sequence_batching.state[0].output_name")],
            id="third",
        ),
        pytest.param(
            sequence(state("S__0", "T__1")),
            None,
            [("CT848", CONFIG, "sequence_batching.state[0].input_name")],
            id="same",
        ),
        pytest.param(
            sequence(state("S__1", "T__1", "UINT32")),
            None,
            [("CT853", CONFIG, "sequence_batching.state[0].data_type")],
            id="a type of a state",
        ),
        pytest.param(sequence(control("ID__1", ID.format("INT64"), "CORRID")), None, [], id="a correlation ID"),
        pytest.param(
            sequence(control("ID__1", ID.format("STRING"), "CORRID")),
            None,
            [("CT853", CONFIG, "sequence_batching.control_input[0].control[0].data_type")],
            id="a correlation ID of text",
        ),
        pytest.param(
            sequence(control("S__1"), "x"), None, [("CT850", CONFIG, "input[0].name")], id="an argument's name"
        ),
        pytest.param(
            f"max_batch_size: 8 {tensor('s')} {tensor('x')} {Y} {tensor('y', side='output')} sequence_batching {{}}",
            None,
            [("CT850", CONFIG, f"{field}.name") for field in ("input[0]", "input[1]", "output[1]")],
            id="arguments in another order",
        ),
        pytest.param(
            f"max_batch_size: 8 {tensor('x')} {tensor('s__0')} {Y} sequence_batching {{}}",
            None,
            [("CT850", CONFIG, "input[0].name")],
            id="the place of an argument that another name has",
        ),
        pytest.param(
            f"max_batch_size: 8 {tensor('words')} {Y} sequence_batching {{ {control('READY')} }}",
            None,
            [("CT849", CONFIG, "{control}"), ("CT850", CONFIG, "input[0].name")],
            id="no name with an index",
        ),
        pytest.param(sequence(control("S__1"), "x"), "23.06/ml.g4dn.xlarge", [], id="before states"),
    ],
)
def test_sequences(messages: Messages, write: Write, config: str, platform: str | None, expected: list[Place]) -> None:
    repository = write({CONFIG: f'backend: "pytorch" {config}', MODEL: torchscript(TWO)}, base={})
    name = "sequence_batching.control_input[0].name"
    assert messages.of(repository.check(platform=platform)) == [
        (code, path, name if field == "{control}" else field) for code, path, field in expected
    ]


def threads(value: str, name: str = "INTER_OP_THREAD_COUNT") -> str:
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'


@pytest.mark.parametrize(
    ("first", "second", "platform", "expected"),
    [
        pytest.param(threads("1"), threads("2"), "24.05/ml.g5.xlarge", ["CT851"], id="twice"),
        pytest.param(threads("1"), threads("2"), "26.03/ml.g5.xlarge", [], id="once by the backend"),
        pytest.param(threads("1"), threads("2"), "24.03/ml.g5.xlarge", [], id="not read yet"),
        pytest.param(threads("1"), threads("0"), "24.05/ml.g5.xlarge", [], id="the default"),
        pytest.param(threads("1") + "version_policy { all { } }", "", "24.05/ml.g5.xlarge", ["CT851"], id="versions"),
        pytest.param(threads("two"), "", "24.05/ml.g5.xlarge", ["CT228"], id="no number"),
        pytest.param(threads("two"), "", "24.03/ml.g5.xlarge", [], id="no number that is read"),
        pytest.param(threads("1", "INTER_OP_THREADS_COUNT"), "", "24.05/ml.g5.xlarge", ["CT852"], id="misspelt"),
        pytest.param(threads("1", "owner"), "", "24.05/ml.g5.xlarge", [], id="of the user"),
    ],
)
def test_settings(
    messages: Messages, write: Write, first: str, second: str, platform: str, expected: list[str]
) -> None:
    files: dict[str, Change] = {}
    for name, text in (("one", first), ("two", second)):
        files[f"{name}/config.pbtxt"] = f'backend: "pytorch" {X} {Y} {text}'
        files[f"{name}/1/model.pt"] = torchscript(TENSOR)
    if "version_policy" in first:
        files["one/2/model.pt"] = torchscript(TENSOR)
    found = write(files, base={}).check(platform=platform, default_model="one", additional_models=["two"])
    assert [code for code, *_ in messages.of(found)] == expected
