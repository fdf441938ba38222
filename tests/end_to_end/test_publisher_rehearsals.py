"""A publisher with `rehearse=True`: ensembles with golden requests are rehearsed before callers get them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Outcome, run

from cdk_triton import ServingPlatform
from cdk_triton.protocol.layout import ARTIFACTS_PREFIX, REHEARSALS
from cdk_triton_local.aws import LocalAws
from deployed_fleet import DeployedFleet

__all__ = ["run"]

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
NEXT = ServingPlatform(release="26.05", instance_type="ml.g5.xlarge")
FLEET = ("--fleet", "Serving/Fleet")
FOR_NEXT = (*FLEET, "--platform", "26.05/ml.g5.xlarge")

CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 2 }
output { name: "label" data_type: TYPE_STRING dims: 1 }
"""
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        label = pb_utils.Tensor("label", np.array([[b"LABEL"]], dtype=object))
        return [pb_utils.InferenceResponse([label]) for request in requests]
"""
REQUEST = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}]}
SETTINGS = '[[rehearsal.requests]]\nrequest = "golden/one.json"\nlabel = "cat"\n'


def write(directory: Path, name: str, *, label: str, golden: bool = True, expected: str = "cat") -> None:
    """A repository whose model answers with a label, and a golden request that expects one."""
    root = directory / name
    (root / f"{name}/1").mkdir(parents=True, exist_ok=True)
    (root / f"{name}/config.pbtxt").write_text(CONFIG)
    (root / f"{name}/1/model.py").write_text(MODEL.replace("LABEL", label))
    if golden:
        (root / "golden").mkdir(exist_ok=True)
        (root / "golden/one.json").write_text(json.dumps(REQUEST))
        (root / "cdk-triton.toml").write_text(SETTINGS.replace("cat", expected))


@pytest.fixture(name="account")
def _account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeployedFleet]:
    with LocalAws(tmp_path / "aws") as aws:
        fleet = DeployedFleet(aws, tmp_path, PLATFORM, rehearse=True, next_platform=NEXT)
        fleet.lead_publisher(monkeypatch)
        yield fleet


def test_an_ensemble_that_answers_otherwise_is_reported_and_the_others_go_on(
    account: DeployedFleet, run: Any, tmp_path: Path
) -> None:
    tenants = tmp_path / "tenants"
    write(tenants, "cats", label="cat")
    write(tenants, "dogs", label="dog")
    write(tenants, "plain", label="dog", golden=False)

    found: Outcome = run("fleet", "publish", tenants, *FLEET)

    assert found.status == 1
    assert "failed dogs: the rehearsal of 'dogs' for 25.09-a10g failed: golden/one.json: " in found.out
    assert sorted(account.current()) == ["cats", "plain"]
    assert passes(account) == ["cats"]

    write(tenants, "dogs", label="cat")
    found = run("fleet", "publish", tenants, *FLEET)
    assert (found.status, sorted(account.current())) == (0, ["cats", "dogs", "plain"])


def test_a_changed_rehearsal_of_a_live_ensemble_is_run_and_moves_to_the_next_platform(
    account: DeployedFleet, run: Any, tmp_path: Path
) -> None:
    tenants = tmp_path / "tenants"
    write(tenants, "cats", label="cat")
    assert run("fleet", "publish", tenants, *FLEET).status == 0
    assert run("fleet", "publish", tenants, *FLEET).out.splitlines()[-1] == "0 published, 1 unchanged"

    write(tenants, "cats", label="cat", expected="dog")
    for _ in range(2):  # a failure is not kept
        found: Outcome = run("fleet", "publish", tenants, *FLEET)
        assert found.status == 1
        assert "failed cats: the rehearsal of 'cats' for 25.09-a10g failed: golden/one.json: " in found.out
    assert list(account.current()) == ["cats"]

    write(tenants, "cats", label="cat")
    assert run("fleet", "publish", tenants, *FLEET).out.splitlines()[-1] == "0 published, 1 unchanged"
    assert passes(account) == ["cats"]

    found = run("fleet", "publish", "--all", *FOR_NEXT)
    assert (found.status, found.out) == (0, "published, copied from the present platform: cats\n1 published\n")
    assert account.current(NEXT) == account.current()
    assert passes(account) == ["cats", "cats"]
    assert run("fleet", "publish", "--all", *FOR_NEXT).out.splitlines()[-1] == "0 published, 1 unchanged"

    with (tenants / "cats/cdk-triton.toml").open("a") as settings:
        settings.write(SETTINGS.replace("label", "# label"))
    for options in (tenants, *FLEET), ("--all", *FOR_NEXT):  # other golden requests are those of both platforms
        found = run("fleet", "publish", *options)
        assert (found.status, found.out.splitlines()[-1]) == (0, "1 published")
    assert passes(account) == ["cats"] * 4


def passes(account: DeployedFleet) -> list[str]:
    """The repository of each pass."""
    keys = [each["Key"] for each in account.s3.list_objects_v2(Bucket=account.bucket)["Contents"]]
    passed = [key for key in keys if key.startswith(ARTIFACTS_PREFIX) and f"/{REHEARSALS}" in key]
    return [key.split("/")[1] for key in passed if key.endswith(".json")]
