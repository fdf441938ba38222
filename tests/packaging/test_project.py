"""A project of `cdk-triton init`, from the wheel and an empty directory: the commands of its own README.md."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.packaging.conftest import Environment

QUIET = {"NODE_NO_WARNINGS": "1", "CDK_VALIDATION": "false", "CI": "true"}
SHORT = "--duration 2 --warm-up 0"

SCRIPT = """
set -eu
trap 'cdk-triton local down' EXIT
{look}
{run}
{ask}
{down}
trap - EXIT
"""


def blocks(readme: str) -> dict[str, str]:
    """The blocks of commands, by the heading above them and their number below it."""
    found: dict[str, str] = {}
    for section in re.split(r"^## ", readme, flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        for number, block in enumerate(re.findall(r"^```\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)):
            found[f"{heading} {number}"] = block
    return found


def script(readme: str) -> str:
    """The lines that a reader types on this machine. The load is shorter."""
    block = blocks(readme)
    ask = block["Run it on this machine 1"] + block["Run it on this machine 2"]
    ask = ask.replace("ENDPOINT", '"$endpoint"')
    assert "--rate 20" in ask
    endpoint = """endpoint=$(sed -n 's/.*"EndpointName": "\\(.*\\)".*/\\1/p' outputs.json)\n"""
    return SCRIPT.format(
        look=block["Look at it 0"],
        run=block["Run it on this machine 0"],
        ask=endpoint + ask.replace("--rate 20", f"--rate 20 {SHORT}"),
        down=block["Run it on this machine 3"],
    )


@pytest.mark.long
def test_a_new_project_works_as_its_readme_describes(
    project_environment: Environment, root: Path, tmp_path: Path
) -> None:
    """Only --single: --multi takes 40 seconds more, and its README.md differs in `--target-model` alone."""
    made = project_environment.run("cdk-triton", "init", "my-endpoint", "--single", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    project = tmp_path / "my-endpoint"
    (project / "node_modules").symlink_to(root / "node_modules")  # `npm ci` has the network

    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AWS_"))}
    path = os.pathsep.join((f"{project_environment.directory}/bin", f"{project}/node_modules/.bin", "/usr/bin", "/bin"))
    done = subprocess.run(
        ["bash", "-c", script((project / "README.md").read_text())],
        cwd=project,
        env={**inherited, **QUIET, "PATH": path, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stdout
    expected = (
        "3 passed",
        "models: 4 models, no findings",
        "ensemble language, batches of up to 16",
        "English (0.97): The children play in the garden with the neighbours.",
        "Number of stacks with differences: 0",
        "German",
        "MyEndpoint: destroyed",
    )
    assert [words for words in expected if words not in done.stdout] == [], done.stdout
