"""The user guide: what it lists is what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.docs.blocks import FENCE, of_kind
from typer.main import get_command
from typer.testing import CliRunner

from cdk_triton.cli.program import app

LINK = re.compile(r"\[[^\]]*\]\(([^)]*)\)|^ *\[[^\]]+\]: *(\S*)|\b(?:href|src)=[\"']?([^\s\"'>]*)", re.MULTILINE)
"""A link in the text or a picture, the target of a reference link, and a target in HTML."""

FOLDERS = {"benchmarks", "constructs", "docs", "examples", "lambda", "model_assets", "tests", "tools"}


@cache
def heading_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def markdown(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every Markdown file of the checkout, and those of a project that `init` has written."""
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=root, capture_output=True, text=True, check=True)
    project = tmp_path_factory.mktemp("project")
    assert CliRunner().invoke(app, ["init", str(project)]).exit_code == 0
    return [*(root / name for name in listed.stdout.split("\0") if name), *sorted(project.rglob("*.md"))]


def prose(page: Path) -> str:
    """Return the text of a page without its code, in which brackets and addresses are not links."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def links(text: str) -> list[tuple[str, str]]:
    """Return the path and the anchor of each link to a file, also to the own one."""
    targets = ("".join(groups) for groups in LINK.findall(text))
    files = (target.partition("#") for target in targets if not re.match(r"\w+:", target))
    return [(path, anchor) for path, _, anchor in files]


def test_every_link_leads_somewhere(markdown: list[Path]) -> None:
    for page in markdown:
        for target, anchor in links(prose(page)):
            place = page.parent / target if target else page
            assert place.exists(), f"{page}: {target}"
            assert not anchor or anchor in heading_anchors(place), f"{page}: {target}#{anchor}"


def examples(page: Path, language: str) -> list[str]:
    """What a page shows in a language; commands of a shell have none."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [shown for of, shown in blocks if of == language]


def test_every_option_of_the_command_that_a_page_writes_exists(root: Path) -> None:
    known = {
        path: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        for path, command in every_command()
    }
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        shown = "".join(text for language in ("", "sh", "console", "text") for text in examples(page, language))
        for line in re.sub(r" *\\\n *", " ", shown).splitlines():
            for words in re.findall(r"(?:^(?:\$ )?|[(&;] ?)cdk-triton ([^)&;#]*)", line):
                path = max((path for path in known if f"{words} ".startswith(f"{path} ")), key=len)
                assert set(re.findall(r"--[a-z][a-z-]*", words)) <= known[path], (page.name, words)


@pytest.mark.slow
def test_the_whole_app_synthesises_as_its_page_says_and_without_a_warning(root: Path, tmp_path: Path) -> None:
    page = root / "docs" / "production.md"
    (made,) = (each for each in examples(page, "") if each.startswith("mkdir -p search"))
    (app,) = (each for each in examples(page, "python") if "App()" in each)
    (synthesised,) = of_kind("architecture/test_docs.py")
    (tmp_path / "written.py").write_text(app, encoding="utf-8")
    path = os.pathsep.join((str(Path(sys.executable).parent), str(root / "node_modules" / ".bin"), os.environ["PATH"]))

    done = subprocess.run(
        ["bash", "-eu", "-c", f"cdk-triton init\n{made}\nmv written.py app.py\n{synthesised.text}"],
        cwd=tmp_path,
        # The CDK's validation of templates takes most of the time of a synthesis; tests/security has it.
        env={**os.environ, "PATH": path, "CDK_VALIDATION": "false", "NODE_NO_WARNINGS": "1", "CI": "true"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()
    assert len(app.splitlines()) <= 70


def test_every_command_and_option_is_on_a_page(root: Path) -> None:
    guide = "".join(page.read_text(encoding="utf-8") for page in (root / "docs").glob("*.md"))
    for path, command in every_command():
        assert f"cdk-triton {path}" in guide, path
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in guide, (path, option)


def test_no_message_names_a_file_of_the_checkout(root: Path) -> None:
    """Findings, errors, and the descriptions of alarms. The example app runs in the checkout only."""
    golden = (root / "tests" / "messages.golden").read_text(encoding="utf-8")
    assert "\nalarm\n" in golden
    messages = [line for line in golden.splitlines() if line.startswith("  ") and not line.startswith("  app.py:")]
    assert [message for message in messages if files_of_the_checkout(root, message)] == []


def files_of_the_checkout(root: Path, text: str) -> list[str]:
    """The files and directories that a text names by a path from the top of the checkout, without a web address."""
    named = re.findall(r"(?<![\w/.-])[\w-]+/[\w./-]*\w", re.sub(r"https?://\S+", "", text))
    return [each for each in named if each.split("/")[0] in FOLDERS and (root / each).exists()]


def every_command() -> list[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    return commands("", get_command(app))


def commands(path: str, command: Any) -> list[tuple[str, Any]]:
    """Return every command below `command` that does something, with the words that call it."""
    children = getattr(command, "commands", None)
    if children is None:
        return [(path, command)]
    return [leaf for name, child in children.items() for leaf in commands(f"{path} {name}".strip(), child)]
