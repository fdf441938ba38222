"""What the recipes ask of their values, by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

import pytest

from cdk_triton import Parity, S3File, TensorRTPlan, Tolerance
from cdk_triton.artifacts import recipes
from cdk_triton.artifacts.recipes.documents import DeclaredRecipe
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages


SHA256 = "0123456789abcdef" * 4
TOKEN = "${Token[TOKEN.42]}"


def test_a_publisher_can_declare_every_recipe() -> None:
    exported = {getattr(recipes, name) for name in recipes.__all__}
    assert {each for each in exported if hasattr(each, "estimated_minutes")} - {recipes.BuildRecipe} == {
        *get_args(DeclaredRecipe)
    }


def test_a_file_in_s3_is_a_bucket_a_key_and_a_hash() -> None:
    file = S3File("my-models.eu", "bert/v1/model.onnx", SHA256)
    assert (file.bucket, file.key, file.sha256) == ("my-models.eu", "bert/v1/model.onnx", SHA256)


@pytest.mark.parametrize(
    ("bucket", "key", "sha256"),
    [
        pytest.param("s3://models", "a", SHA256, id="bucket s3://models"),
        pytest.param("Models", "a", SHA256, id="bucket Models"),
        pytest.param("m", "a", SHA256, id="bucket m"),
        pytest.param("models", "", SHA256, id="empty key"),
        pytest.param("models", "ü" * 513, SHA256, id="long key"),
        pytest.param("models", "s3://models/a", SHA256, id="key s3://models/a"),
        pytest.param("models", "a", "abc", id="sha256 abc"),
        pytest.param("models", "a", SHA256.upper(), id="upper case"),
        pytest.param(TOKEN, "a", SHA256, id="token for bucket"),
        pytest.param("models", TOKEN, SHA256, id="token for key"),
        pytest.param("models", "a", TOKEN, id="token for sha256"),
        pytest.param("models", b"a", SHA256, id="bytes"),
    ],
)
def test_a_file_in_s3_has_no_other_values(messages: Messages, bucket: str, key: str, sha256: str) -> None:
    with messages.raises(ConfigurationError):
        S3File(bucket, key, sha256)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: TensorRTPlan(""), id="empty model"),
        pytest.param(lambda: TensorRTPlan("a/b"), id="model a/b"),
        pytest.param(lambda: TensorRTPlan(TOKEN), id="token for model"),
        pytest.param(lambda: TensorRTPlan("a", onnx="../b.onnx"), id="onnx ../b.onnx"),
        pytest.param(lambda: TensorRTPlan("a", onnx="/b.onnx"), id="onnx /b.onnx"),
        pytest.param(lambda: TensorRTPlan("a", onnx=""), id="empty onnx"),
        pytest.param(lambda: TensorRTPlan("a", onnx=TOKEN), id="token for onnx"),
        pytest.param(lambda: TensorRTPlan("a", version=0), id="version 0"),
        pytest.param(lambda: TensorRTPlan("a", version=True), id="version True"),
        pytest.param(lambda: TensorRTPlan("a", precision="fp8"), id="precision"),  # type: ignore[arg-type]
        pytest.param(lambda: TensorRTPlan("a", workspace_mib=0), id="workspace_mib"),
        pytest.param(lambda: TensorRTPlan("a", optimization_level=6), id="optimization_level"),
        pytest.param(lambda: TensorRTPlan("a", hardware_compatibility="ampere"), id="hardware_compatibility"),  # type: ignore[arg-type]
        pytest.param(lambda: TensorRTPlan("a", parity=False), id="parity"),  # type: ignore[arg-type]
    ],
)
def test_a_plan_has_no_other_values(messages: Messages, make: Callable[[], object]) -> None:
    with messages.raises(ConfigurationError):
        make()


@pytest.mark.parametrize(
    "profiles",
    [
        pytest.param([], id="no profile"),
        pytest.param([{}], id="empty profile"),
        pytest.param({"x": ((1,), (1,), (1,))}, id="no list"),
        pytest.param(4, id="a number"),
        pytest.param(({} for _ in "a"), id="a generator"),
        pytest.param([{"x": ((1, 4), (8, 4))}], id="two shapes"),
        pytest.param([{"x": ((1, -1), (8, 4), (8, 4))}], id="a negative size"),
        pytest.param([{"x": ((1, 4), (8, 4), (8,))}], id="unlike dimensions"),
        pytest.param([{"x": ((1, 4), (9, 4), (8, 4))}], id="smaller from one to the next"),
        pytest.param([{"a,b": ((1,), (1,), (1,))}], id="a comma in a name"),
    ],
)
def test_a_profile_is_three_shapes_for_each_input(messages: Messages, profiles: object) -> None:
    with messages.raises(ConfigurationError):
        TensorRTPlan("a", profiles=profiles)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Tolerance(-1, 0), id="negative tolerance"),
        pytest.param(lambda: Tolerance(0, float("nan")), id="nan"),
        pytest.param(lambda: Tolerance(0, float("inf")), id="inf"),
        pytest.param(lambda: Parity(seed=-1), id="seed"),
        pytest.param(lambda: Parity(0.1), id="tolerance of another type"),  # type: ignore[arg-type]
        pytest.param(lambda: Parity(ranges=[("ids", (0, 9))]), id="ranges a list"),  # type: ignore[arg-type]
        pytest.param(lambda: Parity(ranges={"ids": (9, 3)}), id="range backwards"),
        pytest.param(lambda: Parity(ranges={"ids": (0.0, 1.0)}), id="range of floats"),  # type: ignore[dict-item]
    ],
)
def test_a_comparison_has_no_other_values(messages: Messages, make: Callable[[], object]) -> None:
    with messages.raises(ConfigurationError):
        make()


def test_recipes_with_the_same_values_are_equal() -> None:
    def plan(*names: str) -> TensorRTPlan:
        profile = {name: ((1, 4), [8, 4], (16, 4)) for name in names}
        return TensorRTPlan("bert", profiles=[profile], parity=Parity(ranges=dict.fromkeys(names, (0, 9))))

    assert plan("a", "b") == plan("b", "a")
    assert plan("a", "b").parameters() == plan("b", "a").parameters()
    assert plan("a") != plan("a", "b")
