"""Every fenced block is run by a test, or its page gives the reason why not."""

from __future__ import annotations

import re
import subprocess

from tests.docs.blocks import (
    ELSEWHERE,
    GENERATED,
    KINDS,
    ROOT,
    SHELL,
    TEXT,
    every_block,
    kind,
    of_kind,
)

MOST_NOT_RUN = 20
PROGRAMS = "aws|cdk|cdk-triton|git|make|pip|pytest|python3?|uv"
COMMAND = re.compile(rf"^(\$ )?({PROGRAMS}) (?!.*(\[|\.\.\.|\b[A-Z]{{3,}}\b))", re.MULTILINE)
"""A command, and not the syntax of one, which has brackets or words in capitals."""
BLOCKS = every_block()
COMPARED_IN_PLACE = {
    ("docs/contributing/architecture.md", "cli\n"): "the layers of .importlinter",
    ("docs/getting_started.md", "models/"): "a tree of files, in test_shell_blocks.py",
    ("docs/notebook_model.md", "models/"): "a tree of files, in test_shell_blocks.py",
    ("docs/notebook_model.md", "data_type"): "a part of a configuration, in test_shell_blocks.py",
}
"""Page, the beginning of a text, and what compares it: texts that are neither a synopsis of a command nor in a row of
`ELSEWHERE`."""


def test_a_test_runs_each_or_its_page_has_the_reason() -> None:
    for block in BLOCKS:
        known = block.reason is not None or block.language in {*KINDS, *TEXT}
        assert known, f"{block}: use one of {sorted({*KINDS, *TEXT})} in place of {block.language!r}"
        run_by = kind(block)
        assert run_by in ("not run", "text") or (ROOT / "tests" / run_by).exists()


def test_a_row_names_blocks_and_the_test_that_takes_them() -> None:
    for page, beginning, test in ELSEWHERE:
        assert [block for block in of_kind(test, BLOCKS) if block.page == page and block.text.startswith(beginning)]
        source = (ROOT / "tests" / test).read_text(encoding="utf-8")
        assert test == SHELL or f'of_kind("{test}")' in source, f"{test} does not take its blocks from the pages"


def test_no_page_with_a_block_is_missing() -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    pages = [name for name in listed.stdout.split("\0") if name and not name.startswith(GENERATED)]
    with_blocks = {name for name in pages if "```" in (ROOT / name).read_text(encoding="utf-8")}
    assert with_blocks == {block.page for block in BLOCKS}


def test_few_blocks_are_not_run() -> None:
    assert len([block for block in BLOCKS if block.reason is not None]) <= MOST_NOT_RUN


def test_text_does_not_have_commands() -> None:
    for block in of_kind("text", BLOCKS):
        assert block.reason is not None or not COMMAND.search(block.text), f"{block} has a command that no test runs"


def test_every_other_text_is_compared() -> None:
    expected = list(COMPARED_IN_PLACE)
    for block in of_kind("text", BLOCKS):
        if block.reason is None and not block.text.startswith("cdk-triton "):  # its options are compared
            rows = [row for row in expected if row[0] == block.page and block.text.startswith(row[1])]
            assert rows, f"{block}: make it a console block, or give it a row in ELSEWHERE"
            expected.remove(rows[0])
    assert expected == []
