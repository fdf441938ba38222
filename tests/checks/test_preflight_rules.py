"""CT701 to CT705: what can be said of a plan before it is built.

The parser itself is the extra `preflight` (`make preflight`); without it, tests that need its answers are skipped. How
a parser that crashes, hangs or talks is survived is tested with programs in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import onnx.parser
import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import Finding, ModelRepository
from cdk_triton.triton.contents.tensorrt import Network, NetworkTensor, ParserFault, TensorRTParser, is_installed
from cdk_triton.triton.plans import Profile, ProfileShapes
from sample_repositories import PlanOfExample

needs_parser = pytest.mark.skipif(not is_installed(), reason="the extra preflight is not installed: make preflight")

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
VERSIONS = "TensorRT-RTX 1.7.1.116 (25.09 has TensorRT 10.13.3.9)"

TWO_INPUTS = "network (int32[batch, tokens] ids, int32[batch, tokens] mask) => (int32[batch, tokens] out)"
ADD = f"{TWO_INPUTS} {{ out = Add (ids, mask) }}"

CONFIG = """
platform: "tensorrt_plan"
max_batch_size: 16
input { name: "ids" data_type: TYPE_INT32 dims: [ 128 ] }
input { name: "mask" data_type: TYPE_INT32 dims: [ 128 ] }
output { name: "out" data_type: TYPE_INT32 dims: [ 128 ] }
"""

OPEN = 'platform: "tensorrt_plan"'


def shapes(minimum: tuple[int, ...], optimum: tuple[int, ...], maximum: tuple[int, ...]) -> ProfileShapes:
    return ProfileShapes(minimum, optimum, maximum)


GOOD = shapes((1, 128), (8, 128), (16, 128))


def network(graph: str, opset: str = '"" : 17') -> bytes:
    text = f"<ir_version: 8, opset_import: [{opset}]>\n{graph}"
    return bytes(onnx.parser.parse_model(text).SerializeToString())


def checked(
    root: Path,
    graph: str | bytes = ADD,
    *,
    config: str = CONFIG,
    profiles: tuple[Profile, ...] | None = None,
    release: str = "25.09",
    preflight: bool = False,
) -> list[Finding]:
    """The findings about plans: with a recipe if there are profiles, else with `model.onnx` beside the plan."""
    content = graph if isinstance(graph, bytes) else network(graph)
    where = "bert/1/model.onnx" if profiles is None else "bert/bert.onnx"
    files: Mapping[str, bytes] = {"bert/config.pbtxt": config.encode(), where: content, "bert/1/model.plan": b"plan"}
    for name, written in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written)
    recipes = [] if profiles is None else [PlanOfExample(("bert/1/model.plan",), "bert/bert.onnx", profiles)]
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = ModelRepository.from_directory(root, recipes=recipes).check(platform=platform, preflight=preflight)
    return [finding for finding in findings if finding.code.startswith("CT7")]


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


PROFILES = pytest.mark.parametrize(
    ("profile", "words"),
    [
        pytest.param(
            {"ids": shapes((4, 128), (8, 128), (2, 128)), "mask": GOOD},
            "ids: the profile does not satisfy minimum <= optimum <= maximum",
            id="minimum above maximum",
        ),
        pytest.param(
            {"ids": shapes((1, 128), (32, 128), (16, 128)), "mask": GOOD},
            "ids: the profile does not satisfy minimum <= optimum <= maximum",
            id="optimum above maximum",
        ),
        pytest.param(
            {"ids": shapes((1,), (8,), (16,)), "mask": GOOD},
            "ids: the network has 2 dimensions and the profile 1",
            id="rank",
        ),
        pytest.param(
            {"ids": shapes((1, 128), (8, 128), (16,)), "mask": GOOD},
            "ids: its minimum, optimum and maximum have unlike numbers of dimensions",
            id="ranks",
        ),
        pytest.param(
            {"ids": GOOD},
            "the input 'mask' has dimensions of any size, and the profile says nothing of it",
            id="an input is missing",
        ),
        pytest.param(
            {"ids": GOOD, "mask": GOOD, "token_type_ids": GOOD},
            "the network has no input 'token_type_ids', it has ids and mask",
            id="an input is unknown",
        ),
    ],
)


@PROFILES
def test_a_recipes_profile_that_does_not_fit_its_network_is_an_error(
    tmp_path: Path, profile: Profile, words: str
) -> None:
    (finding,) = checked(tmp_path, profiles=(profile,))
    assert (finding.code, finding.severity, finding.path) == ("CT702", "error", "bert/bert.onnx")
    assert finding.message == f"TensorRT would build no plan of it for 'bert' with profile 0 of the recipe: {words}"


@needs_parser
@PROFILES
def test_tensorrt_does_not_say_it_again(tmp_path: Path, profile: Profile, words: str) -> None:
    (finding,) = checked(tmp_path, profiles=(profile,), preflight=True)
    assert finding.message.endswith(words)


@needs_parser
@PROFILES
@pytest.mark.usefixtures("words")
def test_tensorrt_agrees(tmp_path: Path, profile: Profile) -> None:
    if "token_type_ids" in profile:
        pytest.skip("it overlooks names that are no inputs")
    (tmp_path / "model.onnx").write_bytes(network(ADD))
    (refusal,) = TensorRTParser.for_profiles([profile])(tmp_path / "model.onnx").refusals
    assert refusal


STATIC = "network (int32[1, 128] ids, int32[1, 128] mask) => (int32[1, 128] out) { out = Add (ids, mask) }"


def test_a_recipe_cannot_build_a_network_without_a_dynamic_batch_for_several(tmp_path: Path) -> None:
    (finding,) = checked(tmp_path, STATIC, profiles=({"ids": GOOD, "mask": GOOD},))
    assert (finding.code, finding.path) == ("CT702", "bert/bert.onnx")
    assert finding.message.endswith("ids: the network takes 1 only, and the profile asks for 1 to 16")


def test_an_input_of_one_shape_needs_no_profile(tmp_path: Path) -> None:
    graph = ADD.replace("int32[batch, tokens] mask", "int32[16, 128] mask")
    assert checked(tmp_path, graph, profiles=({"ids": GOOD},)) == []
    (finding,) = checked(tmp_path, graph.replace("16, 128", "4, 128"), profiles=({"ids": GOOD},))
    assert "only supports max-batch 4" in finding.message


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


@pytest.mark.parametrize("preflight", [False, pytest.param(True, marks=needs_parser)])
@pytest.mark.parametrize("written", [False, True])
def test_a_network_that_fits_is_clean(tmp_path: Path, written: bool, preflight: bool) -> None:
    profiles = ({"ids": GOOD, "mask": GOOD},) if written else None
    assert checked(tmp_path, profiles=profiles, preflight=preflight) == []


@pytest.mark.parametrize("preflight", [False, pytest.param(True, marks=needs_parser)])
@pytest.mark.parametrize(
    "config",
    [
        pytest.param(CONFIG.replace("[ 128 ]", "[ -1 ]"), id="a dimension is open"),
        pytest.param(OPEN, id="the server completes it all"),
        pytest.param(CONFIG.replace("dims: [ 128 ]", "reshape { shape: [ 128 ] } dims: [ 1, 128 ]"), id="reshaped"),
    ],
)
def test_what_is_open_in_the_configuration_is_no_finding(tmp_path: Path, config: str, preflight: bool) -> None:
    assert checked(tmp_path, config=config, preflight=preflight) == []


@pytest.mark.parametrize(
    ("largest", "batch"),
    [
        pytest.param(((32, 32),), 32, id="one profile"),
        pytest.param(((64, 32),), 32, id="the input that takes least counts"),
        pytest.param(((16, 16), (64, 64)), 64, id="the profile that takes most counts"),
    ],
)
def test_a_profile_has_to_reach_the_largest_batch(
    tmp_path: Path, largest: tuple[tuple[int, int], ...], batch: int
) -> None:
    profiles = tuple(
        {"ids": shapes((1, 128), (8, 128), (ids, 128)), "mask": shapes((1, 128), (8, 128), (mask, 128))}
        for ids, mask in largest
    )
    config = CONFIG.replace("max_batch_size: 16", "max_batch_size: 128")
    (finding,) = checked(tmp_path, config=config, profiles=profiles)
    assert (finding.code, finding.path, finding.field) == ("CT702", "bert/config.pbtxt", "max_batch_size")
    assert finding.message == (
        f"the largest batch of the plan's profiles is {batch}, and the server would not load 'bert': configuration "
        f"specified max-batch 128 but TensorRT engine only supports max-batch {batch}"
    )
    assert checked(tmp_path, config=CONFIG, profiles=profiles) == []


BERT = (
    "network (int64[b, t] ids, int32[b, t] mask) => (int32[b, t] out) { m = Cast <to = 6> (ids)  out = Add (m, mask) }"
)


BUILT = pytest.mark.parametrize("built", [False, True], ids=["beside the plan", "built by a recipe"])


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        pytest.param(
            ('"mask"', '"attention"'),
            "input[1].name",
            "unexpected inference input 'attention', allowed inputs are: ids, mask",
            id="an input of another name",
        ),
        pytest.param(
            ('"out"', '"output"'),
            "output[0].name",
            "unexpected inference output 'output', allowed outputs are: out",
            id="an output of another name",
        ),
        pytest.param(
            ('output { name: "out" data_type: TYPE_INT32', 'output { name: "out" data_type: TYPE_FP32'),
            "output[0].data_type",
            "unexpected datatype TYPE_INT32 for inference output 'out', expecting TYPE_FP32",
            id="another type",
        ),
    ],
)
@BUILT
def test_a_tensor_that_is_not_the_networks(
    tmp_path: Path, change: tuple[str, str], field: str, words: str, built: bool
) -> None:
    profiles = ({"ids": GOOD, "mask": GOOD},) if built else None
    findings = checked(tmp_path, config=CONFIG.replace(*change), profiles=profiles)
    finding = next(finding for finding in findings if finding.field == field)
    graded = ("CT705", "error") if built else ("CT703", "warning")
    assert (finding.code, finding.severity, finding.path) == (*graded, "bert/config.pbtxt")
    condition = "and" if built else "if the plan is built from it,"
    assert f"{condition} the server would not load 'bert': {words}" in finding.message


@BUILT
def test_a_tensor_that_is_left_out(tmp_path: Path, built: bool) -> None:
    profiles = ({"ids": GOOD, "mask": GOOD},) if built else None
    config = CONFIG.replace('input { name: "mask" data_type: TYPE_INT32 dims: [ 128 ] }', "")
    (finding,) = checked(tmp_path, config=config, profiles=profiles)
    assert (finding.code, finding.path, finding.field) == ("CT705" if built else "CT703", "bert/config.pbtxt", "input")
    assert "expected configuration for input 'mask'" in finding.message


@pytest.mark.parametrize(
    ("release", "written", "found"),
    [
        ("24.05", "TYPE_INT32", "TYPE_INT64"),
        ("25.09", "TYPE_INT32", "TYPE_INT64"),
        ("24.03", "TYPE_INT64", None),  # CT604
        ("25.09", "TYPE_INT64", None),
        ("24.03", "TYPE_INT32", None),
    ],
)
def test_int64_across_the_border_of_tensorrt_10(tmp_path: Path, release: str, written: str, found: str | None) -> None:
    """As in the published system 3: token_ids INT64 in the network, INT32 in the configuration."""
    config = CONFIG.replace('name: "ids" data_type: TYPE_INT32', f'name: "ids" data_type: {written}')
    messages = [finding.message for finding in checked(tmp_path, BERT, config=config, release=release)]
    assert len(messages) == (found is not None)
    for message in messages:
        assert f"unexpected datatype {found} for inference input 'ids', expecting {written}" in message


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


class Ask(Protocol):
    """Asks a program in the parser's place."""

    def __call__(self, program: str, seconds: float = ...) -> Network: ...


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def ask_program(program: str, seconds: float = 60) -> Network:
        (tmp_path / "program.py").write_text(program)
        profile = {"ids": GOOD}
        reader = TensorRTParser(TensorRTParser.for_profiles([profile]).profiles, tmp_path / "program.py", seconds)
        return reader(tmp_path / "model.onnx")

    return ask_program


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        pytest.param("import os; os.kill(os.getpid(), 11)", "was ended by SIGSEGV", id="a crash"),
        pytest.param(
            "import os, sys; print('[TRT] out of memory', file=sys.stderr, flush=True); os.abort()",
            "was ended by SIGABRT: [TRT] out of memory",
            id="an abort with words",
        ),
        pytest.param("raise SystemExit('no module')", "ended with status 1: no module", id="an error"),
        pytest.param("print('[TRT] hello')", "gave no answer: [TRT] hello", id="no answer"),
    ],
)
def test_a_parser_that_does_not_answer_is_a_value(ask: Ask, program: str, failure: str) -> None:
    assert ask(program).failure == failure


def test_a_parser_has_a_time_limit(ask: Ask) -> None:
    assert ask("import time; time.sleep(60)", seconds=0.2).failure == "gave no answer within 0.2 s"


def test_the_parser_is_asked_about_the_file_and_its_profiles(ask: Ask, tmp_path: Path) -> None:
    program = f"""
import json, sys
request = json.load(sys.stdin)
assert request == {{"onnx": {str(tmp_path / "model.onnx")!r}, "profiles": [{{"ids": [[1, 128], [8, 128], [16, 128]]}}]}}
json.dump({{"version": "1", "faults": [["Det", "n", "false"]], "inputs": [["x", "INT64", [-1, 4]]],
           "outputs": [["y", "FP4", []]], "refusals": ["no"]}}, sys.stdout)
"""
    assert ask(program) == Network(
        version="1",
        faults=(ParserFault("Det", "n", "false"),),
        inputs=(NetworkTensor("x", "TYPE_INT64", (-1, 4)),),
        outputs=(NetworkTensor("y", "", ()),),
        refusals=("no",),
    )


def test_a_parser_that_fails_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.triton.contents.tensorrt.is_installed", lambda: True)
    failed = Network("1.7.1.116", failure="was ended by SIGSEGV")
    monkeypatch.setattr(TensorRTParser, "__call__", lambda reader, file: failed)
    (finding,) = checked(tmp_path, preflight=True)
    assert (finding.code, finding.severity, finding.path) == ("CT701", "warning", "bert/1/model.onnx")
    assert finding.message.startswith(f"the parser of {VERSIONS} was ended by SIGSEGV")
