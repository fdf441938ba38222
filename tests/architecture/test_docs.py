"""The user guide: what it lists is what there is."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from cdk_triton import errors
from cdk_triton.cli.program import app
from cdk_triton.triton.checks import documented_rules

LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def heading_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as MkDocs makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_navigation_holds_every_page_once(root: Path) -> None:
    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for value in (entry.values() if isinstance(entry, dict) else entry) for page in pages(value)]

    listed = pages(yaml.safe_load((root / "mkdocs.yml").read_text())["nav"])
    assert sorted(listed) == sorted(
        path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")
    )


def test_every_link_leads_somewhere(root: Path) -> None:
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            place = page.parent / target if target else page
            assert place.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in heading_anchors(place), f"{page.name}: {target}#{anchor}"


def test_every_python_example_is_python(root: Path) -> None:
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        for example in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            ast.parse(example, filename=page.name)


@pytest.mark.parametrize("name", errors.__all__)
def test_the_page_of_errors_has_every_class(root: Path, name: str) -> None:
    assert f"| `{name}` |" in (root / "docs" / "errors.md").read_text()


def test_the_page_of_the_command_has_every_command_and_option(root: Path) -> None:
    page = (root / "docs" / "cli.md").read_text()
    for path, command in commands("", get_command(app)):
        assert f"`{path}`" in page or f"cdk-triton {path}\n" in page, path
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in page, option


def test_the_fidelity_table_is_that_of_the_local_cloudformation(root: Path) -> None:
    script = root / "docs" / "fidelity_table.py"
    page = (root / "docs" / "local_aws.md").read_text()
    assert runpy.run_path(str(script))["with_table"](page) == page, f"run: python {script.relative_to(root)}"


def test_the_page_of_rules_is_that_of_the_rules(root: Path) -> None:
    script = root / "docs" / "rules_page.py"
    text = runpy.run_path(str(script))["page"](documented_rules())
    assert (root / "docs" / "rules.md").read_text() == text, f"run: python {script.relative_to(root)}"


def test_every_rule_has_an_anchor(root: Path) -> None:
    anchors = heading_anchors(root / "docs" / "rules.md")
    assert {rule.code.lower() for rule in documented_rules()} <= anchors


def commands(path: str, command: Any) -> list[tuple[str, Any]]:
    """Return every command below `command` that does something, with the words that call it."""
    children = getattr(command, "commands", None)
    if children is None:
        return [(path, command)]
    return [leaf for name, child in children.items() for leaf in commands(f"{path} {name}".strip(), child)]
