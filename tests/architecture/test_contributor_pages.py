"""The pages for contributors, and the files for a Git host: what they name exists."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

# Names in the worked examples.
MADE_UP = {"gunzip.py", "queueing", "queueing.py", "secrets.py", "test_queueing.py", "test_secrets.py"}


def pages(root: Path) -> Iterator[Path]:
    yield root / "CONTRIBUTING.md"
    yield from (root / "docs" / "contributing").glob("*.md")


def commands(text: str) -> set[str]:
    """The targets of `make` that a text calls."""
    return set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE))


def targets(root: Path) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))


def version(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def test_every_command_of_a_page_is_a_target_of_the_makefile(root: Path) -> None:
    for page in [*pages(root), root / "README.md", root / "SECURITY.md", root / ".github" / "PULL_REQUEST_TEMPLATE.md"]:
        assert commands(page.read_text(encoding="utf-8")) <= targets(root), page


def test_the_jobs_of_the_workflow_are_targets_of_the_makefile(root: Path) -> None:
    workflow = yaml.safe_load((root / ".github" / "workflows" / "ci.yml").read_text())
    rows = workflow["jobs"]["check"]["strategy"]["matrix"]["include"]
    jobs = {target for row in rows for target in row["target"].split()}
    assert {"lint", "test-fast", "preflight", "test", "docs"} == jobs
    assert jobs <= targets(root)


def test_every_action_of_the_workflow_is_pinned_by_commit(root: Path) -> None:
    workflow = (root / ".github" / "workflows" / "ci.yml").read_text()
    actions = re.findall(r"uses: (.*)", workflow)
    assert actions
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", action) for action in actions)


@pytest.mark.parametrize("name", ["bug", "rule", "feature"])
def test_an_issue_form_has_what_the_host_requires(root: Path, name: str) -> None:
    form: dict[str, Any] = yaml.safe_load((root / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text())
    assert {"name", "description", "body"} <= set(form)
    asked = [each for each in form["body"] if each["type"] != "markdown"]
    assert len({each["id"] for each in asked}) == len(asked)
    assert all(each["attributes"]["label"] for each in asked)


def test_the_version_is_the_same_everywhere(root: Path) -> None:
    current = version(root)
    assert f"version {current}." in (root / "README.md").read_text()
    assert f"cdk_triton-{current}-py3-none-any.whl" in (root / "docs" / "install.md").read_text()
    assert re.search(rf"^## \[{re.escape(current)}\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_every_path_and_name_in_a_command_of_a_page_exists(root: Path) -> None:
    names = {path.stem for path in (root / "tools" / "generate").glob("*.py")}
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        for words in re.findall(r"(?:^|`)pytest ([^#`]*?)(?=[#`]|\n(?!tests/))", text, re.MULTILINE):
            paths = [word for word in words.split() if word.startswith("tests/") and "<" not in word]
            missing = [path for path in paths if not (root / path).exists()]
            assert {path.rpartition("/")[2] for path in missing} <= MADE_UP, page
        for words in re.findall(r"(?:^|`)python -m tools\.generate ([^#`\n]*)", text, re.MULTILINE):
            assert set(words.split()) <= names, page
