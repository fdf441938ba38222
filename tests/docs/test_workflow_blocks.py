"""The workflows of the pages run: their commands in a shell, as GitHub, GitLab and pre-commit run them.

A step that uses an action of GitHub, or that installs packages, does not run, because both need a network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.blocks import ROOT, blocks_of, of_kind

GITHUB, ANNOTATIONS, GITLAB, PRE_COMMIT = (
    yaml.safe_load(block.text) for block in of_kind("docs/test_workflow_blocks.py")
)
(CODE_QUALITY,) = (block.text for block in blocks_of(ROOT / "docs" / "validate.md") if "SEVERITIES" in block.text)
BASH = {"github": ("bash", "-e", "-c"), "gitlab": ("bash", "-eo", "pipefail", "-c")}
"""The shells of the services ("Workflow syntax" of GitHub's docs, jobs.<job_id>.steps[*].shell; gitlab-runner,
shells/bash.go), and the variables that both of them set."""
VARIABLES = {"github": {"CI": "true", "GITHUB_ACTIONS": "true"}, "gitlab": {"CI": "true", "GITLAB_CI": "true"}}
INSTALL = "pip install -r requirements.txt"
ACTIONS = {
    "actions/checkout": {"lfs"},
    "actions/setup-python": {"python-version"},
    "github/codeql-action/upload-sarif": {"sarif_file", "category"},
}
"""The actions of the pages, and their inputs that the pages set."""
CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "IDS" data_type: TYPE_INT32 dims: 1 }
"""
MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


@pytest.fixture(params=[0, 1], ids=["no finding", "an error"])
def status(request: pytest.FixtureRequest) -> int:
    """The status with which a job ends."""
    return int(request.param)


@pytest.fixture
def checkout(tmp_path: Path, status: int) -> Path:
    """A checkout with a repository of models, and with an error in it if the status is 1."""
    model = tmp_path / "models" / "bert"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.py").write_text(MODEL)
    (model / "config.pbtxt").write_text(CONFIG.replace("batch_size", "batch_siz") if status else CONFIG)
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "code_quality.py").write_text(CODE_QUALITY)
    return tmp_path


@pytest.fixture(autouse=True)
def caller(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Call the tests as a hook of another repository does, and in a locale that is not installed."""
    repository = tmp_path_factory.mktemp("caller")
    variables = {"GIT_DIR": f"{repository}/git", "GIT_INDEX_FILE": f"{repository}/index", "LC_ALL": "xx_XX.UTF-8"}
    for name, value in {**variables, "SKIP": PRE_COMMIT["repos"][0]["hooks"][0]["id"]}.items():
        monkeypatch.setenv(name, value)
    return repository


def run(checkout: Path, service: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script without the variables of a hook that runs these tests: they name the repository of the hook."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    outside = {name: value for name, value in os.environ.items() if name != "SKIP" and not name.startswith("GIT_")}
    environment = {**outside, **VARIABLES[service], "PATH": path, "LC_ALL": "C.UTF-8"}
    command = [*BASH[service], script]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def run_steps(checkout: Path, steps: list[dict[str, Any]]) -> list[subprocess.CompletedProcess[str]]:
    """Run steps of a job, and check the files that the others read."""
    done = []
    for step in steps:
        assert len({"run", "uses"} & step.keys()) == 1
        assert step.keys() <= {"run", "uses", "with", "if"}
        if condition := step.get("if"):
            (read,) = re.findall(r"^always\(\) && hashFiles\('(.+)'\) != ''$", condition)
            assert (checkout / read).read_text()
        if "uses" in step:
            name, version = step["uses"].split("@")
            assert re.fullmatch(r"v\d+", version)
            assert step["with"].keys() == ACTIONS[name]
            assert (checkout / step["with"].get("sarif_file", ".")).exists()
        elif step["run"] != INSTALL:
            done.append(run(checkout, "github", step["run"]))
    return done


def places(checkout: Path) -> list[tuple[str, str, int]]:
    """The findings of the file that the workflows write: code, path and line."""
    results = json.loads((checkout / "cdk-triton.sarif").read_text())["runs"][0]["results"]
    at = [(each["ruleId"], each["locations"][0]["physicalLocation"]) for each in results]
    return [(code, place["artifactLocation"]["uri"], place["region"]["startLine"]) for code, place in at]


def test_the_job_of_github_fails_for_an_error_and_has_the_findings_to_upload(checkout: Path, status: int) -> None:
    assert GITHUB.keys() == {True, "jobs"}  # YAML 1.1 reads the key `on` so
    assert GITHUB[True] == {"pull_request": None, "push": {"branches": ["main"]}}
    (job,) = GITHUB["jobs"].values()
    assert job.keys() == {"runs-on", "permissions", "steps"}
    assert job["permissions"] == {"contents": "read", "security-events": "write"}

    (validate,) = run_steps(checkout, job["steps"])

    assert (validate.returncode, validate.stderr) == (status, "")
    assert places(checkout) == [("CT101", "models/bert/config.pbtxt", 3)] * status


@pytest.mark.parametrize("status", [1], indirect=True)
@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed; GitHub's runners have it")
def test_a_step_without_code_scanning_annotates_the_findings(checkout: Path) -> None:
    (job,) = GITHUB["jobs"].values()
    validate, annotate = run_steps(checkout, [*job["steps"], *ANNOTATIONS])

    assert (validate.returncode, annotate.returncode, annotate.stderr) == (1, 0, "")
    assert re.fullmatch(
        r"::error file=models/bert/config\.pbtxt,line=3,title=CT101::.*max_batch_siz.*\n", annotate.stdout
    )


def test_the_job_of_gitlab_fails_for_an_error_and_writes_its_report(checkout: Path, status: int) -> None:
    (job,) = GITLAB.values()
    assert job.keys() == {"image", "script", "artifacts"}
    assert job["script"][0] == INSTALL

    done = run(checkout, "gitlab", "\n".join(job["script"][1:]))

    assert (done.returncode, done.stdout + done.stderr) == (status, "")
    assert job["artifacts"]["when"] == "always"
    report = json.loads((checkout / job["artifacts"]["reports"]["codequality"]).read_text())
    assert len(report) == status
    for issue in report:
        assert issue.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"] == {"path": "models/bert/config.pbtxt", "lines": {"begin": 3}}


@pytest.mark.parametrize("status", [1], indirect=True)
def test_pre_commit_runs_the_hook_before_a_commit_of_a_model(checkout: Path, caller: Path) -> None:
    (checkout / ".pre-commit-config.yaml").write_text(yaml.safe_dump(PRE_COMMIT))
    script = "git init --quiet && git add models && PRE_COMMIT_HOME=$PWD/.cache pre-commit run --color never"

    done = run(checkout, "github", script)

    assert done.returncode == 1, done.stdout + done.stderr
    assert re.match(r"cdk-triton validate\.+Failed\n", done.stdout)
    assert "models/bert/config.pbtxt:3:1: error CT101" in done.stdout
    assert list(caller.iterdir()) == []
