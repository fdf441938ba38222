"""The data of the pages is what the library and its tools read or write: TOML, JSON, and parts of configurations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hatchling.metadata.core import ProjectMetadata
from tests.docs.blocks import ROOT, blocks_of, of_kind, shape
from tests.hosting.conftest import PLAN_NETWORK

from cdk_triton import (
    CondaEnvironment,
    ServingPlatform,
    WheelEnvironment,
)
from cdk_triton.checks import rule_of
from cdk_triton.checks.documentation import Example
from cdk_triton.triton.model_config import parse_model_config
from sample_repositories import findings_of_example, write

if TYPE_CHECKING:
    from sample_repositories import Change, ExampleFindings, Write

__all__ = ["findings_of_example", "write"]  # fixtures

(
    OF_CONTRIBUTORS,
    STEP,
    IMAGE_MODULES,
    OF_RECIPES,
    ACKNOWLEDGED,
    PRODUCED,
    OF_OWN_RULES,
    FINDINGS,
) = of_kind("docs/test_data_blocks.py")
PYTHON = {"model/config.pbtxt": 'backend: "python"'}
CLASS = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
IMAGE = f"111122223333.dkr.ecr.us-east-1.amazonaws.com/triton@sha256:{'0' * 64}"


def codes(write: Write, files: Mapping[str, Change], **arguments: Any) -> list[str]:
    return [finding.code for finding in write(files, base={}).check(**arguments)]


def test_the_step_is_that_of_a_new_project(tmp_path: Path) -> None:
    subprocess.run([Path(sys.executable).with_name("cdk-triton"), "init", str(tmp_path)], check=True)
    ensemble = (tmp_path / "models" / "language" / "config.pbtxt").read_text()
    assert " ".join(STEP.text.split()) in " ".join(ensemble.split())


def test_the_table_acknowledges_its_warning(findings_of_example: ExampleFindings) -> None:
    (code,) = tomllib.loads(ACKNOWLEDGED.text)["acknowledge"]
    example = rule_of(code).documentation.example

    assert [finding.code for finding in findings_of_example(Example.from_text(example))] == [code]
    acknowledged = f"{example}\n# cdk-triton.toml\n{ACKNOWLEDGED.text}"
    assert findings_of_example(Example.from_text(acknowledged)) == ()


@pytest.mark.parametrize(("is_listed", "found"), [(False, ["CT120"]), (True, [])])
def test_the_checks_treat_a_listed_file_as_present(write: Write, is_listed: bool, found: list[str]) -> None:
    files = {
        "bert/config.pbtxt": PLAN_NETWORK,
        "bert/1/.gitkeep": "",
        **({"cdk-triton.toml": PRODUCED.text} if is_listed else {}),
    }
    assert codes(write, files) == found


@pytest.mark.parametrize(("module", "found"), [("torch", []), ("PIL", []), ("pandas", ["CT166"])])
def test_the_checks_treat_the_modules_of_an_own_image_as_present(write: Write, module: str, found: list[str]) -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge", image=IMAGE)
    files = {**PYTHON, "model/1/model.py": f"import {module}\n{CLASS}", "cdk-triton.toml": IMAGE_MODULES.text}
    assert codes(write, files, platform=platform) == found


@pytest.mark.parametrize(("members", "found"), [(None, ["CT153"]), ("bin/activate lib/python3.12/os.py", [])])
def test_the_parameter_names_the_archive_of_the_recipes(write: Write, members: str | None, found: list[str]) -> None:
    produced = [
        path
        for recipe in (WheelEnvironment("tokenize"), CondaEnvironment("tokenize", lock="conda-linux-64.lock"))
        for path in recipe.produces
    ]
    value = parse_model_config(OF_RECIPES.text).parameters["EXECUTION_ENV_PATH"].string_value
    assert {str(path) for path in produced} == {value.replace("$$TRITON_MODEL_DIRECTORY", "tokenize")}

    files: dict[str, Change] = {
        "tokenize/config.pbtxt": f'backend: "python"\n{OF_RECIPES.text}',
        "tokenize/1/model.py": "",
        "tokenize/env.tar.gz": members,
    }
    assert codes(write, files) == found


def test_the_entry_point_leads_to_the_rule(tmp_path: Path, write: Write) -> None:
    (source,) = (block.text for block in blocks_of(ROOT / "docs" / "validate.md") if "@rule" in block.text)
    assert OF_CONTRIBUTORS.text == OF_OWN_RULES.text
    project = {"name": "acme-triton", "version": "1.0", **tomllib.loads(OF_OWN_RULES.text)["project"]}
    ((group, points),) = ProjectMetadata(str(tmp_path), None, {"project": project}).core.entry_points.items()
    entries = "".join(f"{name} = {module}\n" for name, module in points.items())
    for name, text in {
        "acme_triton-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-triton\nVersion: 1.0\n",
        "acme_triton-1.0.dist-info/entry_points.txt": f"[{group}]\n{entries}",
        "acme_triton/__init__.py": "",
        "acme_triton/rules.py": source,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    config = 'backend: "openvino" parameters { key: "owner" value { string_value: "vision" } }'
    unread = {"resize/config.pbtxt": config, "resize/1/model.xml": "", "resize/1/model.bin": ""}
    repository = write({**PYTHON, "model/1/model.py": CLASS, **unread}, base={}).root

    options = ["--format", "json", "--default-model", "model", "--additional-model", "resize"]
    done = subprocess.run(
        [Path(sys.executable).with_name("cdk-triton"), "validate", str(repository), *options],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    document = json.loads(done.stdout)
    (finding,) = document["findings"]
    assert finding["code"] == "XACME01"
    (reason,) = {part["reason"] for part in document["not_read"]}
    assert reason == "the checks do not open files of the backend 'openvino'"
    assert shape(json.loads(FINDINGS.text)) == shape(document)
