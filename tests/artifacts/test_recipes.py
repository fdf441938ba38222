"""What the recipes ask of their values, by themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cdk_triton import Parity, S3File, TensorRTPlan, Tolerance
from cdk_triton.errors import ConfigurationError

SHA256 = "0123456789abcdef" * 4
TOKEN = "${Token[TOKEN.42]}"
OF_TOKEN = (
    "contains a CDK token, whose value only the deployment knows, but it is needed while the app runs: write it out"
)


def message_of(make: Callable[[], object]) -> str:
    with pytest.raises(ConfigurationError) as error:
        make()
    return str(error.value)


def test_a_file_in_s3_is_a_bucket_a_key_and_a_hash() -> None:
    file = S3File("my-models.eu", "bert/v1/model.onnx", SHA256)
    assert (file.bucket, file.key, file.sha256) == ("my-models.eu", "bert/v1/model.onnx", SHA256)


@pytest.mark.parametrize(
    ("bucket", "key", "sha256", "words"),
    [
        ("s3://models", "a", SHA256, "the bucket of an S3File is 's3://models', which is no name of a bucket: "),
        ("Models", "a", SHA256, "the bucket of an S3File is 'Models', which is no name of a bucket: "),
        ("m", "a", SHA256, "the bucket of an S3File is 'm', which is no name of a bucket: "),
        ("models", "", SHA256, "the key of an S3File is '', which is no object key: write 1 to 1024 bytes, such as "),
        ("models", "ü" * 513, SHA256, "which is no object key: write 1 to 1024 bytes"),
        ("models", "s3://models/a", SHA256, "the key of an S3File is 's3://models/a', which is no object key"),
        ("models", "a", "abc", "the sha256 of the S3File 'a' is 'abc' and must be 64 hexadecimal digits in lower case"),
        ("models", "a", SHA256.upper(), "must be 64 hexadecimal digits in lower case: sha256sum prints them"),
        (TOKEN, "a", SHA256, f"the bucket of an S3File {TOKEN!r} {OF_TOKEN}"),
        ("models", TOKEN, SHA256, f"the key of an S3File {TOKEN!r} {OF_TOKEN}"),
        ("models", "a", TOKEN, f"the sha256 of an S3File {TOKEN!r} {OF_TOKEN}"),
        ("models", b"a", SHA256, "the key of an S3File is b'a', a bytes: write it as text in quotes"),
    ],
)
def test_a_file_in_s3_has_no_other_values(bucket: str, key: str, sha256: str, words: str) -> None:
    assert words in message_of(lambda: S3File(bucket, key, sha256))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TensorRTPlan(""), "the model of a recipe is '' and must be the name of a model's directory"),
        (lambda: TensorRTPlan("a/b"), "the model of a recipe is 'a/b' and must be the name of a model's directory"),
        (lambda: TensorRTPlan(TOKEN), f"the model of a recipe {TOKEN!r} {OF_TOKEN}"),
        (lambda: TensorRTPlan("a", onnx="../b.onnx"), "onnx of TensorRTPlan('a') is '../b.onnx' and must be the path"),
        (lambda: TensorRTPlan("a", onnx="/b.onnx"), "onnx of TensorRTPlan('a') is '/b.onnx' and must be the path of a"),
        (lambda: TensorRTPlan("a", onnx=""), "onnx of TensorRTPlan('a') is '' and must be the path of a file in the"),
        (lambda: TensorRTPlan("a", onnx=TOKEN), f"onnx of TensorRTPlan('a') {TOKEN!r} {OF_TOKEN}"),
        (lambda: TensorRTPlan("a", version=0), "version of TensorRTPlan('a') is 0 and must be a whole number from 1"),
        (lambda: TensorRTPlan("a", version=True), "version of TensorRTPlan('a') is True and must be a whole number"),
        (
            lambda: TensorRTPlan("a", precision="fp8"),  # type: ignore[arg-type]  # what a user without mypy writes
            "precision of TensorRTPlan('a') is 'fp8' and must be one of 'fp32', 'fp16', 'bf16', 'int8', "
            "'strongly_typed'",
        ),
        (lambda: TensorRTPlan("a", workspace_mib=0), "workspace_mib of TensorRTPlan('a') is 0 and must be a whole"),
        (
            lambda: TensorRTPlan("a", optimization_level=6),
            "optimization_level of TensorRTPlan('a') is 6 and must be a whole number from 0 to 5",
        ),
        (
            lambda: TensorRTPlan("a", hardware_compatibility="ampere"),  # type: ignore[arg-type]
            "hardware_compatibility of TensorRTPlan('a') is 'ampere' and must be one of 'ampere+', "
            "'same_compute_capability'",
        ),
        (
            lambda: TensorRTPlan("a", parity=False),  # type: ignore[arg-type]
            "parity of TensorRTPlan('a') is False, a bool: write Parity(…), or None for no comparison",
        ),
    ],
)
def test_a_plan_has_no_other_values(make: Callable[[], object], words: str) -> None:
    assert words in message_of(make)


@pytest.mark.parametrize(
    ("profiles", "words"),
    [
        ([], "profiles of TensorRTPlan('a') is empty: use a list of at least one profile, such as [{'ids': "),
        ([{}], "profiles of TensorRTPlan('a') holds a dict: use a list of at least one profile"),
        ({"x": ((1,), (1,), (1,))}, "profiles of TensorRTPlan('a') is a dict: use a list of at least one profile"),
        (4, "profiles of TensorRTPlan('a') is 4, an int: use a list of at least one profile"),
        (({} for _ in "a"), "profiles of TensorRTPlan('a') is a generator: use a list of at least one profile"),
        ([{"x": ((1, 4), (8, 4))}], "are ((1, 4), (8, 4)) and must be the smallest, the usual and the largest shape"),
        ([{"x": ((1, -1), (8, 4), (8, 4))}], "must be the smallest, the usual and the largest shape, batch included"),
        ([{"x": ((1, 4), (8, 4), (8,))}], "have unlike numbers of dimensions: (1, 4), (8, 4) and (8,)"),
        (
            [{"x": ((1, 4), (9, 4), (8, 4))}],
            "the shapes of 'x' in a profile of TensorRTPlan('a') must not become smaller from one to the next: "
            "(1, 4), (9, 4) and (8, 4)",
        ),
        ([{"a,b": ((1,), (1,), (1,))}], "cannot be told to trtexec, whose lists end at , and ': rename the input"),
    ],
)
def test_a_profile_is_three_shapes_for_each_input(profiles: object, words: str) -> None:
    assert words in message_of(lambda: TensorRTPlan("a", profiles=profiles))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Tolerance(-1, 0), "the absolute tolerance is -1 and must be a number of at least 0"),
        (lambda: Tolerance(0, float("nan")), "the relative tolerance is nan and must be a number of at least 0"),
        (lambda: Tolerance(0, float("inf")), "the relative tolerance is inf and must be a number of at least 0"),
        (lambda: Parity(seed=-1), "the seed of a Parity is -1 and must be a whole number from 0"),
        (lambda: Parity(0.1), "the tolerance of a Parity is 0.1, a float: write Tolerance("),  # type: ignore[arg-type]
        (
            lambda: Parity(ranges=[("ids", (0, 9))]),  # type: ignore[arg-type]
            "the ranges of a Parity is a list: use a mapping from inputs to ranges, such as {'input_ids': (0, 30521)}",
        ),
        (
            lambda: Parity(ranges={"ids": (9, 3)}),
            "the range of the input 'ids' is (9, 3) and must be the smallest and the largest value, such as (0, 30521)",
        ),
        (lambda: Parity(ranges={"ids": (0.0, 1.0)}), "the range of the input 'ids' is (0.0, 1.0) and must be the"),  # type: ignore[dict-item]
    ],
)
def test_a_comparison_has_no_other_values(make: Callable[[], object], words: str) -> None:
    assert words in message_of(make)


def test_recipes_with_the_same_values_are_equal() -> None:
    def plan(*names: str) -> TensorRTPlan:
        profile = {name: ((1, 4), [8, 4], (16, 4)) for name in names}
        return TensorRTPlan("bert", profiles=[profile], parity=Parity(ranges=dict.fromkeys(names, (0, 9))))

    assert plan("a", "b") == plan("b", "a")
    assert plan("a", "b").parameters() == plan("b", "a").parameters()
    assert plan("a") != plan("a", "b")
