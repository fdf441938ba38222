"""CT170 to CT173, CT179, CT291 and what CT131 to CT134 say of batch inputs, against the real ONNX Runtime.

What the rules refuse, it refuses; what it takes, they take. Faults that only ONNX Runtime sees are allowed: kernels
that are missing, and what it finds when it runs a graph.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.parser
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdk_triton.onnx_models.reader.file import onnx_file
from cdk_triton.onnx_models.reader.graph import onnx_graphs
from cdk_triton.onnx_models.reader.runtime import OWN_OPSETS, has_operator, known_operators, newest_version
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.unreadable import Unreadable
from sample_repositories.onnx_graphs import REFUSED, TAKEN, UNREGISTERED, graph
from sample_repositories.onnx_models import INCOMPLETE

onnxruntime = pytest.importorskip("onnxruntime")
onnxruntime.set_default_logger_severity(4)

# Not a refusal of the graph: no kernel for this processor, or a kernel that does not like its attributes.
_BEYOND_THE_GRAPH = ("NOT_IMPLEMENTED", "Exception during initialization")


def refusal(model: onnx.ModelProto) -> str:
    """What ONNX Runtime says; "" if it loads the graph."""
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:
        return str(error)
    return ""


Judged = Callable[[onnx.ModelProto], list[str]]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """The faults that the library finds in a model."""

    def faults(model: onnx.ModelProto) -> list[str]:
        file = tmp_path / "model.onnx"
        file.write_bytes(model.SerializeToString())
        return [f"{fault.kind} {fault.operator}: {fault.reason}" for fault in onnx_graphs([file])[file].faults]

    return faults


@pytest.mark.parametrize("name", REFUSED)
def test_it_rejects_what_the_rules_reject(name: str, judged: Judged) -> None:
    model = graph(REFUSED[name][0])
    assert judged(model)
    assert refusal(model)


@pytest.mark.parametrize("name", TAKEN)
def test_the_rules_take_what_it_takes(name: str, judged: Judged) -> None:
    model = graph(TAKEN[name])
    assert refusal(model) == ""
    assert judged(model) == []


@pytest.mark.parametrize("library", ["libcustom.so", "1/libcustom.so", "/opt/ml/model/model/1/libcustom.so"])
def test_it_rejects_a_library_that_the_loader_does_not_find(tmp_path: Path, library: str) -> None:
    config, file = tmp_path / "model/config.pbtxt", tmp_path / "model/1/model.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(graph(next(iter(TAKEN.values()))).SerializeToString())
    config.write_text(f'backend: "onnxruntime" model_operations {{ op_library_filename: "{library}" }}')
    (finding,) = ModelRepository.from_directory(tmp_path).check(
        platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    )
    with pytest.raises(Exception, match="Failed to load library") as refused:
        onnxruntime.SessionOptions().register_custom_ops_library(library)
    assert finding.code == "CT291"
    assert str(refused.value).partition("FAIL : ")[2] in finding.message


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("float[N] COUNT", None),
        ("float[N] COUNTS", "CT131"),
        ("int64[N] COUNT", "CT133"),
        ("float[N, 1] COUNT", "CT134"),
    ],
)
def test_it_rejects_batch_inputs_that_differ_from_the_file(tmp_path: Path, given: str, code: str | None) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[M] IN, {given}) => (float[B, D] OUT)
        {{ C = Cast <to = 1> ({given.split()[-1]}) S = Add(IN, C) OUT = Flatten <axis = 0> (S) }}"""
    )
    config, file = tmp_path / "model/config.pbtxt", tmp_path / "model/1/model.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(model.SerializeToString())
    config.write_text("""
        backend: "onnxruntime" max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_FP32 source_input: "IN" }
    """)
    found = [each for each in ModelRepository.from_directory(tmp_path).check() if each.code.startswith("CT13")]
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    binding, one = session.io_binding(), onnxruntime.OrtValue.ortvalue_from_numpy(np.ones(1, np.float32))
    said = ""
    try:  # as the backend does
        binding.bind_ortvalue_input("IN", one)
        binding.bind_ortvalue_input("COUNT", one)
        binding.bind_output("OUT")
        session.run_with_iobinding(binding)
    except RuntimeError as error:
        said = str(error)
    assert [each.code for each in found] == [code] * bool(code)
    assert bool(said) == bool(code)
    assert all(each.message.rpartition("error: ")[2] in said for each in found)


@pytest.mark.parametrize("name", UNREGISTERED)
def test_it_rejects_operators_that_nothing_registers(tmp_path: Path, name: str) -> None:
    model, file = graph(UNREGISTERED[name]), tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    verdict = onnx_graphs([file])[file]
    unknown = [each for each in verdict.foreign if not has_operator(each.domain, each.operator, None)]
    assert unknown
    assert unknown[0].reason in refusal(model)


def test_the_table_has_the_operators_of_this_onnxruntime() -> None:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    version = onnxruntime.__version__
    assert version.startswith(f"{newest_version()}."), "the installed version is newer: write the table again"
    registered = {each.name for each in get_all_operator_schema() if each.domain == "com.microsoft"}
    assert registered == {*known_operators("com.microsoft")}


@pytest.mark.parametrize("content", INCOMPLETE.values(), ids=INCOMPLETE)
def test_it_rejects_what_is_incomplete(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    found = onnx_file(tmp_path / "model.onnx")
    assert isinstance(found, Unreadable)
    assert found.reason.removeprefix("is incomplete: ") in refusal(onnx.ModelProto.FromString(content))


@pytest.mark.parametrize("domain", OWN_OPSETS)
def test_a_domain_of_its_own_has_one_version(domain: str) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17, "{}" : {}]> g (float[N] A) => (float[N] B) {{ B = Identity(A) }}'
    for version in (OWN_OPSETS[domain], OWN_OPSETS[domain] + 1):
        said = refusal(onnx.parser.parse_model(text.format(domain, version)))
        assert ("is under development" in said) == (version > OWN_OPSETS[domain])


def test_a_graph_needs_no_name(judged: Judged) -> None:
    model = graph(TAKEN["sound"], names=False)
    assert (refusal(model), judged(model)) == ("", [])


def published() -> list[onnx.ModelProto]:
    """The networks that the distribution `onnx` ships, converted by PyTorch among others; without the largest."""
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    files = (file for file in sorted(data.rglob("*.onnx")) if file.stat().st_size < 100_000)
    return [onnx.load(str(file), load_external_data=False) for file in files]


def test_published_networks_have_no_fault(judged: Judged) -> None:
    models = published()
    assert len(models) > 100
    assert [found for model in models if (found := judged(model))] == []


def test_each_operator_as_onnx_itself_tests_it(tmp_path: Path) -> None:
    """The 1,900 cases of ONNX's own tests: a fault is one for which ONNX Runtime refuses the graph, too."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case.model for case in collect_testcases(None) if case.model is not None]
    assert len(cases) > 1500
    files = {tmp_path / f"{index}.onnx": model for index, model in enumerate(cases)}
    for file, model in files.items():
        file.write_bytes(model.SerializeToString())
    verdicts = onnx_graphs(files)
    assert [verdict for file, verdict in verdicts.items() if verdict.faults and not refusal(files[file])] == []


# A generated graph: a chain of operators over values of small shapes, with a fault or without.
_SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, "N"]), min_size=0, max_size=3)
_TYPES = st.sampled_from(["float", "float", "float", "int64", "bool", "string"])
_CALLS = st.sampled_from(
    [
        ("Relu", 1, ""),
        ("Add", 2, ""),
        ("MatMul", 2, ""),
        ("Concat", 2, "<axis = 0>"),
        ("Concat", 2, "<axis = 1>"),
        ("Gemm", 2, "<transB = 1>"),
        ("Transpose", 1, "<perm = [1, 0]>"),
        ("Softmax", 1, "<axis = 2>"),
        ("Gather", 2, "<axis = 1>"),
        ("Where", 3, ""),
        ("ReduceSum", 1, "<keepdims = 0>"),
        ("ReduceMean", 1, "<axes = [1]>"),
        ("Unsqueeze", 2, ""),
        ("Squeeze", 1, "<axes = [0]>"),
        ("Reshape", 2, ""),
        ("Expand", 2, ""),
        ("Slice", 3, ""),
        ("Cast", 1, "<to = 7>"),
        ("Clip", 1, "<min = 0.0>"),
        ("Gelu", 1, ""),
        ("Rellu", 1, ""),
        ("LayerNormalization", 2, ""),
        ("com.microsoft.Gelu", 1, ""),
        ("Constant", 0, "<value = int64[2] {2, 2}>"),
        ("Shape", 1, ""),
        ("Split", 1, "<axis = 0>"),
    ]
)


@st.composite
def graphs(draw: st.DrawFn) -> str:
    values = [f"in{index}" for index in range(draw(st.integers(1, 3)))]
    inputs = ", ".join(f"{draw(_TYPES)}[{', '.join(map(str, draw(_SHAPES)))}] {name}" for name in values)
    lines = []
    for index in range(draw(st.integers(1, 4))):
        operator, count, attributes = draw(_CALLS)
        used = [draw(st.sampled_from(values)) for _ in range(count + draw(st.sampled_from([0, 0, 0, 0, 1])))]
        lines.append(f"v{index} = {operator} {attributes} ({', '.join(used)})")
        values.append(f"v{index}")
    order = draw(st.permutations(lines)) if draw(st.booleans()) else lines
    output = f"float[{', '.join(map(str, draw(_SHAPES)))}] {values[-1]}"
    opset = draw(st.sampled_from([11, 13, 17, 18, 20, 21]))
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    declared = [f"{draw(_TYPES)}[4] {name}" for name in values[:-1] if draw(st.integers(0, 9)) == 0]
    value_info = f"<{', '.join(declared)}>" if declared else ""
    return f"{head} model ({inputs}) => ({output}) {value_info} {{ {' '.join(order)} }}"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=graphs())
def test_generated_graphs(text: str, judged: Judged) -> None:
    model = onnx.parser.parse_model(text)
    found, said = judged(model), refusal(model)
    if found:
        assert said, (text, found)
    elif "com.microsoft" not in text:
        assert not said or any(word in said for word in _BEYOND_THE_GRAPH), (text, said)
