"""What `cdk-triton doctor` says of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdk_triton.cli.doctor.workstation import least_cli_version


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "grade", "status"),
    [
        ("v22.0.0", "ok", 0),
        ("v20.20.2", "warning", 0),
        (
            "v18.1.0",
            "error",
            1,
        ),
    ],
)
def test_the_version_of_node(doctor: Any, aws: Any, programs: Any, version: str, grade: str, status: int) -> None:
    programs("node", version)
    outcome = doctor()
    assert (outcome.graded("Node"), outcome.status) == (grade, status)


def test_node_is_the_one_that_jsii_runs(doctor: Any, aws: Any, programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", str(programs("another", "v18.0.0")))
    assert doctor().graded("Node") == "error"


def test_without_node(doctor: Any, aws: Any, here: Path) -> None:
    (here.parent / "bin" / "node").unlink()
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("Node") == "error"


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("2.1040.0 (build x)", id="too old"),
        pytest.param("3.0.0 (build x)", id="published by accident"),
    ],
)
def test_a_cdk_command_that_cannot_read_the_assembly(doctor: Any, aws: Any, programs: Any, version: str) -> None:
    programs("cdk", version)
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("CDK command") == "error"


def test_the_cdk_command_of_a_project_is_found_as_npx_does(doctor: Any, aws: Any, here: Path) -> None:
    installed = here.parent / "node_modules" / ".bin" / "cdk"
    installed.parent.mkdir(parents=True)
    (here.parent / "bin" / "cdk").rename(installed)
    assert doctor().graded("CDK command") == "ok"


@pytest.mark.parametrize("broken", [False, True], ids=["absent", "not a cdk"])
def test_without_the_cdk_command(doctor: Any, aws: Any, here: Path, broken: bool) -> None:
    path = here.parent / "bin" / "cdk"
    path.write_text("#!/bin/sh\nexit 1\n") if broken else path.unlink()
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.graded("CDK command") == "error"


def test_the_oldest_cdk_command_is_what_the_cdk_itself_says() -> None:
    assert least_cli_version() == "2.1147.0"  # of the aws-cdk-lib that the lock file pins


@pytest.mark.slow
@pytest.mark.parametrize(("size", "grade", "status"), [(9e9, "warning", 0), (0.9e9, "error", 1)])
def test_little_room(doctor: Any, aws: Any, here: Path, free: Any, size: float, grade: str, status: int) -> None:
    free(size)
    outcome = doctor()
    assert outcome.status == status
    assert outcome.graded("disk") == grade
