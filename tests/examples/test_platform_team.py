"""The platform team's package: its own tests, what gets into its wheel, and the templates that it makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template
from tests.docs.blocks import of_kind
from tests.hosting.conftest import World
from tests.security.examples import platform_team
from tests.snapshots.compare import assert_as_looked_at

PACKAGE = Path(__file__).parents[2] / "examples" / "platform_team"
OF_README, APP, CONSTRUCT = of_kind("examples/test_platform_team.py")


def run(directory: Path, *arguments: str, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_own_tests_pass() -> None:
    run(PACKAGE, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_its_wheel_has_the_package_and_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    run(tmp_path / "source", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert names == {f"acme_triton/{name}" for name in ("__init__.py", "account.py", "endpoint.py", "py.typed")}


def test_the_guide_shows_the_construct_as_it_is() -> None:
    construct = (PACKAGE / "acme_triton" / "endpoint.py").read_text(encoding="utf-8")
    head, start, body = CONSTRUCT.text.partition("        super().__init__(scope, id)\n")

    assert f"{start}{body}" in construct
    for line in ("class AcmeEndpoint(Construct):", "def __init__("):
        assert line in head
        assert line in construct


def test_the_readme_shows_the_app_of_the_guide() -> None:
    assert OF_README.text == APP.text


@pytest.fixture(name="app", scope="module")
def _app(tmp_path_factory: pytest.TempPathFactory) -> cdk.App:
    app = platform_team(World(tmp_path_factory.mktemp("company")))
    app.synth()  # only then references to other stacks are what the templates say
    return app


def test_the_app_of_the_guide_has_the_resources_of_the_template(app: cdk.App, tmp_path: Path) -> None:
    World(tmp_path).repository("models", below=".")
    context = json.loads((PACKAGE.parents[1] / "cdk.json").read_text())["context"]
    run(
        tmp_path,
        "-c",
        APP.text,
        PYTHONPATH=str(PACKAGE),
        CDK_OUTDIR="cdk.out",
        CDK_VALIDATION="false",
        CDK_CONTEXT_JSON=json.dumps(context),
    )
    shown = json.loads((tmp_path / "cdk.out" / "Search.template.json").read_text())
    stack = app.node.find_child("Search")
    assert isinstance(stack, cdk.Stack)
    assert shown["Resources"].keys() == Template.from_stack(stack).to_json()["Resources"].keys()


@pytest.mark.parametrize("name", ["Search", "search-artifacts"])
def test_the_template_is_the_one_that_was_looked_at(app: cdk.App, name: str) -> None:
    stack = app.node.find_child(name)
    assert isinstance(stack, cdk.Stack)
    assert_as_looked_at(stack, name)
