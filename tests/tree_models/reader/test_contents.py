"""Which format the first bytes of a file show."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib

import pytest

from cdk_triton.tree_models.reader.contents import format_of, pickle_in, pickling_library
from sample_repositories.tree_models import lightgbm, pickle_of, xgboost_binary, xgboost_json


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(xgboost_json(), "xgboost_json", id="JSON"),
        pytest.param(b"\n  " + xgboost_json(), "xgboost_json", id="JSON after blanks"),
        pytest.param(b"{}", "xgboost_json", id="an empty object"),
        pytest.param(b"{L\0\0\0\0\0\0\0\x07learner{", "xgboost_ubj", id="UBJSON"),
        pytest.param(b"{i\x07learner{", "xgboost_ubj", id="UBJSON with short lengths"),
        pytest.param(xgboost_binary(), "xgboost", id="binary"),
        pytest.param(b"binf" + xgboost_binary(), "xgboost", id="binary of old versions"),
        pytest.param(lightgbm(), "lightgbm", id="LightGBM"),
        pytest.param(lightgbm().removeprefix(b"tree\n"), "lightgbm", id="LightGBM without its first line"),
        pytest.param(b"\4\0\0\0\10\0\0\0\1\0\0\0\2\2" + bytes(8), "treelite_checkpoint", id="Treelite 4.8.1"),
        pytest.param(bytes(200), None, id="zeros"),
        pytest.param(b"tree", None, id="a word"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(200), None, id="a picture"),
    ],
)
def test_a_format_is_recognised(head: bytes, expected: str | None) -> None:
    assert format_of(head) == expected


PICKLE = pickle_of("sklearn.ensemble._forest")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(PICKLE, id="plain"),
        pytest.param(zlib.compress(PICKLE), id="zlib"),
        pytest.param(gzip.compress(PICKLE), id="gzip"),
        pytest.param(bz2.compress(PICKLE), id="bz2"),
        pytest.param(lzma.compress(PICKLE), id="xz"),
        pytest.param(lzma.compress(PICKLE, format=lzma.FORMAT_ALONE), id="lzma"),
        pytest.param(zlib.compress(PICKLE + bytes(10**6))[:900], id="a part of it"),
    ],
)
def test_a_pickle_is_recognised_with_its_library(head: bytes) -> None:
    pickled = pickle_in(head)
    assert pickled is not None
    assert pickling_library(pickled) == "scikit-learn"


@pytest.mark.parametrize("head", [xgboost_json(), lightgbm(), xgboost_binary(), zlib.compress(b"text"), b"BZh9"])
def test_other_bytes_are_no_pickle(head: bytes) -> None:
    assert pickle_in(head) is None


def test_the_first_module_is_the_library() -> None:
    assert pickling_library(pickle_of("xgboost.sklearn")) == "XGBoost"
    assert pickling_library(pickle_of("cuml.ensemble") + b"sklearn") == "cuML"
    assert pickling_library(pickle_of("pandas")) == ""
