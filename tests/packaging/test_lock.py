"""The lock file: two dependencies of which newer versions may exclude each other."""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

LOCK = (Path(__file__).parents[2] / "requirements.lock").read_text(encoding="utf-8")


def locked(name: str) -> Version:
    """The version that the lock file pins."""
    match = re.search(rf"^{re.escape(name)}==([^ ;\\]+)", LOCK, re.MULTILINE)
    assert match is not None, f"{name} is not in requirements.lock"
    return Version(match[1])


@pytest.mark.parametrize(("name", "newest"), [("onnx", "1.23.2"), ("tritonclient", "2.73.0")])
def test_the_resolver_takes_the_newest_of_both(name: str, newest: str) -> None:
    """A lower version means that `make lock` stepped back: the two no longer accept one version of ml-dtypes."""
    assert locked(name) >= Version(newest)


@pytest.mark.parametrize("name", ["onnx", "tritonclient"])
def test_both_accept_the_locked_ml_dtypes(name: str) -> None:
    """Their ranges meet in a single version: onnx 1.23 wants at least 0.5.4, tritonclient 2.73 at most that."""
    wanted = [Requirement(each) for each in requires(name) or [] if re.match(r"ml[-_]dtypes", each)]
    assert wanted, f"{name} no longer requires ml-dtypes: delete this test"
    for requirement in wanted:
        assert locked("ml-dtypes") in requirement.specifier
