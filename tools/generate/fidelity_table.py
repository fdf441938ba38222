"""The tables of docs/local_aws.md that list what the local AWS models, from the code itself."""

from __future__ import annotations

from tools.generate import ROOT, Files, GenerateError, Generator

from cdk_triton.local.fidelity import markdown

PAGE = "docs/local_aws.md"
BEGIN = "<!-- begin: written by `make generate` -->\n"
END = "<!-- end -->\n"


def with_table(page: str) -> str:
    """Return the page with what is modelled between its two marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise GenerateError(f"{PAGE} has to contain the lines {BEGIN.strip()} and {END.strip()} once each")
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + markdown() + "\n" + END + rest.split(END)[1]


def _files() -> Files:
    return {PAGE: with_table((ROOT / PAGE).read_text(encoding="utf-8")).encode()}


GENERATOR = Generator(_files)
