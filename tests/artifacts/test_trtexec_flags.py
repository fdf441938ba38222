"""Every command line that a recipe can make is one that the release's trtexec takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.artifacts.plans import FP32_WEIGHTS, onnx_bytes, written

from cdk_triton import ServingPlatform, TensorRTPlan
from cdk_triton.artifacts.recipes import trtexec
from cdk_triton.artifacts.recipes.precision import PRECISIONS
from cdk_triton.artifacts.recipes.tensorrt import HardwareCompatibility
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.releases import releases

TABLE = Path(trtexec.__file__).parent / "data" / "trtexec_flags.json"
DIGEST = f"registry/triton@sha256:{'0123456789abcdef' * 4}"
RELEASES = [row.release for row in releases()]
PLATFORMS = [
    ServingPlatform(release=release, image=DIGEST, instance_type=instance)
    for release in RELEASES
    for instance in ("ml.g4dn.xlarge", "ml.g5.xlarge")
]
CONFIG = b"""
platform: "tensorrt_plan"
max_batch_size: 4
input { name: "x:0" data_type: TYPE_FP32 dims: [ 8 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 8 ] }
"""
GRAPH = (
    f"network (float[b, 8] x_0) => (float[b, 8] y) {FP32_WEIGHTS} "
    "{ q = QuantizeLinear (x_0, w) y = Cast <to = 1> (q) }"
)

PROFILES = st.lists(
    st.builds(
        lambda low, high: {"x:0": ((low, 8), (low, 8), (max(high, 4), 8))},
        st.integers(1, 4),
        st.integers(4, 16),
    ),
    min_size=1,
    max_size=3,
)
PLANS = st.builds(
    TensorRTPlan,
    model=st.just("net"),
    profiles=st.none() | PROFILES,
    precision=st.sampled_from(PRECISIONS),
    workspace_mib=st.none() | st.integers(1, 10_000),
    optimization_level=st.none() | st.integers(0, 5),
    hardware_compatibility=st.none() | st.sampled_from(get_args(HardwareCompatibility)),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> ModelRepository:
    network = onnx_bytes(GRAPH).replace(b"x_0", b"x:0")  # ONNX's text format has no such names
    return written(tmp_path_factory.mktemp("net"), {"net/config.pbtxt": CONFIG, "net/model.onnx": network})


@settings(max_examples=150)
@given(recipe=PLANS, platform=st.sampled_from(PLATFORMS))
def test_trtexec_knows_every_option(repository: ModelRepository, recipe: TensorRTPlan, platform: Any) -> None:
    try:
        told: Any = recipe.step(repository, platform)
    except ConfigurationError:
        assume(False)
    possible = trtexec.possible_versions(platform.release)
    assert {version[0] for version in possible} == {told["tensorrt_major"]}
    # Where nobody read the release's version, one of those that it may be has to know the option.
    for option in told["flags"]:
        assert any(trtexec.trtexec_has_option(option, version) for version in possible), option


def test_every_release_builds_the_simplest_plan(repository: ModelRepository) -> None:
    for release in RELEASES:
        platform = ServingPlatform(release=release, image=DIGEST, instance_type="ml.g5.xlarge")
        told: Any = TensorRTPlan("net").step(repository, platform)
        for option in told["flags"]:
            for version in trtexec.possible_versions(release):
                assert trtexec.trtexec_has_option(option, version), (release, option, version)


@pytest.mark.parametrize(
    ("option", "version", "known"),
    [
        ("--fp16", (10, 16, 0), True),
        ("--fp16", (11, 0, 0), False),
        ("--int8", (11, 1, 0), False),
        ("--workspace=1", (8, 6, 1), True),
        ("--workspace=1", (10, 0, 0), False),
        ("--memPoolSize=workspace:1", (11, 1, 0), True),
        ("--hardwareCompatibilityLevel=sameComputeCapability", (10, 8, 0), False),
        ("--hardwareCompatibilityLevel=sameComputeCapability", (10, 9, 0), True),
        ("--nothing", (10, 9, 0), False),
    ],
)
def test_the_table_tells_generations_apart(option: str, version: tuple[int, ...], known: bool) -> None:
    assert trtexec.trtexec_has_option(option, version) is known


def test_the_table_is_in_order() -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    assert list(table["flags"]) == sorted(table["flags"])
    order = {name: index for index, name in enumerate(table["releases"])}
    for runs in table["flags"].values():
        ends = [order[name] for run in runs for name in run]
        assert ends == sorted(ends)
