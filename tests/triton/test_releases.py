"""The table of Triton releases."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import release, releases
from cdk_triton.triton.releases import backends_in, is_at_least, release_order, tensorrt_bounds

if TYPE_CHECKING:
    from golden_messages import Messages


def test_a_release() -> None:
    row = release("25.09")
    assert (row.triton, row.cuda, row.tensorrt, row.python, row.dali) == (
        "2.61.0",
        "13.0.1.012",
        "10.13.3.9",
        "3.12",
        "1.51.2",
    )
    assert (row.sagemaker_image, row.min_compute_capability) == (True, "7.5")
    assert row.order == (25, 9)


def test_an_unknown_release_lists_the_known_ones(messages: Messages) -> None:
    with messages.raises(ConfigurationError) as caught:
        release("25.13")
    assert ", 26.10, 26.11" in str(caught.value)


@pytest.mark.parametrize("name", ["25.9", "2509", "25.09-py3", "", "²5.09"])
def test_a_name_that_is_no_release(messages: Messages, name: str) -> None:
    with messages.raises(ConfigurationError):
        release_order(name)


def test_whether_a_release_is_another_or_newer() -> None:
    assert is_at_least("25.09", "25.09")
    assert is_at_least("25.10", "25.09")
    assert not is_at_least("24.12", "25.01")


def test_releases_come_in_order_and_each_once() -> None:
    orders = [row.order for row in releases()]
    assert orders == sorted(set(orders))
    assert len(orders) == 53


def test_the_tensorflow_backend_ended_with_25_02() -> None:
    assert max(row.release for row in releases() if "tensorflow" in backends_in(row.release)) == "25.02"


def test_the_backends_of_a_release() -> None:
    today = {
        *("dali", "fil", "identity", "onnxruntime", "openvino", "python", "pytorch", "repeat", "square", "tensorrt")
    }
    assert backends_in("25.03") == backends_in("30.01") == today
    assert backends_in("23.04") == backends_in("25.02") == today | {"tensorflow"}
    assert backends_in("22.07") == backends_in(None) == today | {"tensorflow", "tensorflow1", "tensorflow2"}


def test_versions_look_like_versions() -> None:
    for row in releases():
        assert row.triton is not None, row
        assert re.fullmatch(r"2\.\d+\.\d", row.triton), row
        assert re.fullmatch(r"3\.\d+", row.python), row
        assert re.fullmatch(r"\d+\.(x|\d+(\.\d+)*)", row.tensorrt), row
        assert row.cuda is None or re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?", row.cuda), row
        assert row.min_compute_capability in (None, "6.0", "7.5"), row


def test_only_releases_without_an_image_of_sagemaker_have_assumed_versions() -> None:
    names = [row.release for row in releases()]
    for before, row in pairwise(releases()):
        assert not (row.assumed and row.sagemaker_image), row
        assert {field: getattr(row, field) for field in row.assumed} == {
            field: getattr(before, field) for field in row.assumed
        }
    assert [row.release for row in releases() if row.assumed] == names[-3:]


def test_a_release_newer_than_the_table_takes_the_newest_row() -> None:
    newest, newer = releases()[-1], release("27.02")
    assert (newer.python, newer.onnxruntime) == (newest.python, newest.onnxruntime)
    assert (newer.cuda, newer.dali, newer.tensorrt_confidence) == (None, None, "unverified")
    assert newer.order == (27, 2)


def test_every_row_has_the_fields_that_the_table_describes() -> None:
    table = json.loads(files("cdk_triton.triton").joinpath("data", "releases.json").read_text(encoding="utf-8"))
    for row in table["releases"]:
        assert list(row) == list(table["fields"])


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        pytest.param("24.05", ((10, 0, 1, 6), (10, 0, 1, 6)), id="read for this release"),
        pytest.param("24.10", ((10, 4, 0, 26), (10, 6, 0, 26)), id="between two that were read"),
        pytest.param("22.07", (None, (8, 6, 3)), id="older than any that was read"),
        pytest.param("30.01", ((11, 2, 1), None), id="not known yet"),
    ],
)
def test_an_unverified_tensorrt_is_bounded_by_its_neighbours(
    name: str, bounds: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
) -> None:
    assert tensorrt_bounds(name) == bounds


def test_tensorrt_never_goes_back() -> None:
    read = [row for row in releases() if row.tensorrt_confidence != "unverified"]
    oldest = [tensorrt_bounds(row.release)[0] for row in read]
    assert oldest == sorted(oldest, key=lambda version: version or ())
