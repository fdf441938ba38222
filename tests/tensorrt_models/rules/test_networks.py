"""The rules CT702, CT703, CT705 and CT707: whether a plan's network fits its recipe and its configuration.

The parser is the extra `preflight` (`make preflight`); without it, tests that need its answers are skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages, Place

from cdk_triton.tensorrt_models.reader.parser import TensorRTParser
from cdk_triton.tensorrt_models.recipe import Profile
from sample_repositories.plans import ADD, CONFIG, GOOD, OPEN, checked, needs_parser, network, shapes

PROFILES = pytest.mark.parametrize(
    "profile",
    [
        pytest.param({"ids": shapes((4, 128), (8, 128), (2, 128)), "mask": GOOD}, id="minimum above maximum"),
        pytest.param({"ids": shapes((1, 128), (32, 128), (16, 128)), "mask": GOOD}, id="optimum above maximum"),
        pytest.param({"ids": shapes((1,), (8,), (16,)), "mask": GOOD}, id="rank"),
        pytest.param({"ids": shapes((1, 128), (8, 128), (16,)), "mask": GOOD}, id="ranks"),
        pytest.param({"ids": GOOD}, id="an input is missing"),
        pytest.param({"ids": GOOD, "mask": GOOD, "token_type_ids": GOOD}, id="an input is unknown"),
    ],
)


@PROFILES
def test_a_recipes_profile_that_does_not_fit_its_network_is_an_error(
    messages: Messages, tmp_path: Path, profile: Profile
) -> None:
    found = checked(tmp_path, profiles=(profile,))
    assert messages.of(found) == [("CT702", "bert/bert.onnx", "")]
    assert found[0].severity == "error"


@needs_parser
@PROFILES
def test_tensorrt_does_not_say_it_again(tmp_path: Path, profile: Profile) -> None:
    assert checked(tmp_path, profiles=(profile,), preflight=True) == checked(tmp_path, profiles=(profile,))


@needs_parser
@PROFILES
def test_tensorrt_agrees(tmp_path: Path, profile: Profile) -> None:
    if "token_type_ids" in profile:
        pytest.skip("it overlooks names that are no inputs")
    (tmp_path / "model.onnx").write_bytes(network(ADD))
    (rejection,) = TensorRTParser.for_profiles([profile])(tmp_path / "model.onnx").rejections
    assert rejection


STATIC = "network (int32[1, 128] ids, int32[1, 128] mask) => (int32[1, 128] out) { out = Add (ids, mask) }"


def test_a_recipe_cannot_build_a_network_without_a_dynamic_batch_for_several(
    messages: Messages, tmp_path: Path
) -> None:
    found = checked(tmp_path, STATIC, profiles=({"ids": GOOD, "mask": GOOD},))
    assert messages.of(found) == [("CT702", "bert/bert.onnx", "")]


def test_an_input_of_one_shape_needs_no_profile(messages: Messages, tmp_path: Path) -> None:
    graph = ADD.replace("int32[batch, tokens] mask", "int32[16, 128] mask")
    assert checked(tmp_path, graph, profiles=({"ids": GOOD},)) == []
    found = checked(tmp_path, graph.replace("16, 128", "4, 128"), profiles=({"ids": GOOD},))
    assert messages.of(found) == [("CT702", "bert/config.pbtxt", "max_batch_size")]


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
    messages: Messages, tmp_path: Path, largest: tuple[tuple[int, int], ...], batch: int
) -> None:
    profiles = tuple(
        {"ids": shapes((1, 128), (8, 128), (ids, 128)), "mask": shapes((1, 128), (8, 128), (mask, 128))}
        for ids, mask in largest
    )
    config = CONFIG.replace("max_batch_size: 16", "max_batch_size: 128")
    found = checked(tmp_path, config=config, profiles=profiles)
    assert messages.of(found) == [("CT702", "bert/config.pbtxt", "max_batch_size")]
    assert f"only supports max-batch {batch}" in found[0].message
    assert checked(tmp_path, config=CONFIG, profiles=profiles) == []


BERT = (
    "network (int64[b, t] ids, int32[b, t] mask) => (int32[b, t] out) { m = Cast <to = 6> (ids)  out = Add (m, mask) }"
)


BUILT = pytest.mark.parametrize("built", [False, True], ids=["beside the plan", "built by a recipe"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param(
            ('"mask"', '"attention"'),
            "input[1].name",
            id="an input of another name",
        ),
        pytest.param(
            ('"out"', '"output"'),
            "output[0].name",
            id="an output of another name",
        ),
        pytest.param(
            ('output { name: "out" data_type: TYPE_INT32', 'output { name: "out" data_type: TYPE_FP32'),
            "output[0].data_type",
            id="another type",
        ),
        pytest.param(
            ('"ids" data_type: TYPE_INT32 dims: [ 128 ]', '"ids" data_type: TYPE_INT32 dims: [ 128, 1 ]'),
            "input[0].dims",
            id="more dimensions",
        ),
        pytest.param(
            (
                'output { name: "out" data_type: TYPE_INT32 dims: [ 128 ] }',
                'output { name: "out" data_type: TYPE_INT32 dims: [ 128 ] reshape { shape: [ 16, 8 ] } }',
            ),
            "output[0].reshape.shape",
            id="more dimensions by a reshape",
        ),
    ],
)
@BUILT
def test_a_tensor_that_is_not_the_networks(
    messages: Messages, tmp_path: Path, change: tuple[str, str], field: str, built: bool
) -> None:
    profiles = ({"ids": GOOD, "mask": GOOD},) if built else None
    findings = checked(tmp_path, config=CONFIG.replace(*change), profiles=profiles)
    code, severity = ("CT705", "error") if built else ("CT703", "warning")
    assert (code, "bert/config.pbtxt", field) in messages.of(findings)
    assert {finding.severity for finding in findings} == {severity}


HALF = "network (int32[b, 128] ids, int32[b, 128] mask) => (int32[b, 64] out) { out = Half (ids, mask) }"


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        pytest.param(CONFIG, ["output[0].dims"], id="another number"),
        pytest.param(CONFIG.replace("TYPE_INT32 dims: [ 128 ]", "TYPE_INT32 dims: [ -1 ]"), [], id="any number"),
        pytest.param(
            CONFIG.replace("max_batch_size: 16", "").replace("[ 128 ]", "[ -1, 128 ]"),
            ["output[0].dims"],
            id="the batch is a dimension",
        ),
        pytest.param(CONFIG.replace("max_batch_size: 16", ""), ["output[0].dims"], id="the server sets max_batch_size"),
        pytest.param(
            CONFIG.replace("[ 128 ] }", "[ 128 ] allow_ragged_batch: true }", 2).replace("[ 128 ] }", "[ 64 ] }"),
            ["input[0].allow_ragged_batch", "input[1].allow_ragged_batch"],
            id="ragged inputs of two dimensions",
        ),
    ],
)
@BUILT
def test_dimensions_of_the_network(
    messages: Messages, tmp_path: Path, config: str, fields: list[str], built: bool
) -> None:
    profiles = ({"ids": GOOD, "mask": GOOD},) if built else None
    found = checked(tmp_path, HALF, config=config, profiles=profiles)
    code = "CT705" if built else "CT703"
    assert [each for each in messages.of(found) if each[0] == code] == [
        (code, "bert/config.pbtxt", field) for field in fields
    ]


@BUILT
def test_a_tensor_that_is_left_out(messages: Messages, tmp_path: Path, built: bool) -> None:
    profiles = ({"ids": GOOD, "mask": GOOD},) if built else None
    config = CONFIG.replace('input { name: "mask" data_type: TYPE_INT32 dims: [ 128 ] }', "")
    found = checked(tmp_path, config=config, profiles=profiles)
    assert messages.of(found) == [("CT705" if built else "CT703", "bert/config.pbtxt", "input")]


@pytest.mark.parametrize(
    ("release", "written", "codes"),
    [
        ("24.05", "TYPE_INT32", ["CT703"]),
        ("25.09", "TYPE_INT32", ["CT703"]),
        ("24.03", "TYPE_INT64", []),  # CT604
        ("25.09", "TYPE_INT64", []),
        ("24.03", "TYPE_INT32", []),
        ("24.03", "TYPE_FP32", ["CT703"]),
    ],
)
def test_int64_across_the_border_of_tensorrt_10(
    messages: Messages, tmp_path: Path, release: str, written: str, codes: list[str]
) -> None:
    """As in the published system 3: token_ids INT64 in the network, INT32 in the configuration."""
    config = CONFIG.replace('name: "ids" data_type: TYPE_INT32', f'name: "ids" data_type: {written}')
    found = checked(tmp_path, BERT, config=config, release=release)
    assert messages.of(found) == [(code, "bert/config.pbtxt", "input[0].data_type") for code in codes]


def test_a_recipe_for_int64_and_a_configuration_with_int32_are_an_error(messages: Messages, tmp_path: Path) -> None:
    """The same, built by a recipe as in the example that serves this system."""
    found = checked(tmp_path, BERT, profiles=({"ids": GOOD, "mask": GOOD},), release="25.09")
    assert messages.of(found) == [("CT705", "bert/config.pbtxt", "input[0].data_type")]
    assert found[0].severity == "error"


EIGHT = shapes((8, 128), (8, 128), (16, 128))


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        pytest.param(({"ids": EIGHT, "mask": EIGHT},), [("CT707", "bert/config.pbtxt", "max_batch_size")], id="8"),
        pytest.param(({"ids": GOOD, "mask": EIGHT},), [("CT707", "bert/config.pbtxt", "max_batch_size")], id="1 and 8"),
        pytest.param(({"ids": EIGHT, "mask": EIGHT}, {"ids": GOOD, "mask": GOOD}), [], id="a second profile"),
        pytest.param(({"ids": GOOD, "mask": GOOD},), [], id="1"),
    ],
)
def test_a_plan_needs_a_profile_for_small_batches(
    messages: Messages, tmp_path: Path, profiles: tuple[Profile, ...], expected: list[Place]
) -> None:
    assert messages.of(checked(tmp_path, profiles=profiles)) == expected


def test_a_model_without_batches_has_no_small_ones(tmp_path: Path) -> None:
    config = CONFIG.replace("max_batch_size: 16", "").replace("dims: [ 128 ]", "dims: [ -1, 128 ]")
    assert checked(tmp_path, config=config, profiles=({"ids": EIGHT, "mask": EIGHT},)) == []


RAGGED = CONFIG.replace("TYPE_INT32 dims: [ 128 ]", "TYPE_INT32 dims: [ -1 ] allow_ragged_batch: true", 1)
JOINED = ADD.replace("int32[batch, tokens] ids", "int32[tokens] ids")


@pytest.mark.parametrize(
    ("graph", "count"),
    [
        pytest.param(ADD, 1, id="two dimensions"),
        pytest.param(JOINED, 0, id="one dimension"),
        pytest.param(JOINED.replace("int32[tokens]", "int32[2048]"), 1, id="one fixed dimension"),
    ],
)
def test_a_ragged_input_needs_one_dimension(messages: Messages, tmp_path: Path, graph: str, count: int) -> None:
    expected = [("CT703", "bert/config.pbtxt", "input[0].allow_ragged_batch")] * count
    assert messages.of(checked(tmp_path, graph, config=RAGGED)) == expected


def test_a_recipe_builds_no_plan_for_a_ragged_input_of_two_dimensions(messages: Messages, tmp_path: Path) -> None:
    found = checked(tmp_path, config=RAGGED, profiles=({"ids": GOOD, "mask": GOOD},))
    assert messages.of(found) == [("CT705", "bert/config.pbtxt", "input[0].allow_ragged_batch")]
