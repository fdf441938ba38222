"""The tables of docs/local_aws_reference.md that list what the local AWS models, from the code itself."""

from __future__ import annotations

import textwrap

from tools.generate import ROOT, Files, GenerateError, Generator

from cdk_triton_local.fidelity import markdown

PAGE = "docs/local_aws_reference.md"
BEGIN = "<!-- begin: written by `make generate` -->\n"
END = "<!-- end -->\n"
WIDTH = 120


def with_table(page: str) -> str:
    """Return the page with what is modelled between its two marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise GenerateError(f"{PAGE} has to contain the lines {BEGIN.strip()} and {END.strip()} once each")
    before, rest = page.split(BEGIN)
    wrapped = "\n".join(_item(line) if line.startswith("* ") else line for line in markdown().split("\n"))
    return before + BEGIN + "\n" + wrapped + "\n" + END + rest.split(END)[1]


def _item(line: str) -> str:
    """An item of a list, in lines that fit into an editor."""
    return textwrap.fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _files() -> Files:
    return {PAGE: with_table((ROOT / PAGE).read_text(encoding="utf-8")).encode()}


GENERATOR = Generator(_files)
