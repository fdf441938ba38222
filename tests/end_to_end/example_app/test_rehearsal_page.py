"""The walk through docs/rehearsal.md: from an empty directory to a deployment that a golden request stops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.docs.blocks import is_shown, of_kind

BLOCKS = [block.text for block in of_kind("end_to_end/example_app/test_rehearsal_page.py")]
FAIL = ("$ cdk deploy", "models: error:")
"""What the commands have in their block that end with 1."""


@pytest.fixture
def project(shell: Any, local_aws: Any) -> Iterator[Any]:
    """An empty directory, led to an AWS of its own."""
    with local_aws(shell.directory) as led:
        yield led


def run(project: Any, block: str) -> None:
    """Run a block as the page says where a local AWS already runs, and compare what it shows."""
    command, _, shown = block.removeprefix("$ ").partition("\n") if block.startswith("$ ") else (block, "", "")
    command = re.sub(r"^variables=.*$|&& cdk-triton local down", "", command, flags=re.MULTILINE)
    fails = any(each in block for each in FAIL)
    printed = project.run("bash", "-euc", command, status=1 if fails else 0)
    if shown:
        assert is_shown(printed, shown), printed


@pytest.mark.slow
def test_a_golden_request_stops_a_deployment_and_the_endpoint_goes_on(project: Any) -> None:
    for block in BLOCKS:
        run(project, block)
