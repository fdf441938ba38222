"""The commands look at the region that `cdk` deploys to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.region import deployment_region

VARIABLES = ("AWS_REGION", "AMAZON_REGION", "AWS_DEFAULT_REGION", "AMAZON_DEFAULT_REGION")


@pytest.fixture(autouse=True)
def _profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a profile in Sydney, and no variable."""
    (tmp_path / "config").write_text("[default]\nregion = ap-southeast-2\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in (*VARIABLES, "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "region"),
    [
        ({}, None),
        ({"AWS_DEFAULT_REGION": "us-east-1"}, "us-east-1"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-east-1"}, "eu-west-1"),
        ({"AMAZON_REGION": "eu-west-2", "AWS_DEFAULT_REGION": "us-east-1"}, "eu-west-2"),
        ({"AWS_REGION": "", "AMAZON_DEFAULT_REGION": "eu-west-3"}, "eu-west-3"),
    ],
    ids=str,
)
def test_the_environment_names_it_as_for_the_cdk_command(
    monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], region: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert deployment_region() == region


@pytest.mark.parametrize(("variable", "region"), [(None, "ap-southeast-2"), ("eu-west-1", "eu-west-1")])
def test_a_store_is_looked_for_there(monkeypatch: pytest.MonkeyPatch, variable: str | None, region: str) -> None:
    if variable is not None:
        monkeypatch.setenv("AWS_REGION", variable)
    assert Aws().region == region
