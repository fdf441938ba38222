"""The commands of the pages for contributors run, in a copy of the checkout that each page has for itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, Block, of_kind

BLOCKS = of_kind("docs/test_contributor_blocks.py")
PATH = os.pathsep.join((str(Path(sys.executable).parent), str(ROOT / "node_modules" / ".bin"), os.environ["PATH"]))
AUTHOR = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
RULE, _ = of_kind("docs/test_rule_page.py")
"""What a person writes in place of the skeleton of a rule."""
LAST_TAG = "<last tag>"
CHANGE = "# now change the code, for example: leave the path of a file out of its key\npytest"
"""What a person does between two runs. The second run then fails, as the page says."""
CHANGED = ("constructs/cdk_triton/artifacts/keys.py", "return {file.path: ", "return {file.path[-8:]: ")


def run(directory: Path, script: str) -> None:
    """Run commands in a copy, whose own sources are imported; `make` only prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
            **AUTHOR,
            "MAKEFLAGS": "--dry-run",
            "PATH": PATH,
            "PYTHONPATH": str(directory / "constructs"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{script} ended with {done.returncode}:\n{done.stdout}"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A repository with the files of the checkout, and one commit."""
    made = tmp_path / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, made / name, follow_symlinks=False)
    for name in (".venv", "node_modules"):
        (made / name).symlink_to(ROOT / name)
    run(made, "git init --quiet && git add --all && git commit --quiet --message copy")
    return made


def script_of(block: Block) -> str:
    """Return the commands of a block, with what a person does between them."""
    script = block.text.replace(LAST_TAG, "HEAD")
    if CHANGE in script:
        path, old, new = CHANGED
        change = "python -c 'import sys, pathlib; p = pathlib.Path(sys.argv[1]); t = p.read_text()"
        change += "; assert sys.argv[2] in t; p.write_text(t.replace(sys.argv[2], sys.argv[3]))'"
        script = script.replace(CHANGE, f"{change} {path} '{old}' '{new}'\n! pytest")
    return script


@pytest.mark.long
@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS}))
def test_the_commands_of_a_page_run(page: str, copy: Path) -> None:
    for block in BLOCKS:
        if block.page == page:
            run(copy, script_of(block))
            if "new_rule.py" in block.text:
                (copy / "constructs/cdk_triton/checks/endpoint/queueing.py").write_text(RULE.text)
